//! `tile`: two loops become a loop over tiles and the loops inside a tile.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[64, 64], y: out f32[64, 64]) {
//!   for i in 0..64, j in 0..64 { y[i, j] = x[i, j] }
//! }").unwrap();
//! let after = Schedule::run(before, "tile(y.i, y.j, 8, 16) -> io, jo, ii, ji").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[64, 64], y: out f32[64, 64])
//! {
//!   for io in 0..8, jo in 0..4, ii in 0..8, ji in 0..16 {
//!     y[8*io + ii, 16*jo + ji] = x[8*io + ii, 16*jo + ji]
//!   }
//! }
//! ");
//! ```
//!
//! It is two `split`s and a `reorder`, and needs what they need.

use crate::diag::Diagnosis;
use crate::ir::Program;
use crate::schedule::handle::LoopRef;
use crate::schedule::step::Call;

use super::Primitive;
use super::reorder::Reorder;
use super::split::{By, Split};

pub(super) const USAGE: &str =
    "tile(label.loop, label.inner, factor, inner factor) -> outer, inner outer, inside, inner inside";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The two loops.
    pub targets: [LoopRef; 2],
    /// The extents of a tile.
    pub factors: [i64; 2],
    /// The names of the four loops, outermost first.
    pub names: [String; 4],
}

impl Tile {
    pub(super) fn read(call: &Call) -> Result<Tile, Diagnosis> {
        let targets = [call.loop_at(0)?, call.loop_at(1)?];
        let factors = [call.int_at(2)?, call.int_at(3)?];
        if factors.iter().any(|f| *f < 1) {
            return Err(call.wrong("the factors must be positive"));
        }
        if targets[0].label != targets[1].label {
            return Err(call.wrong("two loops of one label are wanted"));
        }
        let names = match &call.results[..] {
            [] => {
                let [i, j] = targets.clone().map(|t| t.name);
                [format!("{i}o"), format!("{j}o"), format!("{i}i"), format!("{j}i")]
            }
            [a, b, c, d] => [a.clone(), b.clone(), c.clone(), d.clone()],
            _ => return Err(call.wrong("four names must follow `->`")),
        };
        Ok(Tile { targets, factors, names })
    }
}

impl Primitive for Tile {
    fn call(&self) -> Call {
        let [a, b] = &self.targets;
        Call::new("tile").target(a).target(b).int(self.factors[0]).int(self.factors[1]).gives(&self.names)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut program = program.clone();
        for (i, target) in self.targets.iter().enumerate() {
            let names = [self.names[i].clone(), self.names[i + 2].clone()];
            let split = Split { target: target.clone(), by: By::Factor(self.factors[i]), tail: None, names };
            program = split.apply(&program)?;
        }
        let label = &self.targets[0].label;
        Reorder { order: self.names.iter().map(|n| LoopRef::new(label, n)).collect() }.apply(&program)
    }
}
