//! The machine: memory, threads, and who goes next.

use std::collections::HashMap;

use warpwright_core::ir::{Buffer, Launch, ParamKind, Program, SharedPlan, Space, Stmt};
use warpwright_core::layout::row_major_strides;

use super::agent::{Agent, Job};
use super::element::Element;
use super::memory::{Array, Home, Registers, is_output};
use super::names::Names;
use super::random::Random;
use super::sync::Slot;
use super::thread::{Frame, Thread};
use super::{Arguments, Fault};

/// How freedom is used: who goes next, and when asynchronous effects happen.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) random: Random,
    pub(super) order: Order,
    /// Whether a thread may be interrupted anywhere, and a plain `+=` between its load and its store.
    pub(super) interrupts: bool,
    /// How many blocks of a launch are in execution at a time.
    pub(super) blocks: usize,
    /// When each agent of [`Agent`] acts.
    pub(super) timing: [Timing; 4],
}

/// Which of the ready threads goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Any,
    Lowest,
    Highest,
}

/// When an asynchronous effect happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    AtOnce,
    AtRandom,
    AsLateAsItsWaitAllows,
}

impl Policy {
    /// The policy of a seed.
    pub fn from_seed(seed: u64) -> Policy {
        let mut random = Random::new(seed);
        let order = [Order::Any, Order::Lowest, Order::Highest][random.below(3)];
        let timings = [Timing::AtOnce, Timing::AtRandom, Timing::AsLateAsItsWaitAllows];
        let timing = [0; 4].map(|_| timings[random.below(3)]);
        let (interrupts, blocks) = (random.once_in(2), 1 + random.below(3));
        Policy { random, order, interrupts, blocks, timing }
    }

    /// Threads of three blocks in random order, interrupted anywhere, and everything asynchronous as late as possible.
    pub fn latest(seed: u64) -> Policy {
        Policy {
            random: Random::new(seed),
            order: Order::Any,
            interrupts: true,
            blocks: 3,
            timing: [Timing::AsLateAsItsWaitAllows; 4],
        }
    }

    /// Copies are made at once and products as late as possible; the lowest thread, which fetches for the others, goes
    /// as far as it can.
    pub fn overtaking(seed: u64) -> Policy {
        let mut timing = [Timing::AtOnce; 4];
        timing[Agent::Wgmma as usize] = Timing::AsLateAsItsWaitAllows;
        Policy { order: Order::Lowest, interrupts: false, timing, ..Policy::latest(seed) }
    }
}

/// Everything that exists during the execution of a program.
pub(super) struct Machine<'a> {
    program: &'a Program,
    pub names: Names,
    /// Buffers by slot, as far as they have been placed.
    pub arrays: Vec<Option<Array<'a>>>,
    /// Device memory by allocation, and the names of those that may not be given poison.
    pub device: Vec<Vec<Element>>,
    pub outputs: Vec<Option<String>>,
    pub scalars: Vec<Element>,
    /// Sizes, flags and strides, by slot.
    pub env: Vec<i64>,
    pub policy: Policy,
    /// Whether the program touches shared memory through the async proxy.
    pub proxies: bool,
    pub blocks: Vec<Block<'a>>,
    pub threads: Vec<Thread<'a>>,
    pub ready: Vec<usize>,
    pub live: usize,
    /// Threads that wait for the rest of their range, by block, statement and first thread of the range.
    pub meetings: HashMap<(usize, usize, i64), Vec<usize>>,
    /// Complete meetings at a chained instruction whose predecessor has not published yet.
    pub stalled: Vec<(&'a Stmt, (i64, i64), Vec<usize>)>,
    /// The first and last thread of each role, by slot.
    pub roles: HashMap<usize, (i64, i64)>,
    /// The elements of a window that each thread of the block owns, by `own` statement, base and start.
    pub owned: HashMap<(usize, i64, Vec<i64>), Vec<Points>>,
    /// A ticket for every asynchronous effect that may happen at random.
    pub tickets: Vec<(usize, Agent)>,
}

/// Other statements of the host list, as in a specification, are executed by one thread.
fn one_thread(stmt: &Stmt) -> Launch<'_> {
    let (blocks, roles, shared) = (Vec::new(), Vec::new(), SharedPlan::default());
    Launch { blocks, body: std::slice::from_ref(stmt), threads: 1, roles, shared }
}

/// Indices of elements.
pub(super) type Points = Vec<Vec<i64>>;

/// A block in execution.
pub(super) struct Block<'a> {
    pub first_thread: usize,
    pub threads: i64,
    pub shared: Vec<Element>,
    /// Bytes written by ordinary code since its writer's last `fence.async`.
    pub unfenced: Vec<bool>,
    /// The mbarriers of each ring, by slot of its name.
    pub rings: HashMap<usize, Vec<Slot>>,
    /// Bulk loads under way.
    pub loads: Vec<Job<'a>>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, arguments: &Arguments, policy: Policy) -> Result<Machine<'a>, Fault> {
        let names = Names::new(program);
        let count = names.count;
        let mut machine = Machine {
            program,
            names,
            arrays: (0..count).map(|_| None).collect(),
            device: Vec::new(),
            outputs: Vec::new(),
            scalars: vec![Element::POISON; count],
            env: vec![0; count],
            policy,
            proxies: false,
            blocks: Vec::new(),
            threads: Vec::new(),
            ready: Vec::new(),
            live: 0,
            meetings: HashMap::new(),
            stalled: Vec::new(),
            roles: HashMap::new(),
            owned: HashMap::new(),
            tickets: Vec::new(),
        };
        for param in &program.params {
            let (slot, name) = (machine.names.slot(&param.sym), param.sym.name());
            match &param.kind {
                ParamKind::Size | ParamKind::Launch | ParamKind::Flag => {
                    machine.env[slot] = arguments.integers[name];
                }
                ParamKind::Scalar(_) => machine.scalars[slot] = arguments.scalars[name],
                ParamKind::Tensor(buffer) => {
                    if let Some(stride) = &buffer.row_stride {
                        machine.env[machine.names.slot(stride)] = arguments.integers[stride.name()];
                    }
                }
            }
        }
        for buffer in program.tensors() {
            let content = arguments.tensors[buffer.sym.name()].clone();
            assert!(machine.place_in_device_memory(buffer, content), "{} is too short", buffer.sym);
        }
        Ok(machine)
    }

    /// Returns the tensors to the caller.
    pub fn give_back(&mut self, arguments: &mut Arguments) {
        for (buffer, content) in self.program.tensors().zip(&mut self.device) {
            arguments.tensors.insert(buffer.sym.name().into(), std::mem::take(content));
        }
    }

    /// Executes the host list.
    pub fn host(&mut self, stmts: &'a [Stmt]) -> Result<(), Fault> {
        for stmt in stmts {
            match stmt {
                Stmt::Alloc(buffer) => {
                    self.place_in_device_memory(buffer, Vec::new());
                }
                Stmt::Let(var, value) => {
                    self.env[self.names.slot(var)] = self.names.index(value, &self.env);
                }
                Stmt::If(choice) => {
                    let holds = self.names.cond(&choice.cond, &self.env);
                    self.host(if holds { &choice.then } else { &choice.otherwise })?;
                }
                _ => {
                    let launch = Launch::of(stmt).map_err(|d| Fault::Refused(d.to_string()))?;
                    self.launch(&launch.unwrap_or_else(|| one_thread(stmt)))?;
                }
            }
        }
        Ok(())
    }

    /// Gives a buffer its place in device memory, poison where there is no content; false if the content is short.
    fn place_in_device_memory(&mut self, buffer: &'a Buffer, mut content: Vec<Element>) -> bool {
        let extents = self.extents(buffer);
        let mut strides = row_major_strides(&extents);
        if let (Some(stride), [row, _]) = (&buffer.row_stride, &mut strides[..]) {
            *row = self.env[self.names.slot(stride)];
        }
        let empty = extents.contains(&0);
        let last: i64 = extents.iter().zip(&strides).map(|(e, s)| (e - 1) * s).sum();
        let needed = if empty { 0 } else { last as usize + 1 };
        let enough = content.len() >= needed;
        if content.is_empty() {
            content.resize(needed, Element::POISON);
        }
        let allocation = self.device.len();
        self.device.push(content);
        self.outputs.push(is_output(buffer).then(|| buffer.sym.name().to_owned()));
        let home = Home::Device { allocation, strides };
        self.arrays[self.names.slot(&buffer.sym)] = Some(Array { buffer, extents, home });
        enough || buffer.space == Space::Global
    }

    fn extents(&self, buffer: &Buffer) -> Vec<i64> {
        buffer.dims.iter().map(|d| self.names.index(&d.extent, &self.env)).collect()
    }

    /// Executes all blocks, a few at a time, in random order unless they are ordered.
    fn launch(&mut self, launch: &Launch<'a>) -> Result<(), Fault> {
        self.place_buffers_of_block(launch)?;
        self.owned.clear();
        self.roles = launch.roles.iter().map(|r| (self.names.slot(&r.sym), (r.lo, r.hi))).collect();
        self.proxies = super::agent::uses_async_proxy(launch.body);
        let grid: Vec<i64> =
            launch.blocks.iter().map(|b| self.names.index(&b.extent, &self.env).max(0)).collect();
        let mut blocks: Vec<Vec<i64>> = warpwright_core::layout::indices(&grid).collect();
        if !launch.blocks.iter().any(|b| b.ordered) {
            self.policy.random.shuffle(&mut blocks);
        }
        for wave in blocks.chunks(self.policy.blocks) {
            for index in wave {
                for (b, value) in launch.blocks.iter().zip(index) {
                    self.env[self.names.slot(&b.var)] = *value;
                }
                self.start_block(launch);
            }
            self.run_wave()?;
        }
        Ok(())
    }

    /// Finds the place of every buffer of a block, and which registers a thread needs for it.
    fn place_buffers_of_block(&mut self, launch: &Launch<'a>) -> Result<(), Fault> {
        let mut buffers = Vec::new();
        warpwright_core::ir::walk::for_each(launch.body, &mut |stmt| {
            if let Stmt::Alloc(buffer) = stmt {
                buffers.push(buffer);
            }
        });
        for buffer in buffers {
            let extents = self.extents(buffer);
            let home = match launch.shared.place(&buffer.sym) {
                Some(place) => Home::shared(buffer, &extents, place.offset, &self.names),
                None => Home::Registers(Registers::of(buffer, &extents)?),
            };
            self.arrays[self.names.slot(&buffer.sym)] = Some(Array { buffer, extents, home });
        }
        Ok(())
    }

    fn start_block(&mut self, launch: &Launch<'a>) {
        let (block, first_thread) = (self.blocks.len(), self.threads.len());
        let bytes = launch.shared.bytes as usize;
        let ring = |(ring, _): &(warpwright_core::ir::Ring, i64)| {
            (self.names.slot(&ring.sym), vec![Slot::new(ring.count); ring.depth as usize])
        };
        self.blocks.push(Block {
            first_thread,
            threads: launch.threads,
            shared: vec![Element::POISON; bytes],
            unfenced: vec![false; if self.proxies { bytes } else { 0 }],
            rings: launch.shared.rings.iter().map(ring).collect(),
            loads: Vec::new(),
        });
        for id in 0..launch.threads {
            let frame = Frame::once(launch.body, (0, launch.threads));
            self.ready.push(self.threads.len());
            self.threads.push(Thread::new(block, id, self.env.clone(), frame));
            self.live += 1;
        }
    }

    /// Lets the threads of the started blocks go until all have ended.
    fn run_wave(&mut self) -> Result<(), Fault> {
        while self.live > 0 {
            if !self.tickets.is_empty() && self.policy.random.once_in(4) {
                let ticket = self.policy.random.below(self.tickets.len());
                let (thread, agent) = self.tickets.swap_remove(ticket);
                self.act(thread, agent)?;
            }
            match self.pick() {
                Some(t) => self.run_thread(t)?,
                None if self.wake_someone()? => {}
                None => return Err(Fault::Deadlock { waiting: self.live }),
            }
        }
        self.end_blocks()
    }

    fn pick(&mut self) -> Option<usize> {
        if self.ready.is_empty() {
            return None;
        }
        let threads = self.ready.iter().enumerate();
        let at = match self.policy.order {
            Order::Any => self.policy.random.below(self.ready.len()),
            Order::Lowest => threads.min_by_key(|(_, t)| **t)?.0,
            Order::Highest => threads.max_by_key(|(_, t)| **t)?.0,
        };
        Some(self.ready.swap_remove(at))
    }

    /// When all threads wait: lets a stalled chained instruction or a bulk load come to its end.
    fn wake_someone(&mut self) -> Result<bool, Fault> {
        for (stmt, range, members) in std::mem::take(&mut self.stalled) {
            self.meet_complete(stmt, range, members)?;
        }
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let with_loads: Vec<usize> =
            (0..self.blocks.len()).filter(|b| !self.blocks[*b].loads.is_empty()).collect();
        if with_loads.is_empty() {
            return Ok(false);
        }
        let block = with_loads[self.policy.random.below(with_loads.len())];
        self.finish_a_load(block)?;
        Ok(true)
    }

    /// The blocks are gone, and others may have their memory; stores that were never waited for read it now.
    fn end_blocks(&mut self) -> Result<(), Fault> {
        for block in &mut self.blocks {
            block.shared.fill(Element::POISON);
            block.loads.clear();
        }
        for t in 0..self.threads.len() {
            while self.act(t, Agent::BulkStore)? {}
        }
        self.tickets.clear();
        self.threads.clear();
        self.blocks.clear();
        Ok(())
    }
}
