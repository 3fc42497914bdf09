//! A problem in the memory of a GPU together with what its result must be, on which kernel after kernel is tried.
//!
//! A long product is stated twice: at a length at which every element of C can be compared with the reference, an odd
//! one, so that tiles stand over the edge ([`shortened`]); and at its own, where two corners of C are compared if it is
//! small, and bands of rows if it is long. C is poisoned before each run. The operands, and what the results must be,
//! are worked out once.
//!
//! Operands of gigabytes take the host longer than everything else. [`Stage::repeated`] makes random ones for the short
//! length and repeats them on the GPU, which also says what all of a small C must be.

use std::rc::Rc;

use warpwright_core::diag::Diagnosis;
use warpwright_cuda::{Buffer, Device, Stream};

use super::{OperandSets, Prepared, diagnosis, outside_c, reset_c};
use crate::inputs::Operands;
use crate::kernels::family::Family;
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Problem};
use crate::reference::{Comparison, Expected, Region, expected};

/// A problem on the GPU, and what its result must be.
pub struct Stage {
    /// The problem.
    pub problem: Problem,
    /// The operands on the GPU.
    pub sets: OperandSets,
    operands: Operands,
    parts: Vec<Part>,
    /// Where C is downloaded to.
    found: Matrix,
}

/// A part of C that is compared.
struct Part {
    expected: Expected,
    /// The row of C on the GPU at which it begins.
    first_row: usize,
}

/// Why a kernel is of no use.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// It did not run.
    Crashed(Diagnosis),
    /// Its result is wrong.
    Wrong(Diagnosis),
}

/// The length at which all of C is compared: odd, and long enough for every block to have something to do.
pub const SHORT: i64 = 50_021;
/// C is compared whole at its own length where that takes no more multiply-adds than this, and C has no more elements.
const WHOLE: f64 = 1e9;
const MOST_ELEMENTS: usize = 1 << 22;
/// Elements along each side of the corners of a small C that are compared where comparing all would take long.
const CORNER: usize = 4;
/// Bands of a long C that are compared, and the rows of each.
const BANDS: usize = 64;
const BAND_ROWS: usize = 16;

/// The problem with those extents shortened that are arguments of the family's kernels.
///
/// # Errors
/// A problem that the family has no kernel for.
pub fn shortened(family: &Family, problem: &Problem) -> Result<Problem, Diagnosis> {
    let fixed = (family.fixed)(problem)?;
    let mut shape = problem.shape;
    for (known, extent) in [(fixed.m, &mut shape.m), (fixed.n, &mut shape.n), (fixed.k, &mut shape.k)] {
        if known.is_none() {
            *extent = (*extent).min(SHORT);
        }
    }
    // The row strides stay: the family may have a constant of them.
    let mut short = *problem;
    short.shape = shape;
    Ok(short)
}

/// Memory of a GPU for operands that are made by repetition, used for one problem after the other.
pub struct Space {
    /// For the two long matrices of a tall and skinny product.
    long: [Rc<Buffer>; 2],
    /// For the small one.
    small: Rc<Buffer>,
}

/// Bytes of the largest small matrix.
const SMALL_BYTES: usize = 1 << 20;

/// Bytes that stand behind a long matrix in the cache: a twelfth of an H200's second-level cache, of whose two halves each keeps what
/// its own multiprocessors read.
const CACHED: usize = 4 << 20;

/// Bytes of the largest matrix of a problem, and of what lies before it.
pub fn longest(problem: &Problem) -> usize {
    let (bytes, before) = (problem.stored_bytes(), problem.bytes_before());
    bytes.into_iter().zip(before).map(|(bytes, before)| bytes + before).max().unwrap_or(0)
}

impl Space {
    /// Memory for long matrices of at most `bytes` each.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn new(device: &Device, bytes: usize) -> Result<Space, Diagnosis> {
        Space::with(device, || device.alloc(bytes))
    }

    /// The same of addresses behind which a few megabytes stand again and again, so that all that kernels read and write lies in the
    /// second-level cache.
    ///
    /// # Errors
    /// Memory that cannot be had, and a driver that is too old.
    pub fn in_cache(device: &Device, bytes: usize) -> Result<Space, Diagnosis> {
        Space::with(device, || device.alloc_repeated(bytes, CACHED))
    }

    fn with(device: &Device, long: impl Fn() -> warpwright_cuda::Result<Buffer>) -> Result<Space, Diagnosis> {
        let space = || {
            let small = Rc::new(device.alloc(SMALL_BYTES)?);
            Ok(Space { long: [Rc::new(long()?), Rc::new(long()?)], small })
        };
        space().map_err(diagnosis)
    }

    /// Buffers for matrices of these sizes, of which one at least is small.
    fn buffers(&self, bytes: [usize; 3]) -> Result<[Rc<Buffer>; 3], Diagnosis> {
        let mut long = self.long.iter();
        let mut small = Some(&self.small);
        let mut one = |bytes: usize| {
            let buffer = if bytes <= SMALL_BYTES && small.is_some() { small.take() } else { long.next() };
            buffer.filter(|b| bytes <= b.bytes()).map(Rc::clone).ok_or_else(|| {
                Diagnosis::new(format!("there is no buffer of {bytes} bytes for a matrix"))
                    .because("a tall and skinny product has two long matrices and a small one")
            })
        };
        let [a, b, c] = bytes;
        // The small one first: it would fit into a long buffer too.
        Ok([one(a)?, one(b)?, one(c)?])
    }
}

/// Operands of fewer bytes, counted in second-level caches, rotate instead of being long.
const LONG: usize = 3;

/// Whether the operands of a long problem can repeat those of a short one, and are long enough to be timed alone: making them
/// takes a moment, where random ones and their reference take seconds.
///
/// # Errors
/// A problem of more bytes than can be counted.
pub fn may_repeat(device: &Device, short: &Problem, long: &Problem) -> Result<bool, Diagnosis> {
    let whole = |of_long: i64, of_short: i64| of_long % of_short.max(1) == 0;
    let repeats = whole(long.shape.m, short.shape.m) && whole(long.shape.k, short.shape.k);
    let is_long = long.bytes()? as usize >= LONG * device.info().l2_bytes;
    Ok(short != long && repeats && is_long && long.beta.norm() == 0.0 && !long.same)
}

impl Stage {
    /// A problem with random operands: one set, or as many as timing wants.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn random(device: &Device, problem: Problem, timed: bool) -> Result<Stage, Diagnosis> {
        let upload = if timed { OperandSets::rotating } else { OperandSets::single };
        Stage::with(problem, |operands| upload(device, &problem, operands))
    }

    /// A problem with random operands, of whose B there are so many copies at least, or as many more as timing wants.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn random_weights(device: &Device, problem: Problem, copies: usize) -> Result<Stage, Diagnosis> {
        Stage::with(problem, |operands| OperandSets::rotating_weights(device, &problem, operands, copies))
    }

    fn with(
        problem: Problem,
        upload: impl FnOnce(&Operands) -> warpwright_cuda::Result<OperandSets>,
    ) -> Result<Stage, Diagnosis> {
        let operands = Operands::random(&problem, 1)?;
        let sets = upload(&operands).map_err(diagnosis)?;
        let part = |region: Region| Part {
            first_row: region.rows.start,
            expected: expected(&problem, &operands.a, &operands.b, Some(&operands.c), &region),
        };
        let parts = regions(&problem).into_iter().map(part).collect();
        let found = operands.c.clone();
        Ok(Stage { problem, sets, operands, parts, found })
    }

    /// A short problem with random operands, and a long one, beta being 0, whose operands repeat those of the short one.
    ///
    /// # Errors
    /// Lengths of which one is no multiple of the other, and memory that is not there.
    pub fn repeated(
        stream: &Stream,
        space: &Space,
        short: Problem,
        long: Problem,
    ) -> Result<[Stage; 2], Diagnosis> {
        let operands = Operands::random(&short, 1)?;
        let (starts, bytes) = (long.bytes_before(), long.stored_bytes());
        let buffers = space.buffers([0, 1, 2].map(|matrix| starts[matrix] + bytes[matrix]))?;
        fill(stream, &buffers[0], starts[0], operands.a.bytes(), bytes[0]).map_err(diagnosis)?;
        fill(stream, &buffers[1], starts[1], operands.b.bytes(), bytes[1]).map_err(diagnosis)?;
        let sets = OperandSets::of(&long, buffers);
        let whole = expected(&short, &operands.a, &operands.b, None, &Region::whole(&short));
        let parts = repeated_parts(&short, &long, &operands, &whole)?;
        let found = operands.c.clone();
        let short = Stage {
            problem: short,
            sets: sets.clone(),
            operands: operands.clone(),
            parts: vec![Part { expected: whole, first_row: 0 }],
            found: found.clone(),
        };
        Ok([short, Stage { problem: long, sets, operands, parts, found }])
    }

    /// The problem once more, with random operands that lie in the second-level cache. Its result is of no use: rows
    /// of a long C overwrite each other.
    ///
    /// # Errors
    /// Matrices that the space has no room for, and what the driver says.
    pub fn in_cache(&self, stream: &Stream, space: &Space) -> Result<OperandSets, Diagnosis> {
        let (starts, bytes) = (self.problem.bytes_before(), self.problem.stored_bytes());
        let buffers = space.buffers([0, 1, 2].map(|matrix| starts[matrix] + bytes[matrix]))?;
        let operands = [self.operands.a.bytes(), self.operands.b.bytes()];
        for ((buffer, elements), bytes) in buffers.iter().zip(operands).zip(bytes) {
            let once = bytes.min(CACHED).min(buffer.bytes());
            fill(stream, buffer, 0, elements, once).map_err(diagnosis)?;
        }
        Ok(OperandSets::of(&self.problem, buffers))
    }

    /// Runs a kernel, which makes complex products of so many real ones, once on a poisoned C and compares; gives the
    /// seconds of the run.
    ///
    /// # Errors
    /// What a kernel can do wrong.
    pub fn verify(
        &mut self,
        prepared: &Prepared,
        stream: &Stream,
        by: Multiplications,
    ) -> Result<f64, Fault> {
        let run = || -> warpwright_cuda::Result<f64> {
            reset_c(&self.sets, stream, &self.problem, &self.operands)?;
            once(prepared, stream)
        };
        let crashed = |e| Fault::Crashed(diagnosis(e));
        let seconds = run().map_err(crashed)?;
        let mut comparison = Comparison::empty();
        for Part { expected, first_row } in &self.parts {
            let rows = expected.region().rows.clone();
            self.sets.download_rows(stream, 0, &mut self.found, rows, *first_row).map_err(crashed)?;
            comparison = comparison.and(expected.compare_by(by, &self.found));
        }
        if !self.sets.is_c_alone(stream, 0).map_err(crashed)? {
            return Err(Fault::Wrong(outside_c().at(self.problem.shape.to_string())));
        }
        match comparison.first_wrong {
            None => Ok(seconds),
            Some(wrong) => Err(Fault::Wrong(
                Diagnosis::new(format!("{} of {} elements are wrong", comparison.wrong, comparison.elements))
                    .at(self.problem.shape.to_string())
                    .because(wrong.to_string()),
            )),
        }
    }
}

/// Runs a kernel once; gives the seconds that it takes.
///
/// # Errors
/// What the driver says.
pub fn once(prepared: &Prepared, stream: &Stream) -> warpwright_cuda::Result<f64> {
    let before = stream.record()?;
    prepared.enqueue(stream, 0)?;
    let after = stream.record()?;
    stream.synchronize()?;
    after.seconds_since(&before)
}

/// Writes the bytes to a buffer from a place on and repeats them until `total` bytes are written.
///
/// # Errors
/// What the driver says.
pub fn fill(
    stream: &Stream,
    buffer: &Buffer,
    start: usize,
    bytes: &[u8],
    total: usize,
) -> warpwright_cuda::Result<()> {
    buffer.write(stream, start, &bytes[..bytes.len().min(total)])?;
    let mut written = bytes.len();
    while written < total && written > 0 {
        // What is written holds a whole number of repetitions, and so does what follows it.
        let more = written.min(total - written);
        buffer.copy_from(stream, start + written, buffer, start, more)?;
        written += more;
    }
    Ok(())
}

/// What is compared of a product whose operands repeat those of a short one: all of a small C, bands of a long one.
fn repeated_parts(
    short: &Problem,
    long: &Problem,
    operands: &Operands,
    whole: &Expected,
) -> Result<Vec<Part>, Diagnosis> {
    let (of_rows, of_terms) = (long.shape.m / short.shape.m.max(1), long.shape.k / short.shape.k.max(1));
    let mut repeated = short.shape;
    (repeated.m, repeated.k) = (repeated.m * of_rows, repeated.k * of_terms);
    if repeated != long.shape || (of_rows > 1 && of_terms > 1) {
        return Err(Diagnosis::new(format!("{} does not repeat {}", long.shape, short.shape))
            .because("the rows of C or the terms of its sums have to be a multiple"));
    }
    if of_rows == 1 {
        return Ok(vec![Part { expected: whole.repeated(of_terms, long), first_row: 0 }]);
    }
    let period = short.shape.m as usize;
    let band = |region: Region| {
        // A band that would reach into the next repetition is moved up.
        let within = (region.rows.start % period).min(period - region.rows.len());
        let first_row = region.rows.start / period * period + within;
        let rows = within..within + region.rows.len();
        let region = Region { rows, columns: region.columns };
        Part { first_row, expected: expected(short, &operands.a, &operands.b, None, &region) }
    };
    Ok(bands(long).into_iter().map(band).collect())
}

/// The parts of C that are compared.
fn regions(problem: &Problem) -> Vec<Region> {
    let (m, n) = (problem.shape.m as usize, problem.shape.n as usize);
    if problem.multiply_adds() <= WHOLE && m * n <= MOST_ELEMENTS {
        return vec![Region::whole(problem)];
    }
    if m > BANDS * BAND_ROWS {
        return bands(problem);
    }
    // Each element of a small C is a long sum: the first and the last corner have to do.
    let corner = |extent: usize| extent.min(CORNER);
    vec![
        Region { rows: 0..corner(m), columns: 0..corner(n) },
        Region { rows: m - corner(m)..m, columns: n - corner(n)..n },
    ]
}

/// Bands of a long C, the first and the last rows among them.
fn bands(problem: &Problem) -> Vec<Region> {
    let (m, n) = (problem.shape.m as usize, problem.shape.n as usize);
    let starts = (0..BANDS).map(|band| (m - BAND_ROWS) * band / (BANDS - 1));
    starts.map(|start| Region { rows: start..start + BAND_ROWS, columns: 0..n }).collect()
}

#[cfg(test)]
mod tests {
    use super::{BAND_ROWS, BANDS, SHORT, regions, repeated_parts, shortened};
    use crate::inputs::Operands;
    use crate::kernels;
    use crate::problem::Problem;
    use crate::reference::{Region, expected};

    fn problem(shape: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), layout.parse().unwrap())
    }

    #[test]
    fn what_is_compared_reaches_the_first_and_the_last_element() {
        for p in [problem("64x64x4000000", "tn"), problem("4000000x64x64", "nn"), problem("3x5x100", "tn")] {
            let regions = regions(&p);
            let last = (p.shape.m as usize, p.shape.n as usize);
            assert!(regions.iter().any(|r| r.rows.start == 0 && r.columns.start == 0), "{}", p.shape);
            assert!(regions.iter().any(|r| (r.rows.end, r.columns.end) == last), "{}", p.shape);
            assert!(regions.iter().all(|r| r.rows.end <= last.0 && r.columns.end <= last.1));
        }
        let long = regions(&problem("4000000x64x64", "nn"));
        assert_eq!((long.len(), long[7].rows.len()), (BANDS, BAND_ROWS));
    }

    #[test]
    fn only_extents_that_are_arguments_are_shortened() {
        let short = |name: &str, shape: &str, layout: &str| {
            let p = problem(shape, layout);
            let short = shortened(kernels::family(name).unwrap(), &p).unwrap();
            assert_eq!(short.ld, p.ld);
            (short.shape.m, short.shape.n, short.shape.k)
        };
        assert_eq!(short("tsmttsm", "64x48x4000000", "tn"), (64, 48, SHORT));
        assert_eq!(short("tsmttsm", "64x48x1000", "tn"), (64, 48, 1000));
        assert_eq!(short("tsmm", "4000000x64x48", "nn"), (SHORT, 64, 48));
    }

    /// The short operands, repeated on the host, and the parts that are expected of the long product, with so many elements
    /// between rows.
    fn check(short: &str, long: &str, layout: &str, padding: i64) {
        let padded = |shape: &str| {
            let mut p = problem(shape, layout);
            (p.ld.a, p.ld.c) = (p.ld.a + padding, p.ld.c + padding);
            p
        };
        let (short, long) = (padded(short), padded(long));
        let small = Operands::random(&short, 1).unwrap();
        let mut large = Operands::random(&long, 1).unwrap();
        for (from, to) in [(&small.a, &mut large.a), (&small.b, &mut large.b)] {
            let bytes = from.bytes();
            to.bytes_mut().chunks_mut(bytes.len()).for_each(|c| c.copy_from_slice(&bytes[..c.len()]));
        }
        let whole = expected(&short, &small.a, &small.b, None, &Region::whole(&short));
        let reference = expected(&long, &large.a, &large.b, None, &Region::whole(&long));
        let parts = repeated_parts(&short, &long, &small, &whole).unwrap();
        let mut last = 0;
        for part in &parts {
            let region = part.expected.region();
            for (row, column) in region.rows.clone().flat_map(|r| region.columns.clone().map(move |c| (r, c)))
            {
                let of_c = part.first_row + row - region.rows.start;
                let (found, wanted) = (part.expected.value(row, column), reference.value(of_c, column));
                assert!((found - wanted).norm() <= 1e-10, "{found} {wanted} at {of_c} {column}");
                last = last.max(of_c);
            }
        }
        assert_eq!(last as i64 + 1, long.shape.m);
    }

    #[test]
    fn operands_that_repeat_say_what_the_long_product_is() {
        check("3x5x101", "3x5x707", "tn", 0);
        check("3x5x101", "3x5x303", "tn", 2);
        check("101x3x5", "2020x3x5", "nn", 0);
        check("101x3x5", "2020x3x5", "nn", 3);
        let [short, long] = [problem("3x5x100", "tn"), problem("3x5x350", "tn")];
        let operands = Operands::random(&short, 1).unwrap();
        let whole = expected(&short, &operands.a, &operands.b, None, &Region::whole(&short));
        assert!(repeated_parts(&short, &long, &operands, &whole).is_err());
    }
}
