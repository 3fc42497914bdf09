//! Specifications become nests that are run point by point: see [`crate::points`].

use std::collections::HashMap;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Assign, For, If, Mode as LoopMode, Program, Range, Space, Stmt, walk};
use warpwright_core::sym::Sym;

use super::{Binding, Context, Lowering, Mode, View};
use crate::code::{Access, Code, Form, Memory, Step, Test, WARP};
use crate::points::{Nest, Position};

/// Compiles a program to be run point by point, nest after nest; `None` if it is not of that kind.
pub(crate) fn lower_points<'p>(
    program: &'p Program,
    values: &HashMap<Sym, i64>,
) -> Result<Option<Code<'p>>, Diagnosis> {
    let mut lowering = Lowering::new(program, values, Mode::Simt);
    lowering.parameters()?;
    lowering.constants();
    lowering.threads = WARP;
    lowering.context = Context { view: View::Warp, size: 1, offset: vec![0; WARP], active: vec![true; WARP] };
    // What is wanted are elements of all outputs at the same indices.
    let mut outputs = lowering.code.globals.iter().filter(|g| g.output).map(|g| &g.extents);
    let first = outputs.next();
    if first.is_none() || outputs.any(|extents| Some(extents) != first) {
        return Ok(None);
    }
    if !lowering.nests(&program.body)? {
        return Ok(None);
    }
    lowering.code.uniforms = lowering.uniform_bounds.len();
    lowering.code.dynamics = lowering.dynamic_bounds.len();
    Ok(Some(lowering.code))
}

impl<'p> Lowering<'p> {
    fn nests(&mut self, stmts: &'p [Stmt]) -> Result<bool, Diagnosis> {
        for stmt in stmts {
            let fits = match stmt {
                Stmt::Alloc(buffer) if buffer.layout.is_none() => {
                    self.global(buffer, None)?;
                    self.code.steps.push(Step::Scratch(self.code.globals.len() as u32 - 1));
                    true
                }
                Stmt::If(If { cond, then, otherwise }) => match self.test(cond)? {
                    Test::Constant(true) => self.nests(then)?,
                    Test::Constant(false) => self.nests(otherwise)?,
                    _ => false,
                },
                Stmt::For(_) => self.nest(stmt)?,
                _ => false,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The loops that stand around everything else and on which every element that is written depends are those of the
    /// nest; what stands inside is executed by lanes, each for its point.
    fn nest(&mut self, stmt: &'p Stmt) -> Result<bool, Diagnosis> {
        let targets = self.targets(stmt);
        let mut nest = Nest::default();
        let mut at = std::slice::from_ref(stmt);
        while let [Stmt::For(For { var, mode, range: Range::Span { lo, hi, step }, counting: None, body })] =
            at
            && !matches!(mode, LoopMode::Block { .. } | LoopMode::Threads { .. })
            && targets.iter().all(|target| target.target.index.iter().any(|i| i.mentions(var)))
        {
            let (lo, hi, step) = (self.index(lo)?, self.index(hi)?, self.index(step)?);
            let (Some(0), Some(extent), Some(1)) = (lo.as_constant(), hi.as_constant(), step.as_constant())
            else {
                break;
            };
            let variable = self.new_dynamic(Some((0, (extent - 1).max(0))));
            self.bindings.insert(var.clone(), Binding::Integer(Form::dynamic(variable)));
            nest.variables.push(variable);
            nest.extents.push(extent.max(0));
            at = body;
        }
        if nest.variables.is_empty() || !is_simple(at) {
            return Ok(false);
        }
        self.begin_slots();
        let first = self.code.accesses.len();
        // What lanes cannot do may still be done in order.
        let Ok(body) = self.block(at) else { return Ok(false) };
        let mut launch = self.launch_code(Vec::new(), false, body, at, 0);
        if !is_pointwise(&self.code.accesses[first..], &launch.written, &mut nest) {
            return Ok(false);
        }
        launch.nest = Some(Box::new(nest));
        self.code.steps.push(Step::Launch(launch));
        Ok(true)
    }

    /// The statements that write to device memory.
    fn targets(&self, stmt: &'p Stmt) -> Vec<&'p Assign> {
        let mut targets = Vec::new();
        walk::for_each(std::slice::from_ref(stmt), &mut |stmt| {
            if let Stmt::Assign(a) = stmt
                && matches!(self.bindings.get(&a.target.buffer), Some(Binding::Global(_)))
            {
                targets.push(a);
            }
        });
        targets
    }
}

/// Whether points touch different elements of what the nest writes, and each only one of a buffer. Notes in the nest
/// which these are, and what else it reads.
fn is_pointwise(accesses: &[Access], written: &[bool], nest: &mut Nest) -> bool {
    for access in accesses {
        let Memory::Global(buffer) = access.memory else { continue };
        let position = Position::of(&access.offset, &nest.variables);
        if !written[buffer as usize] {
            nest.reads.push((buffer, position));
            continue;
        }
        let Some(position) = position.filter(|p| p.tells_apart(&nest.extents)) else { return false };
        match nest.writes.iter().find(|(b, _)| *b == buffer) {
            Some((_, known)) if *known != position => return false,
            Some(_) => {}
            None => nest.writes.push((buffer, position)),
        }
    }
    true
}

/// Whether statements are of a kind that lanes can execute by themselves.
fn is_simple(stmts: &[Stmt]) -> bool {
    let mut simple = true;
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Alloc(b) => simple &= b.space == Space::Reg && !b.is_distributed(),
        Stmt::For(l) => simple &= !matches!(l.mode, LoopMode::Block { .. } | LoopMode::Threads { .. }),
        Stmt::Assign(_) | Stmt::If(_) | Stmt::Let(..) => {}
        _ => simple = false,
    });
    simple
}
