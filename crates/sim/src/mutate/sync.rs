//! Mistakes in waiting, fencing and releasing.

use warpwright_core::index::{Cond, Index};
use warpwright_core::ir::{For, If, Instruction, Mode, Ring, Stmt, Sync};

use super::edit::{Body, Site};

fn dropped_if(site: &Site<'_>, which: fn(Sync) -> bool) -> Vec<Body> {
    match site.stmt() {
        Stmt::Sync(sync) if which(*sync) => vec![site.without()],
        _ => Vec::new(),
    }
}

pub(super) fn barrier_dropped(site: &Site<'_>) -> Vec<Body> {
    dropped_if(site, |s| s == Sync::Barrier)
}

/// Past the statement before or after it.
pub(super) fn barrier_moved(site: &Site<'_>) -> Vec<Body> {
    if site.stmt() != &Stmt::Sync(Sync::Barrier) {
        return Vec::new();
    }
    let neighbours = [site.at.checked_sub(1), Some(site.at + 1).filter(|n| *n < site.body.len())];
    let movable = |n: &usize| !matches!(site.body[*n], Stmt::Let(..) | Stmt::Alloc(_) | Stmt::AllocRing(_));
    neighbours.into_iter().flatten().filter(movable).map(|n| site.swapped(n)).collect()
}

pub(super) fn wait_dropped(site: &Site<'_>) -> Vec<Body> {
    dropped_if(site, |s| {
        matches!(s, Sync::CpWait(_) | Sync::WgmmaWait(_) | Sync::BulkWait(_) | Sync::BulkWaitRead(_))
    })
}

pub(super) fn wait_weakened(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Sync(sync) = site.stmt() else { return Vec::new() };
    let weaker = match sync {
        Sync::CpWait(n) => Sync::CpWait(n + 1),
        Sync::WgmmaWait(n) => Sync::WgmmaWait(n + 1),
        Sync::BulkWait(n) => Sync::BulkWait(n + 1),
        Sync::BulkWaitRead(n) => Sync::BulkWaitRead(n + 1),
        _ => return Vec::new(),
    };
    vec![site.with(vec![Stmt::Sync(weaker)])]
}

pub(super) fn commit_dropped(site: &Site<'_>) -> Vec<Body> {
    dropped_if(site, |s| matches!(s, Sync::CpCommit | Sync::WgmmaCommit | Sync::BulkCommit))
}

pub(super) fn fence_dropped(site: &Site<'_>) -> Vec<Body> {
    dropped_if(site, |s| matches!(s, Sync::WgmmaFence | Sync::FenceAsync))
}

pub(super) fn await_dropped(site: &Site<'_>) -> Vec<Body> {
    match site.stmt() {
        Stmt::Await { .. } => vec![site.without()],
        _ => Vec::new(),
    }
}

fn await_shifted(site: &Site<'_>, by: impl Fn(&Ring) -> Vec<i64>) -> Vec<Body> {
    let Stmt::Await { ring, ordinal } = site.stmt() else { return Vec::new() };
    let Some(declared) = site.rings.get(ring) else { return Vec::new() };
    let shifted = |d: i64| {
        let early = ordinal.offset(d);
        let wait = Stmt::Await { ring: ring.clone(), ordinal: early.clone() };
        if d > 0 {
            return wait;
        }
        // There is no phase before the first.
        Stmt::If(If {
            cond: Cond::le(Index::constant(0), early),
            then: vec![wait].into(),
            otherwise: Vec::new().into(),
        })
    };
    site.with_each(by(declared).into_iter().map(shifted))
}

pub(super) fn await_wrong_phase(site: &Site<'_>) -> Vec<Body> {
    await_shifted(site, |_| vec![-1, 1])
}

/// One turn of the ring early or late: the same slot and the other parity.
pub(super) fn parity_missed(site: &Site<'_>) -> Vec<Body> {
    await_shifted(site, |ring| vec![-ring.depth, ring.depth])
}

pub(super) fn arrival_dropped(site: &Site<'_>) -> Vec<Body> {
    match site.stmt() {
        Stmt::Arrive { .. } => vec![site.without()],
        _ => Vec::new(),
    }
}

/// By all threads instead of one, by one range of threads instead of each, or by each of several threads.
pub(super) fn release_by_wrong_threads(site: &Site<'_>) -> Vec<Body> {
    let Stmt::For(l) = site.stmt() else { return Vec::new() };
    let (Some((1, 1)), [arrive @ Stmt::Arrive { .. }]) = (l.threads(), &l.body[..]) else {
        return Vec::new();
    };
    let mut out = vec![site.with(vec![arrive.clone()])];
    for other in site.around.iter().filter(|l| l.threads().is_some()) {
        let first = Cond::eq(Index::var(&other.var), Index::constant(0));
        let then = vec![site.stmt().clone()];
        out.push(site.with(vec![Stmt::If(If {
            cond: first,
            then: then.into(),
            otherwise: Vec::new().into(),
        })]));
    }
    out.push(site.with(vec![Stmt::For(For {
        range: warpwright_core::ir::Range::upto(2),
        mode: Mode::Threads { pitch: 1 },
        ..l.clone()
    })]));
    out
}

pub(super) fn release_of_wrong_phase(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Arrive { ring, ordinal, bytes } = site.stmt() else { return Vec::new() };
    let shifted = |d| Stmt::Arrive { ring: ring.clone(), ordinal: ordinal.offset(d), bytes: bytes.clone() };
    site.with_each([-1, 1].map(shifted))
}

pub(super) fn count_wrong(site: &Site<'_>) -> Vec<Body> {
    let Stmt::AllocRing(ring) = site.stmt() else { return Vec::new() };
    let counts = [ring.count - 1, ring.count + 1].into_iter().filter(|c| *c > 0);
    site.with_each(counts.map(|count| Stmt::AllocRing(Ring { count, ..ring.clone() })))
}

pub(super) fn bytes_wrong(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Arrive { ring, ordinal, bytes: Some(bytes) } = site.stmt() else { return Vec::new() };
    let arrive = |bytes| Stmt::Arrive { ring: ring.clone(), ordinal: ordinal.clone(), bytes };
    site.with_each([None, Some(bytes.div(2)), Some(bytes.scaled(2))].map(arrive))
}

pub(super) fn signal_elsewhere(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Instruction(i) = site.stmt() else { return Vec::new() };
    let Some((ring, ordinal)) = &i.signal else { return Vec::new() };
    let signal = Some((ring.clone(), ordinal.offset(1)));
    site.with_each([Stmt::Instruction(Instruction { signal, ..i.clone() })])
}

pub(super) fn blocks_not_ordered(site: &Site<'_>) -> Vec<Body> {
    let Stmt::For(l) = site.stmt() else { return Vec::new() };
    let Mode::Block { axis, ordered: true, min_blocks } = l.mode else { return Vec::new() };
    site.with_each([Stmt::For(For { mode: Mode::Block { axis, ordered: false, min_blocks }, ..l.clone() })])
}
