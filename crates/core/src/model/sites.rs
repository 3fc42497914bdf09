//! The places of a program that access memory, one by one: how much each asks for, how much less would do, and what the lanes
//! of one of its requests touch.

use std::collections::HashMap;

use crate::diag::Diagnosis;
use crate::ir::{Buffer, Program, Space, Stmt, print};
use crate::sym::Sym;

use super::count::{self, Reuse};
use super::lanes::WARP;
use super::made;

/// The bytes of a sector, the least that moves between multiprocessors and the second-level cache.
pub const SECTOR: i64 = 32;
/// The banks of shared memory. Each gives a word of 4 bytes at a time.
pub const BANKS: i64 = 32;

/// The memory that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Device memory, in sectors.
    Device,
    /// Shared memory, in wavefronts.
    Shared,
}

/// One access, as written in a program, and what all warps ask for by it. Requests are those of the program as compilers make it
/// ([`Reuse::AsCompiled`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The line of the program's text on which the statement begins, the first being 1.
    pub line: usize,
    /// The statement as it stands there.
    pub statement: String,
    /// The buffer.
    pub buffer: String,
    /// Where the buffer lies.
    pub memory: Memory,
    /// Whether it is written.
    pub writes: bool,
    /// Requests of warps, in all blocks.
    pub requests: f64,
    /// The sectors or wavefronts that they take.
    pub passes: f64,
    /// The least that would do: sectors for as many different bytes, and a wavefront for each group of lanes that shared memory
    /// serves at a time.
    pub least: f64,
    /// Different bytes that lanes want, over all requests.
    pub wanted: f64,
    /// One request of the most active lanes, the worst that was met; copies in bulk have none.
    pub sample: Option<Sample>,
}

impl Site {
    /// Sectors or wavefronts of a request.
    pub fn passes_of_a_request(&self) -> f64 {
        self.passes / self.requests.max(f64::MIN_POSITIVE)
    }

    /// The least sectors or wavefronts that would do for a request.
    pub fn least_of_a_request(&self) -> f64 {
        self.least / self.requests.max(f64::MIN_POSITIVE)
    }

    /// What could be saved: sectors or wavefronts beyond the least.
    pub fn excess(&self) -> f64 {
        (self.passes - self.least).max(0.0)
    }
}

/// The lanes of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Bytes that each lane accesses.
    pub bytes: i64,
    /// The address of each active lane, in bytes from the start of the buffer.
    pub lanes: [Option<i64>; WARP],
    /// How many lanes shared memory serves at a time; of device memory all.
    pub at_a_time: u8,
    /// Sectors or wavefronts.
    pub passes: u64,
    /// The least that would do.
    pub least: u64,
}

impl Sample {
    /// The pieces of so many bytes that each lane touches, by their numbers from the start of the buffer.
    fn pieces(&self, size: i64) -> [Vec<i64>; WARP] {
        std::array::from_fn(|lane| {
            let of = |first: i64| first.div_euclid(size)..=(first + self.bytes - 1).div_euclid(size);
            self.lanes[lane].map(|first| of(first).collect()).unwrap_or_default()
        })
    }

    /// The sectors that each lane touches.
    pub fn sectors(&self) -> [Vec<i64>; WARP] {
        self.pieces(SECTOR)
    }

    /// The words of 4 bytes that each lane touches; word `w` lies in bank `w % 32`.
    pub fn words(&self) -> [Vec<i64>; WARP] {
        self.pieces(4)
    }
}

/// The accesses of each launch of a lowered program that is made, given what sizes, strides and flags are, in the order of its
/// text.
///
/// # Errors
/// Those of [`crate::ir::Launch::of`].
pub fn launches(program: &Program, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<Vec<Vec<Site>>, Diagnosis> {
    let recorded = count::recorded(program, value, Reuse::AsCompiled)?;
    let text = program.to_string();
    let texts: Vec<&str> = text.lines().map(str::trim).collect();
    let lines = print::lines(program);
    let mut out = Vec::new();
    for (launch, records) in made(&program.body, value)?.iter().zip(recorded) {
        // A body that two branches share is looked for in the branch that is launched.
        let begins = launch
            .body
            .first()
            .map_or(0, |first| lines.iter().position(|(s, _)| std::ptr::eq(*s, first)).unwrap_or(0));
        let line = |stmt: usize| {
            let is = |(s, _): &&(&Stmt, usize)| std::ptr::from_ref::<Stmt>(s).addr() == stmt;
            lines[begins..].iter().find(is).map_or(0, |(_, line)| *line)
        };
        let mut sites: Vec<Site> = records
            .into_iter()
            .map(|record| {
                let line = line(record.stmt);
                let statement = texts.get(line.wrapping_sub(1)).copied().unwrap_or_default();
                Site { line, statement: statement.to_string(), ..record.site }
            })
            .collect();
        sites.sort_by_key(|site| (site.line, site.writes));
        out.push(sites);
    }
    Ok(out)
}

/// What is noted during a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder {
    /// The statement at hand, and the access in it, by where they stand in memory.
    pub(super) at: (usize, usize),
    places: HashMap<(usize, usize, bool), usize>,
    pub(super) found: Vec<Record>,
}

/// A site, and the statement it stands in.
#[derive(Clone, Debug)]
pub(super) struct Record {
    stmt: usize,
    site: Site,
}

/// What one request takes, and what would do for it.
pub(super) struct Taken {
    pub(super) weight: f64,
    pub(super) passes: f64,
    pub(super) least: f64,
    pub(super) wanted: f64,
    pub(super) sample: Option<Sample>,
}

impl Recorder {
    /// Notes a request of the access at hand.
    pub(super) fn note(&mut self, buffer: &Buffer, writes: bool, taken: Taken) {
        let key = (self.at.0, self.at.1, writes);
        let place = *self.places.entry(key).or_insert_with(|| {
            self.found.push(Record {
                stmt: self.at.0,
                site: Site {
                    line: 0,
                    statement: String::new(),
                    buffer: buffer.sym.name().to_string(),
                    memory: if buffer.space == Space::Shared { Memory::Shared } else { Memory::Device },
                    writes,
                    requests: 0.0,
                    passes: 0.0,
                    least: 0.0,
                    wanted: 0.0,
                    sample: None,
                },
            });
            self.found.len() - 1
        });
        let site = &mut self.found[place].site;
        site.requests += taken.weight;
        site.passes += taken.weight * taken.passes;
        site.least += taken.weight * taken.least;
        site.wanted += taken.weight * taken.wanted;
        let worth =
            |s: &Sample| (s.lanes.iter().flatten().count(), s.passes.saturating_sub(s.least), s.passes);
        if let Some(sample) = taken.sample
            && site.sample.as_ref().is_none_or(|known| worth(&sample) > worth(known))
        {
            site.sample = Some(sample);
        }
    }
}
