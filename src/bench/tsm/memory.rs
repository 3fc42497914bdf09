//! The part of the page about the memory of the GPU: what rooflines are made of.

use crate::bench::bandwidth::{Bandwidth, Data, IN_FLIGHT, MIXES, Question, best};
use crate::bench::record::Record;
use crate::report::page::{Size, figure, side_by_side, table};
use crate::report::svg::{Axis, Chart, Line};

/// Reads by loads in flight and occupancy, and the mixes of reads and writes.
pub fn section(record: &Record<Bandwidth>) -> String {
    let memory = &record.results;
    let reads: Vec<&Bandwidth> = memory.iter().filter(|b| b.question == Question::Parallelism).collect();
    // The single block is a hundred times slower than all others, and stands in the table alone.
    let line = |in_flight: i64| {
        let of = reads.iter().filter(|b| b.in_flight == in_flight && b.occupancy.is_some());
        let points = of.map(|b| (b.warps_per_sm as f64, b.bytes_per_second / 1e9)).collect();
        Line { name: format!("{in_flight} in flight"), points }
    };
    let lines: Vec<Line> = [1, 4, 16].map(line).into_iter().filter(|l| !l.points.is_empty()).collect();
    if lines.is_empty() {
        return String::new();
    }
    let most = lines.iter().flat_map(|l| &l.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let widest = lines.iter().flat_map(|l| &l.points).map(|(x, _)| *x).fold(4.0, f64::max);
    let doubled = std::iter::successors(Some(4), |w| Some(2 * w)).take_while(|w| f64::from(*w) <= widest);
    let x = Axis {
        label: "warps of a multiprocessor".to_string(),
        range: (4.0, widest),
        logarithmic: true,
        ticks: doubled.map(|w| (f64::from(w), w.to_string())).collect(),
    };
    let thousands = (0..=(most / 1000.0) as i64).map(|n| 1000 * n);
    let y = Axis {
        label: "GB/s".to_string(),
        range: (0.0, 1.05 * most),
        logarithmic: false,
        ticks: thousands.map(|v| (v as f64, v.to_string())).collect(),
    };
    let title = "Bandwidth of reads, GB/s, by loads in flight in each thread";
    let data = match memory.first().map(|b| b.data).unwrap_or_default() {
        Data::Zeros => "zeros",
        Data::Random => "random numbers",
    };
    let note = format!("{}, driver {}, {}, of {data}", record.gpu, record.release(), record.date);
    let names: Vec<&str> = lines.iter().map(|l| l.name.as_str()).collect();
    let svg = Chart { label: title.to_string(), x, y, lines: lines.clone() }.svg();
    let occupancies = reads.iter().filter(|b| b.in_flight == IN_FLIGHT[0]);
    let row = |first: &&Bandwidth| {
        let mut cells =
            vec![first.occupancy.map_or("1 block".to_string(), |o| format!("{:.2} %", 100.0 * o))];
        cells.extend(IN_FLIGHT.map(|n| {
            let same = reads.iter().find(|b| b.in_flight == n && b.blocks == first.blocks);
            same.map_or("–".to_string(), |b| match b.warps_per_sm == first.warps_per_sm {
                true => gigabytes(b),
                false => format!("{} ({} warps)", gigabytes(b), b.warps_per_sm),
            })
        }));
        cells
    };
    let rows: Vec<Vec<String>> = occupancies.map(row).collect();
    let mixes = MIXES.into_iter().filter_map(|mix| Some((mix, best(memory, mix)?)));
    let mix_row =
        |((reads, writes), b): ((i64, i64), &Bandwidth)| vec![format!("{reads}:{writes}"), gigabytes(b)];
    let headings = ["occupancy", "1", "2", "4", "8", "16"];
    format!(
        "<h2>Bandwidth of memory</h2>\n{}<p>Reads, GB/s, by occupancy and by loads in flight:</p>\n{}<p>The best of each mix of reads and writes:</p>\n{}",
        side_by_side(&[figure(title, &note, &names, &svg)], Size::Large),
        table(&headings, &rows),
        table(&["reads:writes", "GB/s"], &mixes.map(mix_row).collect::<Vec<_>>())
    )
}

fn gigabytes(bandwidth: &Bandwidth) -> String {
    format!("{:.0}", bandwidth.bytes_per_second / 1e9)
}
