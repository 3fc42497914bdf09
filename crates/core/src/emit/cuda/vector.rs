//! Vector loops: one assignment whose elements lie side by side becomes moves of 4, 8 or 16 bytes.

use super::body::Body;
use super::threads::Executing;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Index, Interval};
use crate::ir::{Access, Assign, AssignOp, For, Mode, Range, Space, Stmt, Value};
use crate::sym::Sym;

/// The C type of so many bytes of elements of a type; its parts are elements where `parts` says so.
fn vector_type(dtype: DType, elements: i64) -> Option<(&'static str, bool)> {
    match (dtype, elements) {
        (DType::F32, 2) => Some(("float2", true)),
        (DType::F32, 4) => Some(("float4", true)),
        (DType::F64, 2) => Some(("double2", true)),
        (DType::I32, 2) => Some(("int2", true)),
        (DType::I32, 4) => Some(("int4", true)),
        (DType::C64, 2) => Some(("float4", false)),
        (DType::F16 | DType::Bf16, 2) => Some(("unsigned", false)),
        (DType::F16 | DType::Bf16, 4) => Some(("uint2", false)),
        (DType::F16 | DType::Bf16, 8) => Some(("uint4", false)),
        _ => None,
    }
}

const PARTS: [&str; 4] = ["x", "y", "z", "w"];

impl Body<'_> {
    pub(super) fn vector(&mut self, l: &For, executing: &Executing) -> Result<(), Diagnosis> {
        if let ([Stmt::Assign(a)], Some(trips)) = (&l.body[..], l.range.constant_trip_count())
            && let Range::Span { lo, .. } = &l.range
            && lo.as_constant() == Some(0)
            && a.op == AssignOp::Store
            && self.vector_assignment(&l.var, trips, a)?
        {
            return Ok(());
        }
        // Too wide for one move, or not a plain one: the compiler may still join the elements.
        let scalar = For { mode: Mode::Unroll, ..l.clone() };
        self.for_loop(&scalar, executing)
    }

    /// Writes the assignment as wide moves; false if it is none.
    fn vector_assignment(&mut self, var: &Sym, trips: i64, a: &Assign) -> Result<bool, Diagnosis> {
        let unit = self.unit;
        let dtype = unit.buffer(&a.target.buffer)?.dtype;
        let Some((wide, has_parts)) = vector_type(dtype, trips) else { return Ok(false) };
        let target = self.is_contiguous(&a.target, var, trips)?;
        if let Value::Load(source) = &a.value
            && target
            && self.is_contiguous(source, var, trips)?
        {
            self.written.insert(a.target.buffer.clone());
            self.moved_wide.extend([a.target.buffer.clone(), source.buffer.clone()]);
            let (to, from) = (self.first(&a.target, var)?, self.first(source, var)?);
            self.line(format!("*({wide}*)&{to} = *(const {wide}*)&{from};"));
            return Ok(true);
        }
        let sources = self.wide_sources(&a.value, var, trips, dtype)?;
        if !has_parts || (sources.is_empty() && !self.in_memory(&a.target, var, trips)?) {
            return Ok(false);
        }
        self.computed_vector(var, trips, a, wide, &sources)?;
        Ok(true)
    }

    /// Loads each source at once, computes part by part, and stores at once if the target is contiguous.
    fn computed_vector(
        &mut self,
        var: &Sym,
        trips: i64,
        a: &Assign,
        wide: &str,
        sources: &[Access],
    ) -> Result<(), Diagnosis> {
        let unit = self.unit;
        let dtype = unit.buffer(&a.target.buffer)?.dtype;
        let stores_wide = self.in_memory(&a.target, var, trips)?;
        self.written.insert(a.target.buffer.clone());
        let body = self.nested(|s| {
            let mut names = Vec::new();
            for source in sources {
                let name = s.names.reserve(&source.buffer.name().to_lowercase());
                let from = s.first(source, var)?;
                s.line(format!("const {wide} {name} = *(const {wide}*)&{from};"));
                names.push(name);
            }
            let mut parts = Vec::new();
            for (v, part) in (0..trips).zip(PARTS) {
                let loads: Vec<(Access, String)> =
                    sources.iter().cloned().zip(names.iter().map(|n| format!("{n}.{part}"))).collect();
                s.replaced_loads = loads;
                let value = s.with_range(var, Interval::new(v, v), |s| s.value(&a.value, dtype));
                s.replaced_loads.clear();
                if stores_wide {
                    parts.push(value?.text);
                } else {
                    let target = s.with_range(var, Interval::new(v, v), |s| s.element(&a.target))?;
                    let value = value?.text;
                    s.line(format!("{target} = {value};"));
                }
            }
            if stores_wide {
                let target = s.first(&a.target, var)?;
                s.line(format!("*({wide}*)&{target} = make_{wide}({});", parts.join(", ")));
            }
            Ok(())
        })?;
        if sources.is_empty() {
            // Nothing was declared, so no block is needed.
            self.lines.append(body.raised());
        } else {
            self.lines.block("", body);
        }
        Ok(())
    }

    /// The loads of a value that are contiguous in memory and of the wanted type.
    fn wide_sources(
        &mut self,
        value: &Value,
        var: &Sym,
        trips: i64,
        dtype: DType,
    ) -> Result<Vec<Access>, Diagnosis> {
        let mut all = Vec::new();
        value.for_each_access(&mut |access| {
            if !all.contains(access) {
                all.push(access.clone());
            }
        });
        let mut sources = Vec::new();
        for access in all {
            let same = self.unit.buffer(&access.buffer)?.dtype == dtype;
            if same && self.in_memory(&access, var, trips)? {
                sources.push(access);
            }
        }
        Ok(sources)
    }

    fn in_memory(&self, access: &Access, var: &Sym, trips: i64) -> Result<bool, Diagnosis> {
        Ok(self.unit.buffer(&access.buffer)?.space != Space::Reg && self.is_contiguous(access, var, trips)?)
    }

    /// Whether successive values of `var` touch neighbouring elements.
    fn is_contiguous(&self, access: &Access, var: &Sym, trips: i64) -> Result<bool, Diagnosis> {
        let mut ranges = self.ranges.clone();
        ranges.set(var, Interval::new(0, trips - 1));
        let Some(offset) = self.physical_offset(access)? else { return Ok(false) };
        let offset = ranges.simplify(&offset);
        Ok(offset.coefficient(var) == 1 && !(&offset - &Index::var(var)).mentions(var))
    }

    fn first(&mut self, access: &Access, var: &Sym) -> Result<String, Diagnosis> {
        self.with_range(var, Interval::new(0, 0), |s| s.element(access))
    }

    /// What stands for a load that has been done already.
    pub(super) fn replaced_load(&self, access: &Access) -> Option<&str> {
        self.replaced_loads.iter().find(|(a, _)| a == access).map(|(_, text)| text.as_str())
    }
}
