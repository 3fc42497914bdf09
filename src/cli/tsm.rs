//! `bench tsm`: the figures of tall and skinny products, beside cuBLAS.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::Target;
use warpwright_cuda::TurnOptions;

use super::bandwidth::parse_bytes;
use super::options::{DeviceOptions, OutputOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::bench::bandwidth;
use crate::bench::record::{self, Record};
use crate::bench::tsm::chosen;
use crate::bench::tsm::job::Wanted;
use crate::bench::tsm::measure::{self, Also, Run};
use crate::bench::tsm::{Figure, NAME, Operation, Pace, Point, Size, WIDTHS, mean, page, sweep, tuned};
use crate::report::number::{flops_per_second, seconds};
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::tune::record::Status;

/// Options of `bench tsm`.
#[derive(Args, Debug)]
pub struct Options {
    /// The products, separated by commas: tsmttsm (C = A^T B) and tsmm (C = A B) [default: both].
    #[arg(long, value_name = "PRODUCTS", value_delimiter = ',')]
    ops: Vec<Operation>,
    /// Element types f32, f64, c64 and c128, separated by commas [default: all; of tiles, reductions and options f64].
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = parse_dtype)]
    dtypes: Vec<DType>,
    /// Widths M = N, separated by commas [default: 19 of them from 1 to 64; of strides five, of short products six, of
    /// tiles and reductions two].
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(1..=128))]
    widths: Vec<i64>,
    /// Bytes of each long operand, as in 2G or 512M.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "2G")]
    bytes: usize,
    /// Instead of the main figure: other products by the kernels that are chosen (shapes, strides or short), or kernels of
    /// tsmttsm by threads of which one thing varies (tiles, reductions or options). Lengths of short products are 1e4, 1e5
    /// and 1e6, those of reductions from 1e3 to 1e8, whatever --bytes says.
    #[arg(long, value_name = "WHAT")]
    sweep: Option<Sweep>,
    /// Lengths of short products, separated by commas [default: 10000,100000,1000000].
    #[arg(long, value_name = "LENGTHS", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(1..))]
    lengths: Vec<i64>,
    /// Record every point in this directory, as JSON and as CSV; what is on record there is not measured again.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
    /// Measure again what is on record.
    #[arg(long)]
    again: bool,
    /// Measure each product a third as long: for a look at many.
    #[arg(long)]
    quick: bool,
    /// Time each kernel a second time on matrices that lie in the second-level cache (one piece of memory at many addresses):
    /// what it would take if device memory cost nothing.
    #[arg(long)]
    cached: bool,
    /// Time each kernel a second time on operands that are all zeros: what it would take if power were no limit.
    #[arg(long)]
    zeros: bool,
    /// Write the figures as a self-contained page, from what is on record; nothing is measured, and no GPU is needed.
    #[arg(long, value_name = "FILE", requires = "from", conflicts_with = "record")]
    html: Option<PathBuf>,
    /// The directory with the records that the page shows, and perhaps wisdom (*.jsonl) for the figure of tiles.
    #[arg(long, value_name = "DIRECTORY", requires = "html")]
    from: Option<PathBuf>,
    /// Of records on several GPUs, show those of this one, as it is named in them.
    #[arg(long, value_name = "NAME", requires = "html")]
    gpu: Option<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// The types of the figures.
const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn parse_dtype(text: &str) -> Result<DType, Diagnosis> {
    text.parse().ok().filter(|dtype| DTYPES.contains(dtype)).ok_or_else(|| {
        Diagnosis::new(format!("there are no tall and skinny products of `{text}`"))
            .instead("use f32, f64, c64 or c128")
    })
}

/// What a sweep varies.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sweep {
    /// Products with M and N that differ.
    Shapes,
    /// Rows that are padded, and matrices that start anywhere.
    Strides,
    /// Products of lengths from 1e4 to 1e6, beside two empty launches and the bytes they move.
    Short,
    /// The widths of the main figure in f32 and complex64, by kernels that may split numbers into tf32 parts.
    Split,
    /// The tile of C of a thread.
    Tiles,
    /// How the parts of blocks come together, for lengths from 1e3 to 1e8.
    Reductions,
    /// Leap frogging and transposed mapping.
    Options,
}

/// Runs `bench tsm`.
pub fn run(options: &Options) -> Outcome {
    if let (Some(file), Some(directory)) = (&options.html, &options.from) {
        return page(file, directory, options.gpu.as_deref());
    }
    options.check()?;
    let instead = "use `tune MxNxK --device sim` for what the model says";
    let (gpu, target) = &options.device.gpu("to time products on", instead)?;
    let wanted = options.wanted(target)?;
    let progress = Progress::waiting("kernels");
    let turns = if options.quick { TurnOptions::quick() } else { TurnOptions::default() };
    let also = Also { cached: options.cached, zeros: options.zeros };
    let run = Run { directory: options.record.as_deref(), again: options.again, also, turns };
    let outcome = measure::run(&run, gpu, target, &wanted, &mut |p| progress.say(said(p)))?;
    drop(progress);
    outcome.notices.iter().for_each(|n| notice(n));
    outcome.files.iter().for_each(|path| notice(&format!("recorded in {}", path.display())));
    if options.output.json {
        print_json(&outcome.points)?;
    } else {
        print(&table(&outcome.points))?;
    }
    let right = |p: &Point| p.status == Status::Correct;
    if outcome.points.iter().all(right) { Ok(()) } else { Err(Failure::Wrong) }
}

impl Options {
    /// Refuses options that what is asked for has no use for.
    fn check(&self) -> Result<(), Diagnosis> {
        if !self.lengths.is_empty() && !matches!(self.sweep, Some(Sweep::Short)) {
            return Err(Diagnosis::new("--lengths has a meaning for short products alone")
                .because("others are as long as --bytes says")
                .instead("add --sweep short, or leave it out"));
        }
        let Some(sweep) = self.sweep else { return Ok(()) };
        if !self.ops.is_empty() && !sweep.takes_products() {
            return Err(Diagnosis::new("--ops has no meaning for this sweep")
                .because("tiles, reductions and options are about the kernels of tsmttsm alone")
                .instead("leave it out, or sweep shapes, strides or short"));
        }
        if !self.widths.is_empty() && matches!(sweep, Sweep::Shapes) {
            return Err(Diagnosis::new("--widths has no meaning for a sweep over shapes")
                .because("widths are products with M = N")
                .instead("leave out --widths, or leave out --sweep"));
        }
        Ok(())
    }

    /// The points that are wanted, in the order in which they are measured: narrow ones of every kind come first, so
    /// that a run that is cut has something of each.
    fn wanted(&self, target: &Target) -> Result<Vec<Wanted>, Diagnosis> {
        let or = |usual: &[DType]| if self.dtypes.is_empty() { usual.to_vec() } else { self.dtypes.clone() };
        let mut wanted = Vec::new();
        if let Some(sweep) = self.sweep.filter(|sweep| !sweep.takes_products()) {
            for dtype in or(&[DType::F64]) {
                wanted.extend(sweep::wanted(sweep.figure(), dtype, &self.widths, self.bytes, target)?);
            }
            return Ok(wanted);
        }
        let operations = if self.ops.is_empty() { &Operation::ALL[..] } else { &self.ops };
        let dtypes = or(&DTYPES);
        if let Some(sweep) = self.sweep {
            for operation in operations {
                for dtype in &dtypes {
                    let points = chosen::wanted(
                        sweep.figure(),
                        *operation,
                        *dtype,
                        &self.widths,
                        &self.lengths,
                        self.bytes,
                    );
                    wanted.extend(points);
                }
            }
            return Ok(wanted);
        }
        for width in if self.widths.is_empty() { &WIDTHS[..] } else { &self.widths } {
            for operation in operations {
                wanted.extend(
                    dtypes.iter().map(|dtype| Wanted::at_width(*operation, *dtype, *width, self.bytes)),
                );
            }
        }
        Ok(wanted)
    }
}

impl Sweep {
    fn figure(self) -> Figure {
        match self {
            Sweep::Shapes => Figure::Shapes,
            Sweep::Strides => Figure::Strides,
            Sweep::Short => Figure::Short,
            Sweep::Split => Figure::Split,
            Sweep::Tiles => Figure::Tiles,
            Sweep::Reductions => Figure::Reductions,
            Sweep::Options => Figure::Options,
        }
    }

    /// Whether it is about both products, and not about the kernels of `tsmttsm` alone.
    fn takes_products(self) -> bool {
        Figure::CHOSEN.contains(&self.figure())
    }
}

/// Writes the page of one GPU.
fn page(file: &Path, directory: &Path, gpu: Option<&str>) -> Outcome {
    let mut records: Vec<Record<Point>> = record::read(directory, NAME)?;
    let mut gpus: Vec<String> = records.iter().map(|r| r.gpu.clone()).collect();
    gpus.sort();
    gpus.dedup();
    let shown = match (gpu, &gpus[..]) {
        (Some(wanted), all) if all.iter().any(|g| g == wanted) => wanted.to_string(),
        (None, [one]) => one.clone(),
        (_, []) => {
            return Err(Diagnosis::new(format!("{} has no record of these figures", directory.display()))
                .instead("measure them with `bench tsm --record DIRECTORY` on a machine with a GPU")
                .into());
        }
        (_, several) => {
            return Err(Diagnosis::new("the page shows one GPU")
                .because(format!("{} has records of {}", directory.display(), several.join(", ")))
                .instead("name one of them with --gpu")
                .into());
        }
    };
    records.retain(|r| r.gpu == shown);
    // What was measured for the figure comes last, and counts where both speak.
    records.splice(0..0, tuned::tiles(directory, &shown));
    let bandwidths = bandwidth::recorded(directory, &shown);
    record::replace(file, &page::page(&records, bandwidths.as_ref()))?;
    notice(&format!("written to {}", file.display()));
    Ok(())
}

/// One line of progress.
fn said(progress: &measure::Progress) -> String {
    let point = progress.latest;
    let percent = |share: Option<f64>| share.map_or("-".to_string(), |s| format!("{:.1} %", 100.0 * s));
    let at = |pace: Pace| {
        let (ours, cublas) = (percent(point.fraction(pace)), percent(point.fraction_of_cublas(pace)));
        format!("{} {ours} of the roofline, cuBLAS {cublas}", pace.name())
    };
    format!(
        "[{}/{}] {} {} {}: {}; {}; {:.0} s left",
        progress.done,
        progress.of,
        point.key.operation,
        point.key.dtype,
        point.width(),
        at(Pace::Rested),
        at(Pace::Sustained),
        progress.left
    )
}

/// Both paces side by side, the rested one first.
fn table(points: &[Point]) -> String {
    let placed = points.iter().any(|p| p.key.placement.is_some());
    let short = points.iter().any(|p| p.empty_launch.is_some());
    let cached = points.iter().any(|p| p.cached.is_some());
    let zeros = points.iter().any(|p| p.zeros.is_some());
    let mut columns = vec![words("product"), words("type"), words("size")];
    columns.extend(placed.then(|| words("lies")));
    for pace in Pace::ALL {
        columns.extend([
            numbers(pace.name()),
            numbers("rate"),
            numbers("of the roofline"),
            numbers("cuBLAS"),
            numbers("times cuBLAS"),
        ]);
        columns.extend(short.then(|| numbers("of two launches and the bytes")));
        columns.extend(cached.then(|| numbers("with memory in the cache")));
        columns.extend(zeros.then(|| numbers("on zeros")));
    }
    columns.extend([words("chosen by"), words("parameters")]);
    let dash = || "-".to_string();
    let percent = |share: Option<f64>| share.map_or_else(dash, |s| format!("{:.1} %", 100.0 * s));
    let row = |p: &Point| {
        let Size { m, n, k } = p.key.size;
        let mut cells = vec![p.key.operation.to_string(), p.key.dtype.clone(), format!("{m}x{n}x{k}")];
        cells.extend(placed.then(|| p.key.placement.map_or_else(dash, |placement| placement.to_string())));
        for pace in Pace::ALL {
            cells.extend([
                p.at(pace).map_or_else(dash, |s| seconds(s.median)),
                p.flops_per_second(pace).map_or_else(dash, flops_per_second),
                percent(p.fraction(pace)),
                percent(p.fraction_of_cublas(pace)),
                p.times_cublas(pace).map_or_else(dash, |t| format!("{t:.2}")),
            ]);
            cells.extend(short.then(|| percent(p.fraction_of_short(pace))));
            cells.extend(cached.then(|| percent(p.fraction_of_cached(pace))));
            cells.extend(zeros.then(|| percent(p.fraction_of_zeros(pace))));
        }
        cells.push(p.chosen_by.name().to_string());
        cells.push(p.message.as_ref().map_or_else(|| p.parameters.to_string(), |m| format!("FAILED: {m}")));
        cells
    };
    let text = render(&columns, &points.iter().map(row).collect::<Vec<_>>());
    text + &means(points)
}

/// A line for each geometric mean that there is.
fn means(points: &[Point]) -> String {
    let mut text = String::new();
    let mut say = |what: &str, of: fn(&Point, Pace) -> Option<f64>| {
        for pace in Pace::ALL {
            if let Some(mean) = mean(points.iter().filter_map(|p| of(p, pace))) {
                text += &format!("\n{mean:.3} {what}, {}, geometric mean of all", pace.name());
            }
        }
    };
    say("of the roofline", Point::fraction);
    say("of the roofline by cuBLAS", Point::fraction_of_cublas);
    say("times cuBLAS", Point::times_cublas);
    say("of two empty launches and the bytes", Point::fraction_of_short);
    say("of the roofline if device memory cost nothing", Point::fraction_of_cached);
    say("of the roofline on zeros", Point::fraction_of_zeros);
    text
}

#[cfg(test)]
mod tests {
    use super::{means, table};
    use crate::bench::tsm::Point;
    use crate::bench::tsm::tests::point;

    #[test]
    fn the_table_shows_both_paces_and_the_mean_of_each() {
        let points = [point(8, 0.5), point(16, 0.5)];
        let text = table(&points);
        for cell in ["rested", "sustained", "400 ms", "500 ms", "62.5 %", "50.0 %", "2.25", "2.00"] {
            assert!(text.contains(cell), "{cell} in\n{text}");
        }
        assert!(!text.contains("in the cache"), "nobody asked for it");
        let cached = [Point { cached: points[0].rested, cached_rested: points[0].rested, ..point(8, 0.5) }];
        assert!(
            table(&cached).contains("with memory in the cache")
                && table(&cached).contains("0.625 of the roofline if")
        );
        let zeros = [Point { zeros: points[0].rested, zeros_rested: points[0].rested, ..point(8, 0.5) }];
        assert!(
            table(&zeros).contains(" on zeros") && table(&zeros).contains("0.625 of the roofline on zeros")
        );
        let means = means(&points);
        assert!(
            means.contains("0.625 of the roofline, rested") && means.contains("2.000 times cuBLAS, sust")
        );
        let old = [Point { rested: None, cublas_rested: None, ..point(8, 0.5) }];
        assert_eq!(super::means(&old).lines().filter(|l| l.contains("sustained")).count(), 3);
        assert!(!super::means(&old).contains("rested, geometric"), "what was not measured has no mean");
    }
}
