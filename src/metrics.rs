//! How well modelled times agree with measured ones: the measures of `validate-model` and of the tuner.
//!
//! Each takes pairs of a modelled and a measured time, in seconds and positive, and is `None` where there is too little to
//! say. Rank correlations are about the candidates of one problem: across problems any model that knows the work is near 1.

/// A modelled and a measured time in seconds.
pub type Pair = (f64, f64);

/// Spearman's rank correlation, from -1 to 1: the correlation of ranks, of which equals share the mean. `None` for fewer
/// than three pairs, and where all of one kind are equal.
pub fn spearman(pairs: &[Pair]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let (by_model, by_time) = (ranks(pairs, |p| p.0), ranks(pairs, |p| p.1));
    let mean = (pairs.len() - 1) as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let spread = (product(&by_model, &by_model) * product(&by_time, &by_time)).sqrt();
    (spread > 0.0).then(|| product(&by_model, &by_time) / spread)
}

/// Kendall's tau-b over those two candidates at a time whose measured times differ by more than the part `closer` of the
/// smaller (0.05: 5 %), since the order of what is closer is noise: (agreeing - disagreeing) over the geometric mean of
/// those that the model tells apart and those that the measurement does, which here are all. `None` where nothing is left.
pub fn kendall_tau_b(pairs: &[Pair], closer: f64) -> Option<f64> {
    let (mut difference, mut told_apart, mut all) = (0i64, 0i64, 0i64);
    for (at, (modelled, measured)) in pairs.iter().enumerate() {
        for (other_modelled, other) in &pairs[..at] {
            if (measured - other).abs() <= closer * measured.min(*other) {
                continue;
            }
            all += 1;
            if modelled != other_modelled {
                told_apart += 1;
                difference += if (modelled < other_modelled) == (measured < other) { 1 } else { -1 };
            }
        }
    }
    let of = (all as f64 * told_apart as f64).sqrt();
    (of > 0.0).then(|| difference as f64 / of)
}

/// The least measured time among the model's first `k`, over the least of all: 1 where the best is among them. Of those that
/// the model does not tell apart the slowest come first, so that it gets no credit for the order of the data.
pub fn best_of(pairs: &[Pair], k: usize) -> Option<f64> {
    let mut order: Vec<&Pair> = pairs.iter().collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let least = |of: &[&Pair]| of.iter().map(|p| p.1).reduce(f64::min);
    Some(least(&order[..order.len().min(k)])? / least(&order)?)
}

/// The mean of how far the modelled time is from the measured one, as a part of the latter: 0.1 is 10 %.
pub fn mean_absolute_error(pairs: &[Pair]) -> Option<f64> {
    mean(pairs.iter().map(|(modelled, measured)| (modelled / measured - 1.0).abs()))
}

/// The geometric mean of modelled over measured: below 1 the model promises too much.
pub fn geometric_bias(pairs: &[Pair]) -> Option<f64> {
    geometric_mean(pairs.iter().map(|(modelled, measured)| modelled / measured))
}

/// The geometric mean of positive numbers.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}

/// The middle one; of an even number the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => Some(values[half]),
        _ => Some((values.get(half.checked_sub(1)?)? + values[half]) / 2.0),
    }
}

fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0usize);
    values.into_iter().for_each(|value| {
        sum += value;
        count += 1;
    });
    (count > 0).then(|| sum / count as f64)
}

/// The rank of each pair by a key, from 0; equals share the mean of their ranks.
fn ranks(pairs: &[Pair], key: impl Fn(&Pair) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|a, b| key(&pairs[*a]).total_cmp(&key(&pairs[*b])));
    let mut ranks = vec![0.0; pairs.len()];
    let mut start = 0;
    for equals in order.chunk_by(|a, b| key(&pairs[*a]) == key(&pairs[*b])) {
        let shared = start as f64 + (equals.len() - 1) as f64 / 2.0;
        equals.iter().for_each(|at| ranks[*at] = shared);
        start += equals.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::{Pair, best_of, geometric_bias, kendall_tau_b, mean_absolute_error, median, spearman};

    fn close(a: Option<f64>, b: f64) {
        assert!(a.is_some_and(|a| (a - b).abs() < 1e-12), "{a:?} {b}");
    }

    /// Five candidates that take 1 to 5 s, and these times by the model.
    fn with(modelled: [f64; 5]) -> Vec<Pair> {
        modelled.into_iter().zip([1.0, 2.0, 3.0, 4.0, 5.0]).collect()
    }

    #[test]
    fn rank_correlations_of_a_right_order_a_wrong_one_and_one_with_ties() {
        let (right, wrong) = (with([5.0, 6.0, 7.0, 8.0, 9.0]), with([9.0, 8.0, 7.0, 6.0, 5.0]));
        assert_eq!((spearman(&right), kendall_tau_b(&right, 0.0)), (Some(1.0), Some(1.0)));
        assert_eq!((spearman(&wrong), kendall_tau_b(&wrong, 0.0)), (Some(-1.0), Some(-1.0)));
        // By hand: ranks 0, 1.5, 1.5, 3, 4 against 0 to 4; nine of ten told apart, all of them rightly.
        let tied = with([1.0, 2.0, 2.0, 3.0, 4.0]);
        close(spearman(&tied), 9.5 / (9.5f64 * 10.0).sqrt());
        close(kendall_tau_b(&tied, 0.0), 9.0 / (9.0f64 * 10.0).sqrt());
        // Two neighbours changed: one of ten disagrees, and the sum of squared differences of ranks is 2.
        let swapped = with([1.0, 3.0, 2.0, 4.0, 5.0]);
        close(spearman(&swapped), 1.0 - 6.0 * 2.0 / (5.0 * 24.0));
        close(kendall_tau_b(&swapped, 0.0), 0.8);
        assert_eq!((spearman(&with([7.0; 5])), kendall_tau_b(&with([7.0; 5]), 0.0)), (None, None));
        assert_eq!((spearman(&right[..2]), kendall_tau_b(&right[..1], 0.0)), (None, None));
    }

    #[test]
    fn what_is_as_good_as_equal_has_no_order_to_miss() {
        let pairs = [(2.0, 1.0), (1.0, 1.04), (3.0, 1.2)];
        close(kendall_tau_b(&pairs, 0.0), 1.0 / 3.0);
        close(kendall_tau_b(&pairs, 0.05), 1.0);
        assert_eq!(kendall_tau_b(&pairs, 1.0), None, "nothing differs by so much");
    }

    #[test]
    fn the_best_of_the_first_few_against_the_optimum() {
        let pairs = with([3.0, 1.0, 2.0, 5.0, 4.0]);
        close(best_of(&pairs, 1), 2.0);
        close(best_of(&pairs, 2), 2.0);
        close(best_of(&pairs, 3), 1.0);
        close(best_of(&pairs, 50), 1.0);
        close(best_of(&with([7.0; 5]), 1), 5.0);
        assert_eq!((best_of(&[], 1), best_of(&pairs, 0)), (None, None));
    }

    #[test]
    fn errors_are_parts_of_what_was_measured_and_bias_is_a_factor() {
        let pairs = [(2.0, 1.0), (1.0, 2.0), (3.0, 3.0)];
        close(mean_absolute_error(&pairs), 0.5);
        close(geometric_bias(&pairs), 1.0);
        close(geometric_bias(&pairs[..1]), 2.0);
        assert_eq!((mean_absolute_error(&[]), geometric_bias(&[])), (None, None));
        assert_eq!(
            [median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0]), median([])],
            [Some(2.0), Some(2.5), None]
        );
    }
}
