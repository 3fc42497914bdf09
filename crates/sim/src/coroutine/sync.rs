//! Synchronisation: threads meet, wait for their asynchronous effects, and for mbarriers, which are as the hardware
//! has them: a count of arrivals, a count of bytes, and the parity of the phase.

use warpwright_core::index::Index;
use warpwright_core::ir::{Stmt, Sync};
use warpwright_core::sym::Sym;

use super::Fault;
use super::agent::Agent;
use super::machine::Machine;
use super::thread::Step;

/// One mbarrier of a ring.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Arrivals that complete a phase.
    count: i64,
    /// Arrivals still missing in this phase.
    missing: i64,
    /// Bytes announced less bytes delivered.
    bytes: i64,
    /// Phases completed so far; waiting threads see only whether this is odd.
    completed: i64,
    /// Threads that wait for the end of the phase.
    waiting: Vec<usize>,
}

impl Slot {
    pub fn new(count: i64) -> Slot {
        Slot { count, missing: count, bytes: 0, completed: 0, waiting: Vec::new() }
    }
}

impl<'a> Machine<'a> {
    /// A statement that the whole range executes together: the last to come lets all go on.
    pub fn meet(&mut self, t: usize, stmt: &'a Stmt, range: (i64, i64)) -> Result<Step, Fault> {
        let key = (self.threads[t].block, std::ptr::from_ref(stmt) as usize, range.0);
        let met = self.meetings.entry(key).or_default();
        met.push(t);
        if met.len() as i64 == range.1 {
            let members = self.meetings.remove(&key).expect("it was just filled");
            self.meet_complete(stmt, range, members)?;
        }
        Ok(Step::Waits)
    }

    /// What happens when all have come. A chained instruction may have to wait for the block before.
    pub fn meet_complete(
        &mut self,
        stmt: &'a Stmt,
        range: (i64, i64),
        members: Vec<usize>,
    ) -> Result<(), Fault> {
        let leader = self.thread(members[0], range.0)?;
        let queue = &mut self.threads[leader].queues[Agent::Wgmma as usize];
        match stmt {
            Stmt::Sync(Sync::WgmmaCommit) => queue.push_back(None),
            Stmt::Sync(Sync::WgmmaWait(left)) => self.wait(leader, Agent::Wgmma, *left)?,
            Stmt::Instruction(instruction) if !self.issue(leader, instruction)? => {
                self.stalled.push((stmt, range, members));
                return Ok(());
            }
            _ => {}
        }
        self.ready.extend(members);
        Ok(())
    }

    /// Synchronisation that concerns only the executing thread and its asynchronous effects.
    pub fn synchronise(&mut self, t: usize, sync: Sync) -> Result<(), Fault> {
        match sync {
            Sync::CpCommit => self.threads[t].queues[Agent::CpAsync as usize].push_back(None),
            Sync::CpWait(left) => self.wait(t, Agent::CpAsync, left)?,
            Sync::BulkCommit => self.threads[t].queues[Agent::BulkStore as usize].push_back(None),
            Sync::BulkWait(left) => self.wait(t, Agent::BulkStore, left)?,
            Sync::BulkWaitRead(left) => self.wait_read(t, left)?,
            Sync::WgmmaFence => {
                for register in self.threads[t].registers.iter_mut().flatten() {
                    register.unfenced = false;
                }
            }
            Sync::FenceAsync => {
                let block = self.threads[t].block;
                for byte in std::mem::take(&mut self.threads[t].unfenced) {
                    self.blocks[block].unfenced[byte] = false;
                }
            }
            Sync::Barrier | Sync::WgmmaCommit | Sync::WgmmaWait(_) => unreachable!("the whole range meets"),
        }
        Ok(())
    }

    /// The ordinal as thread `t` evaluates it.
    pub fn ordinal(&self, t: usize, ordinal: &Index) -> i64 {
        self.names.index(ordinal, &self.threads[t].env)
    }

    fn slot(&mut self, block: usize, ring: usize, ordinal: i64) -> (&mut Slot, i64) {
        let slots = self.blocks[block].rings.get_mut(&ring).expect("rings are made with the block");
        let depth = slots.len() as i64;
        (&mut slots[ordinal.rem_euclid(depth) as usize], ordinal.div_euclid(depth))
    }

    /// Whether the thread may pass: the parity of the slot is no longer that of the phase. If not, it waits.
    pub fn await_phase(&mut self, t: usize, ring: &Sym, ordinal: &Index) -> bool {
        let (ring, ordinal) = (self.names.slot(ring), self.ordinal(t, ordinal));
        let (slot, phase) = self.slot(self.threads[t].block, ring, ordinal);
        let passes = slot.completed & 1 != phase & 1;
        if !passes {
            slot.waiting.push(t);
        }
        passes
    }

    /// One arrival, which announces `bytes`.
    pub fn arrive(&mut self, t: usize, ring: &Sym, ordinal: i64, bytes: i64) -> Result<(), Fault> {
        let block = self.threads[t].block;
        let slot = self.names.slot(ring);
        let (at, _) = self.slot(block, slot, ordinal);
        at.missing -= 1;
        at.bytes += bytes;
        if at.missing < 0 {
            return Err(Fault::Refused(format!("more than {} arrivals on {ring}[{ordinal}]", at.count)));
        }
        self.complete_phase(block, slot, ordinal);
        Ok(())
    }

    /// Bytes of a copy have landed.
    pub fn deliver(&mut self, block: usize, ring: usize, ordinal: i64, bytes: i64) {
        self.slot(block, ring, ordinal).0.bytes -= bytes;
        self.complete_phase(block, ring, ordinal);
    }

    fn complete_phase(&mut self, block: usize, ring: usize, ordinal: i64) {
        let (slot, _) = self.slot(block, ring, ordinal);
        if slot.missing == 0 && slot.bytes == 0 {
            slot.completed += 1;
            slot.missing = slot.count;
            let woken = std::mem::take(&mut slot.waiting);
            self.ready.extend(woken);
        }
    }
}
