//! Sums by what they are of: few enough to be looked for one by one.

/// Sums of both by what they are of.
pub(super) fn joined<T: Clone + PartialEq>(a: &[(T, f64)], b: &[(T, f64)]) -> Vec<(T, f64)> {
    let mut sums = a.to_vec();
    b.iter().for_each(|(of, number)| add(&mut sums, of, *number));
    sums
}

/// Adds to the sum of a buffer.
pub(super) fn add_of(sums: &mut Vec<(String, f64)>, name: &str, number: f64) {
    match sums.iter_mut().find(|(other, _)| other == name) {
        Some((_, sum)) => *sum += number,
        None => sums.push((name.to_string(), number)),
    }
}

/// Adds to the sum of one of them.
pub(super) fn add<T: Clone + PartialEq>(sums: &mut Vec<(T, f64)>, of: &T, number: f64) {
    match sums.iter_mut().find(|(other, _)| other == of) {
        Some((_, sum)) => *sum += number,
        None => sums.push((of.clone(), number)),
    }
}
