//! A record as a table of comma-separated values, a line for each point. What is rested says so; the rest is sustained.

use super::{Pace, Placement, Point, Seconds};
use crate::bench::record::Record;

/// The headings.
const HEADINGS: &str = "figure,operation,dtype,m,n,k,varied,status,seconds,first_quartile,third_quartile,samples,\
tflops,fraction,cublas_seconds,cublas_first_quartile,cublas_third_quartile,cublas_fraction,times_cublas,\
ceiling_seconds,chosen_by,registers,parameters,text,rested_seconds,rested_first_quartile,rested_third_quartile,\
rested_tflops,rested_fraction,cublas_rested_seconds,cublas_rested_first_quartile,cublas_rested_third_quartile,\
cublas_rested_fraction,rested_times_cublas,row_strides,offsets,bytes,copies,empty_launch_seconds,fraction_of_short,\
rested_fraction_of_short,cached_seconds,cached_rested_seconds,zeros_seconds,zeros_rested_seconds,gpu,driver,date";

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
    let key = &point.key;
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    let share = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
    let times = |t: Option<Seconds>| {
        [t.map(|t| t.median), t.map(|t| t.quartiles.0), t.map(|t| t.quartiles.1)].map(number)
    };
    let mut cells = vec![word(&key.figure), key.operation.to_string(), key.dtype.clone()];
    cells.extend([key.size.m, key.size.n, key.size.k].map(|extent| extent.to_string()));
    cells.extend([key.varied.to_string(), word(&point.status)]);
    cells.extend(times(point.seconds));
    cells.push(point.seconds.map_or(String::new(), |t| t.samples.to_string()));
    let rates =
        |pace: Pace| [point.flops_per_second(pace).map(|f| f / 1e12), point.fraction(pace)].map(share);
    let beside = |pace: Pace| [point.fraction_of_cublas(pace), point.times_cublas(pace)].map(share);
    cells.extend(rates(Pace::Sustained));
    cells.extend(times(point.cublas));
    cells.extend(beside(Pace::Sustained));
    cells.push(number(point.ceiling.map(|c| c.seconds)));
    cells.push(point.chosen_by.name().to_string());
    cells.push(point.registers.map_or(String::new(), |r| r.to_string()));
    cells.extend([point.parameters.to_string(), point.text.clone()]);
    cells.extend(times(point.rested));
    cells.extend(rates(Pace::Rested));
    cells.extend(times(point.cublas_rested));
    cells.extend(beside(Pace::Rested));
    let list = |of: fn(&Placement) -> [i64; 3]| {
        key.placement.as_ref().map_or(String::new(), |p| of(p).map(|n| n.to_string()).join(" "))
    };
    cells.extend([list(|p| p.row_strides), list(|p| p.offsets)]);
    cells.push(number(point.ceiling.and_then(|c| c.bytes)));
    cells.push(point.copies.map_or(String::new(), |c| c.to_string()));
    cells.push(number(point.empty_launch.map(|t| t.median)));
    cells.extend(Pace::ALL.into_iter().rev().map(|pace| share(point.fraction_of_short(pace))));
    cells.extend(
        [point.cached, point.cached_rested, point.zeros, point.zeros_rested]
            .map(|t| number(t.map(|t| t.median))),
    );
    cells
}

/// The word that stands for a value in JSON too.
pub(in crate::bench) fn word(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_string()
}

/// A cell, in quotation marks where it needs them (RFC 4180).
pub(in crate::bench) fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{quoted, table};
    use crate::bench::record::Record;
    use crate::bench::tsm::tests::record;
    use crate::bench::tsm::{Pace, Placement, Point};

    #[test]
    fn a_line_has_as_many_cells_as_there_are_headings_and_its_numbers_come_back() {
        let mut record = record();
        let placement = Placement { row_strides: [9, 9, 8], offsets: [0; 3] };
        record.results[0].key.placement = Some(placement);
        record.results[0].cached_rested = record.results[0].seconds;
        record.results[1].zeros_rested = record.results[1].rested;
        let text = table(&record);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|l| l.len() == lines[0].len()), "{text}");
        let cell = |line: usize, heading: &str| {
            lines[line][lines[0].iter().position(|h| *h == heading).expect(heading)]
        };
        for (at, point) in record.results.iter().enumerate() {
            let number = |heading| cell(at + 1, heading).parse::<f64>().unwrap();
            assert_eq!(Some(number("seconds")), point.seconds.map(|s| s.median));
            assert_eq!(Some(number("third_quartile")), point.seconds.map(|s| s.quartiles.1));
            assert_eq!(Some(number("cublas_seconds")), point.cublas.map(|s| s.median));
            assert_eq!(Some(number("fraction")), point.fraction(Pace::Sustained));
            assert_eq!(Some(number("rested_fraction")), point.fraction(Pace::Rested));
            assert_eq!(Some(number("rested_times_cublas")), point.times_cublas(Pace::Rested));
            assert_eq!(Some(number("cublas_rested_seconds")), point.cublas_rested.map(|s| s.median));
            assert_eq!(number("k"), point.key.size.k as f64);
        }
        assert_eq!((cell(1, "row_strides"), cell(1, "copies"), cell(1, "offsets")), ("9 9 8", "1", "0 0 0"));
        assert_eq!(cell(1, "cached_rested_seconds"), cell(1, "seconds"));
        assert_eq!(cell(2, "zeros_rested_seconds"), cell(2, "rested_seconds"));
        assert_eq!((cell(1, "cached_seconds"), cell(2, "cached_rested_seconds")), ("", ""));
        assert_eq!(cell(2, "row_strides"), "", "what is dense has none");
        assert_eq!(cell(1, "parameters"), "leapfrog=true tm=4 unit=fma");
        assert_eq!((cell(1, "status"), cell(1, "chosen_by")), ("correct", "neighbour"));
        assert_eq!((cell(2, "gpu"), cell(2, "driver")), ("Some GPU", "580.159.04"));
    }

    #[test]
    fn json_comes_back_as_it_was_written() {
        let mut record = record();
        let placement = Placement { row_strides: [8; 3], offsets: [1, 2, 3] };
        record.results[1].key.placement = Some(placement);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record<Point>>(&text).unwrap(), record);
        assert!(text.contains(r#""figure":"widths","operation":"tsmttsm","dtype":"f64","m":8"#), "{text}");
    }

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
