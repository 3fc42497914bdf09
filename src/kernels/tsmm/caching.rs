//! Rows of A that stand apart and are copied in pieces of 16 bytes: whether the first-level cache keeps these too (`caching=ca`, the cache operator of
//! `cp.async`), or the second alone (`caching=cg`).

use super::mapping::copied_a;
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::staging::{By, Moved};
use crate::problem::Problem;

/// The parameter.
pub(super) const CACHING: Parameter = Parameter {
    name: NAME,
    about: "which caches keep 16 bytes of a row of A on their way to shared memory: the second level alone (cg), or the first too (ca)",
    values: |choice, problem, _| {
        if may_choose(problem, choice) { vec![GLOBAL.into(), ALL.into()] } else { Vec::new() }
    },
};

const NAME: &str = "caching";
const GLOBAL: &str = "cg";
const ALL: &str = "ca";

/// Whether the first level keeps them.
pub(super) fn keeps_all(choice: &Choice) -> bool {
    choice.word(NAME) == ALL
}

/// Whether there are such pieces, and a choice.
fn may_choose(problem: &Problem, choice: &Choice) -> bool {
    if !super::is_staged(choice) {
        return false;
    }
    let copied = copied_a(problem, choice);
    copied.by == By::Asking && copied.moved == Moved::Strided && copied.piece * copied.dtype.bytes() == 16
}
