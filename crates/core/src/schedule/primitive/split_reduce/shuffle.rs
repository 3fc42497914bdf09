//! Parts computed by the lanes of a warp and combined by shuffles.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(M: size, K: size, A: in f32[M, K], C: out f32[M]) {
//!   for i in 0..M {
//!     C[i] = 0
//!     for k in 0..K { C[i] += A[i, k] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "split_reduce(C.k, 32, combine=shuffle) -> part, s").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(M: size, K: size,
//!     A: in f32[M, K], C: out f32[M])
//! {
//!   for i in 0..M {
//!     alloc part: f32[32@1] reg
//!     for s in threads(32@1) {
//!       part[s] = 0
//!       for k in part(s, 32) 0..K {
//!         part[s] += A[i, k]
//!       }
//!     }
//!     for d in unroll [16, 8, 4, 2, 1] {
//!       alloc other: f32[32@1] reg
//!       shfl_xor(other[:], part[:], d)
//!       for s in threads(32@1) {
//!         part[s] += other[s]
//!       }
//!     }
//!     for s in threads(1@1) {
//!       C[i] = part[s]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! After each step lanes whose numbers differ in the bits of `d` and above hold the same sum, so after the last all
//! lanes hold the sum of all: a fact about every associative and commutative operation, applied as a whole.

use super::PartialSums;
use crate::index::Index;
use crate::ir::{
    Access, Assign, AssignOp, Buffer, Dim, For, Instruction, Mode, Operand, Range, Space, Span, Stmt, Value,
    Window, walk,
};
use crate::schedule::rewrite::map_elements;
use crate::sym::Sym;

/// The lanes of a warp.
const LANES: i64 = 32;

/// The stage with its parts on the lanes of a warp. `inner` computes a part: the element of its own parts buffer that
/// the loop variables name.
pub(super) fn combine(parts: &PartialSums, s: &Sym, inner: Vec<Stmt>) -> Result<Stmt, String> {
    if parts.count.as_constant() != Some(LANES) {
        return Err(format!("a warp has {LANES} lanes, and each computes one part"));
    }
    let registers = |name: &str| {
        Buffer::new(Sym::new(name), parts.buffer.dtype, vec![Dim::distributed(LANES, 1)], Space::Reg)
    };
    let (part, other) = (registers(parts.partial.sym.name()), registers("other"));
    let at = |buffer: &Buffer, lane: &Sym| Access::new(&buffer.sym, vec![Index::var(lane)]);
    let own = map_elements(inner, &|access| {
        if access.buffer == parts.partial.sym {
            *access = at(&part, s);
        }
    });
    let lanes = |lane: &Sym, count: i64, body: Vec<Stmt>| {
        For::with_mode(lane, Mode::Threads { pitch: 1 }, Range::upto(count), body)
    };
    let (d, lane, first) = (Sym::new("d"), s.fresh(), s.fresh());
    let whole =
        |buffer: &Buffer| Operand::Window(Window { buffer: buffer.sym.clone(), dims: vec![Span::All] });
    let exchange = Stmt::Instruction(Instruction {
        name: "shfl_xor".into(),
        operands: vec![whole(&other), whole(&part), Operand::Scalar(Index::var(&d))],
        signal: None,
    });
    let add = Stmt::Assign(Assign {
        target: at(&part, &lane),
        op: AssignOp::Reduce(parts.reduction),
        atomic: false,
        value: Value::Load(at(&other, &lane)),
    });
    let step = vec![Stmt::Alloc(other.clone()), exchange, lanes(&lane, LANES, vec![add])];
    let result = Stmt::Assign(Assign {
        target: Access::new(&parts.buffer.sym, parts.vars.iter().map(Index::var).collect()),
        op: AssignOp::Store,
        atomic: false,
        value: Value::Load(at(&part, &first)),
    });
    let body = vec![
        Stmt::Alloc(part.clone()),
        lanes(s, LANES, own),
        For::with_mode(&d, Mode::Unroll, Range::List(vec![16, 8, 4, 2, 1]), step),
        lanes(&first, 1, vec![result]),
    ];
    let nest = walk::refresh(&parts.nest(&parts.vars, body));
    nest.into_iter().next().ok_or_else(|| "its stage has no loops".to_string())
}
