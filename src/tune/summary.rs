//! The best of a file of wisdom, kept beside it: what choosing a kernel needs, without reading everything ever tried.
//!
//! A file of wisdom only grows. So a summary says of how many bytes it is one, and whoever reads it goes on from there:
//! what was appended since is read line by line. A summary that is missing, or is none of this file as it is now, costs
//! time and nothing else.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use warpwright_core::diag::Diagnosis;

use super::file::{Loaded, WisdomFile, on_family, shipped};
use super::record::hash;
use super::wisdom::{self, Wisdom};

/// How the first line of a summary begins.
const HEADER: &str = "# summary of";
/// The bytes before the end of what is summarised that have to be the same as then.
const MARK: u64 = 256;

/// Where the summary of a file is.
fn path_of(file: &WisdomFile) -> PathBuf {
    let mut name = file.path().as_os_str().to_owned();
    name.push(".best");
    PathBuf::from(name)
}

/// The records of a file that may be the best of their problem, among the lines that `wanted` says yes to.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn load(file: &WisdomFile, wanted: &dyn Fn(&str) -> bool) -> Result<Loaded, Diagnosis> {
    let Some((summary, rest)) = summarised(file) else { return file.load_where(wanted) };
    let mut loaded = file.loaded(&rest, wanted);
    let mut records = wisdom::parse(&summary, wanted).records;
    records.append(&mut loaded.records);
    Ok(Loaded { records, ..loaded })
}

/// What is known of a family: the lines that ship with the program, and after them those of the user's file, which
/// therefore count where both speak. Of the file, only what may be the best of its problem, or with `all` everything. The
/// second value is what is worth a line on standard error.
///
/// # Errors
/// A file of the user's that is there and cannot be read.
pub fn known(family: &str, file: Option<&WisdomFile>, all: bool) -> Result<(Wisdom, Vec<String>), Diagnosis> {
    let wanted = on_family(family);
    let mut wisdom = Wisdom::default();
    wisdom.extend(shipped(&wanted));
    let loaded = match file {
        None => Loaded::default(),
        Some(file) if all => file.load_where(&wanted)?,
        Some(file) => load(file, &wanted)?,
    };
    wisdom.extend(loaded.records);
    Ok((wisdom, loaded.notices))
}

/// What a user's file says of a family, all of it, and what is worth a line on standard error.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn of_file(family: &str, file: Option<&WisdomFile>) -> Result<(Wisdom, Vec<String>), Diagnosis> {
    let loaded = file.map_or_else(|| Ok(Loaded::default()), |file| file.load_where(&on_family(family)))?;
    let mut wisdom = Wisdom::default();
    wisdom.extend(loaded.records);
    Ok((wisdom, loaded.notices))
}

/// The text of the summary and what was appended to the file since, if the summary is one of this file.
fn summarised(file: &WisdomFile) -> Option<(String, String)> {
    let summary = std::fs::read_to_string(path_of(file)).ok()?;
    let mut words = summary.lines().next()?.strip_prefix(HEADER)?.split_whitespace();
    let (length, mark) = (words.next()?.parse::<u64>().ok()?, words.next()?);
    let mut source = File::open(file.path()).ok()?;
    if mark_at(&mut source, length)? != mark {
        return None;
    }
    let mut rest = Vec::new();
    source.read_to_end(&mut rest).ok()?;
    Some((summary, String::from_utf8_lossy(&rest).into_owned()))
}

/// The hash of the bytes before a place in a file, which is then read up to there.
fn mark_at(source: &mut File, place: u64) -> Option<String> {
    let mut bytes = vec![0; place.min(MARK) as usize];
    source.seek(SeekFrom::Start(place.saturating_sub(MARK))).ok()?;
    source.read_exact(&mut bytes).ok()?;
    Some(hash(&bytes))
}

/// Writes the summary of a file as it is now.
///
/// # Errors
/// A file that cannot be read, and a summary that cannot be written.
pub fn write(file: &WisdomFile) -> Result<(), Diagnosis> {
    let path = path_of(file);
    let failed = |e: std::io::Error| {
        Diagnosis::new(format!("the summary {} cannot be written", path.display()))
            .because(e.to_string())
            .instead("it is of no importance but for speed")
    };
    // What is appended while this is being read belongs to the rest.
    let mut source = match File::open(file.path()) {
        Ok(source) => source,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    source.lock_shared().map_err(failed)?;
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(failed)?;
    drop(source);
    let marked = &bytes[bytes.len().saturating_sub(MARK as usize)..];
    let mut text = format!("{HEADER} {} {}\n", bytes.len(), hash(marked));
    let mut all = Wisdom::default();
    all.extend(wisdom::parse(&String::from_utf8_lossy(&bytes), &|_| true).records);
    for record in all.distilled() {
        text += &record.line()?;
    }
    // Beside its place and then into it, so that nobody reads half of one.
    let mut own = path.clone().into_os_string();
    own.push(format!(".{}", std::process::id()));
    std::fs::write(&own, text).and_then(|()| std::fs::rename(&own, &path)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Scratch, record};
    use super::{load, path_of, write};
    use crate::tune::file::WisdomFile;

    /// Widths and tiles of the records that are read.
    fn read(file: &WisdomFile) -> Vec<(i64, i64)> {
        let records = load(file, &|_| true).unwrap().records;
        records.iter().map(|r| (r.problem.m, r.trial.choice.int("tm"))).collect()
    }

    #[test]
    fn the_best_of_what_is_summarised_and_all_that_came_since_are_read() {
        let scratch = Scratch::new("summary");
        let file = scratch.file();
        write(&file).unwrap();
        assert_eq!(read(&file), []);
        file.append(&[record(20, 1, 3e-3), record(20, 2, 1e-3), record(24, 3, 1e-3)]).unwrap();
        assert_eq!(read(&file), [(20, 1), (20, 2), (24, 3)], "without a summary");
        write(&file).unwrap();
        assert_eq!(read(&file), [(20, 2), (24, 3)]);
        file.append(&[record(20, 4, 2e-3)]).unwrap();
        assert_eq!(read(&file), [(20, 2), (24, 3), (20, 4)]);
        write(&file).unwrap();
        assert_eq!(read(&file), [(20, 2), (24, 3)]);
    }

    #[test]
    fn a_summary_of_another_file_is_not_believed() {
        let scratch = Scratch::new("foreign-summary");
        let file = scratch.file();
        file.append(&[record(20, 1, 3e-3), record(20, 2, 1e-3)]).unwrap();
        write(&file).unwrap();
        // Another record in the place of the last, in a line of the same length.
        let text = std::fs::read_to_string(file.path()).unwrap();
        std::fs::write(file.path(), text.replace("\"tm\":2", "\"tm\":7")).unwrap();
        assert_eq!(read(&file), [(20, 1), (20, 7)]);
        // Shorter than what was summarised.
        std::fs::write(file.path(), &text[..text.len() / 2 + 1]).unwrap();
        assert_eq!(read(&file).len(), 1);
        // No summary at all.
        std::fs::write(path_of(&file), "nonsense").unwrap();
        std::fs::write(file.path(), &text).unwrap();
        assert_eq!(read(&file), [(20, 1), (20, 2)]);
    }
}
