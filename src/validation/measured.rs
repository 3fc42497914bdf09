//! Measured times as the model can be asked about them: a family, a problem and what is chosen. There is a reader for each
//! kind of table.

use serde::Deserialize;
use warpwright_core::diag::Diagnosis;

use crate::csv::{Row, Table};
use crate::kernels;
use crate::kernels::family::{Choice, Family, Value, Word, parse_parameter};
use crate::problem::{Layout, Op, Precision, Problem, Shape};

/// A kernel and its time.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it stands together with: a problem, or a kind of products.
    pub group: String,
    /// Its family.
    pub family: &'static Family,
    /// What it computes.
    pub problem: Problem,
    /// What is known of its parameters; the family completes them.
    pub given: Choice,
    /// Seconds of one product.
    pub seconds: f64,
}

/// How a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// Many choices of a family for each of a few problems.
    Candidates,
    /// One choice of a family for each of many problems.
    Points,
    /// One of the paper's mappings for each width, as its own generator names them.
    Mappings,
}

impl Reader {
    /// Whether each group is the candidates of one problem, which the model may rank.
    pub(super) fn has_candidates(self) -> bool {
        self == Reader::Candidates
    }

    /// Whether the table is small enough to be shown point by point.
    pub(super) fn has_points(self) -> bool {
        self == Reader::Mappings
    }

    /// The kernels of a table, those of a group together. Kernels whose results were wrong, or that did not run, are left out.
    ///
    /// # Errors
    /// What is no such table: with line and column.
    pub(super) fn read(self, text: &str) -> Result<Vec<Measured>, Diagnosis> {
        let table = Table::parse(text)?;
        let read = match self {
            Reader::Candidates => candidate,
            Reader::Points => point_of,
            Reader::Mappings => mapping,
        };
        let read = table.rows().filter_map(|row| read(&row).transpose());
        let mut found = read.collect::<Result<Vec<Measured>, Diagnosis>>()?;
        let mut groups: Vec<String> = Vec::new();
        for kernel in &found {
            if !groups.contains(&kernel.group) {
                groups.push(kernel.group.clone());
            }
        }
        found.sort_by_key(|kernel| groups.iter().position(|group| *group == kernel.group));
        Ok(found)
    }
}

/// A row `family,m,n,k,dtype,layout,status,seconds,parameters`.
fn candidate(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    if row.get("status") != Some("correct") {
        return Ok(None);
    }
    let problem = Problem::new(shape(row)?, row.parse("dtype")?, row.parse("layout")?);
    Ok(Some(Measured {
        group: format!("{} {} {}", problem.shape, problem.precision, problem.layout),
        family: family(row, "family")?,
        problem,
        given: parameters(row)?,
        seconds: row.parse("seconds")?,
    }))
}

/// A row `figure,operation,dtype,m,n,k,status,seconds,parameters,row_strides,offsets` of `bench tsm`, of dense and aligned
/// matrices. Its layout follows from the operation: what is long is transposed, and conjugated if it is complex.
fn point_of(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    let is_plain = row.get("row_strides").is_none() && row.get("offsets").is_none();
    if row.get("status") != Some("correct") || !is_plain {
        return Ok(None);
    }
    let family = family(row, "operation")?;
    let precision = row.parse("dtype")?;
    Ok(Some(Measured {
        group: format!("{} {} {precision}", family.name, row.get("figure").unwrap_or_default()),
        family,
        problem: Problem::new(shape(row)?, precision, layout(family, precision)),
        given: parameters(row)?,
        seconds: row.parse("seconds")?,
    }))
}

/// A row `op,dtype,M=N,K,ms,config` of the paper's generator, whose K is the long extent.
///
/// What it names `cshared=False` is taken as reads through the first-level cache; its third way, registers, is not told
/// apart there. How parts of a sum come together is not on record, and is completed like all that it does not name.
fn mapping(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    let family = family(row, "op")?;
    let (short, long): (i64, i64) = (row.parse("M=N")?, row.parse("K")?);
    let precision: Precision = match row.get("dtype") {
        Some("D") => "f64",
        Some("Z") => "c128",
        _ => return Err(row.wrong("dtype", Diagnosis::new("it is neither D nor Z"))),
    }
    .parse()?;
    let layout = layout(family, precision);
    let shape = match layout.a.transposes() {
        true => Shape { m: short, n: short, k: long },
        false => Shape { m: long, n: short, k: short },
    };
    let mut given = Choice::default().with("unit", "fma").with("staging", "registers");
    for word in row.get("config").unwrap_or_default().split_whitespace() {
        let (name, value) = parse_parameter(&word.to_lowercase()).map_err(|d| row.wrong("config", d))?;
        let (name, value): (Word, Value) = match (&*name, value) {
            ("blocksize", value) => ("block".into(), value),
            ("cshared", Value::Flag(true)) => ("c_source".into(), "shared".into()),
            ("cshared", _) => ("c_source".into(), "l1".into()),
            _ => (name, value),
        };
        given = given.with(name, value);
    }
    let milliseconds: f64 = row.parse("ms")?;
    Ok(Some(Measured {
        group: format!("{} widths {precision}", family.name),
        family,
        problem: Problem::new(shape, precision, layout),
        given,
        seconds: milliseconds * 1e-3,
    }))
}

fn shape(row: &Row<'_>) -> Result<Shape, Diagnosis> {
    Ok(Shape { m: row.parse("m")?, n: row.parse("n")?, k: row.parse("k")? })
}

fn family(row: &Row<'_>, column: &str) -> Result<&'static Family, Diagnosis> {
    let name: String = row.parse(column)?;
    kernels::family(&name)
        .ok_or_else(|| row.wrong(column, Diagnosis::new(format!("there is no family `{name}`"))))
}

fn parameters(row: &Row<'_>) -> Result<Choice, Diagnosis> {
    let words = row.get("parameters").unwrap_or_default().split_whitespace();
    let known = words.map(parse_parameter).collect::<Result<Vec<_>, _>>();
    known.map(|known| Choice::of(&known)).map_err(|d| row.wrong("parameters", d))
}

/// How the operands of a family were stored where these tables were measured.
fn layout(family: &Family, precision: Precision) -> Layout {
    let shape = Shape::cube(1);
    let a = if precision.storage().is_complex() { Op::ConjugateTranspose } else { Op::Transpose };
    let transposed = Layout { a, b: Op::None };
    let serves = |layout: Layout| (family.fixed)(&Problem::new(shape, precision, layout)).is_ok();
    if serves(Layout::NN) { Layout::NN } else { transposed }
}
