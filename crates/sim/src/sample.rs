//! Which blocks of a launch are simulated.

/// How many blocks to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Blocks {
    /// Every block: the result is a statement about the launch.
    #[default]
    All,
    /// All if there are at most this many; otherwise corners, edges and interior: along each axis of the grid the
    /// first, the second, a middle one, the last but one and the last block, in all combinations. The result is a
    /// statement about these blocks. Ordered launches, and programs of several launches, are never sampled: their
    /// blocks read what others have written.
    Sample(i64),
}

/// The numbers of the chosen blocks in the order of the loops; `None` means all.
pub(crate) fn choose(extents: &[i64], blocks: Blocks) -> Option<Vec<i64>> {
    let total = extents.iter().fold(1i64, |n, e| n.saturating_mul(*e));
    let Blocks::Sample(most) = blocks else { return None };
    if total <= most {
        return None;
    }
    let mut chosen = vec![0i64];
    for extent in extents {
        let mut along = vec![0, 1, extent / 2, extent - 2, extent - 1];
        along.retain(|i| (0..*extent).contains(i));
        along.sort_unstable();
        along.dedup();
        chosen = chosen.iter().flat_map(|n| along.iter().map(move |i| n * extent + i)).collect();
    }
    (chosen.len() < total as usize).then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, choose};

    #[test]
    fn a_sample_has_corners_edges_and_interior() {
        assert_eq!(choose(&[4, 4], Blocks::All), None);
        assert_eq!(choose(&[4, 4], Blocks::Sample(16)), None);
        let chosen = choose(&[10, 100], Blocks::Sample(64)).expect("a sample");
        assert_eq!(chosen.len(), 25);
        assert!(
            chosen.contains(&0) && chosen.contains(&999) && chosen.contains(&99) && chosen.contains(&550)
        );
    }
}
