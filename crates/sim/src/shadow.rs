//! Who touched each element last: the record by which races are found.
//!
//! An element remembers its last plain write, the reads since, and the atomic reductions since, which never hide the
//! plain write (rule 25). A record is dropped when it is ordered before the one that replaces it: whoever is ordered
//! after the new one is ordered after the old one too.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::memory::zeros;
use crate::order::{Agent, Order};

/// What an access does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    Atomic,
}

impl Touch {
    fn name(self) -> &'static str {
        match self {
            Touch::Read => "read",
            Touch::Write => "written",
            Touch::Atomic => "added to atomically",
        }
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub earlier: Touch,
    pub now: Touch,
    /// Who came earlier, if it was one.
    pub other: Option<Agent>,
    /// The block of the other, if it is another.
    pub block: Option<u64>,
    /// Nothing is wrong but a missing `fence.async`.
    pub proxy: bool,
}

impl Conflict {
    pub fn describe(&self, element: &str, agent: Agent, block: u64) -> String {
        let other = match (self.block, self.other) {
            (Some(b), _) => format!("a thread of block {b}"),
            (None, Some(other)) => other.describe(),
            (None, None) => "several threads".to_string(),
        };
        let (earlier, now) = (self.earlier.name(), self.now.name());
        if self.proxy {
            return format!(
                "{element} {earlier} by {other}, {now} through the async proxy by {} without fence.async",
                agent.describe()
            );
        }
        format!(
            "{element} {earlier} by {other}, {now} by {} of block {block}, and nothing orders the two",
            agent.describe()
        )
    }
}

/// Records for a buffer of a block.
#[derive(Debug, Default)]
pub(crate) struct LocalShadow {
    write: Vec<u64>,
    read: Vec<u64>,
    atomic: Vec<u64>,
    readers: Sets,
    adders: Sets,
}

/// Where several agents read, or added: all of them, for each element whose record says [`MANY`]. A set that no record
/// points to any more is left as it is, for its room, and emptied when it is next wanted.
#[derive(Debug, Default)]
struct Sets(Vec<Vec<u64>>);

impl Sets {
    #[inline]
    fn of(&mut self, e: usize) -> &mut Vec<u64> {
        if self.0.len() <= e {
            self.0.resize_with(e + 1, Vec::new);
        }
        &mut self.0[e]
    }

    fn get(&self, e: usize) -> &[u64] {
        self.0.get(e).map_or(&[], Vec::as_slice)
    }
}

/// Stands for several agents.
const MANY: u32 = u32::MAX;

fn pack(stamp: u32, agent: u32) -> u64 {
    u64::from(stamp) << 32 | u64::from(agent)
}

fn unpack(record: u64) -> (u32, u32) {
    ((record >> 32) as u32, record as u32)
}

impl LocalShadow {
    pub fn new(elements: usize, atomics: bool) -> LocalShadow {
        LocalShadow {
            write: vec![0; elements],
            read: vec![0; elements],
            atomic: vec![0; if atomics { elements } else { 0 }],
            ..LocalShadow::default()
        }
    }

    pub fn reset(&mut self) {
        self.write.fill(0);
        self.read.fill(0);
        self.atomic.fill(0);
    }

    /// The lanes of a warp touch an element each, in a launch that knows only barriers of the whole block. Returns
    /// false, having recorded nothing, if anything may be wrong.
    pub fn touch_warp<const W: usize>(
        &mut self,
        order: &Order,
        offsets: &[i64; W],
        mask: u32,
        first: usize,
        touch: Touch,
    ) -> bool {
        let live = pack(order.floor(), 0);
        let at = |lane: u32| offsets[lane as usize] as usize;
        let record =
            |lane: u32| pack(order.now, Agent::new(first + lane as usize, crate::order::Stream::Program).0);
        // A record is harmless if it is older than the last barrier, or the thread's own.
        let harmless = |old: u64, mine: u64| old < live || old as u32 == mine as u32;
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let (e, mine) = (at(lane), record(lane));
            let mut fine = harmless(self.write[e], mine);
            if touch != Touch::Atomic && !self.atomic.is_empty() {
                fine &= harmless(self.atomic[e], mine);
            }
            if touch != Touch::Read {
                fine &= harmless(self.read[e], mine);
            }
            if !fine {
                return false;
            }
        }
        let mut rest = mask;
        match touch {
            Touch::Read => {
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    rest &= rest - 1;
                    let (e, mine) = (at(lane), record(lane));
                    let old = self.read[e];
                    self.read[e] = if harmless(old, mine) { mine } else { mine | u64::from(MANY) };
                }
            }
            Touch::Write => {
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    rest &= rest - 1;
                    let (e, mine) = (at(lane), record(lane));
                    // Two lanes of one store that meet: the slow way says which.
                    if !harmless(self.write[e], mine) {
                        return false;
                    }
                    self.write[e] = mine;
                    self.read[e] = 0;
                    if let Some(a) = self.atomic.get_mut(e) {
                        *a = 0;
                    }
                }
            }
            Touch::Atomic => {
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    rest &= rest - 1;
                    let (e, mine) = (at(lane), record(lane));
                    if let Some(old) = self.atomic.get_mut(e) {
                        *old = if harmless(*old, mine) { mine } else { mine | u64::from(MANY) };
                    }
                }
            }
        }
        true
    }

    /// `agent` touches element `e` at `stamp`.
    #[inline]
    pub fn touch(
        &mut self,
        order: &Order,
        e: usize,
        agent: Agent,
        stamp: u32,
        touch: Touch,
    ) -> Option<Conflict> {
        let thread = agent.thread();
        let mut conflict = None;
        let mut clash = |earlier: Touch, other: Option<Agent>, proxy: bool| {
            conflict.get_or_insert(Conflict { earlier, now: touch, other, block: None, proxy });
        };
        let (at, writer) = unpack(self.write[e]);
        if at != 0 {
            let writer = Agent(writer);
            if !order.ordered(writer, at, thread) {
                clash(Touch::Write, Some(writer), false);
            } else if agent.async_proxy() && writer.is_program() && !order.fenced(writer.thread(), at, thread)
            {
                clash(Touch::Write, Some(writer), true);
            }
        }
        if touch != Touch::Atomic
            && !self.atomic.is_empty()
            && let Some(other) = unordered(order, self.atomic[e], self.adders.get(e), thread)
        {
            clash(Touch::Atomic, other, false);
        }
        if touch != Touch::Read
            && let Some(other) = unordered(order, self.read[e], self.readers.get(e), thread)
        {
            clash(Touch::Read, other, false);
        } else if touch == Touch::Write
            && agent.async_proxy()
            && let Some(reader) = unfenced(order, self.read[e], self.readers.get(e), thread)
        {
            clash(Touch::Read, reader, true);
        }
        match touch {
            Touch::Write => {
                self.write[e] = pack(stamp, agent.0);
                self.read[e] = 0;
                if let Some(a) = self.atomic.get_mut(e) {
                    *a = 0;
                }
            }
            Touch::Read => add(order, &mut self.read[e], &mut self.readers, e, agent, stamp),
            Touch::Atomic => {
                if let Some(record) = self.atomic.get_mut(e) {
                    add(order, record, &mut self.adders, e, agent, stamp);
                }
            }
        }
        conflict
    }
}

/// The first of the recorded agents that is not ordered before what `thread` does now.
#[inline]
fn unordered(order: &Order, record: u64, all: &[u64], thread: usize) -> Option<Option<Agent>> {
    let (at, agent) = unpack(record);
    if at == 0 {
        return None;
    }
    if agent != MANY {
        return (!order.ordered(Agent(agent), at, thread)).then_some(Some(Agent(agent)));
    }
    if !order.detailed {
        return (!order.settled(at)).then_some(None);
    }
    all.iter().find_map(|r| {
        let (at, agent) = unpack(*r);
        (!order.ordered(Agent(agent), at, thread)).then_some(Some(Agent(agent)))
    })
}

/// The first of the recorded agents whose ordinary reads `thread` does not know to be fenced for the async proxy. Readers that are
/// ordered before later ones are not recorded any more.
fn unfenced(order: &Order, record: u64, all: &[u64], thread: usize) -> Option<Option<Agent>> {
    let unfenced = |record: u64| {
        let (at, agent) = unpack(record);
        let agent = Agent(agent);
        (at != 0 && agent.is_program() && !order.fenced(agent.thread(), at, thread)).then_some(agent)
    };
    match unpack(record) {
        (_, MANY) => all.iter().find_map(|r| unfenced(*r)).map(Some),
        _ => unfenced(record).map(Some),
    }
}

/// Adds an agent to a set, dropping those that are ordered before it.
#[inline]
fn add(order: &Order, record: &mut u64, sets: &mut Sets, e: usize, agent: Agent, stamp: u32) {
    let (at, other) = unpack(*record);
    let mine = pack(stamp, agent.0);
    if at == 0 || other == agent.0 || (other != MANY && order.ordered(Agent(other), at, agent.thread())) {
        *record = mine;
        return;
    }
    if !order.detailed {
        // Only barriers of the whole block: several in this epoch is all there is to know.
        *record = if order.settled(at) { mine } else { pack(stamp, MANY) };
        return;
    }
    let set = sets.of(e);
    let settled = |r: &u64| Agent(*r as u32).is_program() && order.settled(unpack(*r).0);
    if other != MANY {
        set.clear();
        set.push(*record);
    } else if set.iter().all(settled) {
        set.clear();
    } else if set.len() >= LOOKED_THROUGH && set.len().is_power_of_two() {
        // Looking at every access for what adds nothing would take longer than to carry it along.
        set.sort_unstable_by_key(|r| (*r as u32, std::cmp::Reverse(*r)));
        set.dedup_by_key(|r| *r as u32);
        set.retain(|r| !order.ordered(Agent(*r as u32), unpack(*r).0, agent.thread()));
    }
    set.push(mine);
    *record = if set.len() == 1 { mine } else { pack(stamp, MANY) };
}

/// The size from which a set is looked through, each time it has doubled, for repeated agents and for records that are
/// ordered before the next one.
const LOOKED_THROUGH: usize = 32;

/// Records for a buffer in device memory that a launch writes. Blocks on different cores share it.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    write: Vec<AtomicU64>,
    read: Vec<AtomicU64>,
    atomic: Vec<AtomicU64>,
}

/// A record: 27 bits of block number plus one, 24 of stamp, 13 of agent.
const AGENT_BITS: u32 = 13;
const STAMP_BITS: u32 = 24;
const ANY_AGENT: u64 = (1 << AGENT_BITS) - 1;
const MOST_STAMPS: u64 = (1 << STAMP_BITS) - 1;
const ANY_BLOCK: u64 = (1 << 27) - 1;

fn global_record(block: u64, stamp: u64, agent: u64) -> u64 {
    block << (STAMP_BITS + AGENT_BITS) | stamp.min(MOST_STAMPS) << AGENT_BITS | agent
}

impl GlobalShadow {
    pub fn new(elements: usize) -> GlobalShadow {
        GlobalShadow { write: zeros(elements), read: zeros(elements), atomic: zeros(elements) }
    }

    /// Whether anybody has written the element.
    pub fn written(&self, e: usize) -> bool {
        self.write[e].load(SeqCst) != 0 || self.atomic[e].load(SeqCst) != 0
    }

    /// `agent` of `block` touches element `e` at `stamp`. First the record is left, then the others' are read: of two
    /// that touch at once, one sees the other.
    pub fn touch(
        &self,
        order: &Order,
        e: usize,
        block: u64,
        agent: Agent,
        stamp: u32,
        touch: Touch,
    ) -> Option<Conflict> {
        let number = (block + 1).min(ANY_BLOCK - 1);
        let mine = global_record(number, u64::from(stamp), u64::from(agent.0));
        let previous_write = match touch {
            Touch::Write => self.write[e].swap(mine, SeqCst),
            Touch::Read => {
                merge(&self.read[e], order, number, agent, mine);
                self.write[e].load(SeqCst)
            }
            Touch::Atomic => {
                merge(&self.atomic[e], order, number, agent, mine);
                self.write[e].load(SeqCst)
            }
        };
        let check = |record: u64, earlier: Touch| {
            if record == 0 {
                return None;
            }
            let other_block = record >> (STAMP_BITS + AGENT_BITS);
            let conflict = |other: Option<Agent>, block: Option<u64>| {
                Some(Conflict { earlier, now: touch, other, block, proxy: false })
            };
            if other_block != number {
                return conflict(None, Some(if other_block == ANY_BLOCK { 0 } else { other_block - 1 }));
            }
            let (other, at) = (record & ANY_AGENT, record >> AGENT_BITS & MOST_STAMPS);
            if other == ANY_AGENT {
                // Several threads of this block: ordered only if all are.
                let all = (0..order.threads).all(|t| {
                    order.ordered(Agent::new(t, crate::order::Stream::Program), at as u32, agent.thread())
                });
                return if all { None } else { conflict(None, None) };
            }
            let other = Agent(other as u32);
            if order.ordered(other, at as u32, agent.thread()) { None } else { conflict(Some(other), None) }
        };
        let mut found = check(previous_write, Touch::Write);
        if touch != Touch::Atomic {
            found = found.or_else(|| check(self.atomic[e].load(SeqCst), Touch::Atomic));
        }
        if touch != Touch::Read {
            found = found.or_else(|| check(self.read[e].load(SeqCst), Touch::Read));
        }
        if touch == Touch::Write && found.is_none() {
            // Ordered before this write, hence before whatever is ordered after it.
            self.read[e].store(0, SeqCst);
            self.atomic[e].store(0, SeqCst);
        }
        found
    }
}

/// Leaves a record beside those of others: of two threads of a block it becomes "several", of two blocks "any".
fn merge(cell: &AtomicU64, order: &Order, block: u64, agent: Agent, mine: u64) {
    let mut old = cell.load(SeqCst);
    loop {
        let other_block = old >> (STAMP_BITS + AGENT_BITS);
        let (other, at) = (old & ANY_AGENT, old >> AGENT_BITS & MOST_STAMPS);
        let replaces = old == 0
            || (other_block == block
                && other != ANY_AGENT
                && (other == u64::from(agent.0)
                    || order.ordered(Agent(other as u32), at as u32, agent.thread())));
        let new = if replaces {
            mine
        } else if other_block == block {
            (mine | ANY_AGENT).max(old | ANY_AGENT)
        } else {
            mine | ANY_BLOCK << (STAMP_BITS + AGENT_BITS) | ANY_AGENT
        };
        if new == old {
            return;
        }
        match cell.compare_exchange_weak(old, new, SeqCst, SeqCst) {
            Ok(_) => return,
            Err(seen) => old = seen,
        }
    }
}
