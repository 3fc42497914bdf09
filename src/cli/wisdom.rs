//! `wisdom`: what tuning has found, listed, put together, taken in and given to other tuners.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use warpwright_core::diag::Diagnosis;

use super::options::OutputOptions;
use super::output::{Outcome, notice, print, print_json};
use crate::file::unreadable;
use crate::kernels;
use crate::problem::Shape;
use crate::report::number::seconds;
use crate::report::table::{numbers, render, words};
use crate::tune::file::WisdomFile;
use crate::tune::record::Record;
use crate::tune::wisdom::Wisdom;
use crate::tune::{summary, t4};

/// Options of `wisdom`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the best known choice of every problem.
    List {
        /// Only this family.
        #[arg(long, value_name = "FAMILY")]
        kernel: Option<String>,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Put files together into one, a line for each configuration.
    Merge {
        /// The files.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The file to write, which is replaced.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Keep only the best of every problem, as is right for a file that ships.
        #[arg(long)]
        best: bool,
        /// Keep only this family.
        #[arg(long, value_name = "FAMILY")]
        kernel: Option<String>,
    },
    /// Add the records of files to your own wisdom.
    Import {
        /// The files.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Write your wisdom in the format of other tuners.
    Export {
        /// The file to write, in the T4 format that Kernel Tuner reads and writes.
        #[arg(long, value_name = "FILE")]
        t4: PathBuf,
        /// Only this family.
        #[arg(long, value_name = "FAMILY")]
        kernel: Option<String>,
        /// Only problems of this size.
        #[arg(long, value_name = "MxNxK")]
        shape: Option<Shape>,
    },
}

/// Runs `wisdom`.
pub fn run(options: &Options) -> Outcome {
    match &options.command {
        Command::List { kernel, output } => list(kernel.as_deref(), output.json),
        Command::Merge { files, out, best, kernel } => merge(files, out, *best, kernel.as_deref()),
        Command::Import { files } => import(files),
        Command::Export { t4, kernel, shape } => export(t4, kernel.as_deref(), *shape),
    }
}

/// A line of the list.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    /// How many configurations of the problem were tried.
    tried: usize,
    #[serde(flatten)]
    record: &'a Record,
}

fn list(family: Option<&str>, json: bool) -> Outcome {
    let wisdom = known(family)?;
    let tried = |record: &Record| wisdom.tried(&record.gpu, &record.family, &record.problem).len();
    let listed: Vec<Listed> =
        wisdom.distilled().into_iter().map(|record| Listed { tried: tried(record), record }).collect();
    if json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        notice("no problem has been tuned yet; `warpwright tune MxNxK` tunes one");
        return Ok(());
    }
    let columns = [
        words("GPU"),
        words("family"),
        words("size"),
        words("type"),
        words("layout"),
        numbers("tried"),
        numbers("measured"),
        numbers("of the roofline"),
        words("best"),
    ];
    let row = |l: &Listed| {
        let (record, trial) = (l.record, &l.record.trial);
        vec![
            record.gpu.name.clone(),
            record.family.clone(),
            record.problem.shape().to_string(),
            record.problem.dtype.clone(),
            record.problem.layout.clone(),
            l.tried.to_string(),
            trial.seconds.map_or("-".to_string(), seconds),
            trial.fraction.map_or("-".to_string(), |f| format!("{:.1} %", 100.0 * f)),
            trial.choice.to_string(),
        ]
    };
    print(&render(&columns, &listed.iter().map(row).collect::<Vec<_>>()))
}

/// Everything that is known, of one family or of all.
fn known(family: Option<&str>) -> Result<Wisdom, Diagnosis> {
    let file = WisdomFile::standard();
    let mut all = Wisdom::default();
    let names = kernels::FAMILIES.iter().map(|f| f.name).filter(|name| family.is_none_or(|f| f == *name));
    let mut said: Vec<String> = Vec::new();
    for name in names {
        let (wisdom, notices) = summary::known(name, file.as_ref(), true)?;
        all.extend(wisdom.records().iter().cloned());
        said.extend(notices);
    }
    said.sort();
    said.dedup();
    said.iter().for_each(|n| notice(n));
    Ok(all)
}

/// The records of files, which must be there.
fn read(files: &[PathBuf]) -> Result<Vec<Record>, Diagnosis> {
    let mut records = Vec::new();
    for path in files {
        std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
        let loaded = WisdomFile::at(path).load()?;
        loaded.notices.iter().for_each(|n| notice(n));
        records.extend(loaded.records);
    }
    Ok(records)
}

fn merge(files: &[PathBuf], out: &Path, best: bool, family: Option<&str>) -> Outcome {
    let mut wisdom = Wisdom::default();
    wisdom.extend(read(files)?.into_iter().filter(|r| family.is_none_or(|f| f == r.family)));
    let kept: Vec<&Record> = if best { wisdom.distilled() } else { wisdom.records().iter().collect() };
    let mut text = String::new();
    for record in &kept {
        text += &record.line()?;
    }
    write(out, &text)?;
    notice(&format!("{} records are in {}", kept.len(), out.display()));
    Ok(())
}

fn import(files: &[PathBuf]) -> Outcome {
    let file = WisdomFile::standard().ok_or_else(|| {
        Diagnosis::new("there is no file to import into")
            .because("WARPWRIGHT_WISDOM is empty, or neither XDG_DATA_HOME nor HOME is set")
            .instead("set WARPWRIGHT_WISDOM to a file")
    })?;
    let mine = file.load()?.records;
    let mut new: Vec<Record> = Vec::new();
    for record in read(files)? {
        if !mine.contains(&record) && !new.contains(&record) {
            new.push(record);
        }
    }
    if !new.is_empty() {
        file.append(&new)?;
        summary::write(&file)?;
    }
    notice(&format!("{} new records are in {}", new.len(), file.path().display()));
    Ok(())
}

fn export(path: &Path, family: Option<&str>, shape: Option<Shape>) -> Outcome {
    let wisdom = known(family)?;
    let wanted = |r: &&Record| shape.is_none_or(|s| s == r.problem.shape());
    let records: Vec<Record> = wisdom.records().iter().filter(wanted).cloned().collect();
    let text = serde_json::to_string_pretty(&t4::export(&records))
        .map_err(|e| Diagnosis::new("wisdom cannot be written as JSON").because(e.to_string()))?;
    write(path, &(text + "\n"))?;
    notice(&format!("{} results are in {}", records.len(), path.display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Diagnosis> {
    std::fs::write(path, text).map_err(|e| {
        Diagnosis::new(format!("{}: cannot be written", path.display()))
            .because(e.to_string())
            .instead("name a file in a directory that can be written to")
    })
}
