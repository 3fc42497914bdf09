//! From program to code, for given sizes.

mod buffer;
mod index;
mod instruction;
mod own;
mod points;
mod statement;
mod value;

use std::collections::{HashMap, HashSet};

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::validate::{self, Reach};
use warpwright_core::ir::{
    AssignOp, Buffer, For, Io, Launch, Mode as LoopMode, ParamKind, Program, Range, Space, Stmt, Sync, Value,
    facts, walk,
};
use warpwright_core::sym::Sym;

use crate::code::{Code, Constant, Form, LaunchCode, Op, Site, Step};
use buffer::RegisterBuffer;
pub(crate) use index::compute;
pub(crate) use points::lower_points;

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All loops in order, on logical arrays, synchronisation ignored except that `await` asserts: the definition of
    /// the language (rule 10).
    InOrder,
    /// The same walk on physical storage, warp by warp, with every access ordered by happens-before (rule 19).
    Simt,
}

/// What a symbol stands for.
#[derive(Clone, Debug)]
enum Binding {
    Integer(Form),
    /// A loop over ranges of threads: a value for each thread, and, where whole ranges execute, one for the range.
    Thread {
        lanes: Form,
        uniform: Form,
    },
    Global(u32),
    Local(u32),
    Registers(usize),
    Ring(u32),
    Role(i64, i64),
}

/// Who executes the statements that are being lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// A range of threads as a whole: integers are uniform.
    Range,
    /// The lanes of a warp.
    Warp,
}

/// The executing range.
#[derive(Clone, Debug)]
struct Context {
    view: View,
    /// Threads in the range.
    size: i64,
    /// For each thread of the block: its number within its range.
    offset: Vec<i64>,
    /// For each thread of the block: whether it executes.
    active: Vec<bool>,
}

struct Lowering<'p> {
    mode: Mode,
    program: &'p Program,
    code: Code<'p>,
    starts: Starts,
    bindings: HashMap<Sym, Binding>,
    registers: Vec<RegisterBuffer>,
    context: Context,
    /// Threads of a block, a multiple of the lanes of a warp; 1 in order.
    threads: usize,
    ops: Vec<Op>,
    emitted: usize,
    uniform_bounds: Vec<index::Bounds>,
    dynamic_bounds: Vec<index::Bounds>,
    lane_numbers: HashMap<Box<[i64]>, u32>,
    lane_sums: HashMap<(u32, u32), Form>,
    lane_multiples: HashMap<(u32, i64), Form>,
    /// Uniform variables that count iterations, and so change after they are bound.
    ordinals: HashSet<u32>,
    /// Literals and scalars that live in registers, in the order of their slots.
    constants: Vec<Constant>,
    scalar_types: Vec<warpwright_core::dtype::DType>,
    scalars: HashMap<Sym, u32>,
    next_slot: u32,
    most_slots: u32,
    /// In order: the threads that would execute this statement.
    arrivals: i64,
    /// Inside a vector loop: what one element counts as, where its iterations touch neighbours.
    width: u32,
    /// The accesses of vector loops whose iterations do not, by their address.
    narrow: HashMap<usize, Reach>,
    sites: HashMap<usize, u32>,
    accumulators: HashMap<Sym, u32>,
    accumulated: HashSet<Sym>,
    stmt: Option<&'p Stmt>,
}

/// Larger code is not written out: loops stay loops from there on.
const MOST_UNROLLED: usize = 1 << 18;

/// Where tensors start: by how many of their elements behind a multiple of 16 bytes. Those that are not named start at
/// one.
pub(crate) type Starts = HashMap<Sym, i64>;

/// Compiles a program for the given sizes, row strides, launch sizes and flags, and for tensors that start there.
pub(crate) fn lower<'p>(
    program: &'p Program,
    values: &HashMap<Sym, i64>,
    starts: Starts,
    mode: Mode,
) -> Result<Code<'p>, Diagnosis> {
    let narrow = if mode == Mode::Simt { narrow(program) } else { HashMap::new() };
    let mut lowering = Lowering { starts, narrow, ..Lowering::new(program, values, mode) };
    lowering.parameters()?;
    lowering.constants();
    match mode {
        Mode::InOrder => {
            lowering.context.view = View::Warp;
            lowering.begin_slots();
            lowering.stmts(&program.body)?;
            let body = std::mem::take(&mut lowering.ops);
            let launch = lowering.launch_code(Vec::new(), false, body, &program.body, 0);
            lowering.code.steps.push(Step::Launch(launch));
        }
        Mode::Simt => lowering.host(&program.body)?,
    }
    lowering.code.uniforms = lowering.uniform_bounds.len();
    lowering.code.dynamics = lowering.dynamic_bounds.len();
    Ok(lowering.code)
}

/// The accesses of vector loops that are no wide ones.
fn narrow(program: &Program) -> HashMap<usize, Reach> {
    let (buffers, mut found) = (program.buffers(), HashMap::new());
    let is_vector = |stmt: &Stmt| matches!(stmt, Stmt::For(For { mode: LoopMode::Vector, .. }));
    facts::at_those(program, &is_vector, &mut |stmt, facts| {
        let Stmt::For(l) = stmt else { return };
        let all = validate::reaches(l, &buffers, facts).into_iter();
        let others = all.filter(|(_, reach)| *reach != Reach::Neighbours);
        found.extend(others.map(|(access, reach)| (std::ptr::from_ref(access) as usize, reach)));
    });
    found
}

impl<'p> Lowering<'p> {
    fn new(program: &'p Program, values: &HashMap<Sym, i64>, mode: Mode) -> Lowering<'p> {
        let bindings =
            values.iter().map(|(s, v)| (s.clone(), Binding::Integer(Form::constant(*v)))).collect();
        Lowering {
            mode,
            program,
            code: Code::default(),
            starts: Starts::new(),
            bindings,
            registers: Vec::new(),
            context: Context::block(1),
            threads: 1,
            ops: Vec::new(),
            emitted: 0,
            uniform_bounds: Vec::new(),
            dynamic_bounds: Vec::new(),
            lane_numbers: HashMap::new(),
            lane_sums: HashMap::new(),
            lane_multiples: HashMap::new(),
            ordinals: HashSet::new(),
            constants: Vec::new(),
            scalar_types: Vec::new(),
            scalars: HashMap::new(),
            next_slot: 0,
            most_slots: 0,
            arrivals: 1,
            width: 1,
            narrow: HashMap::new(),
            sites: HashMap::new(),
            accumulators: HashMap::new(),
            accumulated: HashSet::new(),
            stmt: None,
        }
    }

    fn parameters(&mut self) -> Result<(), Diagnosis> {
        for (number, param) in self.program.params.iter().enumerate() {
            match &param.kind {
                ParamKind::Scalar(dtype) => {
                    self.scalars.insert(param.sym.clone(), self.scalar_types.len() as u32);
                    self.scalar_types.push(*dtype);
                    self.code.scalars.push(param.sym.name().to_string());
                }
                ParamKind::Tensor(buffer) => self.global(buffer, Some(number))?,
                ParamKind::Size | ParamKind::Launch | ParamKind::Flag => {
                    if !self.bindings.contains_key(&param.sym) {
                        return Err(Diagnosis::new(format!("no value was given for `{}`", param.sym)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives every literal and scalar of the program a register.
    fn constants(&mut self) {
        let mut found = vec![Constant::Literal(0)];
        fn visit(value: &Value, scalars: &HashMap<Sym, u32>, found: &mut Vec<Constant>) {
            let constant = match value {
                Value::Const(c) => Some(Constant::Literal(c.to_bits())),
                Value::Scalar(sym) => scalars.get(sym).map(|s| Constant::Scalar(*s)),
                Value::Load(_) => None,
                Value::Unary(_, a) | Value::Cast(_, a) => {
                    visit(a, scalars, found);
                    None
                }
                Value::Binary(_, a, b) | Value::Select(_, a, b) => {
                    visit(a, scalars, found);
                    visit(b, scalars, found);
                    None
                }
            };
            if let Some(c) = constant
                && !found.contains(&c)
            {
                found.push(c);
            }
        }
        walk::for_each(&self.program.body, &mut |stmt| {
            if let Stmt::Assign(a) = stmt {
                visit(&a.value, &self.scalars, &mut found);
            }
            if let Stmt::Instruction(i) = stmt
                && warpwright_core::instr::by_name(&i.name)
                    .is_some_and(|r| r.completion == warpwright_core::instr::Completion::Wgmma)
                && let Some(warpwright_core::ir::Operand::Window(w)) = i.operands.first()
            {
                self.accumulated.insert(w.buffer.clone());
            }
        });
        self.constants = found;
    }

    fn begin_slots(&mut self) {
        self.next_slot = self.constants.len() as u32;
        self.most_slots = self.next_slot;
    }

    /// The host list in SIMT mode: only scratch, conditions and launches.
    fn host(&mut self, stmts: &'p [Stmt]) -> Result<(), Diagnosis> {
        for stmt in stmts {
            let program = self.program;
            let here = |d: Diagnosis| d.at(warpwright_core::ir::validate::place::of(program, stmt));
            match stmt {
                Stmt::Alloc(buffer) if buffer.space == Space::Global => {
                    self.global(buffer, None)?;
                    let number = self.code.globals.len() as u32 - 1;
                    self.code.steps.push(Step::Scratch(number));
                }
                Stmt::Let(sym, value) => {
                    let value = self.index(value)?;
                    self.bindings.insert(sym.clone(), Binding::Integer(value));
                }
                Stmt::If(i) => match self.test(&i.cond)? {
                    crate::code::Test::Constant(true) => self.host(&i.then)?,
                    crate::code::Test::Constant(false) => self.host(&i.otherwise)?,
                    _ => return Err(here(Diagnosis::new("a host condition is not known before the launch"))),
                },
                _ => match Launch::of(stmt).map_err(here)? {
                    Some(launch) => self.launch(&launch)?,
                    None => {
                        return Err(Diagnosis::new(
                            "this statement stands at host scope, outside any launch",
                        )
                        .at(self.place(stmt))
                        .instead("bind loops to blocks and threads first, or run the program in order"));
                    }
                },
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'p>) -> Result<(), Diagnosis> {
        if launch.threads > 1024 || launch.threads < 1 {
            return Err(Diagnosis::new(format!("a block of {} threads", launch.threads))
                .because("a block has at most 1024"));
        }
        self.threads = launch.threads as usize;
        self.context = Context::block(self.threads);
        self.lane_numbers.clear();
        self.lane_sums.clear();
        self.lane_multiples.clear();
        self.begin_slots();
        let mut grid = Vec::new();
        for block in &launch.blocks {
            let extent = self.index(&block.extent)?.as_constant();
            let extent = extent.ok_or_else(|| Diagnosis::new("the number of blocks is not known"))?.max(0);
            let variable = self.new_uniform(Some((0, (extent - 1).max(0))));
            self.bindings.insert(block.var.clone(), Binding::Integer(Form::uniform(variable)));
            grid.push((variable, extent, block.axis));
        }
        if grid.iter().any(|(_, extent, _)| *extent == 0) {
            return Ok(());
        }
        for role in &launch.roles {
            self.bindings.insert(role.sym.clone(), Binding::Role(role.lo, role.hi));
        }
        let first_local = self.code.locals.len() as u32;
        let first_ring = self.code.rings.len() as u32;
        self.stmts(launch.body)?;
        let body = std::mem::take(&mut self.ops);
        let ordered = launch.blocks.iter().any(|b| b.ordered);
        let mut code = self.launch_code(grid, ordered, body, launch.body, launch.shared.bytes);
        code.locals = (first_local..self.code.locals.len() as u32).collect();
        code.rings = (first_ring..self.code.rings.len() as u32).collect();
        self.code.steps.push(Step::Launch(code));
        Ok(())
    }

    fn launch_code(
        &mut self,
        grid: Vec<(u32, i64, warpwright_core::ir::Axis)>,
        ordered: bool,
        body: Vec<Op>,
        stmts: &[Stmt],
        shared_bytes: i64,
    ) -> LaunchCode {
        let mut written = vec![false; self.code.globals.len()];
        let mut global_atomics = false;
        let mut mark = |bindings: &HashMap<Sym, Binding>, sym: &Sym, atomic: bool| {
            if let Some(Binding::Global(g)) = bindings.get(sym) {
                written[*g as usize] = true;
                global_atomics |= atomic;
            }
        };
        walk::for_each(stmts, &mut |stmt| match stmt {
            Stmt::Assign(a) => mark(&self.bindings, &a.target.buffer, a.atomic),
            Stmt::Instruction(i) => {
                for operand in &i.operands {
                    if let warpwright_core::ir::Operand::Window(w) = operand {
                        let read_only = self
                            .program
                            .tensors()
                            .any(|t| t.sym == w.buffer && t.space == Space::Param(Io::In));
                        if !read_only {
                            mark(&self.bindings, &w.buffer, false);
                        }
                    }
                }
            }
            _ => {}
        });
        let constants = self.constants.iter().enumerate().map(|(slot, c)| (slot as u32, *c)).collect();
        LaunchCode {
            grid,
            threads: self.threads,
            ordered,
            global_atomics,
            asynchronous: is_asynchronous(stmts) || has_partial_barrier(&body, self.threads as i64),
            body,
            slots: self.most_slots.max(1),
            written,
            constants,
            locals: (0..self.code.locals.len() as u32).collect(),
            rings: (0..self.code.rings.len() as u32).collect(),
            shared_bytes,
            nest: None,
        }
    }

    fn emit(&mut self, op: Op) {
        self.emitted += 1;
        self.ops.push(op);
    }

    /// The loops around a statement, and the statement.
    fn place(&self, stmt: &Stmt) -> String {
        warpwright_core::ir::validate::place::of(self.program, stmt)
    }

    /// The number of the site of the statement that is being lowered.
    fn site(&mut self) -> u32 {
        let Some(stmt) = self.stmt else { return 0 };
        self.site_of(stmt as *const Stmt as usize, stmt)
    }

    fn site_of(&mut self, key: usize, stmt: &'p Stmt) -> u32 {
        *self.sites.entry(key).or_insert_with(|| {
            self.code.sites.push(Site { stmt });
            self.code.sites.len() as u32 - 1
        })
    }
}

impl Context {
    fn block(threads: usize) -> Context {
        Context {
            view: View::Range,
            size: threads as i64,
            offset: (0..threads as i64).collect(),
            active: vec![true; threads],
        }
    }
}

/// Whether a launch orders accesses by anything but barriers of the whole block.
fn is_asynchronous(stmts: &[Stmt]) -> bool {
    use warpwright_core::instr::{self, Completion};
    let mut found = false;
    walk::for_each(stmts, &mut |stmt| {
        found |= match stmt {
            Stmt::AllocRing(_) | Stmt::Arrive { .. } | Stmt::Await { .. } => true,
            Stmt::Sync(sync) => *sync != Sync::Barrier,
            Stmt::Instruction(i) => instr::by_name(&i.name)
                .is_none_or(|r| !matches!(r.completion, Completion::InOrder | Completion::Chained)),
            _ => false,
        }
    });
    found
}

fn has_partial_barrier(ops: &[Op], threads: i64) -> bool {
    ops.iter().any(|op| match op {
        Op::Sync { sync: Sync::Barrier, size, .. } => *size != threads,
        Op::Loop { body, .. }
        | Op::LaneLoop { body, .. }
        | Op::Tasks { body, .. }
        | Op::Ranges { body, .. }
        | Op::On { body, .. }
        | Op::Nest { body, .. } => has_partial_barrier(body, threads),
        Op::If { then, otherwise, .. } => {
            has_partial_barrier(then, threads) || has_partial_barrier(otherwise, threads)
        }
        _ => false,
    })
}

/// The trip count of a range whose bounds are numbers.
fn constant_values(lowering: &mut Lowering<'_>, range: &Range) -> Result<Option<Vec<i64>>, Diagnosis> {
    Ok(match range {
        Range::List(values) => Some(values.clone()),
        Range::Span { lo, hi, step } => {
            let (lo, hi, step) = (lowering.index(lo)?, lowering.index(hi)?, lowering.index(step)?);
            match (lo.as_constant(), hi.as_constant(), step.as_constant()) {
                (Some(lo), Some(hi), Some(step)) if step > 0 => {
                    let count = (i128::from(hi) - i128::from(lo) + i128::from(step) - 1) / i128::from(step);
                    (count <= MOST_UNROLLED as i128)
                        .then(|| (0..count.max(0) as i64).map(|n| lo + n * step).collect())
                }
                _ => None,
            }
        }
        Range::Part { .. } => None,
    })
}

/// Whether the buffer is an output, whose elements must not be poison.
fn is_output(buffer: &Buffer) -> bool {
    matches!(buffer.space, Space::Param(Io::Out | Io::InOut))
}

/// Whether an assignment reads its target.
fn reads_target(op: AssignOp) -> bool {
    op != AssignOp::Store
}
