//! Vector loops: one assignment whose elements lie side by side becomes moves of 4, 8 or 16 bytes.

use super::body::Body;
use super::threads::Executing;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Index, Interval};
use crate::ir::{Access, Assign, AssignOp, For, Mode, Range, Space, Stmt, Value};
use crate::sym::Sym;

/// What the parts of a vector are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Elements.
    Elements,
    /// Real and imaginary parts of elements.
    OfComplex,
    /// Neither: it is moved as it is.
    None,
}

/// The C type of so many elements of a type side by side.
fn vector_type(dtype: DType, elements: i64) -> Option<(&'static str, Parts)> {
    match (dtype, elements) {
        (DType::F32, 2) => Some(("float2", Parts::Elements)),
        (DType::F32, 4) => Some(("float4", Parts::Elements)),
        (DType::F64, 2) => Some(("double2", Parts::Elements)),
        (DType::I32, 2) => Some(("int2", Parts::Elements)),
        (DType::I32, 4) => Some(("int4", Parts::Elements)),
        (DType::C64, 2) => Some(("float4", Parts::OfComplex)),
        (DType::F16 | DType::Bf16, 2) => Some(("unsigned", Parts::None)),
        (DType::F16 | DType::Bf16, 4) => Some(("uint2", Parts::None)),
        (DType::F16 | DType::Bf16, 8) => Some(("uint4", Parts::None)),
        _ => None,
    }
}

/// An element of a vector of that name.
fn element_of(name: &str, number: usize, parts: Parts) -> String {
    match (parts, number) {
        (Parts::OfComplex, 0) => format!("make_float2({name}.x, {name}.y)"),
        (Parts::OfComplex, _) => format!("make_float2({name}.z, {name}.w)"),
        _ => format!("{name}.{}", ["x", "y", "z", "w"][number]),
    }
}

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
        let Some((wide, parts)) = vector_type(dtype, trips) else { return Ok(false) };
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
        if parts == Parts::None || (sources.is_empty() && !self.in_memory(&a.target, var, trips)?) {
            return Ok(false);
        }
        self.computed_vector(var, trips, a, (wide, parts), &sources)?;
        Ok(true)
    }

    /// Loads each source at once, computes part by part, and stores at once if the target is contiguous.
    fn computed_vector(
        &mut self,
        var: &Sym,
        trips: i64,
        a: &Assign,
        (wide, parts): (&str, Parts),
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
            let mut values = Vec::new();
            for (number, v) in (0..trips).enumerate() {
                let loads = names.iter().map(|name| element_of(name, number, parts));
                s.replaced_loads = sources.iter().cloned().zip(loads).collect();
                let value = s.with_range(var, Interval::new(v, v), |s| s.value(&a.value, dtype));
                s.replaced_loads.clear();
                if stores_wide && parts == Parts::OfComplex {
                    let name = s.names.reserve("z");
                    s.line(format!("const float2 {name} = {};", value?.text));
                    values.extend([format!("{name}.x"), format!("{name}.y")]);
                } else if stores_wide {
                    values.push(value?.text);
                } else {
                    let target = s.with_range(var, Interval::new(v, v), |s| s.element(&a.target))?;
                    let value = value?.text;
                    s.line(format!("{target} = {value};"));
                }
            }
            if stores_wide {
                let target = s.first(&a.target, var)?;
                s.line(format!("*({wide}*)&{target} = make_{wide}({});", values.join(", ")));
            }
            Ok(())
        })?;
        if sources.is_empty() && (parts != Parts::OfComplex || !stores_wide) {
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
        let first = &offset - &Index::var(var);
        // What is known to start behind a multiple in shared memory is not moved at once (rule 30).
        let shared = self.unit.buffer(&access.buffer)?.space == Space::Shared;
        let apart = shared && first.is_behind_multiple(trips);
        Ok(offset.coefficient(var) == 1 && !first.mentions(var) && !apart)
    }

    fn first(&mut self, access: &Access, var: &Sym) -> Result<String, Diagnosis> {
        self.with_range(var, Interval::new(0, 0), |s| s.element(access))
    }

    /// What stands for a load that has been done already.
    pub(super) fn replaced_load(&self, access: &Access) -> Option<&str> {
        self.replaced_loads.iter().find(|(a, _)| a == access).map(|(_, text)| text.as_str())
    }
}
