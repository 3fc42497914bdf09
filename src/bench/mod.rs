//! Measurements: of the simulator, of the compiler, of first calls, of memory, and of kernels beside cuBLAS.

pub mod bandwidth;
pub mod compiler;
pub mod fc;
pub mod first_call;
pub mod gpu;
pub mod record;
pub mod simulator;
pub mod tsm;

/// The middle of some values; NaN where there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => values[n / 2],
        _ => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
