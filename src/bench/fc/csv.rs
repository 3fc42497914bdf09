//! A record as a table of comma-separated values, a line for each point.

use super::{Launch, Point};
use crate::bench::record::Record;
use crate::bench::tsm::Seconds;
use crate::bench::tsm::csv::{quoted, word};

/// The headings. What begins with `cublas_` is cuBLAS's; of a call of several launches the one with the most threads counts, and
/// `launches` says how many there are.
const HEADINGS: &str = "dtype,m,n,k,status,seconds,first_quartile,third_quartile,rested_seconds,fraction,\
cublas_seconds,cublas_first_quartile,cublas_third_quartile,cublas_rested_seconds,cublas_fraction,times_cublas,\
rested_times_cublas,memory_seconds,arithmetic_seconds,copies,chosen_by,kernel,parameters,launches,grid,blocks,threads,\
registers,shared_bytes,blocks_per_sm,occupancy,cublas_kernel,cublas_launches,cublas_grid,cublas_blocks,cublas_threads,\
cublas_registers,cublas_shared_bytes,cublas_blocks_per_sm,cublas_occupancy,gpu,driver,date";

/// The table, headings first.
pub fn table(record: &Record<Point>) -> String {
    let mut lines = vec![HEADINGS.to_string()];
    lines.extend(record.results.iter().map(|point| {
        let of_gpu = [record.gpu.clone(), record.release(), record.date.clone()];
        let cells: Vec<String> = cells(point).into_iter().chain(of_gpu).map(|cell| quoted(&cell)).collect();
        cells.join(",")
    }));
    lines.join("\n") + "\n"
}

fn cells(point: &Point) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    let share = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
    let times = |t: Option<Seconds>| {
        [t.map(|t| t.median), t.map(|t| t.quartiles.0), t.map(|t| t.quartiles.1)].map(number)
    };
    let key = &point.key;
    let mut cells = vec![key.dtype.clone()];
    cells.extend([key.m, key.n, key.k].map(|extent| extent.to_string()));
    cells.push(word(&point.status));
    cells.extend(times(point.seconds));
    cells.extend([number(point.rested.map(|t| t.median)), share(point.fraction())]);
    cells.extend(times(point.cublas));
    cells.extend([
        number(point.cublas_rested.map(|t| t.median)),
        share(point.fraction_of_cublas()),
        share(point.times_cublas()),
        share(point.rested_times_cublas()),
        number(point.memory_seconds),
        number(point.arithmetic_seconds),
        point.copies.to_string(),
        point.chosen_by.name().to_string(),
        point.kernel.clone(),
        point.parameters.to_string(),
    ]);
    cells.push(point.launches.len().to_string());
    cells.extend(of_launch(main(&point.launches)));
    let cublas = point.cublas_launches.as_deref();
    let largest = cublas.and_then(main);
    cells.push(largest.map_or(String::new(), |launch| launch.kernel.clone()));
    cells.push(cublas.map_or(String::new(), |launches| launches.len().to_string()));
    cells.extend(of_launch(largest));
    cells
}

/// The launch with the most threads, the first of several.
pub fn main(launches: &[Launch]) -> Option<&Launch> {
    let threads = |launch: &Launch| launch.blocks() * u64::from(launch.block.iter().product::<u32>());
    launches.iter().rev().max_by_key(|launch| threads(launch))
}

fn of_launch(launch: Option<&Launch>) -> [String; 7] {
    let Some(launch) = launch else { return Default::default() };
    let optional = |value: Option<u32>| value.map_or(String::new(), |v| v.to_string());
    [
        launch.grid.map(|extent| extent.to_string()).join("x"),
        launch.blocks().to_string(),
        launch.block.iter().product::<u32>().to_string(),
        optional(launch.registers),
        launch.shared_bytes.to_string(),
        optional(launch.blocks_per_sm),
        launch.occupancy.map_or(String::new(), |o| format!("{o:.4}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::bench::fc::tests::{point, record};

    #[test]
    fn a_line_has_as_many_cells_as_there_are_headings_and_its_numbers_come_back() {
        let record = record(vec![point(1, 2e-5, Some(4e-5)), point(16, 4e-5, None)]);
        let text = table(&record);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|l| l.len() == lines[0].len()), "{text}");
        let cell = |line: usize, heading: &str| {
            lines[line][lines[0].iter().position(|h| *h == heading).expect(heading)]
        };
        assert_eq!((cell(1, "m"), cell(1, "seconds"), cell(1, "times_cublas")), ("1", "0.00002", "2.0000"));
        assert_eq!((cell(1, "grid"), cell(1, "blocks"), cell(1, "launches")), ("32x1x4", "128", "2"));
        assert_eq!((cell(1, "cublas_kernel"), cell(1, "cublas_blocks")), ("gemv", "64"));
        assert_eq!(
            (cell(2, "cublas_seconds"), cell(2, "cublas_kernel"), cell(2, "cublas_grid")),
            ("", "", "")
        );
        assert_eq!((cell(2, "gpu"), cell(2, "chosen_by")), ("Some GPU", "wisdom"));
    }
}
