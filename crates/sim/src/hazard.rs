//! What can go wrong on the machine that does not go wrong in order. Hazards are data.

use std::fmt;

/// The kinds of hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HazardKind {
    /// Two conflicting accesses that nothing orders.
    Race,
    /// An index outside the buffer.
    OutOfBounds,
    /// Data that was never stored reached an output.
    Uninitialised,
    /// A thread touches a register that lives in another thread.
    Ownership,
    /// An operand that is not where the instruction expects it: fragment, swizzle, alignment or extents.
    Operand,
    /// An `await` that nothing before it satisfies: the program would hang.
    Hang,
    /// A phase of an mbarrier that can be missed, is left incomplete, or gets too many arrivals.
    Phase,
    /// The bytes that a phase expects are not those on their way.
    ExpectedBytes,
    /// Ordinary writes read, or ordinary reads overwritten, through the async proxy without `fence.async`.
    ProxyFence,
    /// Accumulators written by ordinary code without `wgmma.fence`.
    WgmmaFence,
    /// Registers used while wgmma may still write them.
    InFlight,
    /// The block ends, or memory is given up, while something asynchronous is under way.
    Outstanding,
    /// A chained instruction whose predecessor has given nothing.
    Chain,
}

impl HazardKind {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            HazardKind::Race => "race",
            HazardKind::OutOfBounds => "out of bounds",
            HazardKind::Uninitialised => "uninitialised",
            HazardKind::Ownership => "ownership",
            HazardKind::Operand => "operand",
            HazardKind::Hang => "hang",
            HazardKind::Phase => "phase",
            HazardKind::ExpectedBytes => "expected bytes",
            HazardKind::ProxyFence => "proxy fence",
            HazardKind::WgmmaFence => "wgmma fence",
            HazardKind::InFlight => "in flight",
            HazardKind::Outstanding => "outstanding",
            HazardKind::Chain => "chain",
        }
    }
}

/// A hazard: the first of its kind at its place, and how often it occurred there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// What kind.
    pub kind: HazardKind,
    /// The loops around the statement, and the statement.
    pub place: String,
    /// The element and the threads, of the first occurrence.
    pub what: String,
    /// Occurrences.
    pub count: u64,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at `{}`", self.kind.name(), self.what, self.place)?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

/// Hazards as they are found, by kind and site.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hazards {
    found: Vec<(HazardKind, u32, String, u64)>,
}

impl Hazards {
    /// Records an occurrence; `what` is asked for only the first time.
    pub fn add(&mut self, kind: HazardKind, site: u32, what: impl FnOnce() -> String) {
        self.add_many(kind, site, 1, what);
    }

    fn add_many(&mut self, kind: HazardKind, site: u32, count: u64, what: impl FnOnce() -> String) {
        match self.found.iter_mut().find(|(k, s, ..)| (*k, *s) == (kind, site)) {
            Some((.., n)) => *n += count,
            None => self.found.push((kind, site, what(), count)),
        }
    }

    /// Adds those of another block.
    pub fn merge(&mut self, other: Hazards) {
        for (kind, site, what, count) in other.found {
            self.add_many(kind, site, count, || what);
        }
    }

    /// All, with places named by `place`.
    pub fn report(self, place: &dyn Fn(u32) -> String) -> Vec<Hazard> {
        let mut all: Vec<_> = self
            .found
            .into_iter()
            .map(|(kind, site, what, count)| Hazard { kind, place: place(site), what, count })
            .collect();
        all.sort_by(|a, b| (a.kind, &a.place).cmp(&(b.kind, &b.place)));
        all
    }
}
