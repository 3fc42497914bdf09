//! `set_scope`: the memory that an intermediate buffer is kept in.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(y: out f32[1]) {
//!   alloc t: f32[1] global
//!   t[0] = 1
//!   y[0] = t[0]
//! }").unwrap();
//! let after = Schedule::run(before, "set_scope(t, reg)").unwrap();
//! assert!(after.program().to_string().contains("alloc t: f32[1] reg"));
//! ```

use crate::diag::Diagnosis;
use crate::ir::{Buffer, Operand, Program, Space, Stmt, walk};
use crate::schedule::rewrite::none_allocated_by_blocks;
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "set_scope(buffer, reg|shared|global)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct SetScope {
    /// The buffer.
    pub buffer: String,
    /// The memory.
    pub space: Space,
}

/// Reads the name of a memory.
pub(super) fn space(call: &Call, word: &str) -> Result<Space, Diagnosis> {
    match word {
        "reg" => Ok(Space::Reg),
        "shared" => Ok(Space::Shared),
        "global" => Ok(Space::Global),
        other => Err(call.wrong(&format!("`{other}` is no memory"))),
    }
}

/// The name of a memory.
pub(super) fn space_name(space: Space) -> &'static str {
    match space {
        Space::Reg => "reg",
        Space::Shared => "shared",
        Space::Global | Space::Param(_) => "global",
    }
}

impl SetScope {
    pub(super) fn read(call: &Call) -> Result<SetScope, Diagnosis> {
        Ok(SetScope { buffer: call.word_at(0)?.into(), space: space(call, call.word_at(1)?)? })
    }
}

impl SetScope {
    /// Only registers are spread over threads, only shared memory has a layout, and device memory stores no parts of numbers.
    fn moved(&self, buffer: &mut Buffer) {
        buffer.space = self.space;
        buffer.layout = None;
        buffer.split &= self.space != Space::Global;
        if self.space != Space::Reg {
            buffer.dims.iter_mut().for_each(|d| d.pitch = None);
        }
    }
}

impl Primitive for SetScope {
    fn call(&self) -> Call {
        Call::new("set_scope").word(&self.buffer).word(space_name(self.space))
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut found = false;
        let (mut by_instructions, mut atomic) = (false, false);
        let body = walk::rewrite(program.body.clone(), &mut |mut stmt| {
            match &mut stmt {
                Stmt::Alloc(buffer) if buffer.sym.name() == self.buffer => {
                    found = true;
                    by_instructions |= buffer.fragment.is_some() || buffer.role.is_some();
                    if buffer.space != self.space {
                        self.moved(buffer);
                    }
                }
                Stmt::Instruction(i) => {
                    by_instructions |= i
                        .operands
                        .iter()
                        .any(|o| matches!(o, Operand::Window(w) if w.buffer.name() == self.buffer));
                }
                Stmt::Assign(a) => atomic |= a.atomic && a.target.buffer.name() == self.buffer,
                _ => {}
            }
            vec![stmt]
        });
        if atomic && self.space == Space::Reg {
            return Err(Diagnosis::new(format!("`{}` cannot be kept in registers", self.buffer))
                .because("several threads add to it atomically, and a register has one owner")
                .instead(format!("use set_scope({}, shared)", self.buffer)));
        }
        if by_instructions {
            return Err(Diagnosis::new(format!("`{}` stays where it is", self.buffer))
                .because("instructions work on it there")
                .instead("apply set_scope before tensorize"));
        }
        if found {
            return none_allocated_by_blocks(program.with_body(body));
        }
        Err(Diagnosis::new(format!("there is no intermediate buffer `{}`", self.buffer))
            .instead("cache_read and cache_write make one; parameters stay where they are"))
    }
}
