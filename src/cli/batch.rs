//! `predict --batch`: a prediction for each row of a table.

use std::path::Path;

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;

use super::options::StorageOptions;
use super::predict::{Asked, named};
use crate::csv::{Row, Table};
use crate::file::unreadable;
use crate::kernels;
use crate::kernels::family::{Choice, parse_parameter};
use crate::problem::Shape;
use crate::target_file;
use crate::tune::prediction::Prediction;

/// The columns that are no parameters. Those that every table has come first.
const COLUMNS: [&str; 7] = ["gpu", "m", "n", "k", "dtype", "family", "layout"];
/// How many every table has.
const NEEDED: usize = 5;

/// The predictions for the rows of a file, in their order.
///
/// # Errors
/// A file that cannot be read, a column that means nothing, and the first row that is wrong: with file, line and column.
pub fn predictions(path: &Path) -> Result<Vec<Prediction>, Diagnosis> {
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    of_text(&text).map_err(|d| d.at(path.display().to_string()))
}

fn of_text(text: &str) -> Result<Vec<Prediction>, Diagnosis> {
    let table = Table::parse(text)?;
    let has = |column: &str| table.headings().iter().any(|h| h == column);
    if let Some(lacking) = COLUMNS[..NEEDED].iter().find(|column| !has(column)) {
        return Err(Diagnosis::new(format!("there is no column `{lacking}`"))
            .instead(format!("begin with a row that names {} and parameters", COLUMNS.join(", "))));
    }
    if let Some(unknown) =
        table.headings().iter().find(|h| !COLUMNS.contains(&h.as_str()) && !is_parameter(h))
    {
        return Err(Diagnosis::new(format!(
            "column {unknown}: it is neither one of {} nor a parameter of a family",
            COLUMNS.join(", ")
        ))
        .instead("leave it out, or correct its name"));
    }
    table.rows().map(|row| prediction(&row)).collect()
}

fn is_parameter(name: &str) -> bool {
    kernels::FAMILIES.iter().any(|family| family.parameters.iter().any(|p| p.name == name))
}

fn prediction(row: &Row<'_>) -> Result<Prediction, Diagnosis> {
    let in_column = |column: &'static str| move |d: Diagnosis| row.wrong(column, d);
    let gpu: String = row.parse("gpu")?;
    let gpu = target_file::find(&gpu).map_err(in_column("gpu"))?;
    let extent = |column: &str| match row.parse::<i64>(column) {
        Ok(extent) if extent < 0 => {
            Err(row.wrong(column, Diagnosis::new(format!("{extent} is negative")).instead("write a size")))
        }
        found => found,
    };
    let asked = Asked {
        shape: Shape { m: extent("m")?, n: extent("n")?, k: extent("k")? },
        precision: row.parse("dtype")?,
        layout: row.get("layout").map(str::parse).transpose().map_err(in_column("layout"))?,
        beta: Complex64::default(),
        same: false,
        storage: StorageOptions::default(),
    };
    let family = row.get("family");
    let known = family.map(named).transpose().map_err(in_column("family"))?;
    let mut given = Choice::default();
    for (column, cell) in row.cells().filter(|(column, _)| !COLUMNS.contains(column)) {
        let (name, value) = parse_parameter(&format!("{column}={cell}")).map_err(|d| row.wrong(column, d))?;
        if let Some(family) = known.filter(|family| family.parameters.iter().all(|p| p.name != column)) {
            let refusal = Diagnosis::new(format!("{} has no such parameter", family.name));
            return Err(row.wrong(column, refusal.instead("leave the cell empty")));
        }
        given = given.with(name, value);
    }
    asked.prediction(family, &given, gpu).map_err(|d| row.wrong_row(d))
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn rows_are_answered_in_order_and_empty_cells_are_completed() {
        let rows = of_text(
            "gpu,family,m,n,k,dtype,tm,tn,threads\n\
             h200,tsmttsm,8,8,1000000,f64,4,2,\n\
             a100-80gb,tsmm,1000000,8,8,f32,,,4\n\
             h200,,8,8,1000000,f64,,,\n",
        );
        let refused = rows.unwrap_err().to_string();
        assert!(refused.starts_with("line 4: the model has nothing to say of 8x8x1000000 nn"), "{refused}");
        let rows = of_text(
            "dtype,k,n,m,gpu,family,tm,tn,threads,layout\n\
             f64,1000000,8,8,h200,tsmttsm,4,2,,\n\
             f32,8,8,1000000,a100-80gb,tsmm,,,4,\n\
             f64,1000000,8,8,h200,,,,,tn\n",
        )
        .unwrap();
        let of = |at: usize| (rows[at].gpu, rows[at].kernel.family, rows[at].kernel.given.clone());
        assert_eq!(of(0), ("h200", "tsmttsm", vec!["tm", "tn"]));
        assert_eq!(of(1), ("a100-80gb", "tsmm", vec!["threads"]));
        assert_eq!(of(2), ("h200", "tsmttsm", vec![]));
        assert_eq!((rows[0].problem.k, rows[1].problem.m), (1_000_000, 1_000_000));
        assert!(of_text("gpu,m,n,k,dtype\n").unwrap().is_empty());
    }
}
