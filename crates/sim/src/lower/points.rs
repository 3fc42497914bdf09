//! Specifications, point by point.
//!
//! A specification is a few nests of loops over the elements of its outputs, each computing one element from inputs
//! and from what earlier nests computed for the same element. Then any set of elements can be computed by itself, in
//! any order: 32 at a time in the lanes of a warp, and only those that somebody wants to compare.

use std::collections::{HashMap, HashSet};

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Access, For, If, Mode as LoopMode, Program, Range, Space, Stmt, walk};
use warpwright_core::sym::Sym;

use super::{Binding, Context, Lowering, Mode, View, is_output};
use crate::code::{Code, Form, Step, Test, WARP};

/// Compiles a program to be run for single elements of its outputs; `None` if it is not of that kind.
pub(crate) fn lower_points<'p>(
    program: &'p Program,
    values: &HashMap<Sym, i64>,
) -> Result<Option<(Code<'p>, Vec<i64>)>, Diagnosis> {
    let mut lowering = Lowering::new(program, values, Mode::Simt);
    lowering.parameters()?;
    lowering.constants();
    lowering.threads = WARP;
    lowering.context = Context { view: View::Warp, size: 1, offset: vec![0; WARP], active: vec![true; WARP] };
    let mut written: HashSet<Sym> =
        program.tensors().filter(|t| is_output(t)).map(|t| t.sym.clone()).collect();
    let outputs: Vec<Vec<i64>> =
        lowering.code.globals.iter().filter(|g| g.output).map(|g| g.extents.clone()).collect();
    let Some(extents) = outputs.first().filter(|e| outputs.iter().all(|o| o == *e)).cloned() else {
        return Ok(None);
    };
    if !lowering.points(&program.body, &extents, &mut written)? {
        return Ok(None);
    }
    lowering.code.uniforms = lowering.uniform_bounds.len();
    lowering.code.dynamics = lowering.dynamic_bounds.len();
    Ok(Some((lowering.code, extents)))
}

impl<'p> Lowering<'p> {
    fn points(
        &mut self,
        stmts: &'p [Stmt],
        extents: &[i64],
        written: &mut HashSet<Sym>,
    ) -> Result<bool, Diagnosis> {
        for stmt in stmts {
            let fits = match stmt {
                Stmt::Alloc(buffer) if buffer.layout.is_none() => {
                    self.global(buffer, None)?;
                    written.insert(buffer.sym.clone());
                    self.code.steps.push(Step::Scratch(self.code.globals.len() as u32 - 1));
                    true
                }
                Stmt::If(If { cond, then, otherwise }) => match self.test(cond)? {
                    Test::Constant(true) => self.points(then, extents, written)?,
                    Test::Constant(false) => self.points(otherwise, extents, written)?,
                    _ => false,
                },
                Stmt::For(_) => self.point_nest(stmt, extents, written)?,
                _ => false,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A nest over the elements, its body executed by lanes.
    fn point_nest(
        &mut self,
        nest: &'p Stmt,
        extents: &[i64],
        written: &HashSet<Sym>,
    ) -> Result<bool, Diagnosis> {
        let mut variables = Vec::new();
        let mut symbols = Vec::new();
        let mut at = std::slice::from_ref(nest);
        for extent in extents {
            let [Stmt::For(For { var, mode, range: Range::Span { lo, hi, step }, counting: None, body })] =
                at
            else {
                return Ok(false);
            };
            if matches!(mode, LoopMode::Block { .. } | LoopMode::Threads { .. }) {
                return Ok(false);
            }
            let (lo, hi, step) = (self.index(lo)?, self.index(hi)?, self.index(step)?);
            let whole = lo.as_constant() == Some(0)
                && step.as_constant() == Some(1)
                && hi.as_constant() == Some(*extent);
            if !whole {
                return Ok(false);
            }
            let variable = self.new_dynamic(Some((0, (extent - 1).max(0))));
            self.bindings.insert(var.clone(), Binding::Integer(Form::dynamic(variable)));
            variables.push(variable);
            symbols.push(var.clone());
            at = body;
        }
        if !is_pointwise(at, &symbols, written) {
            return Ok(false);
        }
        self.begin_slots();
        let body = self.block(at)?;
        let mut launch = self.launch_code(Vec::new(), false, body, at, 0);
        launch.points = variables;
        self.code.steps.push(Step::Launch(launch));
        Ok(true)
    }
}

/// Whether statements touch what the program writes only at the point of the nest, and are of a simple kind.
fn is_pointwise(stmts: &[Stmt], point: &[Sym], written: &HashSet<Sym>) -> bool {
    let here = |a: &Access| {
        !written.contains(&a.buffer)
            || a.index.len() == point.len() && a.index.iter().zip(point).all(|(i, p)| i.as_var() == Some(p))
    };
    let mut fits = true;
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Assign(a) => {
            fits &= here(&a.target);
            a.value.for_each_access(&mut |access| fits &= here(access));
        }
        Stmt::Alloc(b) => fits &= b.space == Space::Reg && !b.is_distributed(),
        Stmt::For(l) => fits &= !matches!(l.mode, LoopMode::Block { .. } | LoopMode::Threads { .. }),
        Stmt::If(_) | Stmt::Let(..) => {}
        _ => fits = false,
    });
    fits
}
