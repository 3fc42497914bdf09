//! Happens-before: which earlier accesses are ordered before what a thread does now.
//!
//! Time within a block is a *stamp* that grows at every event of synchronisation. An *agent* is a thread together with
//! one of its streams (rule 20): program order, `cp.async`, bulk loads, the two halves of bulk stores, wgmma; a further
//! column remembers up to which stamp a thread has fenced its ordinary writes for the async proxy. Thread `t` knows an
//! access of agent `a` at stamp `s` to be finished if its row has `row[a] >= s`.
//!
//! A barrier of the whole block orders every ordinary access before it, so a single number, the floor, answers the
//! question for all launches that use nothing else. Rows exist only where something else is used; threads that have
//! learnt the same share one.

use std::rc::Rc;

/// The streams of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stream {
    Program = 0,
    CpAsync = 1,
    BulkLoad = 2,
    /// A bulk store reading its source.
    BulkRead = 3,
    Wgmma = 4,
    /// Not a stream of accesses: the stamp of the last `fence.async`.
    Fence = 5,
    /// A bulk store writing its target.
    BulkWrite = 6,
}

const STREAMS: u32 = 8;

/// A thread and a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agent(pub u32);

impl Agent {
    pub fn new(thread: usize, stream: Stream) -> Agent {
        Agent(thread as u32 * STREAMS + stream as u32)
    }

    pub fn thread(self) -> usize {
        (self.0 / STREAMS) as usize
    }

    pub fn is_program(self) -> bool {
        self.0 % STREAMS == Stream::Program as u32
    }

    fn stream(self) -> usize {
        (self.0 % STREAMS) as usize
    }

    /// Whether the accesses go through the async proxy.
    pub fn async_proxy(self) -> bool {
        let stream = self.0 % STREAMS;
        stream == Stream::BulkLoad as u32
            || stream == Stream::BulkRead as u32
            || stream == Stream::Wgmma as u32
    }

    /// For reports.
    pub fn describe(self) -> String {
        let stream =
            ["", " (cp.async)", " (bulk load)", " (bulk store)", " (wgmma)", "", " (bulk store)", ""];
        format!("thread {}{}", self.thread(), stream[self.stream()])
    }
}

/// What a thread knows of the others.
pub(crate) type Row = Rc<Vec<u32>>;

/// Happens-before in one block.
#[derive(Debug)]
pub(crate) struct Order {
    pub threads: usize,
    /// Whether anything but barriers of the whole block orders accesses.
    pub detailed: bool,
    /// The present stamp.
    pub now: u32,
    /// Ordinary accesses with smaller stamps are ordered before everything from now on.
    floor: u32,
    rows: Vec<Row>,
    /// For each thread, what it knows of its own streams.
    own: Vec<[u32; STREAMS as usize]>,
    /// Closed groups of `cp.async` and of bulk stores, by thread: the stamps at which they were closed.
    groups: [Vec<Vec<u32>>; 2],
    /// wgmma groups, by the first thread of the warpgroup: stamp, and what its completion joins.
    warpgroups: Vec<Vec<(u32, Option<Row>)>>,
    /// What the wgmma that were issued since the last commit will join.
    issued: Vec<Option<Row>>,
    /// The last stamp at which each agent did something asynchronous.
    last: Vec<u32>,
}

impl Order {
    pub fn new(threads: usize, detailed: bool) -> Order {
        let per_thread = if detailed { threads } else { 0 };
        Order {
            threads,
            detailed,
            now: 1,
            floor: 1,
            rows: std::iter::repeat_n(Rc::new(vec![0; per_thread * STREAMS as usize]), per_thread).collect(),
            own: vec![[0; STREAMS as usize]; per_thread],
            groups: [vec![Vec::new(); per_thread], vec![Vec::new(); per_thread]],
            warpgroups: vec![Vec::new(); per_thread],
            issued: vec![None; per_thread],
            last: vec![0; per_thread * STREAMS as usize],
        }
    }

    /// A new block begins: everything before is ordered before it.
    pub fn reset(&mut self) {
        *self = Order::new(self.threads, self.detailed);
    }

    /// Whether an access of `agent` at `stamp` is ordered before what `thread` does, or issues, now.
    #[inline]
    pub fn ordered(&self, agent: Agent, stamp: u32, thread: usize) -> bool {
        if agent.is_program() && (stamp < self.floor || agent.thread() == thread) {
            return true;
        }
        self.detailed && self.knows(thread, agent) >= stamp
    }

    /// The stamp from which accesses may still be unordered.
    pub fn floor(&self) -> u32 {
        self.floor
    }

    /// Whether ordinary accesses at `stamp` are ordered before everything from now on.
    #[inline]
    pub fn settled(&self, stamp: u32) -> bool {
        stamp < self.floor
    }

    /// Up to which stamp `thread` knows `agent` to be finished.
    pub fn knows(&self, thread: usize, agent: Agent) -> u32 {
        if !self.detailed {
            return 0;
        }
        let row = self.rows[thread][agent.0 as usize];
        if agent.thread() == thread { row.max(self.own[thread][agent.stream()]) } else { row }
    }

    /// Whether `thread` knows an ordinary write of `writer` at `stamp` to be visible to the async proxy.
    pub fn fenced(&self, writer: usize, stamp: u32, thread: usize) -> bool {
        self.knows(thread, Agent::new(writer, Stream::Fence)) >= stamp
    }

    /// Something asynchronous is issued: its stamp.
    pub fn issue(&mut self, agent: Agent) -> u32 {
        if let Some(last) = self.last.get_mut(agent.0 as usize) {
            *last = self.now;
        }
        self.now
    }

    /// Advances time, so that what comes next has a larger stamp.
    pub fn tick(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    /// Replaces the rows of a range of threads by `f` of them; threads that share a row go on sharing it.
    fn update(&mut self, threads: std::ops::Range<usize>, f: impl Fn(&mut Vec<u32>)) {
        let mut done: Vec<(Row, Row)> = Vec::new();
        for thread in threads {
            let old = &self.rows[thread];
            let new = match done.iter().find(|(from, _)| Rc::ptr_eq(from, old)) {
                Some((_, to)) => to.clone(),
                None => {
                    let mut row = (**old).clone();
                    f(&mut row);
                    let new = Rc::new(row);
                    done.push((old.clone(), new.clone()));
                    new
                }
            };
            self.rows[thread] = new;
        }
    }

    /// All that some threads know, and that they have come this far.
    fn join(&self, threads: impl Iterator<Item = usize>) -> Vec<u32> {
        let mut seen: Vec<&Row> = Vec::new();
        let mut all = vec![0; self.threads * STREAMS as usize];
        let mut list = Vec::new();
        for thread in threads {
            let row = &self.rows[thread];
            if !seen.iter().any(|r| Rc::ptr_eq(r, row)) {
                raise(&mut all, row);
                seen.push(row);
            }
            list.push(thread);
        }
        for thread in list {
            let base = thread * STREAMS as usize;
            for (stream, own) in self.own[thread].iter().enumerate() {
                all[base + stream] = all[base + stream].max(*own);
            }
            all[base] = self.now;
        }
        all
    }

    /// All threads in `threads` meet.
    pub fn barrier(&mut self, threads: impl Iterator<Item = usize> + Clone) {
        if self.detailed {
            let row = Rc::new(self.join(threads.clone()));
            let mut count = 0;
            for thread in threads {
                self.rows[thread] = row.clone();
                count += 1;
            }
            self.tick();
            if count == self.threads {
                self.floor = self.now;
            }
        } else {
            self.tick();
            self.floor = self.now;
        }
    }

    /// Closes a group of `cp.async` (0) or bulk stores (1) of each thread.
    pub fn commit(&mut self, kind: usize, threads: impl Iterator<Item = usize>) {
        for thread in threads {
            self.groups[kind][thread].push(self.now);
        }
        self.tick();
    }

    /// All but the last `pending` groups of each thread are finished.
    pub fn wait(
        &mut self,
        kind: usize,
        pending: i64,
        streams: &[Stream],
        threads: impl Iterator<Item = usize>,
    ) {
        for thread in threads {
            let groups = &self.groups[kind][thread];
            let done = groups.len() as i64 - 1 - pending;
            if let Some(stamp) = usize::try_from(done).ok().and_then(|n| groups.get(n)) {
                for stream in streams {
                    let own = &mut self.own[thread][*stream as usize];
                    *own = (*own).max(*stamp);
                }
            }
        }
    }

    /// Ordinary writes of these threads become visible to the async proxy.
    pub fn fence(&mut self, threads: impl Iterator<Item = usize>) {
        for thread in threads {
            self.own[thread][Stream::Fence as usize] = self.now;
        }
        self.tick();
    }

    /// A wgmma is issued by the warpgroup that begins with `first`: its completion joins the 128 threads (rule 24).
    pub fn issue_wgmma(&mut self, first: usize) -> u32 {
        let stamp = self.issue(Agent::new(first, Stream::Wgmma));
        self.issued[first] = Some(Rc::new(self.join(first..first + 128)));
        self.tick();
        stamp
    }

    pub fn commit_wgmma(&mut self, first: usize) {
        let joined = self.issued[first].take();
        self.warpgroups[first].push((self.now, joined));
        self.tick();
    }

    pub fn wait_wgmma(&mut self, first: usize, pending: i64) {
        let done = self.warpgroups[first].len() as i64 - 1 - pending;
        let Ok(done) = usize::try_from(done) else { return };
        let Some((stamp, _)) = self.warpgroups[first].get(done) else { return };
        let stamp = *stamp;
        let joined = self.warpgroups[first][..=done].iter().rev().find_map(|(_, row)| row.clone());
        let column = Agent::new(first, Stream::Wgmma).0 as usize;
        self.update(first..first + 128, |row| {
            if let Some(joined) = &joined {
                raise(row, joined);
            }
            row[column] = row[column].max(stamp);
        });
    }

    /// What an arrival of `thread` publishes.
    pub fn publish(&mut self, thread: usize, into: &mut Vec<u32>) {
        let row = self.join(std::iter::once(thread));
        if into.is_empty() {
            *into = row;
        } else {
            raise(into, &row);
        }
        self.tick();
    }

    /// A range of threads learns what was published; the stamp from which they know it.
    pub fn learn(&mut self, threads: std::ops::Range<usize>, row: &[u32]) -> u32 {
        if !row.is_empty() {
            self.update(threads, |mine| raise(mine, row));
        }
        self.tick();
        self.now
    }

    /// The agents whose last asynchronous work nobody has waited for.
    pub fn outstanding(&self) -> Vec<Agent> {
        if !self.detailed {
            return Vec::new();
        }
        let all = self.join(0..self.threads);
        let agents = self.last.iter().enumerate();
        agents.filter(|(a, last)| **last > all[*a]).map(|(a, _)| Agent(a as u32)).collect()
    }
}

fn raise(row: &mut [u32], by: &[u32]) {
    for (mine, other) in row.iter_mut().zip(by) {
        *mine = (*mine).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::{Agent, Order, Stream};

    #[test]
    fn a_barrier_of_the_block_orders_ordinary_accesses_only() {
        let mut order = Order::new(64, true);
        let (plain, copy) = (Agent::new(3, Stream::Program), Agent::new(3, Stream::CpAsync));
        let stamp = order.issue(copy);
        assert!(order.ordered(plain, stamp, 3) && !order.ordered(plain, stamp, 4));
        order.barrier(0..64);
        assert!(order.ordered(plain, stamp, 4));
        assert!(!order.ordered(copy, stamp, 4) && !order.ordered(copy, stamp, 3));
        order.commit(0, 0..64);
        order.wait(0, 0, &[Stream::CpAsync], 0..64);
        assert!(order.ordered(copy, stamp, 3) && !order.ordered(copy, stamp, 4));
        order.barrier(0..64);
        assert!(order.ordered(copy, stamp, 4));
    }

    #[test]
    fn a_barrier_of_a_range_orders_only_the_range() {
        let mut order = Order::new(64, true);
        let plain = Agent::new(3, Stream::Program);
        let stamp = order.now;
        order.barrier(0..32);
        assert!(order.ordered(plain, stamp, 31) && !order.ordered(plain, stamp, 32));
    }

    #[test]
    fn waiting_for_all_but_one_group_leaves_the_last() {
        let mut order = Order::new(32, true);
        let copy = Agent::new(0, Stream::CpAsync);
        let first = order.issue(copy);
        order.commit(0, 0..32);
        let second = order.issue(copy);
        order.commit(0, 0..32);
        order.wait(0, 1, &[Stream::CpAsync], 0..32);
        assert!(order.ordered(copy, first, 0) && !order.ordered(copy, second, 0));
        assert_eq!(order.outstanding(), [copy]);
    }
}
