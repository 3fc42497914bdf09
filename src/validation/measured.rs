//! Measured times as the model can be asked about them: a family, a problem and what is chosen. There is a reader for each
//! kind of table.

use serde::Deserialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use crate::csv::{Row, Table};
use crate::kernels::family::{Choice, Family, Value, Word, parse_parameter};
use crate::kernels::{self, Kernel, Recipe, Variant};
use crate::problem::{Layout, Op, Precision, Problem, Shape};

/// A kernel and its time.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it stands together with: a problem, or a kind of products.
    pub group: String,
    /// The kernel.
    pub subject: Subject,
    /// What it computes.
    pub problem: Problem,
    /// Seconds of one product.
    pub seconds: f64,
}

/// A kernel as a table names it.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A choice of a family.
    Choice {
        /// The family.
        family: &'static Family,
        /// What is known of its parameters; the family completes them.
        given: Choice,
    },
    /// A kernel of a ladder, or one whose schedule stands beside the tables.
    Program {
        /// The ladder.
        ladder: &'static str,
        /// Its name.
        name: &'static str,
        /// Its schedule for a variant.
        schedule: Schedule,
        /// Registers of a thread, where the compiler that made the measured kernel told.
        registers: Option<i64>,
    },
}

/// Where the schedule of a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Schedule {
    /// A rung of a ladder.
    Rung(&'static Recipe),
    /// A text.
    Text(&'static str),
}

impl Subject {
    /// The family or the ladder.
    pub fn family(&self) -> &'static str {
        match self {
            Subject::Choice { family, .. } => family.name,
            Subject::Program { ladder, .. } => ladder,
        }
    }

    /// What tells it from others of its group.
    pub fn name(&self) -> String {
        match self {
            Subject::Choice { given, .. } => given.to_string(),
            Subject::Program { name, .. } => (*name).to_string(),
        }
    }

    /// The kernel of a program; `None` for a choice, which the model knows by its family.
    ///
    /// # Errors
    /// A schedule that does not suit the problem.
    pub fn kernel(&self, problem: &Problem) -> Option<Result<Kernel, Diagnosis>> {
        let Subject::Program { name, schedule, .. } = self else { return None };
        let variant = Variant::of(problem);
        Some(match schedule {
            Schedule::Rung(recipe) => kernels::build(recipe, variant),
            Schedule::Text(text) => kernels::from_schedule(name, text, variant),
        })
    }
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
    /// The kernels of the worklog, by their numbers.
    Worklog,
    /// The steps of the schedule in TVM, by their numbers.
    Steps,
    /// Kernels of this project's ladders, by their names.
    Rungs,
}

impl Reader {
    /// Whether each group is the candidates of one problem, which the model may rank.
    pub(super) fn has_candidates(self) -> bool {
        !matches!(self, Reader::Points | Reader::Mappings)
    }

    /// Whether the table is small enough to be shown point by point.
    pub(super) fn has_points(self) -> bool {
        !matches!(self, Reader::Points | Reader::Candidates | Reader::Rungs)
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
            Reader::Worklog => worklog,
            Reader::Steps => step,
            Reader::Rungs => rung,
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
        subject: Subject::Choice { family: family(row, "family")?, given: parameters(row)? },
        problem,
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
        subject: Subject::Choice { family, given: parameters(row)? },
        problem: Problem::new(shape(row)?, precision, layout(family, precision)),
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
        subject: Subject::Choice { family, given },
        problem: Problem::new(shape, precision, layout),
        seconds: milliseconds * 1e-3,
    }))
}

/// The kernel 8 of the worklog, of which the ladder has a variant that keeps rows at multiples of 16 bytes.
const EXTRA_COLUMN_OF_5: &str = include_str!("../../validation/sgemm_extra_column_of_5.sch");

/// A row `kernel,gflops`, with `size` where it is not 4096. Kernel 0 is cuBLAS, and what comes after 11 is no rung.
fn worklog(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    let number: u32 = row.parse("kernel")?;
    let rungs = kernels::ladder("sgemm")?;
    let Some(recipe) = rungs.into_iter().find(|r| r.rung == number && number <= 11) else { return Ok(None) };
    let schedule = if number == 8 { Schedule::Text(EXTRA_COLUMN_OF_5) } else { Schedule::Rung(recipe) };
    let size = if row.get("size").is_some() { row.parse("size")? } else { 4096 };
    let mut problem = Problem::new(Shape::cube(size), Precision::Of(DType::F32), Layout::NN);
    // As the worklog's driver calls them all.
    (problem.alpha, problem.beta) = (0.5.into(), 3.0.into());
    let gflops: f64 = row.parse("gflops")?;
    Ok(Some(Measured {
        group: format!("{} f32 nn", problem.shape),
        subject: Subject::Program { ladder: "sgemm", name: recipe.name, schedule, registers: None },
        seconds: flops(&problem) / gflops * 1e-9,
        problem,
    }))
}

/// A row `step,size,ms` of steps of one schedule, at whatever sizes. What has no number is no step.
fn step(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    if row.get("step").is_none() {
        return Ok(None);
    }
    let number: u32 = row.parse("step")?;
    let ladder = kernels::ladder("tvm")?;
    let recipe = ladder.into_iter().find(|r| r.rung == number);
    let recipe = recipe
        .ok_or_else(|| row.wrong("step", Diagnosis::new(format!("the ladder tvm has no rung {number}"))))?;
    let milliseconds: f64 = row.parse("ms")?;
    Ok(Some(Measured {
        group: "tvm f32 nn".to_string(),
        subject: Subject::Program {
            ladder: "tvm",
            name: recipe.name,
            schedule: Schedule::Rung(recipe),
            registers: None,
        },
        problem: Problem::new(Shape::cube(row.parse("size")?), Precision::Of(DType::F32), Layout::NN),
        seconds: milliseconds * 1e-3,
    }))
}

/// A row `ladder,kernel,m,n,k,dtype,layout,registers,seconds`.
fn rung(row: &Row<'_>) -> Result<Option<Measured>, Diagnosis> {
    let name: String = row.parse("kernel")?;
    let recipe = kernels::by_name(&name).map_err(|d| row.wrong("kernel", d))?;
    let problem = Problem::new(shape(row)?, row.parse("dtype")?, row.parse("layout")?);
    Ok(Some(Measured {
        group: format!("{} {} {} {}", recipe.family, problem.shape, problem.precision, problem.layout),
        subject: Subject::Program {
            ladder: recipe.family,
            name: recipe.name,
            schedule: Schedule::Rung(recipe),
            registers: Some(row.parse("registers")?),
        },
        problem,
        seconds: row.parse("seconds")?,
    }))
}

/// Real floating-point operations of a product, as rates count them.
fn flops(problem: &Problem) -> f64 {
    2.0 * problem.shape.m as f64 * problem.shape.n as f64 * problem.shape.k as f64
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
