//! The first and the last iteration of an unrolled loop stand apart.

use super::{For, Index, Mode, Place, Range, Stmt, facts, head, refresh_loop, walk, without_certain};

/// The first iteration, those between, and the last, each without the conditions that are certain there.
///
/// # Errors
/// Why they cannot stand apart.
pub(super) fn ends(l: &For, place: &Place) -> Result<Vec<Stmt>, &'static str> {
    if l.mode != Mode::Unroll || l.counting.is_some() {
        return Err("it is not unrolled");
    }
    let from_zero = matches!(&l.range, Range::Span { lo, step, .. }
        if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
    let Some(count) = l.range.constant_trip_count().filter(|count| from_zero && *count > 2) else {
        return Err("it does not count from 0 to a constant above 2");
    };
    let mut known = facts::of_program(place.program);
    place.outer().iter().for_each(|o| facts::enter_loop(&mut known, o));
    let buffers = place.program.buffers();
    let at = |iteration: Index| walk::substitute(&l.body, &|s| (*s == l.var).then(|| iteration.clone()));
    let mut between =
        For { range: Range::upto(count - 2), body: at(Index::var(&l.var).offset(1)).into(), ..head(l) };
    let [first, last] =
        [0, count - 1].map(|i| walk::refresh(&without_certain(&at(i.into()), &mut known, &buffers)));
    facts::enter_loop(&mut known, &between);
    let whole = without_certain(&between.body, &mut known, &buffers);
    if whole[..] == between.body[..] {
        return Err("no condition inside is certain between them");
    }
    between.body = whole.into();
    let between = Stmt::For(refresh_loop(between));
    Ok(first.into_iter().chain([between]).chain(last).collect())
}
