//! One thread: a resumable interpreter of the projection.

use std::collections::VecDeque;

use warpwright_core::instr;
use warpwright_core::ir::{For, Mode, Own, Range, Stmt, Sync, Tasks};
use warpwright_core::layout::indices;
use warpwright_core::sym::Sym;

use super::Fault;
use super::agent::Entry;
use super::element::Element;
use super::machine::Machine;
use super::memory::{Location, Register};

/// A thread in execution.
pub(super) struct Thread<'a> {
    pub block: usize,
    /// Its number in the block.
    pub id: i64,
    /// The integers it knows, by slot.
    pub env: Vec<i64>,
    /// Its registers, by slot of the buffer.
    pub registers: Vec<Vec<Register>>,
    /// The first thread that shares a register buffer, by slot.
    pub base: Vec<i64>,
    stack: Vec<Frame<'a>>,
    /// The second half of a plain `+=`.
    pub half_done: Option<(Location, Element)>,
    /// Shared bytes it has written since its last `fence.async`.
    pub unfenced: Vec<usize>,
    /// Asynchronous effects under way, by agent.
    pub queues: [VecDeque<Entry<'a>>; 4],
}

/// A body in execution.
pub(super) struct Frame<'a> {
    body: &'a [Stmt],
    next: usize,
    /// The executing range: its first thread and its size.
    range: (i64, i64),
    turns: Turns<'a>,
}

/// The iterations of a body that are still to come.
enum Turns<'a> {
    None,
    Span { var: &'a Sym, next: i64, hi: i64, step: i64, counting: Option<&'a Sym>, started: bool },
    Points { vars: &'a [Sym], points: std::vec::IntoIter<Vec<i64>> },
}

/// What became of a statement.
pub(super) enum Step {
    Goes,
    Waits,
    Ends,
}

impl<'a> Frame<'a> {
    /// A body that is executed once.
    pub fn once(body: &'a [Stmt], range: (i64, i64)) -> Frame<'a> {
        Frame { body, next: 0, range, turns: Turns::None }
    }

    /// A body that is executed for each turn; it starts at its end, where the next turn is taken.
    fn repeated(body: &'a [Stmt], range: (i64, i64), turns: Turns<'a>) -> Frame<'a> {
        Frame { body, next: body.len(), range, turns }
    }
}

impl<'a> Thread<'a> {
    pub fn new(block: usize, id: i64, env: Vec<i64>, frame: Frame<'a>) -> Thread<'a> {
        let registers = (0..env.len()).map(|_| Vec::new()).collect();
        let base = vec![0; env.len()];
        let (half_done, unfenced, queues) = (None, Vec::new(), Default::default());
        Thread { block, id, env, registers, base, stack: vec![frame], half_done, unfenced, queues }
    }
}

impl<'a> Machine<'a> {
    /// Lets a thread go until it waits, ends, or is interrupted.
    pub fn run_thread(&mut self, t: usize) -> Result<(), Fault> {
        loop {
            if let Some((at, value)) = self.threads[t].half_done.take() {
                self.write(at, value, Some(t))?;
            }
            match self.step(t)? {
                Step::Goes => {}
                Step::Waits => return Ok(()),
                Step::Ends => {
                    self.live -= 1;
                    return Ok(());
                }
            }
            let odds = if self.threads[t].half_done.is_some() { 4 } else { 256 };
            if self.policy.interrupts && self.policy.random.once_in(odds) {
                self.ready.push(t);
                return Ok(());
            }
        }
    }

    /// Executes one statement.
    fn step(&mut self, t: usize) -> Result<Step, Fault> {
        let Some(frame) = self.threads[t].stack.last_mut() else { return Ok(Step::Ends) };
        let range = frame.range;
        let Some(stmt) = frame.body.get(frame.next) else {
            self.turn(t);
            return Ok(Step::Goes);
        };
        frame.next += 1;
        match stmt {
            Stmt::For(l) => self.enter_loop(t, l, range),
            Stmt::Tasks(tasks) => self.enter_tasks(t, tasks, range),
            Stmt::Own(own) => self.enter_own(t, own, range)?,
            Stmt::If(choice) => {
                let holds = self.names.cond(&choice.cond, &self.threads[t].env);
                let body = if holds { &choice.then } else { &choice.otherwise };
                self.threads[t].stack.push(Frame::once(body, range));
            }
            Stmt::On(on) => {
                let (lo, hi) = self.roles[&self.names.slot(&on.role)];
                if (lo..hi).contains(&self.threads[t].id) {
                    self.threads[t].stack.push(Frame::once(&on.body, (lo, hi - lo)));
                }
            }
            Stmt::Let(var, value) => {
                let value = self.names.index(value, &self.threads[t].env);
                self.set(t, var, value);
            }
            Stmt::Alloc(buffer) => self.allocate_registers(t, buffer, range.0),
            Stmt::AllocRing(_) | Stmt::Roles(_) => {}
            Stmt::Assign(assign) => self.assign(t, assign)?,
            Stmt::Instruction(i) => {
                let record = instr::by_name(&i.name)
                    .ok_or_else(|| Fault::Refused(format!("there is no instruction {}", i.name)))?;
                if record.threads != range.1 {
                    let why =
                        format!("{} is executed by {} threads, not {}", i.name, record.threads, range.1);
                    return Err(Fault::Refused(why));
                }
                return self.meet(t, stmt, range);
            }
            Stmt::Sync(Sync::Barrier | Sync::WgmmaCommit | Sync::WgmmaWait(_)) => {
                return self.meet(t, stmt, range);
            }
            Stmt::Sync(sync) => self.synchronise(t, *sync)?,
            Stmt::Arrive { ring, ordinal, bytes } => {
                let ordinal = self.ordinal(t, ordinal);
                let bytes = bytes.as_ref().map_or(0, |b| self.names.index(b, &self.threads[t].env));
                self.arrive(t, ring, ordinal, bytes)?;
            }
            Stmt::Await { ring, ordinal } => {
                if !self.await_phase(t, ring, ordinal) {
                    self.threads[t].stack.last_mut().expect("it is executing").next -= 1;
                    return Ok(Step::Waits);
                }
            }
        }
        Ok(Step::Goes)
    }

    fn set(&mut self, t: usize, var: &Sym, value: i64) {
        let slot = self.names.slot(var);
        self.threads[t].env[slot] = value;
    }

    /// At the end of a body: begins the next iteration, or leaves.
    fn turn(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let frame = thread.stack.last_mut().expect("it is executing");
        match &mut frame.turns {
            Turns::None => {}
            Turns::Span { var, next, hi, step, counting, started } => {
                if let (true, Some(ordinal)) = (*started, counting) {
                    thread.env[self.names.slot(ordinal)] += 1;
                }
                if next < hi {
                    thread.env[self.names.slot(var)] = *next;
                    *next += *step;
                    *started = true;
                    frame.next = 0;
                    return;
                }
            }
            Turns::Points { vars, points } => {
                if let Some(point) = points.next() {
                    for (var, value) in vars.iter().zip(point) {
                        thread.env[self.names.slot(var)] = value;
                    }
                    frame.next = 0;
                    return;
                }
            }
        }
        thread.stack.pop();
    }

    fn enter_loop(&mut self, t: usize, l: &'a For, range: (i64, i64)) {
        let env = &self.threads[t].env;
        let at = |index| self.names.index(index, env);
        let (lo, hi, step) = match &l.range {
            Range::Span { lo, hi, step } => (at(lo), at(hi), at(step).max(1)),
            Range::Part { index, parts, lo, hi } => {
                let (s, parts, lo, length) = (at(index), at(parts).max(1), at(lo), at(hi) - at(lo));
                (lo + length * s / parts, lo + length * (s + 1) / parts, 1)
            }
            Range::List(values) => {
                let points = values.iter().map(|v| vec![*v]).collect::<Vec<_>>().into_iter();
                let turns = Turns::Points { vars: std::slice::from_ref(&l.var), points };
                self.threads[t].stack.push(Frame::repeated(&l.body, range, turns));
                return;
            }
        };
        let frame = if let Mode::Threads { pitch } = l.mode {
            let own = lo + (self.threads[t].id - range.0).div_euclid(pitch);
            if own >= hi {
                return;
            }
            self.set(t, &l.var, own);
            Frame::once(&l.body, (range.0 + (own - lo) * pitch, pitch))
        } else {
            let counting = l.counting.as_ref();
            let turns = Turns::Span { var: &l.var, next: lo, hi, step, counting, started: false };
            Frame::repeated(&l.body, range, turns)
        };
        self.threads[t].stack.push(frame);
    }

    fn enter_tasks(&mut self, t: usize, tasks: &'a Tasks, range: (i64, i64)) {
        let at = |index| self.names.index(index, &self.threads[t].env);
        let extents: Vec<i64> = tasks.extents.iter().map(|e| at(e).max(0)).collect();
        let (start, stride) = (at(&tasks.start).max(0), at(&tasks.stride).max(1));
        let mine = indices(&extents).skip(start as usize).step_by(stride as usize);
        let points = mine.collect::<Vec<_>>().into_iter();
        let turns = Turns::Points { vars: &tasks.vars, points };
        self.threads[t].stack.push(Frame::repeated(&tasks.body, range, turns));
    }

    /// Finds, once for all threads of the block, who owns which elements of the window.
    fn enter_own(&mut self, t: usize, own: &'a Own, range: (i64, i64)) -> Result<(), Fault> {
        let view = self.view(t, &own.window);
        let block = &self.blocks[self.threads[t].block];
        let (first, threads) = (block.first_thread, block.threads);
        let key = (std::ptr::from_ref(own) as usize, self.threads[t].base[view.buffer], view.start.clone());
        if !self.owned.contains_key(&key) {
            let mut lists = vec![Vec::new(); threads as usize];
            // Of each run, the first element.
            let starts = |at: &Vec<i64>| at.last().is_none_or(|last| last % own.run == 0);
            for at in indices(&view.extents).filter(starts) {
                match self.locate(t, view.buffer, &view.at(&at))? {
                    Location::Register { thread, .. } => lists[thread - first].push(at),
                    _ => return Err(Fault::Refused(format!("{} has no owners", own.window.buffer))),
                }
            }
            self.owned.insert(key.clone(), lists);
        }
        let mine = self.owned[&key][t - first].clone();
        let turns = Turns::Points { vars: &own.vars, points: mine.into_iter() };
        self.threads[t].stack.push(Frame::repeated(&own.body, range, turns));
        Ok(())
    }
}
