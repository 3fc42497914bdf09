//! `bench fc`: the figures of fully connected layers, beside cuBLAS.

use std::path::{Path, PathBuf};

use clap::Args;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_cuda::TurnOptions;

use super::known;
use super::options::{DeviceOptions, OutputOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::bench::fc::{FAMILY, LAYERS, NAME, Point, ROWS, csv, measure, page, problem};
use crate::bench::record::{self, Record};
use crate::bench::tsm::mean;
use crate::problem::{Precision, Problem};
use crate::report::number::seconds;
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::tune::record::Status;

/// Options of `bench fc`.
#[derive(Args, Debug)]
pub struct Options {
    /// Rows of x, separated by commas [default: 36 numbers from 1 to 1024].
    #[arg(long, value_name = "ROWS", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(1..=1024))]
    rows: Vec<i64>,
    /// Layers as INPUTSxOUTPUTS, the rows and columns of W, separated by commas [default: 9216x4096,4096x4096,4096x1000].
    #[arg(long, value_name = "LAYERS", value_delimiter = ',', value_parser = parse_layer)]
    layers: Vec<(i64, i64)>,
    /// Element types f32 and bf16, separated by commas.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = parse_dtype, default_value = "f32")]
    dtypes: Vec<DType>,
    /// Record every point in this directory, as JSON and as CSV.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
    /// Measure each product a third as long: for a look at many.
    #[arg(long)]
    quick: bool,
    /// Write the figures as a self-contained page, from what is on record; nothing is measured, and no GPU is needed.
    #[arg(long, value_name = "FILE", requires = "from", conflicts_with = "record")]
    html: Option<PathBuf>,
    /// The directory with the records that the page shows.
    #[arg(long, value_name = "DIRECTORY", requires = "html")]
    from: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

fn parse_layer(text: &str) -> Result<(i64, i64), Diagnosis> {
    let extents: Vec<i64> = text.split('x').filter_map(|e| e.trim().parse().ok()).collect();
    match extents[..] {
        [inputs, outputs] if (1..=1 << 20).contains(&inputs) && (1..=1 << 20).contains(&outputs) => {
            Ok((inputs, outputs))
        }
        _ => Err(Diagnosis::new(format!("`{text}` is no layer"))
            .instead("write inputs and outputs, as in 4096x1000")),
    }
}

fn parse_dtype(text: &str) -> Result<DType, Diagnosis> {
    text.parse()
        .ok()
        .filter(|dtype| matches!(dtype, DType::F32 | DType::Bf16))
        .ok_or_else(|| Diagnosis::new(format!("there are no layers of `{text}`")).instead("use f32 or bf16"))
}

/// Runs `bench fc`.
pub fn run(options: &Options) -> Outcome {
    if let (Some(file), Some(directory)) = (&options.html, &options.from) {
        return write_page(file, directory);
    }
    let instead = "use `tune MxNxK --kernel tiled --device sim` for what the model says";
    let (gpu, target) = &options.device.gpu("to time layers on", instead)?;
    let problems = options.problems();
    let wisdom = known::wisdom(FAMILY);
    let turns = if options.quick { TurnOptions::quick() } else { TurnOptions::default() };
    let progress = Progress::waiting("kernels");
    let mut log = options.record.as_ref().map(|d| Log::open(d, Record::new(gpu, Vec::new()))).transpose()?;
    let mut done = 0;
    let points = measure::run(gpu, target, &wisdom, &problems, &turns, &mut |point| {
        done += 1;
        progress.say(format!("[{done}/{}] {}", problems.len(), said(point)));
        log.as_mut().map_or(Ok(()), |log| log.add(point.clone()))
    })?;
    drop(progress);
    log.iter().flat_map(|log| &log.files).for_each(|path| notice(&format!("recorded in {}", path.display())));
    if options.output.json {
        print_json(&points)?;
    } else {
        print(&table(&points))?;
    }
    if points.iter().all(|p| p.status == Status::Correct) { Ok(()) } else { Err(Failure::Wrong) }
}

impl Options {
    /// The products that are wanted, layer by layer.
    fn problems(&self) -> Vec<Problem> {
        let layers = if self.layers.is_empty() { &LAYERS[..] } else { &self.layers };
        let rows = if self.rows.is_empty() { &ROWS[..] } else { &self.rows };
        let mut problems = Vec::new();
        for dtype in &self.dtypes {
            for layer in layers {
                problems.extend(rows.iter().map(|rows| problem(Precision::Of(*dtype), *layer, *rows)));
            }
        }
        problems
    }
}

/// The record of today, to which points are added one by one.
struct Log<'a> {
    directory: &'a Path,
    today: Record<Point>,
    files: Vec<PathBuf>,
}

impl Log<'_> {
    /// Goes on with what a directory has of this day and GPU.
    fn open(directory: &Path, mut today: Record<Point>) -> Result<Log<'_>, Diagnosis> {
        let known: Vec<Record<Point>> = record::read(directory, NAME)?;
        if let Some(known) = known.into_iter().find(|r| r.gpu == today.gpu && r.date == today.date) {
            today.results = known.results;
        }
        Ok(Log { directory, today, files: Vec::new() })
    }

    /// Adds a point, or replaces it, and writes the files.
    fn add(&mut self, point: Point) -> Result<(), Diagnosis> {
        self.today.results.retain(|known| known.key != point.key);
        self.today.results.push(point);
        let table = self.today.path(self.directory, NAME, "csv");
        record::replace(&table, &csv::table(&self.today))?;
        self.files = vec![self.today.write(self.directory, NAME)?, table];
        Ok(())
    }
}

fn write_page(file: &Path, directory: &Path) -> Outcome {
    let records: Vec<Record<Point>> = record::read(directory, NAME)?;
    let gpus: Vec<&str> = records.iter().map(|r| r.gpu.as_str()).collect();
    if records.is_empty() || gpus.iter().any(|gpu| *gpu != gpus[0]) {
        return Err(Diagnosis::new("the page shows one GPU")
            .because(format!("{} has records of {} GPUs", directory.display(), gpus.len()))
            .instead("measure with `bench fc --record DIRECTORY`, or keep records of each GPU in a directory of its own")
            .into());
    }
    record::replace(file, &page::page(&records))?;
    notice(&format!("written to {}", file.display()));
    Ok(())
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(dash, |s| format!("{:.1} %", 100.0 * s))
}

fn dash() -> String {
    "-".to_string()
}

fn said(point: &Point) -> String {
    let key = &point.key;
    format!(
        "{} {}x{}x{}: {} of the roofline, cuBLAS {}",
        key.dtype,
        key.m,
        key.n,
        key.k,
        percent(point.fraction()),
        percent(point.fraction_of_cublas())
    )
}

fn table(points: &[Point]) -> String {
    let columns = [
        words("type"),
        words("size"),
        numbers("time"),
        numbers("of the roofline"),
        numbers("cuBLAS"),
        numbers("of the roofline"),
        numbers("times cuBLAS"),
        words("grid"),
        numbers("occupancy"),
        words("cuBLAS's"),
        numbers("occupancy"),
        words("chosen by"),
        words("parameters"),
    ];
    let row = |p: &Point| {
        let (ours, cublas) = (csv::main(&p.launches), p.cublas_launches.as_deref().and_then(csv::main));
        let grid = |grid: [u64; 3]| grid.map(|e| e.to_string()).join("x");
        vec![
            p.key.dtype.clone(),
            format!("{}x{}x{}", p.key.m, p.key.n, p.key.k),
            p.seconds.map_or_else(dash, |s| seconds(s.median)),
            percent(p.fraction()),
            p.cublas.map_or_else(dash, |s| seconds(s.median)),
            percent(p.fraction_of_cublas()),
            p.times_cublas().map_or_else(dash, |t| format!("{t:.2}")),
            ours.map_or_else(dash, |l| grid(l.grid)),
            percent(ours.and_then(|l| l.occupancy)),
            cublas.map_or_else(dash, |l| grid(l.grid)),
            percent(cublas.and_then(|l| l.occupancy)),
            p.chosen_by.name().to_string(),
            p.message.as_ref().map_or_else(
                || if p.parameters.is_empty() { p.kernel.clone() } else { p.parameters.to_string() },
                |m| format!("FAILED: {m}"),
            ),
        ]
    };
    let mut text = render(&columns, &points.iter().map(row).collect::<Vec<_>>());
    if let Some(mean) = mean(points.iter().filter_map(Point::fraction)) {
        text += &format!("\n{mean:.3} of the roofline, geometric mean of all");
    }
    if let Some(mean) = mean(points.iter().filter_map(Point::times_cublas)) {
        text += &format!("\n{mean:.3} times cuBLAS, geometric mean of all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{parse_dtype, parse_layer};

    #[test]
    fn layers_are_inputs_and_outputs() {
        assert_eq!(parse_layer("9216x4096"), Ok((9216, 4096)));
        for wrong in ["4096", "4096x", "0x4096", "1x2x3", "ax4096"] {
            assert!(parse_layer(wrong).unwrap_err().to_string().contains("as in 4096x1000"), "{wrong}");
        }
        assert!(parse_dtype("f64").is_err() && parse_dtype("bf16").is_ok());
    }
}
