//! How alike two problems are: whether what was found for one is worth something for the other.

use super::record::{Key, LONG};
use crate::kernels::family::Family;
use crate::problem::Problem;

/// A problem is near if each of its extents is within this factor, or within this one if it is long.
const NEAR: i64 = 8;
const NEAR_IF_LONG: i64 = 64;
/// What differs in long extents only is taken for the same within this factor: what suits gigabytes suits a hundred megabytes. A^T B
/// in f64, 16 wide with a million rows, is 8.4 times as short as what was tuned, and took 1.42 times as long by the
/// choice for a width of 14 (one H200, 2026-11-23).
const NEAR_IF_SAME: i64 = 16;
/// The longest extent of problems that are all launch.
const SHORT: i64 = 30_000;

/// Whether two problems of one class of alignment differ in long extents only, by no more than a factor of 16, and perhaps in alpha, beta and
/// conjugation, which a kernel is told or which change signs. Of a
/// family whose kernels have all extents as constants none is long: what fills a GPU with the one need not with the other.
pub fn is_same_but_long(family: &Family, problem: &Problem, key: &Key, other: &Key) -> bool {
    let has_long = (family.fixed)(problem).is_ok_and(|f| [f.m, f.n, f.k].contains(&None));
    (has_long || key.shape() == other.shape())
        && key.lies_alike(other)
        && key.same == other.same
        && within(key, other, |shorter| if shorter >= LONG { NEAR_IF_SAME } else { 1 })
}

/// Whether two problems are nearly of one size, and so short that launches take most of their time. There the model tells kernels apart badly: A C in f32 of 21,
/// 23 and 26 columns and 1e4 rows took 1.1 to 1.2 times as long by its choices as what had been tuned for them had taken on other cards (H200s, 2026-11-25 and 30).
pub fn is_as_short(key: &Key, other: &Key) -> bool {
    let longest = |key: &Key| key.m.max(key.n).max(key.k);
    let alike = |(a, b): (i64, i64)| 4 * a.max(b) <= 5 * a.min(b);
    longest(key).max(longest(other)) <= SHORT
        && [(key.m, other.m), (key.n, other.n), (key.k, other.k)].into_iter().all(alike)
}

/// Whether one is near enough to the other to be asked for its choice.
pub fn is_near(key: &Key, other: &Key) -> bool {
    within(key, other, |shorter| if shorter >= LONG { NEAR_IF_LONG } else { NEAR })
}

/// Whether each extent of two problems differs by no more than a factor, which depends on the shorter of them.
fn within(key: &Key, other: &Key, factor: impl Fn(i64) -> i64) -> bool {
    [(key.m, other.m), (key.n, other.n), (key.k, other.k)].into_iter().all(|(a, b)| {
        let (shorter, longer) = (a.min(b).max(1), a.max(b).max(1));
        longer <= shorter.saturating_mul(factor(a.min(b)))
    })
}
