//! What one statement does to one buffer: a touch, with the loops and conditions around it.

use crate::index::{Cond, Index};
use crate::ir::Range;
use crate::sym::Sym;

/// One access to a buffer, for all the iterations of the loops around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Touch {
    pub buffer: Sym,
    /// One index for each dimension, over the variables of `around` and the symbols of the launch.
    pub index: Vec<Index>,
    pub kind: Kind,
    /// The first thread of the block or role.
    pub base: i64,
    /// How many threads carry it out together.
    pub size: i64,
    /// The loops around it inside the launch, outermost first.
    pub around: Vec<Around>,
    /// What holds where it is carried out.
    pub guards: Vec<Cond>,
}

/// How memory is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Read,
    Write,
    /// Atomic reductions never race with each other (rule 25).
    Atomic,
}

/// A loop around a touch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Around {
    pub var: Sym,
    pub values: Values,
    /// The depth of the statement list that is its body.
    pub depth: usize,
}

/// The values a loop variable takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Values {
    /// `count` ranges of threads, `pitch` apart.
    Threads {
        count: i64,
        pitch: i64,
    },
    Span {
        lo: Index,
        hi: Index,
        step: i64,
    },
    List(Vec<i64>),
    /// Some values, all different.
    Unknown,
}

impl Kind {
    /// Whether two touches of one element by different threads need an order.
    pub fn conflicts(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Read, Kind::Read) | (Kind::Atomic, Kind::Atomic) => false,
            _ => self != Kind::Read || other != Kind::Read,
        }
    }
}

impl Values {
    /// How many there are, if they are 0, 1, 2 and so on.
    pub fn count(&self) -> Option<i64> {
        match self {
            Values::Threads { count, .. } => Some(*count),
            Values::Span { lo, hi, step: 1 } if lo.as_constant() == Some(0) => hi.as_constant(),
            Values::Span { .. } | Values::List(_) | Values::Unknown => None,
        }
    }

    /// What a range says, with `let`s already replaced.
    pub fn of(range: &Range) -> Values {
        match range {
            Range::Span { lo, hi, step } => match step.as_constant() {
                Some(step) if step > 0 => Values::Span { lo: lo.clone(), hi: hi.clone(), step },
                _ => Values::Unknown,
            },
            Range::List(values) => Values::List(values.clone()),
            // Only that every value lies between the bounds is known of a part (rule 7).
            Range::Part { .. } => Values::Unknown,
        }
    }
}

impl Touch {
    /// The same touch with variables replaced: an earlier iteration seen from a later one.
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Touch {
        let mut touch = self.clone();
        for index in &mut touch.index {
            *index = index.substitute(with);
        }
        for guard in &mut touch.guards {
            *guard = guard.substitute(with);
        }
        for loop_ in &mut touch.around {
            if let Values::Span { lo, hi, .. } = &mut loop_.values {
                *lo = lo.substitute(with);
                *hi = hi.substitute(with);
            }
        }
        touch
    }

    /// The first threads of the ranges that carry it out.
    pub fn threads(&self) -> Vec<i64> {
        self.around.iter().fold(vec![self.base], |starts, l| match l.values {
            Values::Threads { count, pitch } => {
                starts.iter().flat_map(|s| (0..count).map(move |i| s + i * pitch)).collect()
            }
            _ => starts,
        })
    }

    /// The loops whose iterations differ between this touch and another, when both stand in a list of that depth:
    /// those inside the list, and all thread loops.
    pub fn local(&self, depth: usize) -> impl Iterator<Item = &Around> {
        self.around.iter().filter(move |l| l.depth > depth || matches!(l.values, Values::Threads { .. }))
    }
}
