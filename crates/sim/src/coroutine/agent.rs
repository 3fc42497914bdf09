//! Who carries out instructions, and when: at once, or later if they are asynchronous.

use std::collections::VecDeque;

use warpwright_core::instr::{self, Completion, Record};
use warpwright_core::ir::{Instruction, Operand, Stmt, walk};

use super::Fault;
use super::data::View;
use super::element::Element;
use super::machine::{Machine, Timing};

/// Who carries out asynchronous effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    CpAsync,
    BulkLoad,
    BulkStore,
    Wgmma,
}

/// An effect that is under way, or the end of a group.
pub(super) type Entry<'a> = Option<Job<'a>>;

/// An issued instruction.
pub(super) struct Job<'a> {
    pub record: &'static Record,
    /// The first of the executing threads.
    pub thread: usize,
    pub views: Vec<View>,
    pub integer: i64,
    /// The ring and ordinal to which completion is reported.
    signal: Option<(usize, i64)>,
    pub instruction: &'a Instruction,
    /// The inputs, once they have been taken.
    taken: Option<Vec<Element>>,
}

/// Whether a body holds instructions that use the async proxy.
pub(super) fn uses_async_proxy(body: &[Stmt]) -> bool {
    let mut found = false;
    walk::for_each(body, &mut |stmt| {
        if let Stmt::Instruction(i) = stmt {
            found |= instr::by_name(&i.name).is_some_and(|r| r.completion.async_proxy());
        }
    });
    found
}

impl<'a> Machine<'a> {
    /// Issues an instruction for the threads from `t` on; false if it cannot be executed yet.
    pub fn issue(&mut self, t: usize, instruction: &'a Instruction) -> Result<bool, Fault> {
        let record = instr::by_name(&instruction.name)
            .ok_or_else(|| Fault::Refused(format!("there is no instruction {}", instruction.name)))?;
        let (mut views, mut integer) = (Vec::new(), 0);
        for operand in &instruction.operands {
            match operand {
                Operand::Window(window) => views.push(self.view(t, window)),
                Operand::Scalar(value) => integer = self.names.index(value, &self.threads[t].env),
            }
        }
        let signal = instruction.signal.as_ref().map(|(r, n)| (self.names.slot(r), self.ordinal(t, n)));
        let job = Job { record, thread: t, views, integer, signal, instruction, taken: None };
        let agent = match record.completion {
            Completion::InOrder => return self.perform(job).map(|()| true),
            Completion::Chained => return self.chained_sum(&job),
            Completion::CpAsync => Agent::CpAsync,
            Completion::Mbarrier => Agent::BulkLoad,
            Completion::BulkGroup => Agent::BulkStore,
            Completion::Wgmma => Agent::Wgmma,
        };
        if agent == Agent::BulkLoad {
            let block = self.threads[t].block;
            self.blocks[block].loads.push(job);
        } else {
            self.threads[t].queues[agent as usize].push_back(Some(job));
        }
        match self.policy.timing[agent as usize] {
            Timing::AtOnce => while self.act(t, agent)? {},
            Timing::AtRandom => self.tickets.push((t, agent)),
            Timing::AsLateAsItsWaitAllows => {}
        }
        Ok(true)
    }

    /// Lets an agent of a thread do its next effect, or close its next group; false if there is none.
    pub fn act(&mut self, t: usize, agent: Agent) -> Result<bool, Fault> {
        if agent == Agent::BulkLoad {
            return self.finish_a_load(self.threads[t].block);
        }
        match self.threads[t].queues[agent as usize].pop_front() {
            Some(Some(job)) => self.perform(job).map(|()| true),
            entry => Ok(entry.is_some()),
        }
    }

    /// Completes all groups of a thread but the last `left`.
    pub fn wait(&mut self, t: usize, agent: Agent, left: i64) -> Result<(), Fault> {
        while groups(&self.threads[t].queues[agent as usize]) > left {
            if let Some(Some(job)) = self.threads[t].queues[agent as usize].pop_front() {
                self.perform(job)?;
            }
        }
        Ok(())
    }

    /// Lets all groups of bulk stores but the last `left` take their inputs.
    pub fn wait_read(&mut self, t: usize, left: i64) -> Result<(), Fault> {
        let mut queue = std::mem::take(&mut self.threads[t].queues[Agent::BulkStore as usize]);
        let mut older = groups(&queue) - left;
        for entry in &mut queue {
            match entry {
                _ if older <= 0 => break,
                None => older -= 1,
                Some(job) if job.taken.is_none() => job.taken = Some(self.take_inputs(job)?),
                Some(_) => {}
            }
        }
        self.threads[t].queues[Agent::BulkStore as usize] = queue;
        Ok(())
    }

    /// Lets one of the bulk loads of a block land; false if there is none.
    pub fn finish_a_load(&mut self, block: usize) -> Result<bool, Fault> {
        let loads = self.blocks[block].loads.len();
        if loads == 0 {
            return Ok(false);
        }
        let at = self.policy.random.below(loads);
        let job = self.blocks[block].loads.swap_remove(at);
        self.perform(job)?;
        Ok(true)
    }

    fn perform(&mut self, mut job: Job<'a>) -> Result<(), Fault> {
        let values = match job.taken.take() {
            Some(values) => values,
            None => self.take_inputs(&job)?,
        };
        self.give_outputs(&job, &values)?;
        if let Some((ring, ordinal)) = job.signal {
            let bytes = values.len() as i64 * self.array(job.views[0].buffer).buffer.dtype.bytes();
            self.deliver(self.threads[job.thread].block, ring, ordinal, bytes);
        }
        Ok(())
    }
}

/// Groups that have been closed and are not complete.
fn groups(queue: &VecDeque<Entry<'_>>) -> i64 {
    queue.iter().filter(|e| e.is_none()).count() as i64
}
