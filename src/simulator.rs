//! Products on the simulator: the exact check, hazards, counters, and the result.
//!
//! Three runs answer three questions. *Is the program equal to its specification?* is asked over the prime field, at
//! the size of the problem where that is small, else at a stand-in that leaves the same remainders; of a kernel that has that size as a
//! constant, what its choice makes for the stand-in is asked. *Does it treat
//! infinities and NaNs as it must?* is asked at the same size with some sprinkled in. *What does it compute and what
//! does that cost?* is asked at the size of the problem, of every block or of a sample.

use std::collections::BTreeMap;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::ir::validate::Valid;
use warpwright_core::target::Target;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Arguments, Blocks, Claim, Mode, Options, Tensor, simulate};

use crate::bind::{Argument, Binding, Role};
use crate::compile;
use crate::inputs::{Operands, sprinkle};
use crate::kernels;
use crate::kernels::family::{Choice, Family};
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Problem, Shape};
use crate::reference::{Comparison, Region, expected};
use crate::report::{CheckReport, Claims, Counters, ExactCheck, LaunchReport};
use crate::run::Subject;
use crate::verify;

/// How to simulate.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Simulate every block instead of a sample, and check exactly at the size of the problem.
    pub full: bool,
    /// Compute every element of C.
    pub every_element: bool,
    /// Random inputs of the exact check, at least; both values of every flag are tried.
    pub trials: u32,
    /// Seed of all random inputs.
    pub seed: u64,
    /// What is passed for sizes of the launch.
    pub launch_size: i64,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions { full: false, every_element: false, trials: 2, seed: 1, launch_size: 8 }
    }
}

/// A launch with at most this many blocks is simulated whole, others by a sample.
const BLOCKS: i64 = 64;

/// Hazards, counted by what a report tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hazards {
    races: u64,
    out_of_bounds: u64,
    uninitialized: u64,
    barrier_faults: u64,
}

impl Hazards {
    fn of(report: &warpwright_sim::Report) -> Hazards {
        Hazards {
            races: report.races(),
            out_of_bounds: report.out_of_bounds(),
            uninitialized: report.uninitialized(),
            barrier_faults: report.barrier_faults(),
        }
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        *self != Hazards::default()
    }
}

impl CheckReport {
    /// Enters hazards into a verdict.
    pub fn set_hazards(&mut self, hazards: &Hazards) {
        self.races = hazards.races;
        self.out_of_bounds = hazards.out_of_bounds;
        self.uninitialized = hazards.uninitialized;
        self.barrier_faults = hazards.barrier_faults;
        self.passed &= !hazards.any();
    }
}

/// What the checks found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Equality with the specification.
    pub exact: ExactCheck,
    /// Infinities and NaNs compared with the reference.
    pub comparison: Comparison,
    /// Hazards of either run.
    pub hazards: Hazards,
    /// What is wrong, a line each.
    pub faults: Vec<String>,
    /// Of what this is true.
    pub claims: Claims,
}

/// Checks a program against its specification and the rules for infinities and NaNs.
pub fn check(
    subject: &Subject,
    valid: &Valid,
    problem: &Problem,
    target: &Target,
    options: &SimOptions,
) -> Result<Checked, Diagnosis> {
    // Binding says in the words of the command line what does not fit; the check itself chooses its own strides.
    Binding::new(valid.program(), problem, options.launch_size)?;
    let mut small = *problem;
    if !options.full {
        small = at_size(problem, stand_in(problem.shape));
    }
    let of_the_size = match fixed_at(subject, problem, &small) {
        Fixed::Nothing => None,
        Fixed::Made { family, sums } => {
            if sums {
                small = at_size(problem, stand_in_with_sums(problem.shape));
            }
            let made = of_the_same_choice(family, &subject.parameters, &small, target);
            if made.is_none() {
                small = *problem;
            }
            made
        }
    };
    let (specification, valid) =
        of_the_size.as_ref().map_or((&subject.specification, valid), |(s, valid)| (s, valid));
    let program = valid.program();
    let trials = Trials {
        count: options.trials,
        seed: options.seed,
        options: Options { mode: Mode::Simt, checks: true, blocks: Blocks::All },
    };
    let sizes = sizes(program, &small, options);
    let sizes: Vec<(&str, i64)> = sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let exact = exact::check(specification, program, &sizes, &trials)?;
    let mut faults: Vec<String> = exact.run.hazards.iter().map(ToString::to_string).collect();
    if let Some(first) = &exact.first {
        faults.push(format!(
            "{} of {} elements differ from the specification at {}; the first is {}",
            exact.differing, exact.compared, small.shape, first.element
        ));
    }
    let mut operands = Operands::random(&small, options.seed)?;
    sprinkle(&mut operands.a, 3, options.seed.wrapping_add(1));
    if problem.same {
        operands.b.clone_from(&operands.a);
    } else {
        sprinkle(&mut operands.b, 3, options.seed.wrapping_add(2));
    }
    let whole = SimOptions { full: true, ..*options };
    let special = run(valid, &small, &operands, &whole, subject.multiplications)?;
    faults.extend(
        special
            .comparison
            .first_wrong
            .iter()
            .map(|w| format!("with infinities and NaNs among the data, {w}")),
    );
    let mut hazards = Hazards::of(&exact.run);
    if !hazards.any() {
        hazards = special.hazards;
    }
    let claims = if small.shape == problem.shape { Claims::Launch } else { Claims::Sample };
    Ok(Checked {
        exact: ExactCheck {
            trials: exact.trials,
            passed: exact.equal(),
            at: (small.shape != problem.shape).then(|| small.shape.to_string()),
        },
        comparison: special.comparison,
        hazards,
        faults,
        claims,
    })
}

/// What a kernel has as a constant that differs at a smaller size.
enum Fixed {
    /// Nothing: the kernel serves both sizes.
    Nothing,
    /// Extents for which its family makes another kernel; whether the terms of a sum are among them.
    Made { family: &'static Family, sums: bool },
}

fn fixed_at(subject: &Subject, problem: &Problem, small: &Problem) -> Fixed {
    let Some(family) = kernels::family(&subject.family).filter(|_| !subject.parameters.is_empty()) else {
        return Fixed::Nothing;
    };
    let extents = |problem: &Problem| (family.fixed)(problem).ok().map(|fixed| [fixed.m, fixed.n, fixed.k]);
    match [extents(problem), extents(small)] {
        [Some(here), Some(there)] if here != there => Fixed::Made { family, sums: here[2].is_some() },
        _ => Fixed::Nothing,
    }
}

/// What the same choice makes of a problem of another size, with its specification, if it makes something of it.
fn of_the_same_choice(
    family: &Family,
    choice: &Choice,
    small: &Problem,
    target: &Target,
) -> Option<(Program, Valid)> {
    let kernel = family.build(small, choice).ok()?;
    let valid = compile::validated(kernel.program(), target).ok()?;
    Some((kernel.specification().clone(), valid))
}

/// What a run gave.
#[derive(Debug)]
pub struct Simulated {
    /// The result, where every element was computed.
    pub c: Option<Matrix>,
    /// The computed elements compared with the reference.
    pub comparison: Comparison,
    /// What was counted.
    pub counters: Counters,
    /// Hazards.
    pub hazards: Hazards,
    /// What is wrong, a line each.
    pub faults: Vec<String>,
    /// The launches.
    pub launches: Vec<LaunchReport>,
    /// Whether every block was simulated.
    pub claims: Claims,
}

/// Runs a program, which makes complex products of so many real ones, on given operands.
pub fn run(
    valid: &Valid,
    problem: &Problem,
    operands: &Operands,
    options: &SimOptions,
    by: Multiplications,
) -> Result<Simulated, Diagnosis> {
    let blocks = if options.full || options.every_element { Blocks::All } else { Blocks::Sample(BLOCKS) };
    let (report, c) = execute(valid.program(), problem, operands, blocks, options.launch_size)?;
    let whole = report.claim == Claim::Launch;
    let comparison = if whole {
        verify::compare(problem, operands, &c, by)
    } else {
        let compare = |region: &Region| {
            expected(problem, &operands.a, &operands.b, Some(&operands.c), region).compare_by(by, &c)
        };
        computed(&c, &before(problem, operands))
            .iter()
            .fold(Comparison::empty(), |sum, r| sum.and(compare(r)))
    };
    let mut faults: Vec<String> = report.hazards.iter().map(ToString::to_string).collect();
    faults.extend(comparison.first_wrong.iter().map(ToString::to_string));
    Ok(Simulated {
        c: whole.then_some(c),
        comparison,
        counters: counters(&report.counters),
        hazards: Hazards::of(&report),
        faults,
        launches: report.launches.iter().map(LaunchReport::from).collect(),
        claims: if whole { Claims::Launch } else { Claims::Sample },
    })
}

/// What a run would count, where that takes a few seconds at most.
pub fn count(valid: &Valid, problem: &Problem, options: &SimOptions) -> Result<Option<Counters>, Diagnosis> {
    let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    // A sample has five blocks along each axis, of 128 x 128 elements at most.
    let elements = |extent: i64| (extent as f64).min(5.0 * 128.0);
    let sampled = elements(problem.shape.m) * elements(problem.shape.n) * problem.shape.k as f64;
    if !options.full && sampled > MULTIPLY_ADDS_PER_CORE * cores {
        return Ok(None);
    }
    let operands = Operands::random(problem, options.seed)?;
    let blocks = if options.full { Blocks::All } else { Blocks::Sample(BLOCKS) };
    let (report, _) = execute(valid.program(), problem, &operands, blocks, options.launch_size)?;
    Ok(Some(counters(&report.counters)))
}

/// What a core simulates in a few seconds.
const MULTIPLY_ADDS_PER_CORE: f64 = 6e8;

/// Runs a program in the arithmetic of its elements, on a C that shows which elements were computed.
fn execute(
    program: &Program,
    problem: &Problem,
    operands: &Operands,
    blocks: Blocks,
    launch_size: i64,
) -> Result<(warpwright_sim::Report, Matrix), Diagnosis> {
    let binding = Binding::new(program, problem, launch_size)?;
    let mut arguments = arguments(program, &binding, problem, operands, before(problem, operands));
    let options = Options { mode: Mode::Simt, checks: true, blocks };
    let report = simulate(program, &mut arguments, &options)?;
    let mut c = operands.c.clone();
    if let Some(tensor) = arguments.tensors.remove("C") {
        let declared = program.tensors().find(|buffer| buffer.sym.name() == "C");
        let before = declared.map_or(0, |buffer| binding.bytes_before(&buffer.sym)) as usize;
        let found = tensor.bytes.get(before..).unwrap_or_default();
        let length = c.bytes().len().min(found.len());
        c.bytes_mut()[..length].copy_from_slice(&found[..length]);
    }
    Ok((report, c))
}

/// C before the run: the old one, or a pattern that no right result has where it must not be read.
fn before(problem: &Problem, operands: &Operands) -> Matrix {
    let mut c = operands.c.clone();
    if problem.beta.norm() == 0.0 {
        c.bytes_mut().fill(0xff);
    }
    c
}

/// Bytes of a cache line: where a matrix starts by whole lines changes nothing of what is counted.
const LINE: i64 = 128;

fn arguments(
    program: &Program,
    binding: &Binding,
    problem: &Problem,
    operands: &Operands,
    c: Matrix,
) -> Arguments {
    let mut arguments = Arguments::default();
    for (param, argument) in program.params.iter().zip(&binding.arguments) {
        let name = param.sym.name().to_string();
        match argument {
            Argument::Size(value) => {
                arguments.integers.insert(name, *value);
            }
            Argument::Flag(truth) => {
                arguments.integers.insert(name, i64::from(*truth));
            }
            Argument::Scalar(value) => {
                arguments.scalars.insert(name, *value);
            }
            Argument::Matrix(role) => {
                let (matrix, elements_before) = match role {
                    Role::A => (&operands.a, problem.offset.a),
                    Role::B => (&operands.b, problem.offset.b),
                    Role::C => (&c, problem.offset.c),
                };
                // What a tensor has before its matrix is somebody else's: no number, so that whoever looks at it is found out.
                let before = binding.bytes_before(&param.sym);
                let start = ((elements_before * matrix.dtype().bytes() - before) % LINE) as usize;
                let bytes = [&vec![0xff; before as usize], matrix.bytes()].concat();
                arguments.tensors.insert(name, Tensor { bytes, start });
            }
        }
    }
    for stride in program.tensors().filter_map(|t| t.row_stride.as_ref()) {
        if let Some(value) = binding.value(stride) {
            arguments.integers.insert(stride.name().to_string(), value);
        }
    }
    arguments
}

/// The sizes that an exact check is given by name.
fn sizes(program: &Program, problem: &Problem, options: &SimOptions) -> BTreeMap<String, i64> {
    let mut sizes: BTreeMap<String, i64> =
        [("M", problem.shape.m), ("N", problem.shape.n), ("K", problem.shape.k)]
            .map(|(n, v)| (n.to_string(), v))
            .into();
    for param in &program.params {
        if param.kind == warpwright_core::ir::ParamKind::Launch {
            sizes.insert(param.sym.name().to_string(), options.launch_size);
        }
    }
    sizes
}

/// Sizes up to this are checked as they are.
const LARGEST_AS_IS: i64 = 384;

/// Sizes that stand in for larger ones: with the same remainders by all tile extents up to 128, and three tiles of 128
/// along each axis, so that there are interior, edge and corner blocks. An axis that alone is long stays as long as
/// the time for a cube of three tiles allows, since many blocks share it.
fn stand_in(shape: Shape) -> Shape {
    let extents = [shape.m, shape.n, shape.k];
    let short: i64 = extents.iter().filter(|e| **e <= LARGEST_AS_IS).product();
    let alone = extents.iter().filter(|e| **e > LARGEST_AS_IS).count() == 1;
    let affordable = if alone { LARGEST_AS_IS.pow(3) / short.max(1) } else { LARGEST_AS_IS };
    let extent = |e: i64| {
        let tiles = (affordable.min(LONGEST) / 128 - 1).max(2) * 128;
        if e <= LARGEST_AS_IS.max(tiles) { e } else { tiles + e % 128 }
    };
    Shape { m: extent(shape.m), n: extent(shape.n), k: extent(shape.k) }
}

/// The same with sums as long as there is time for: they are shared out among blocks and sets of threads.
fn stand_in_with_sums(shape: Shape) -> Shape {
    let Shape { m, n, .. } = stand_in(shape);
    let affordable = LARGEST_AS_IS.pow(3) / (m * n).max(1);
    let terms = (affordable.min(LONGEST) / 128 - 1).max(2) * 128;
    Shape { m, n, k: if shape.k <= terms { shape.k } else { terms + shape.k % 128 } }
}

/// The longest axis that stands in for a longer one.
const LONGEST: i64 = 1 << 16;

/// The problem at another size. Dense matrices stay dense, and others keep what their rows have to spare.
fn at_size(problem: &Problem, shape: Shape) -> Problem {
    if shape == problem.shape {
        return *problem;
    }
    let mut small = Problem::new(shape, problem.precision, problem.layout);
    small.alpha = problem.alpha;
    small.beta = problem.beta;
    small.same = problem.same;
    small.offset = problem.offset;
    // Remainders by 128 are the same, so alignment is too.
    small.ld.a += problem.ld.a - problem.stored_a().1.max(1);
    small.ld.b += problem.ld.b - problem.stored_b().1.max(1);
    small.ld.c += problem.ld.c - problem.stored_c().1.max(1);
    small
}

/// The rectangles of C that a run of some blocks has computed: those where it differs from what was there before.
fn computed(after: &Matrix, before: &Matrix) -> Vec<Region> {
    let size = after.dtype().bytes() as usize;
    let mut regions: Vec<Region> = Vec::new();
    for row in 0..after.rows() {
        let (new, old) = (&after.bytes()[after.row_range(row)], &before.bytes()[before.row_range(row)]);
        let differs = |column: usize| {
            new[column * size..(column + 1) * size] != old[column * size..(column + 1) * size]
        };
        let mut column = 0;
        while column < after.columns() {
            let start = column;
            while column < after.columns() && differs(column) {
                column += 1;
            }
            if column == start {
                column += 1;
                continue;
            }
            let columns = start..column;
            match regions.iter_mut().find(|r| r.rows.end == row && r.columns == columns) {
                Some(above) => above.rows.end = row + 1,
                None => regions.push(Region { rows: row..row + 1, columns }),
            }
        }
    }
    regions
}

impl From<&warpwright_sim::LaunchShape> for LaunchReport {
    fn from(shape: &warpwright_sim::LaunchShape) -> LaunchReport {
        LaunchReport {
            grid: shape.grid.map(|n| n as u64),
            block: shape.block.map(|n| n as u32),
            shared_bytes: shape.shared_bytes as u64,
            registers: None,
        }
    }
}

fn counters(c: &warpwright_sim::Counters) -> Counters {
    Counters {
        kind: crate::report::Kind::Simulated,
        global_load_requests: c.global_load_requests,
        global_load_sectors: c.global_load_sectors,
        global_store_requests: c.global_store_requests,
        global_store_sectors: c.global_store_sectors,
        shared_load_requests: c.shared_load_requests,
        shared_load_wavefronts: c.shared_load_wavefronts,
        shared_store_requests: c.shared_store_requests,
        shared_store_wavefronts: c.shared_store_wavefronts,
        fma: c.fma,
        barriers: c.barriers,
        divergent_branches: c.divergent_branches,
        blocks_simulated: c.blocks_simulated,
        blocks_total: c.blocks_total,
    }
}

#[cfg(test)]
mod tests {
    use super::{computed, stand_in};
    use crate::matrix::Matrix;
    use crate::problem::Shape;
    use crate::reference::Region;
    use num_complex::Complex64;
    use warpwright_core::dtype::DType;

    #[test]
    fn a_stand_in_leaves_the_same_remainders_and_is_small() {
        let shape = Shape { m: 4097, n: 16384, k: 100 };
        assert_eq!(stand_in(shape), Shape { m: 257, n: 256, k: 100 });
    }

    #[test]
    fn computed_rectangles_are_found() {
        let before = Matrix::zeros(DType::F32, 6, 8, 9).unwrap();
        let mut after = before.clone();
        for (row, column) in [(1, 2), (1, 3), (2, 2), (2, 3), (5, 7)] {
            after.set(row, column, Complex64::new(1.0, 0.0));
        }
        let expected = [Region { rows: 1..3, columns: 2..4 }, Region { rows: 5..6, columns: 7..8 }];
        assert_eq!(computed(&after, &before), expected);
    }
}
