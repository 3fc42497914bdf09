//! Runs a compiled program: host steps in order, the blocks of a launch on all cores.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::arithmetic::Arithmetic;
use crate::code::{Code, LaunchCode, Step, WARP};
use crate::count::Counters;
use crate::hazard::Hazards;
use crate::lower::Mode;
use crate::machine::{Machine, Watch};
use crate::memory::Global;
use crate::sample::{Blocks, choose};
use crate::shadow::GlobalShadow;

/// The coordinates of element `n` of a box in C order.
pub(crate) fn coordinates(extents: &[i64], n: i64) -> Vec<i64> {
    let mut at = vec![0; extents.len()];
    let mut rest = n;
    for (i, extent) in at.iter_mut().zip(extents).rev() {
        *i = rest % extent;
        rest /= extent;
    }
    at
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub counters: Counters,
    pub sites: Vec<Counters>,
    pub hazards: Hazards,
    /// Every block of every launch was simulated.
    pub whole: bool,
    pub launches: Vec<LaunchShape>,
}

/// A launch as it was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [i64; 3],
    /// Threads along x, y and z.
    pub block: [i64; 3],
    /// Bytes of shared memory.
    pub shared_bytes: i64,
    /// Blocks that were simulated.
    pub simulated: i64,
}

/// Runs all steps. In a sample, `written` is told which elements of outputs the simulated blocks wrote.
pub(crate) fn run<A: Arithmetic>(
    code: &Code<'_>,
    mode: Mode,
    globals: &mut [Global<A>],
    scalars: &[A],
    watch: Watch,
    blocks: Blocks,
) -> Outcome {
    let mut outcome =
        Outcome { sites: vec![Counters::default(); code.sites.len()], whole: true, ..Outcome::default() };
    let launches = code.steps.iter().filter(|s| matches!(s, Step::Launch(_))).count();
    for step in &code.steps {
        match step {
            Step::Scratch(number) => {
                for cell in &globals[*number as usize].cells {
                    A::store(cell, A::POISON);
                }
            }
            Step::Launch(launch) => match mode {
                Mode::InOrder => {
                    let mut machine = Machine::<A, 1>::new(code, launch, globals, scalars, watch);
                    machine.run_block(0, &[]);
                    let found = (machine.counters, machine.sites, machine.hazards);
                    outcome.absorb(found);
                }
                // What a later launch reads must be there: only a program of one launch is sampled.
                Mode::Simt => {
                    let blocks = if launches == 1 { blocks } else { Blocks::All };
                    run_launch(code, launch, globals, scalars, watch, blocks, &mut outcome);
                }
            },
        }
    }
    outcome
}

impl Outcome {
    fn absorb(&mut self, (counters, sites, hazards): (Counters, Vec<Counters>, Hazards)) {
        self.counters += counters;
        for (sum, site) in self.sites.iter_mut().zip(sites) {
            *sum += site;
        }
        self.hazards.merge(hazards);
    }
}

fn run_launch<A: Arithmetic>(
    code: &Code<'_>,
    launch: &LaunchCode,
    globals: &mut [Global<A>],
    scalars: &[A],
    watch: Watch,
    blocks: Blocks,
    outcome: &mut Outcome,
) {
    let extents: Vec<i64> = launch.grid.iter().map(|(_, extent, _)| *extent).collect();
    let total = extents.iter().fold(1i64, |n, e| n.saturating_mul(*e));
    // Ordered blocks wait for all before them.
    let chosen = if launch.ordered { None } else { choose(&extents, blocks) };
    outcome.whole &= chosen.is_none();
    for (number, global) in globals.iter_mut().enumerate() {
        let record =
            launch.written.get(number).copied().unwrap_or(false) && (watch.checks || chosen.is_some());
        global.shadow = record.then(|| GlobalShadow::new(global.cells.len()));
    }
    let globals: &[Global<A>] = globals;
    let count = chosen.as_ref().map_or(total, |c| c.len() as i64);
    let block_at = |n: i64| chosen.as_ref().map_or(n, |c| c[n as usize]);
    let new = || Machine::<A, WARP>::new(code, launch, globals, scalars, watch);
    let finish = |m: Machine<'_, A, WARP>| (m.counters, m.sites, m.hazards);
    let cores = rayon::current_num_threads() as i64;
    let in_turn = launch.ordered || (launch.global_atomics && !A::EXACT) || cores == 1 || count == 1;
    if in_turn {
        let mut machine = new();
        for n in 0..count {
            run_one(&mut machine, &extents, block_at(n));
        }
        outcome.absorb(finish(machine));
    } else {
        // A few pieces for each core: machines are large, blocks may differ in cost.
        let pieces = (4 * cores).min(count);
        let found: Vec<_> = (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let mut machine = new();
                let at = |p: i64| (i128::from(p) * i128::from(count) / i128::from(pieces)) as i64;
                for n in at(piece)..at(piece + 1) {
                    run_one(&mut machine, &extents, block_at(n));
                }
                finish(machine)
            })
            .collect();
        for part in found {
            outcome.absorb(part);
        }
    }
    outcome.counters.blocks_total += total as u64;
    let mut grid = [1; 3];
    for (_, extent, axis) in &launch.grid {
        grid[*axis as usize] = grid[*axis as usize].max(1) * extent;
    }
    outcome.launches.push(LaunchShape {
        grid,
        block: [launch.threads as i64, 1, 1],
        shared_bytes: launch.shared_bytes,
        simulated: count,
    });
}

fn run_one<A: Arithmetic>(machine: &mut Machine<'_, A, WARP>, extents: &[i64], number: i64) {
    machine.run_block(number as u64, &coordinates(extents, number));
}
