//! Rings of mbarriers: phases addressed by ordinals (rules 22 and 23).

use std::collections::HashMap;

use crate::hazard::HazardKind;
use crate::order::{Agent, Order, Stream};

/// The phases of a ring in a block.
#[derive(Debug)]
pub(super) struct Phases {
    depth: i64,
    count: i64,
    phases: HashMap<i64, Phase>,
}

#[derive(Debug, Default)]
struct Phase {
    arrivals: i64,
    expected: i64,
    delivered: i64,
    done: bool,
    /// What completion publishes.
    row: Vec<u32>,
    /// Asynchronous copies that report here.
    linked: Vec<(Agent, u32)>,
    /// Who arrived, and when.
    arrived: Vec<(Agent, u32)>,
    /// Ranges of threads that waited, and since when they know.
    waiters: Vec<(std::ops::Range<usize>, u32)>,
}

/// Something wrong with a phase.
pub(super) type Fault = (HazardKind, String);

impl Phases {
    pub fn new(depth: i64, count: i64) -> Phases {
        Phases { depth, count, phases: HashMap::new() }
    }

    pub fn reset(&mut self) {
        self.phases.clear();
    }

    /// In order, only the number of arrivals matters.
    pub fn arrive_in_order(&mut self, ordinal: i64, times: i64) {
        self.phases.entry(ordinal).or_default().arrivals += times;
    }

    /// In order, `await` asserts that its phase is complete (rule 10).
    pub fn await_in_order(&self, ordinal: i64) -> Option<Fault> {
        let arrivals = self.phases.get(&ordinal).map_or(0, |p| p.arrivals);
        (arrivals != self.count).then(|| {
            let text =
                format!("phase {ordinal} has {arrivals} of {} arrivals: it would wait for ever", self.count);
            (HazardKind::Hang, text)
        })
    }

    pub fn arrive(&mut self, order: &mut Order, thread: usize, ordinal: i64, bytes: i64) -> Vec<Fault> {
        if let Some(fault) = self.too_early(ordinal, |agent, stamp| order.ordered(agent, stamp, thread)) {
            return vec![fault];
        }
        let phase = self.phases.entry(ordinal).or_default();
        if phase.arrivals >= self.count {
            return vec![(
                HazardKind::Phase,
                format!("phase {ordinal} is complete, and thread {thread} arrives again"),
            )];
        }
        phase.arrivals += 1;
        phase.expected += bytes;
        phase.arrived.push((Agent::new(thread, Stream::Program), order.now));
        order.publish(thread, &mut phase.row);
        self.complete(ordinal)
    }

    /// What reports to a slot is counted for the phase that the slot is in: the phase before must be complete, and
    /// whoever reports must know it.
    fn too_early(&self, ordinal: i64, known: impl Fn(Agent, u32) -> bool) -> Option<Fault> {
        if ordinal < 0 {
            return Some((HazardKind::Phase, format!("there is no phase {ordinal}")));
        }
        if ordinal < self.depth {
            return None;
        }
        let before = ordinal - self.depth;
        let complete = self.phases.get(&before).is_some_and(|phase| {
            phase.done
                && phase.arrived.iter().chain(&phase.linked).all(|(agent, stamp)| known(*agent, *stamp))
        });
        let text =
            || format!("what is meant for phase {ordinal} may be counted for phase {before} of its slot");
        (!complete).then(|| (HazardKind::Phase, text()))
    }

    /// An asynchronous copy that will report to a phase.
    pub fn link(&mut self, ordinal: i64, agent: Agent, stamp: u32, bytes: i64) -> Vec<Fault> {
        if let Some(fault) = self.too_early(ordinal, |_, _| true) {
            return vec![fault];
        }
        let phase = self.phases.entry(ordinal).or_default();
        if phase.done {
            return vec![(
                HazardKind::Phase,
                format!("phase {ordinal} is complete, and a copy reports to it"),
            )];
        }
        phase.delivered += bytes;
        phase.linked.push((agent, stamp));
        self.complete(ordinal)
    }

    fn complete(&mut self, ordinal: i64) -> Vec<Fault> {
        let mut faults = Vec::new();
        let count = self.count;
        let Some(phase) = self.phases.get_mut(&ordinal) else { return faults };
        if phase.done || phase.arrivals < count || phase.delivered < phase.expected {
            return faults;
        }
        if phase.delivered != phase.expected {
            let text = format!(
                "phase {ordinal} expects {} bytes, {} are under way",
                phase.expected, phase.delivered
            );
            faults.push((HazardKind::ExpectedBytes, text));
        }
        phase.done = true;
        for (agent, stamp) in &phase.linked {
            if let Some(known) = phase.row.get_mut(agent.0 as usize) {
                *known = (*known).max(*stamp);
            }
        }
        // One parity bit: everybody who waited for the previous use of the slot must have seen it.
        let row = phase.row.clone();
        if let Some(previous) = self.phases.get(&(ordinal - self.depth)) {
            for (threads, since) in &previous.waiters {
                let blind = threads.clone().find(|t| {
                    row.get(Agent::new(*t, Stream::Program).0 as usize).is_none_or(|known| known < since)
                });
                if let Some(thread) = blind {
                    let text = format!(
                        "phase {ordinal} may complete before thread {thread} has seen phase {}",
                        ordinal - self.depth
                    );
                    faults.push((HazardKind::Phase, text));
                    break;
                }
            }
        }
        faults
    }

    /// A range of threads waits for a phase, and learns what its completion publishes.
    pub fn wait(&mut self, order: &mut Order, threads: std::ops::Range<usize>, ordinal: i64) -> Vec<Fault> {
        let mut faults = Vec::new();
        let later = self.phases.get(&(ordinal + self.depth)).is_some_and(|p| p.done);
        let count = self.count;
        let phase = self.phases.entry(ordinal).or_default();
        if !phase.done {
            let fault = if phase.arrivals >= count {
                let text = format!(
                    "phase {ordinal} expects {} bytes, {} are under way",
                    phase.expected, phase.delivered
                );
                (HazardKind::ExpectedBytes, text)
            } else {
                let text = format!(
                    "phase {ordinal} has {} of {count} arrivals: it would wait for ever",
                    phase.arrivals
                );
                (HazardKind::Hang, text)
            };
            faults.push(fault);
            return faults;
        }
        if later {
            let text = format!("phase {ordinal} has passed when thread {} waits for it", threads.start);
            faults.push((HazardKind::Phase, text));
        }
        let since = order.learn(threads.clone(), &phase.row);
        phase.waiters.push((threads, since));
        faults
    }

    /// Phases that were begun and not completed.
    pub fn unfinished(&self) -> Option<String> {
        let mut open: Vec<_> =
            self.phases.iter().filter(|(_, p)| !p.done && p.arrivals + p.delivered > 0).collect();
        open.sort_by_key(|(n, _)| **n);
        let (ordinal, phase) = open.first()?;
        Some(format!(
            "phase {ordinal} is left with {} of {} arrivals when the block ends",
            phase.arrivals, self.count
        ))
    }
}
