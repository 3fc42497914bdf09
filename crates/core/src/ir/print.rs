//! The text form of programs, written: what [`super::parse`] reads.

use std::collections::HashSet;
use std::fmt;

use super::buffer::{ALIGNMENT, Buffer, Dim, Io, Space};
use super::program::{Param, ParamKind, Program};
use super::statement::{Assign, AssignOp, For, Instruction, Mode, Operand, Range, Stmt, Sync};
use super::value::{Access, BinaryOp, Reduction, Span, UnaryOp, Value, Window};
use super::walk;
use crate::index::{Cond, Index, Naming};
use crate::sym::Sym;

/// The names that are visible at a place. A symbol whose name is taken by another visible one gets a number.
#[derive(Clone, Default)]
pub struct Scope {
    visible: Vec<(Sym, String)>,
}

impl Scope {
    /// Makes `sym` visible and returns the text by which it goes.
    pub fn bind(&mut self, sym: &Sym) -> String {
        let taken: HashSet<&str> = self.visible.iter().map(|(_, t)| t.as_str()).collect();
        let mut text = sym.name().to_string();
        let mut number = 2;
        while taken.contains(text.as_str()) {
            text = format!("{}_{number}", sym.name());
            number += 1;
        }
        self.visible.push((sym.clone(), text.clone()));
        text
    }

    /// How many symbols are visible; see [`Scope::truncate`].
    pub fn len(&self) -> usize {
        self.visible.len()
    }

    /// Whether nothing is visible.
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty()
    }

    /// Forgets all but the first `len` symbols.
    pub fn truncate(&mut self, len: usize) {
        self.visible.truncate(len);
    }
}

impl Naming for Scope {
    fn name(&self, sym: &Sym) -> String {
        let found = self.visible.iter().rev().find(|(s, _)| s == sym);
        found.map_or_else(|| sym.name().to_string(), |(_, text)| text.clone())
    }

    fn rank(&self, sym: &Sym) -> u32 {
        self.visible.iter().position(|(s, _)| s == sym).map_or(u32::MAX, |at| at as u32)
    }
}

/// The text of a program.
pub fn program(program: &Program) -> String {
    let mut printer =
        Printer { out: String::new(), indent: 0, scope: Scope::default(), lines: 0, begins: Vec::new() };
    printer.program(program);
    printer.out
}

/// The statements of a program in the order of its text, each with the number of the line on which it begins, the first line
/// being 1. Loops that are written on one line begin there together.
pub fn lines(program: &Program) -> Vec<(&Stmt, usize)> {
    let mut printer =
        Printer { out: String::new(), indent: 0, scope: Scope::default(), lines: 0, begins: Vec::new() };
    printer.program(program);
    let mut statements = Vec::new();
    walk::for_each(&program.body, &mut |stmt| statements.push(stmt));
    // Of loops on one line only the outermost was printed as a statement of its own.
    let mut begins = printer.begins.into_iter().peekable();
    let mut line = 1;
    let numbered = statements.into_iter().map(|stmt| {
        if let Some((_, begun)) = begins.next_if(|(printed, _)| *printed == place(stmt)) {
            line = begun;
        }
        (stmt, line)
    });
    numbered.collect()
}

/// Where a statement stands in memory.
fn place(stmt: &Stmt) -> usize {
    std::ptr::from_ref(stmt).addr()
}

/// The text of statements whose free symbols go by `scope`.
pub fn statements(stmts: &[Stmt], scope: &Scope) -> String {
    let mut printer =
        Printer { out: String::new(), indent: 0, scope: scope.clone(), lines: 0, begins: Vec::new() };
    printer.stmts(stmts);
    printer.out
}

/// The first line of a statement, for diagnoses.
pub fn headline(stmt: &Stmt, scope: &Scope) -> String {
    let text = statements(std::slice::from_ref(stmt), scope);
    text.lines().next().unwrap_or_default().trim_end_matches('{').trim().to_string()
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&program(self))
    }
}

/// The text of a data expression.
pub fn value(value: &Value, names: &dyn Naming) -> String {
    value_at(value, names, 0)
}

/// The text of an element.
pub fn access(access: &Access, names: &dyn Naming) -> String {
    let index: Vec<_> = access.index.iter().map(|i| i.text(names)).collect();
    format!("{}[{}]", names.name(&access.buffer), index.join(", "))
}

/// The text of a window.
pub fn window(window: &Window, names: &dyn Naming) -> String {
    let dims: Vec<_> = window
        .dims
        .iter()
        .map(|d| match d {
            Span::At(i) => i.text(names),
            Span::Slice(start, len) => format!("{} +: {len}", start.text(names)),
            Span::All => ":".into(),
        })
        .collect();
    format!("{}[{}]", names.name(&window.buffer), dims.join(", "))
}

/// Levels: 0 choice, 1 sum, 2 product, 3 unary and primary.
fn value_at(value: &Value, names: &dyn Naming, least: u8) -> String {
    let at = |v: &Value, level| value_at(v, names, level);
    let (text, level) = match value {
        Value::Const(c) if *c < 0.0 => (literal(*c), 1),
        Value::Const(c) => (literal(*c), 3),
        Value::Scalar(sym) => (names.name(sym), 3),
        Value::Load(a) => (access(a, names), 3),
        Value::Unary(UnaryOp::Neg, a) => (format!("-{}", at(a, 3)), 1),
        Value::Unary(UnaryOp::Conj, a) => (format!("conj({})", at(a, 0)), 3),
        Value::Unary(UnaryOp::TimesI, a) => (format!("times_i({})", at(a, 0)), 3),
        Value::Binary(op, a, b) => match op {
            BinaryOp::Add => (format!("{} + {}", at(a, 1), at(b, 2)), 1),
            BinaryOp::Sub => (format!("{} - {}", at(a, 1), at(b, 2)), 1),
            BinaryOp::Mul => (format!("{} * {}", at(a, 2), at(b, 3)), 2),
            BinaryOp::Div => (format!("{} / {}", at(a, 2), at(b, 3)), 2),
            BinaryOp::Max => (format!("max({}, {})", at(a, 0), at(b, 0)), 3),
            BinaryOp::Min => (format!("min({}, {})", at(a, 0), at(b, 0)), 3),
        },
        Value::Select(c, a, b) => (format!("{} ? {} : {}", c.text(names), at(a, 1), at(b, 0)), 0),
        Value::Cast(t, a) => (format!("{t}({})", at(a, 0)), 3),
    };
    if level < least { format!("({text})") } else { text }
}

fn literal(c: f64) -> String {
    if c == f64::INFINITY {
        "inf".into()
    } else if c == f64::NEG_INFINITY {
        "-inf".into()
    } else if c.abs() >= 1e15 {
        format!("{c:e}")
    } else {
        c.to_string()
    }
}

struct Printer {
    out: String,
    indent: usize,
    scope: Scope,
    /// Lines that have been printed.
    lines: usize,
    /// The statements in the order in which they are printed, and the lines on which they begin.
    begins: Vec<(usize, usize)>,
}

impl Printer {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(&"  ".repeat(self.indent));
        self.out.push_str(text.as_ref());
        self.out.push('\n');
        self.lines += 1;
    }

    fn index(&self, index: &Index) -> String {
        index.text(&self.scope)
    }

    fn cond(&self, cond: &Cond) -> String {
        cond.text(&self.scope)
    }

    fn program(&mut self, program: &Program) {
        for line in &program.doc {
            self.line(format!("# {line}").trim_end());
        }
        for param in &program.params {
            self.scope.bind(&param.sym);
        }
        for stride in program.tensors().filter_map(|t| t.row_stride.as_ref()) {
            self.scope.bind(stride);
        }
        let (tensors, others): (Vec<_>, Vec<_>) =
            program.params.iter().partition(|p| matches!(p.kind, ParamKind::Tensor(_)));
        let list = |v: Vec<&Param>| v.into_iter().map(|p| self.param(p)).collect::<Vec<_>>().join(", ");
        let in_order = program.params.iter().skip_while(|p| !matches!(p.kind, ParamKind::Tensor(_)));
        if !others.is_empty() && !tensors.is_empty() && in_order.count() == tensors.len() {
            let (others, tensors) = (list(others), list(tensors));
            self.line(format!("program {}({others},", program.name));
            self.line(format!("    {tensors})"));
        } else {
            let all = list(program.params.iter().collect());
            self.line(format!("program {}({all})", program.name));
        }
        if !program.assumes.is_empty() {
            let assumes: Vec<_> = program.assumes.iter().map(|c| self.cond(c)).collect();
            self.line(format!("  assume {}", assumes.join(", ")));
        }
        if let Some(early) = program.begins_early {
            self.line(format!("  {early}"));
        }
        if let Some(bytes) = program.fetches {
            self.line(format!("  fetches {bytes}"));
        }
        self.line("{");
        self.block(&program.body);
        self.line("}");
    }

    fn param(&self, param: &Param) -> String {
        let name = self.scope.name(&param.sym);
        match &param.kind {
            ParamKind::Size => format!("{name}: size"),
            ParamKind::Launch => format!("{name}: launch"),
            ParamKind::Flag => format!("{name}: flag"),
            ParamKind::Scalar(dtype) => format!("{name}: {dtype}"),
            ParamKind::Tensor(buffer) => {
                let io = match buffer.space {
                    Space::Param(Io::Out) => "out",
                    Space::Param(Io::InOut) => "inout",
                    _ => "in",
                };
                let stride = buffer.row_stride.as_ref().map(|s| format!("; {}", self.scope.name(s)));
                let align = (buffer.align != ALIGNMENT).then(|| format!(" align {}", buffer.align));
                format!(
                    "{name}: {io} {}[{}{}]{}",
                    buffer.dtype,
                    self.dims(&buffer.dims),
                    stride.unwrap_or_default(),
                    align.unwrap_or_default()
                )
            }
        }
    }

    fn dims(&self, dims: &[Dim]) -> String {
        let one = |d: &Dim| match d.pitch {
            Some(pitch) => format!("{}@{pitch}", self.index(&d.extent)),
            None => self.index(&d.extent),
        };
        dims.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Statements one level deeper, with a scope of their own.
    fn block(&mut self, stmts: &[Stmt]) {
        let visible = self.scope.len();
        self.indent += 1;
        self.stmts(stmts);
        self.indent -= 1;
        self.scope.truncate(visible);
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.begins.push((place(stmt), self.lines + 1));
        match stmt {
            Stmt::For(_) => {
                let visible = self.scope.len();
                let (head, body) = self.loop_heads(stmt);
                self.line(format!("for {head} {{"));
                self.block(body);
                self.line("}");
                self.scope.truncate(visible);
                if let Stmt::For(For { counting: Some(ordinal), .. }) = stmt {
                    self.scope.bind(ordinal);
                }
            }
            Stmt::Tasks(t) => {
                let extents: Vec<_> = t.extents.iter().map(|e| self.index(e)).collect();
                let share = format!("share({}, {})", self.index(&t.start), self.index(&t.stride));
                let head = format!("tasks({}) {share}", extents.join(", "));
                self.box_loop(&t.vars, 1, &head, &t.body);
            }
            Stmt::Own(o) => {
                let base = if o.lane_base { " lane_base" } else { "" };
                let head = format!("own {}{base}", window(&o.window, &self.scope));
                self.box_loop(&o.vars, o.run, &head, &o.body);
            }
            Stmt::If(i) => {
                self.line(format!("if {} {{", self.cond(&i.cond)));
                self.block(&i.then);
                if !i.otherwise.is_empty() {
                    self.line("} else {");
                    self.block(&i.otherwise);
                }
                self.line("}");
            }
            Stmt::Let(sym, index) => {
                let index = self.index(index);
                let name = self.scope.bind(sym);
                self.line(format!("let {name} = {index}"));
            }
            Stmt::Alloc(buffer) => {
                let text = self.alloc(buffer);
                self.line(text);
            }
            Stmt::AllocRing(ring) => {
                let name = self.scope.bind(&ring.sym);
                self.line(format!("alloc {name}: mbar ring {} count {}", ring.depth, ring.count));
            }
            Stmt::Roles(roles) => {
                let mut parts = Vec::new();
                for role in roles {
                    let registers = role.registers.map(|r| format!(" regs {r}")).unwrap_or_default();
                    parts.push(format!("{} {}..{}{registers}", self.scope.bind(&role.sym), role.lo, role.hi));
                }
                self.line(format!("roles {}", parts.join(", ")));
            }
            Stmt::On(on) => {
                self.line(format!("on {} {{", self.scope.name(&on.role)));
                self.block(&on.body);
                self.line("}");
            }
            Stmt::Assign(a) => self.line(self.assign(a)),
            Stmt::Instruction(i) => self.line(self.instruction(i)),
            Stmt::Sync(s) => self.line(sync(*s)),
            Stmt::Arrive { ring, ordinal, bytes } => {
                let bytes = bytes.as_ref().map(|b| format!(", tx {}", self.index(b))).unwrap_or_default();
                self.line(format!("arrive({}[{}]{bytes})", self.scope.name(ring), self.index(ordinal)));
            }
            Stmt::Await { ring, ordinal } => {
                self.line(format!("await({}[{}])", self.scope.name(ring), self.index(ordinal)));
            }
        }
    }

    /// The heads of a perfect nest of loops of one mode, and the innermost body. Binds the variables.
    fn loop_heads<'a>(&mut self, stmt: &'a Stmt) -> (String, &'a Vec<Stmt>) {
        let mut heads = Vec::new();
        let mut next = stmt;
        loop {
            let Stmt::For(l) = next else { unreachable!("called on loops only") };
            heads.push(self.head(l));
            match &l.body[..] {
                [inner @ Stmt::For(i)] if same_kind(l.mode, i.mode) && heads.len() < 6 => next = inner,
                _ => return (heads.join(", "), &l.body),
            }
        }
    }

    fn head(&mut self, l: &For) -> String {
        let range = match (&l.mode, &l.range) {
            (Mode::Block { axis, ordered, min_blocks }, Range::Span { hi, .. }) => {
                let ordered = if *ordered { " ordered" } else { "" };
                let min_blocks = min_blocks.map_or(String::new(), |blocks| format!(" min_blocks {blocks}"));
                format!("block.{}({}){ordered}{min_blocks}", axis.name(), self.index(hi))
            }
            (Mode::Threads { pitch }, Range::Span { hi, .. }) => {
                format!("threads({}@{pitch})", self.index(hi))
            }
            (_, Range::Span { lo, hi, step }) => {
                let step = match step.as_constant() {
                    Some(1) => String::new(),
                    _ => format!(" step {}", self.index(step)),
                };
                format!("{}..{}{step}", self.index(lo), self.index(hi))
            }
            (_, Range::List(values)) => {
                let values: Vec<_> = values.iter().map(i64::to_string).collect();
                format!("[{}]", values.join(", "))
            }
            (_, Range::Part { index, parts, lo, hi }) => {
                format!(
                    "part({}, {}) {}..{}",
                    self.index(index),
                    self.index(parts),
                    self.index(lo),
                    self.index(hi)
                )
            }
        };
        let mode = match l.mode {
            Mode::Unroll => "unroll ",
            Mode::Vector => "vector ",
            Mode::Interleave => "interleave ",
            Mode::Serial | Mode::Block { .. } | Mode::Threads { .. } => "",
        };
        let name = self.scope.bind(&l.var);
        let counting = l.counting.as_ref().map(|c| format!(" counting {}", self.scope.bind(c)));
        format!("{name} in {mode}{range}{}", counting.unwrap_or_default())
    }

    fn box_loop(&mut self, vars: &[Sym], run: i64, head: &str, body: &[Stmt]) {
        let visible = self.scope.len();
        let vars: Vec<_> = vars.iter().map(|v| self.scope.bind(v)).collect();
        let by = if run == 1 { String::new() } else { format!(" by {run}") };
        self.line(format!("for ({}{by}) in {head} {{", vars.join(", ")));
        self.block(body);
        self.line("}");
        self.scope.truncate(visible);
    }

    fn alloc(&mut self, buffer: &Buffer) -> String {
        let dims = self.dims(&buffer.dims);
        let name = self.scope.bind(&buffer.sym);
        let space = match buffer.space {
            Space::Shared => "shared",
            Space::Reg => "reg",
            Space::Global | Space::Param(_) => "global",
        };
        let mut text = format!("alloc {name}: {}[{dims}] {space}", buffer.dtype);
        if let Some(role) = &buffer.role {
            text += &format!(" on {}", self.scope.name(role));
        }
        if let Some(fragment) = buffer.fragment {
            text += &format!(" frag {}", fragment.name);
        }
        if buffer.split {
            text += " split";
        }
        if let Some(layout) = &buffer.layout {
            let visible = self.scope.len();
            let axes: Vec<_> = layout.axes.iter().map(|a| self.scope.bind(a)).collect();
            text += &format!(" layout ({}) => {}", axes.join(", "), self.index(&layout.offset));
            self.scope.truncate(visible);
        }
        text
    }

    fn assign(&self, a: &Assign) -> String {
        let op = match a.op {
            AssignOp::Store => "=",
            AssignOp::Reduce(Reduction::Sum) => "+=",
            AssignOp::Reduce(Reduction::Max) => "max=",
            AssignOp::Reduce(Reduction::Min) => "min=",
        };
        let atomic = if a.atomic { "atomic " } else { "" };
        format!("{atomic}{} {op} {}", access(&a.target, &self.scope), value(&a.value, &self.scope))
    }

    fn instruction(&self, i: &Instruction) -> String {
        let operands: Vec<_> = i
            .operands
            .iter()
            .map(|o| match o {
                Operand::Window(w) => window(w, &self.scope),
                Operand::Scalar(e) => self.index(e),
            })
            .collect();
        let signal = i.signal.as_ref().map(|(r, n)| format!(" -> {}[{}]", self.scope.name(r), self.index(n)));
        format!("{}({}){}", i.name, operands.join(", "), signal.unwrap_or_default())
    }
}

/// Whether two loops, one directly inside the other, may share a line.
fn same_kind(a: Mode, b: Mode) -> bool {
    matches!(
        (a, b),
        (Mode::Block { .. }, Mode::Block { .. })
            | (Mode::Threads { .. }, Mode::Threads { .. })
            | (Mode::Serial, Mode::Serial)
            | (Mode::Unroll, Mode::Unroll)
            | (Mode::Interleave, Mode::Interleave)
    )
}

/// The text of a synchronisation.
pub fn sync(sync: Sync) -> String {
    match sync {
        Sync::Barrier => "barrier".into(),
        Sync::CpCommit => "cp.commit".into(),
        Sync::CpWait(n) => format!("cp.wait {n}"),
        Sync::WgmmaFence => "wgmma.fence".into(),
        Sync::WgmmaCommit => "wgmma.commit".into(),
        Sync::WgmmaWait(n) => format!("wgmma.wait {n}"),
        Sync::BulkCommit => "bulk.commit".into(),
        Sync::BulkWait(n) => format!("bulk.wait {n}"),
        Sync::BulkWaitRead(n) => format!("bulk.wait_read {n}"),
        Sync::FenceAsync => "fence.async".into(),
    }
}
