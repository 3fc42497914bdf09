//! The touches since the last barrier.

use std::rc::Rc;

use super::touch::{Kind, Touch};
use super::{Group, Stop};
use crate::sym::Sym;

/// A touch that a later one may conflict with.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub touch: Rc<Touch>,
    /// The innermost statement list that contains it and is still open.
    pub depth: usize,
    /// Whether it belongs to an earlier iteration of the loop whose body that list is.
    pub carried: bool,
    /// Tuples of symbols of later iterations, each with its name here, that are not all equal.
    pub distinct: Vec<Vec<(Sym, Sym)>>,
    /// The threads of each of these have met since.
    pub met: Vec<Group>,
    flight: Flight,
    /// Whether its completion was waited for, if it needs that.
    landed: bool,
    /// Where it was waited for, list and statement, while that list is open.
    waited: Option<(usize, usize)>,
    /// The rings that its threads have arrived at since.
    released: Vec<Sym>,
}

/// When the effect of a touch is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    /// At once.
    None,
    /// After a wait for `cp.async`.
    CpAsync,
    /// When a phase of this ring completes.
    Ring(Sym),
    /// After a wait for products, which joins their warpgroup: whatever one of its threads does later comes after.
    Products,
}

impl Pending {
    pub fn new(touch: Rc<Touch>, depth: usize, flight: Flight) -> Pending {
        let released = if let Flight::Ring(ring) = &flight { vec![ring.clone()] } else { Vec::new() };
        Pending {
            touch,
            depth,
            carried: false,
            distinct: Vec::new(),
            met: Vec::new(),
            flight,
            landed: false,
            waited: None,
            released,
        }
    }

    /// The threads of `group` meet; `false` if nothing can conflict with this touch any more.
    pub fn meet(&mut self, group: &Group) -> bool {
        if self.in_flight() {
            return true;
        }
        if !self.met.contains(group) {
            self.met.push(group.clone());
        }
        !group.whole
    }

    /// Whether these are different threads, and no barrier since has joined them.
    pub fn may_meet(&self, first: i64, last: i64) -> bool {
        first != last && !self.met.iter().any(|g| g.joins(first, last))
    }

    /// Whether nothing needs to be done about it: it is not there yet, which no barrier changes, or the later threads
    /// have waited on a ring that its threads have arrived at.
    pub fn settled(&self, acquired: &[Sym], only_async: bool) -> bool {
        self.in_flight()
            || self.released.iter().any(|r| acquired.contains(r))
            || (only_async && self.flight != Flight::CpAsync)
    }

    fn in_flight(&self) -> bool {
        match self.flight {
            Flight::None | Flight::Products => false,
            Flight::CpAsync => !self.landed,
            Flight::Ring(_) => self.touch.kind == Kind::Write,
        }
    }

    /// A wait for `cp.async` at that place.
    pub fn land(&mut self, place: (usize, usize)) {
        if self.flight == Flight::CpAsync {
            (self.landed, self.waited) = (true, Some(place));
        }
    }

    /// Threads arrive at a ring. That says something of this touch if each of its threads does, or has met one that does.
    pub fn release(&mut self, ring: &Sym, arriving: &Group) {
        if !self.released.contains(ring) && self.is_followed_by(arriving) {
            self.released.push(ring.clone());
        }
    }

    fn is_followed_by(&self, arriving: &Group) -> bool {
        let met = |t: i64| {
            let with = |g: &Group| g.range_of(t).is_some_and(|(first, end)| arriving.has_some(first, end));
            self.met.iter().any(with)
        };
        let arrives = |t: i64| arriving.range_of(t).is_some() || met(t);
        self.touch.threads().into_iter().all(|first| {
            let mut range = first..first + self.touch.size;
            if self.flight == Flight::Products { range.any(arrives) } else { range.all(arrives) }
        })
    }

    /// The list of that depth ends.
    pub fn close(&mut self, depth: usize) {
        if self.depth >= depth {
            self.depth = depth.saturating_sub(1);
            self.carried = false;
        }
        self.waited = self.waited.filter(|(list, _)| *list < depth);
    }

    /// Where the barrier belongs that orders it before the statements under way.
    pub fn barrier(&self, cursor: &[usize]) -> Stop {
        match self.waited {
            Some((depth, statement)) if depth >= self.depth && depth < cursor.len() => {
                Stop::Before { depth, statement: statement + 1 }
            }
            _ if self.carried => Stop::AtEnd { depth: self.depth },
            _ => Stop::Before { depth: self.depth, statement: cursor[self.depth] },
        }
    }
}

/// What may be pending after one of two ways: all that is after either, with what holds after both.
pub(super) fn merge(into: &mut Vec<Pending>, other: Vec<Pending>) {
    for theirs in other {
        match into.iter_mut().find(|ours| Rc::ptr_eq(&ours.touch, &theirs.touch)) {
            Some(ours) => {
                ours.met.retain(|g| theirs.met.contains(g));
                // Waits and arrivals under a condition are the writer's affair: they are taken as they stand.
                ours.landed |= theirs.landed;
                ours.waited = ours.waited.or(theirs.waited);
                let new: Vec<Sym> =
                    theirs.released.into_iter().filter(|r| !ours.released.contains(r)).collect();
                ours.released.extend(new);
            }
            None => into.push(theirs),
        }
    }
}
