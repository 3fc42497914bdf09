//! Dense rows of C that start anywhere: whether threads store element after element, or pieces of 16 bytes (`stored=pieces`). Of a group of rows
//! the first and the last piece are not whole, and their elements are stored one by one. Such kernels know how far behind a multiple of 16 bytes C
//! starts.

use super::mapping::{IN_PLACE, band, group};
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::gemm::Span;
use crate::problem::{Alignment, Problem};

/// The parameter.
pub(super) const STORED: Parameter = Parameter {
    name: "stored",
    about: "what threads store at a time of dense rows that start anywhere: elements, or pieces of 16 bytes of all that a group of rows has",
    values: |choice, problem, _| {
        if may_be_pieces(problem, choice) { vec!["elements".into(), PIECES.into()] } else { Vec::new() }
    },
};

const PIECES: &str = "pieces";

/// Whether threads store whole pieces.
pub(super) fn by_pieces(choice: &Choice) -> bool {
    choice.word(STORED.name) == PIECES
}

/// Elements between a multiple of 16 bytes and the first row of C, where a kernel knows them.
pub(super) fn before_c(problem: &Problem, choice: &Choice) -> i64 {
    if by_pieces(choice) { behind_piece(problem) } else { 0 }
}

/// The same, whether it knows them or not.
fn behind_piece(problem: &Problem) -> i64 {
    Span::before(problem.dtype(), problem.offset.c)
}

/// What the loop over elements of C is split with so that pieces begin with those before it.
pub(super) fn begun_before(problem: &Problem, choice: &Choice) -> String {
    match before_c(problem, choice) {
        0 => String::new(),
        before => format!(", ahead={before}"),
    }
}

/// Whether that makes a difference, and all groups of rows start as the first does. Where results lie where rows of A lay, they begin with 16 bytes.
fn may_be_pieces(problem: &Problem, choice: &Choice) -> bool {
    super::is_staged(choice)
        && choice.word("store") == "shared"
        && !choice.flag(IN_PLACE)
        && problem.ld.c == problem.shape.n
        && band(problem, choice) == problem.shape.n
        && behind_piece(problem) > 0
        && group(problem, choice) * problem.shape.n * problem.dtype().bytes() % Alignment::MOST == 0
}
