//! How well the model ranks, where times are known: what one needs to see before one believes it, or to mend it.

use serde::Serialize;

use crate::metrics;

/// How the model's ranking compares with times that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Candidates with both.
    pub candidates: usize,
    /// Spearman's rank correlation: 1 where the model has the order right, 0 where it knows nothing.
    pub rank_correlation: f64,
    /// The place of the fastest in the model's order, counted from 1.
    pub place_of_best: usize,
    /// The time of the model's first choice over the least.
    pub first: f64,
    /// The least time among the model's first eight over the least.
    pub best_of_8: f64,
    /// The modelled time of the fastest over its measured one.
    pub modelled_over_measured: f64,
}

/// Compares modelled with measured seconds, a pair for each candidate. `None` for fewer than three.
pub fn compare(pairs: &[(f64, f64)]) -> Option<Accuracy> {
    if pairs.len() < 3 {
        return None;
    }
    let mut order: Vec<&(f64, f64)> = pairs.iter().collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let place = (0..order.len()).min_by(|a, b| order[*a].1.total_cmp(&order[*b].1))?;
    let best = order[place];
    let least = |of: &[&(f64, f64)]| of.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    Some(Accuracy {
        candidates: pairs.len(),
        rank_correlation: metrics::spearman(pairs).unwrap_or(0.0),
        place_of_best: place + 1,
        first: order[0].1 / best.1,
        best_of_8: least(&order[..order.len().min(8)]) / best.1,
        modelled_over_measured: best.0 / best.1,
    })
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn a_right_order_a_wrong_one_and_none() {
        let with = |modelled: [f64; 5]| {
            let times = [1.0, 2.0, 3.0, 4.0, 5.0];
            compare(&modelled.into_iter().zip(times).collect::<Vec<_>>()).unwrap()
        };
        let right = with([0.5, 0.6, 0.7, 0.8, 0.9]);
        assert_eq!((right.rank_correlation, right.place_of_best, right.first), (1.0, 1, 1.0));
        assert_eq!(right.modelled_over_measured, 0.5);
        let wrong = with([5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!((wrong.rank_correlation, wrong.place_of_best, wrong.first), (-1.0, 5, 5.0));
        assert_eq!(wrong.best_of_8, 1.0);
        assert_eq!(with([7.0; 5]).rank_correlation, 0.0);
        // By hand: ranks 0, 1.5, 1.5, 3, 4 against 0, 1, 2, 3, 4.
        let tied = with([1.0, 2.0, 2.0, 3.0, 4.0]);
        assert!((tied.rank_correlation - 9.5 / (9.5f64 * 10.0).sqrt()).abs() < 1e-12);
        assert_eq!(compare(&[(1.0, 1.0); 2]), None);
    }
}
