//! `bench bandwidth`: how fast a GPU reads and writes its memory.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;

use super::options::{DeviceOptions, OutputOptions};
use super::output::{Outcome, notice, print, print_json};
use crate::bench::bandwidth::{self, Bandwidth, IN_FLIGHT, MIXES, NAME, Question};
use crate::bench::record;
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};

/// Options of `bench bandwidth`.
#[derive(Args, Debug)]
pub struct Options {
    /// Bytes of each of the two buffers, as in 4G or 512M, as far as there is memory for them.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4G")]
    bytes: usize,
    /// Write the results into this directory, with GPU, driver, CUDA version and date.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `bench bandwidth`.
pub fn run(options: &Options) -> Outcome {
    let (gpu, target) =
        &options.device.gpu("whose memory could be timed", "run this on a machine with one")?;
    let progress = Progress::waiting("NVRTC");
    let results = bandwidth::run(gpu, target, options.bytes, |p| {
        progress.say(format!("{} of {}: {}", p.done, p.of, gigabytes(p.latest.bytes_per_second)));
    })?;
    drop(progress);
    if let Some(directory) = &options.record {
        let path = record::write(directory, NAME, gpu, &results)?;
        notice(&format!("recorded in {}", path.display()));
    }
    if options.output.json { print_json(&results) } else { print(&text(&results)) }
}

/// Reads a number of bytes: `4G`, `512M`, `64K` or a plain number.
///
/// # Errors
/// Anything else, and nothing at all.
pub fn parse_bytes(text: &str) -> Result<usize, Diagnosis> {
    let (digits, shift) = match text.trim().to_ascii_uppercase() {
        t if t.ends_with('G') => (t.trim_end_matches('G').to_string(), 30),
        t if t.ends_with('M') => (t.trim_end_matches('M').to_string(), 20),
        t if t.ends_with('K') => (t.trim_end_matches('K').to_string(), 10),
        t => (t, 0),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.filter(|b| (1 << 20..=1 << 40).contains(b)).ok_or_else(|| {
        Diagnosis::new(format!("`{text}` is no number of bytes from 1M to 1024G")).instead("write 2G or 512M")
    })
}

/// A heading for each number of loads in flight.
const HEADINGS: [&str; IN_FLIGHT.len()] = ["1 load", "2 loads", "4 loads", "8 loads", "16 loads"];

/// The table of reads by loads in flight and occupancy, and below it the mixes.
fn text(results: &[Bandwidth]) -> String {
    let mut columns = vec![words("occupancy"), numbers("warps")];
    columns.extend(HEADINGS.map(numbers));
    let mut rows = Vec::new();
    let table: Vec<&Bandwidth> = results.iter().filter(|r| r.question == Question::Parallelism).collect();
    for row in table.chunks(IN_FLIGHT.len()) {
        let occupancy = match row[0].occupancy {
            None => "1 block".to_string(),
            Some(share) => format!("{:.2} %", 100.0 * share),
        };
        let mut cells = vec![occupancy, row[0].warps_per_sm.to_string()];
        // Where registers allow fewer warps, the number says so.
        cells.extend(row.iter().map(|r| match r.warps_per_sm == row[0].warps_per_sm {
            true => format!("{:.0}", r.bytes_per_second / 1e9),
            false => format!("{:.0} ({})", r.bytes_per_second / 1e9, r.warps_per_sm),
        }));
        rows.push(cells);
    }
    let mut mixes = Vec::new();
    for (reads, writes) in MIXES {
        if let Some(best) = bandwidth::best(results, (reads, writes)) {
            mixes.push(vec![
                format!("{reads}:{writes}"),
                gigabytes(best.bytes_per_second),
                format!("{} %", spread(best)),
                best.element_bytes.to_string(),
                best.in_flight.to_string(),
                best.blocks.to_string(),
            ]);
        }
    }
    let mix_columns = [
        words("reads:writes"),
        numbers("best"),
        numbers("quartiles"),
        numbers("bytes an access"),
        numbers("in flight"),
        numbers("blocks"),
    ];
    format!(
        "Reads, GB/s, by loads of 8 bytes that each thread has in flight; in parentheses the warps of a multiprocessor where registers allow fewer\n\n{}\n\n{}",
        render(&columns, &rows),
        render(&mix_columns, &mixes)
    )
}

/// The quartiles about the median, in per cent.
fn spread(result: &Bandwidth) -> String {
    let percent = |seconds: f64| 100.0 * (seconds / result.seconds - 1.0);
    format!("{:+.1} {:+.1}", percent(result.quartiles.0), percent(result.quartiles.1))
}

fn gigabytes(bytes_per_second: f64) -> String {
    format!("{:.0} GB/s", bytes_per_second / 1e9)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_are_read_with_their_unit() {
        assert_eq!(parse_bytes("2G"), Ok(2 << 30));
        assert_eq!(parse_bytes("512m"), Ok(512 << 20));
        assert_eq!(parse_bytes("2000000"), Ok(2_000_000));
        for wrong in ["", "G", "2T", "-1G", "1K", "99999999999999G"] {
            assert!(parse_bytes(wrong).unwrap_err().to_string().contains("write 2G"), "{wrong}");
        }
    }
}
