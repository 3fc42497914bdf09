//! Scoping: every symbol is bound once, before its use, and used as what it is (rules 1, 5, 8 and 13).

use std::collections::{HashMap, HashSet};

use super::place;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::ir::{Access, Buffer, Operand, ParamKind, Program, Range, Space, Span, Stmt, Value, Window, walk};
use crate::sym::Sym;

/// What a symbol stands for.
#[derive(Clone, Copy)]
enum Entity {
    /// An integer: a size, row stride, loop variable, ordinal or `let`.
    Integer,
    Flag,
    Scalar(DType),
    Buffer {
        dims: usize,
    },
    Ring,
    Role,
}

impl Entity {
    fn text(self) -> String {
        match self {
            Entity::Integer => "an integer".into(),
            Entity::Flag => "a flag".into(),
            Entity::Scalar(dtype) => format!("a scalar of type {dtype}"),
            Entity::Buffer { .. } => "a buffer".into(),
            Entity::Ring => "a ring of mbarriers".into(),
            Entity::Role => "a role".into(),
        }
    }
}

/// All faults of scoping.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let mut names = Names {
        program,
        visible: HashMap::new(),
        trail: Vec::new(),
        bound: HashSet::new(),
        faults: Vec::new(),
    };
    names.parameters();
    names.body(&program.body);
    names.faults
}

struct Names<'a> {
    program: &'a Program,
    visible: HashMap<Sym, Entity>,
    /// The visible symbols in order of binding, so that a scope can be left.
    trail: Vec<Sym>,
    /// Every symbol bound so far, visible or not.
    bound: HashSet<Sym>,
    faults: Vec<Diagnosis>,
}

impl<'a> Names<'a> {
    fn parameters(&mut self) {
        for param in &self.program.params {
            let entity = match &param.kind {
                ParamKind::Size | ParamKind::Launch => Entity::Integer,
                ParamKind::Flag => Entity::Flag,
                ParamKind::Scalar(dtype) => Entity::Scalar(*dtype),
                ParamKind::Tensor(buffer) => Entity::Buffer { dims: buffer.dims.len() },
            };
            self.bind(&param.sym, entity, None);
        }
        for tensor in self.program.tensors() {
            if let Some(stride) = &tensor.row_stride {
                if tensor.dims.len() < 2 {
                    let fault =
                        format!("`{}` has a row stride but {} dimension", tensor.sym, tensor.dims.len());
                    self.faults.push(Diagnosis::new(fault).instead("leave the row stride out"));
                }
                self.bind(stride, Entity::Integer, None);
            }
        }
        for tensor in self.program.tensors() {
            if !matches!(tensor.space, Space::Param(_)) {
                self.faults
                    .push(Diagnosis::new(format!("parameter `{}` is no tensor parameter", tensor.sym)));
            }
            for dim in &tensor.dims {
                self.index(&dim.extent, None);
            }
        }
        for assume in &self.program.assumes {
            self.cond(assume, None);
        }
    }

    fn body(&mut self, stmts: &'a [Stmt]) {
        let outside = self.trail.len();
        for stmt in stmts {
            self.stmt(stmt);
        }
        self.leave(outside);
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        let at = Some(stmt);
        match stmt {
            Stmt::For(l) => {
                range_indices(&l.range).into_iter().for_each(|x| self.index(x, at));
                let outside = self.trail.len();
                self.bind(&l.var, Entity::Integer, at);
                if let Some(ordinal) = &l.counting {
                    self.bind(ordinal, Entity::Integer, at);
                }
                self.body(&l.body);
                self.leave(outside);
                // The ordinal outlives its loop: afterwards it is the number of iterations so far (rule 8).
                if let Some(ordinal) = &l.counting {
                    self.visible.insert(ordinal.clone(), Entity::Integer);
                    self.trail.push(ordinal.clone());
                }
            }
            Stmt::Tasks(t) => {
                t.extents.iter().chain([&t.start, &t.stride]).for_each(|x| self.index(x, at));
                if t.vars.len() != t.extents.len() {
                    self.fault(
                        at,
                        Diagnosis::new(format!("{} variables for {} extents", t.vars.len(), t.extents.len())),
                    );
                }
                self.bound_body(&t.vars, &t.body, at);
            }
            Stmt::Own(o) => {
                self.window(&o.window, at);
                let free = o.window.dims.iter().filter(|d| !matches!(d, Span::At(_))).count();
                if o.vars.len() != free {
                    let what = format!("{} variables for a window of {free} dimensions", o.vars.len());
                    self.fault(at, Diagnosis::new(what).instead("give one variable to each `:` or slice"));
                }
                self.bound_body(&o.vars, &o.body, at);
            }
            Stmt::If(i) => {
                self.cond(&i.cond, at);
                self.body(&i.then);
                self.body(&i.otherwise);
            }
            Stmt::On(on) => {
                self.expect(&on.role, "a role", |e| matches!(e, Entity::Role), at);
                self.body(&on.body);
            }
            Stmt::Let(sym, index) => {
                self.index(index, at);
                self.bind(sym, Entity::Integer, at);
            }
            Stmt::Alloc(buffer) => self.alloc(buffer, stmt),
            Stmt::AllocRing(ring) => self.bind(&ring.sym, Entity::Ring, at),
            Stmt::Roles(roles) => roles.iter().for_each(|r| self.bind(&r.sym, Entity::Role, at)),
            Stmt::Assign(a) => {
                self.access(&a.target, at);
                self.value(&a.value, at);
            }
            Stmt::Instruction(i) => {
                for operand in &i.operands {
                    match operand {
                        Operand::Window(w) => self.window(w, at),
                        Operand::Scalar(x) => self.index(x, at),
                    }
                }
                if let Some((ring, ordinal)) = &i.signal {
                    self.ring_element(ring, ordinal, at);
                }
            }
            Stmt::Sync(_) => {}
            Stmt::Arrive { ring, ordinal, bytes } => {
                self.ring_element(ring, ordinal, at);
                if let Some(bytes) = bytes {
                    self.index(bytes, at);
                }
            }
            Stmt::Await { ring, ordinal } => self.ring_element(ring, ordinal, at),
        }
    }

    fn alloc(&mut self, buffer: &Buffer, stmt: &'a Stmt) {
        let at = Some(stmt);
        buffer.dims.iter().for_each(|d| self.index(&d.extent, at));
        if let Some(role) = &buffer.role {
            self.expect(role, "a role", |e| matches!(e, Entity::Role), at);
        }
        if let Space::Param(_) = buffer.space {
            let what = format!("`{}` is allocated as a parameter", buffer.sym);
            self.fault(at, Diagnosis::new(what).instead("allocate it as global, shared or reg"));
        }
        if let Some(stride) = &buffer.row_stride {
            let what = format!("`{}` is allocated with the row stride `{stride}`", buffer.sym);
            self.fault(
                at,
                Diagnosis::new(what).instead("only parameters have row strides; give it a layout"),
            );
        }
        if let Some(layout) = &buffer.layout {
            let mut foreign = None;
            layout.offset.for_each_var(&mut |s| {
                if !layout.axes.contains(s) {
                    foreign = Some(s.clone());
                }
            });
            if let Some(sym) = foreign {
                let what = format!("the layout of `{}` mentions `{sym}`, which is no axis of it", buffer.sym);
                self.fault(at, Diagnosis::new(what).instead("a layout is a map of the logical index alone"));
            }
            if layout.axes.len() != buffer.dims.len() {
                let what = format!(
                    "the layout of `{}` has {} axes for {} dimensions",
                    buffer.sym,
                    layout.axes.len(),
                    buffer.dims.len()
                );
                self.fault(at, Diagnosis::new(what).instead("give each dimension one axis"));
            }
        }
        self.bind(&buffer.sym, Entity::Buffer { dims: buffer.dims.len() }, at);
    }

    fn bound_body(&mut self, vars: &[Sym], body: &'a [Stmt], at: Option<&'a Stmt>) {
        let outside = self.trail.len();
        vars.iter().for_each(|v| self.bind(v, Entity::Integer, at));
        self.body(body);
        self.leave(outside);
    }

    fn index(&mut self, index: &Index, at: Option<&'a Stmt>) {
        let mut used = Vec::new();
        // A selection inside an index may ask a flag, so flags are let through here.
        index.for_each_var(&mut |s| used.push(s.clone()));
        for sym in used {
            self.expect(&sym, "an integer", |e| matches!(e, Entity::Integer | Entity::Flag), at);
        }
    }

    fn cond(&mut self, cond: &Cond, at: Option<&'a Stmt>) {
        let mut used = Vec::new();
        cond.for_each_var(&mut |s| used.push(s.clone()));
        for sym in used {
            self.expect(&sym, "an integer or a flag", |e| matches!(e, Entity::Integer | Entity::Flag), at);
        }
        self.flags(cond, at);
    }

    fn flags(&mut self, cond: &Cond, at: Option<&'a Stmt>) {
        match cond {
            Cond::Flag(sym) => self.expect(sym, "a flag", |e| matches!(e, Entity::Flag), at),
            Cond::Not(c) => self.flags(c, at),
            Cond::And(v) | Cond::Or(v) => v.iter().for_each(|c| self.flags(c, at)),
            Cond::Compare(..) => {}
        }
    }

    fn value(&mut self, value: &Value, at: Option<&'a Stmt>) {
        match value {
            Value::Const(_) => {}
            Value::Scalar(sym) => self.expect(sym, "a scalar", |e| matches!(e, Entity::Scalar(_)), at),
            Value::Load(access) => self.access(access, at),
            Value::Unary(_, a) | Value::Cast(_, a) => self.value(a, at),
            Value::Binary(_, a, b) => {
                self.value(a, at);
                self.value(b, at);
            }
            Value::Select(c, a, b) => {
                self.cond(c, at);
                self.value(a, at);
                self.value(b, at);
            }
        }
    }

    fn access(&mut self, access: &Access, at: Option<&'a Stmt>) {
        access.index.iter().for_each(|i| self.index(i, at));
        self.buffer(&access.buffer, access.index.len(), at);
    }

    fn window(&mut self, window: &Window, at: Option<&'a Stmt>) {
        for span in &window.dims {
            match span {
                Span::At(i) => self.index(i, at),
                Span::Slice(start, len) => {
                    self.index(start, at);
                    if *len < 1 {
                        let what = format!("a slice of `{}` has {len} elements", window.buffer);
                        self.fault(at, Diagnosis::new(what).instead("a slice has at least one element"));
                    }
                }
                Span::All => {}
            }
        }
        self.buffer(&window.buffer, window.dims.len(), at);
    }

    fn buffer(&mut self, sym: &Sym, indices: usize, at: Option<&'a Stmt>) {
        self.expect(sym, "a buffer", |e| matches!(e, Entity::Buffer { .. }), at);
        if let Some(Entity::Buffer { dims }) = self.visible.get(sym)
            && *dims != indices
        {
            let what = format!("`{sym}` has {dims} dimensions and is accessed with {indices} indices");
            self.fault(at, Diagnosis::new(what).instead("give one index for each dimension"));
        }
    }

    fn ring_element(&mut self, ring: &Sym, ordinal: &Index, at: Option<&'a Stmt>) {
        self.expect(ring, "a ring of mbarriers", |e| matches!(e, Entity::Ring), at);
        self.index(ordinal, at);
    }

    fn bind(&mut self, sym: &Sym, entity: Entity, at: Option<&'a Stmt>) {
        if !self.bound.insert(sym.clone()) {
            let fault = Diagnosis::new(format!("`{sym}` is bound twice"))
                .because("symbols are identities: two loops, buffers or lets never share one")
                .instead("make a copied piece of program anew with walk::refresh");
            self.fault(at, fault);
        }
        self.visible.insert(sym.clone(), entity);
        self.trail.push(sym.clone());
    }

    fn leave(&mut self, outside: usize) {
        for sym in self.trail.drain(outside..) {
            self.visible.remove(&sym);
        }
    }

    fn expect(&mut self, sym: &Sym, what: &str, fits: impl Fn(Entity) -> bool, at: Option<&'a Stmt>) {
        match self.visible.get(sym).copied() {
            Some(entity) if fits(entity) => {}
            Some(entity) => {
                let fault = Diagnosis::new(format!("`{sym}` stands where {what} is wanted"))
                    .because(format!("it is {}", entity.text()));
                self.fault(at, fault);
            }
            None => {
                let because = if self.bound.contains(sym) {
                    "its scope has ended before this statement"
                } else if walk::binders(&self.program.body).contains(sym) {
                    "it is bound only later, or inside another body"
                } else {
                    "nothing in the program binds it"
                };
                let fault = Diagnosis::new(format!("`{sym}` is not visible here"))
                    .because(because)
                    .instead("move the statement to where it is, or the declaration outwards");
                self.fault(at, fault);
            }
        }
    }

    fn fault(&mut self, at: Option<&'a Stmt>, fault: Diagnosis) {
        let place = at.map_or_else(|| "parameters".into(), |stmt| place::of(self.program, stmt));
        self.faults.push(fault.at(place));
    }
}

/// The indices that a range is made of.
fn range_indices(range: &Range) -> Vec<&Index> {
    match range {
        Range::Span { lo, hi, step } => vec![lo, hi, step],
        Range::List(_) => Vec::new(),
        Range::Part { index, parts, lo, hi } => vec![index, parts, lo, hi],
    }
}
