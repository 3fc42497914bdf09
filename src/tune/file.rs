//! Where wisdom stands: a file of the user's, to which lines are appended, and files that ship with the program.
//!
//! Several tuners may write to one file. Each writes whole lines, in one write under a lock on the file, and waits until
//! they are on the disk. Whoever is killed while writing leaves half a line at worst; the next to write ends it first,
//! and readers pass it over. Files can be put together with `cat`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use warpwright_core::diag::Diagnosis;

use super::record::Record;
use super::wisdom;

/// A file of wisdom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomFile {
    path: PathBuf,
}

/// Wisdom that ships with the program, a file for each family: the fastest known choice of many problems.
const SHIPPED: &[(&str, &str)] = &[
    ("wisdom/tsmm.jsonl", include_str!("../../wisdom/tsmm.jsonl")),
    ("wisdom/tiled.jsonl", include_str!("../../wisdom/tiled.jsonl")),
    ("wisdom/tsmttsm.jsonl", include_str!("../../wisdom/tsmttsm.jsonl")),
];

/// The records of a file, and what there is to say about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The records.
    pub records: Vec<Record>,
    /// What is worth a line on standard error.
    pub notices: Vec<String>,
}

impl WisdomFile {
    /// The user's file: `WARPWRIGHT_WISDOM`, else `warpwright/wisdom.jsonl` below `XDG_DATA_HOME` or `~/.local/share`.
    /// `None` where `WARPWRIGHT_WISDOM` is set to nothing, which turns it off, or where there is no such directory.
    pub fn standard() -> Option<WisdomFile> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        if let Some(own) = variable("WARPWRIGHT_WISDOM") {
            return (!own.as_os_str().is_empty()).then(|| WisdomFile::at(own));
        }
        // The XDG convention: a relative path is to be ignored.
        let absolute = |name| variable(name).filter(|p| p.is_absolute());
        let base = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/share")))?;
        Some(WisdomFile::at(base.join("warpwright").join("wisdom.jsonl")))
    }

    /// A file of one's choice; it is made when first written to.
    pub fn at(path: impl Into<PathBuf>) -> WisdomFile {
        WisdomFile { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends records, and returns when they are on the disk.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&self, records: &[Record]) -> Result<(), Diagnosis> {
        let mut text = String::new();
        for record in records {
            text += &record.line()?;
        }
        self.append_text(&text).map_err(|e| {
            Diagnosis::new(format!("wisdom cannot be written to {}", self.path.display()))
                .because(e.to_string())
                .instead("set WARPWRIGHT_WISDOM to a file that can be written")
        })
    }

    fn append_text(&self, text: &str) -> std::io::Result<()> {
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.path)?;
        // The lock goes with the file, also where this process is killed.
        file.lock()?;
        let begin = if ends_in_a_line(&mut file)? { "" } else { "\n" };
        file.write_all(format!("{begin}{text}").as_bytes())?;
        file.sync_data()
    }

    /// Every record; a file that is not there has none.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub fn load(&self) -> Result<Loaded, Diagnosis> {
        self.load_where(&|_| true)
    }

    /// The records of the lines that `wanted` says yes to.
    ///
    /// # Errors
    /// As [`WisdomFile::load`].
    pub fn load_where(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Loaded, Diagnosis> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            Err(e) => {
                return Err(Diagnosis::new(format!("wisdom cannot be read from {}", self.path.display()))
                    .because(e.to_string())
                    .instead("set WARPWRIGHT_WISDOM to another file, or to nothing to do without"));
            }
        };
        Ok(self.loaded(&String::from_utf8_lossy(&bytes), wanted))
    }

    /// The records of a text that is the file, or the end of it.
    pub fn loaded(&self, text: &str, wanted: &dyn Fn(&str) -> bool) -> Loaded {
        let parsed = wisdom::parse(text, wanted);
        let notice = |(line, fault): &(usize, String)| {
            format!("{}:{line} is passed over: it {fault}", self.path.display())
        };
        Loaded { notices: parsed.skipped.iter().map(notice).collect(), records: parsed.records }
    }
}

/// Whether the file is empty or its last line has an end.
fn ends_in_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last[0] == b'\n')
}

/// The lines on a family, which are written without spaces and so can be told before they are read; and lines that are
/// cut short, which are to be spoken of.
pub fn on_family(family: &str) -> impl Fn(&str) -> bool {
    let mark = format!("\"family\":\"{family}\"");
    move |line| line.contains(&mark) || !line.ends_with('}')
}

/// The records that ship with the program, among the lines that `wanted` says yes to.
pub fn shipped(wanted: &dyn Fn(&str) -> bool) -> Vec<Record> {
    SHIPPED.iter().flat_map(|(_, text)| wisdom::parse(text, wanted).records).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Scratch, record};
    use super::{SHIPPED, on_family};
    use crate::kernels;
    use crate::problem::{Alignment, Offsets, Problem, Strides};
    use crate::tune::record::Key;
    use crate::tune::wisdom;
    use warpwright_core::target::Target;

    #[test]
    fn what_is_appended_is_read_again() {
        let scratch = Scratch::new("append");
        let file = &scratch.file();
        assert!(file.load().unwrap().records.is_empty());
        let records = [record(20, 1, 1e-3), record(20, 2, 2e-3)];
        file.append(&records[..1]).unwrap();
        file.append(&records[1..]).unwrap();
        let loaded = file.load().unwrap();
        assert_eq!((&loaded.records[..], loaded.notices.len()), (&records[..], 0));
        assert_eq!(file.load_where(&on_family("tsmttsm")).unwrap().records.len(), 2);
        assert_eq!(file.load_where(&on_family("tsmm")).unwrap().records.len(), 0);
    }

    #[test]
    fn half_a_line_costs_itself_only_wherever_it_was_cut() {
        let scratch = Scratch::new("half");
        let file = &scratch.file();
        let records = [record(20, 1, 1e-3), record(20, 2, 2e-3), record(20, 3, 3e-3)];
        file.append(&records[..2]).unwrap();
        let whole = std::fs::read(file.path()).unwrap();
        let first = records[0].line().unwrap().len();
        for cut in [first + 1, first + 17, whole.len() - 2, whole.len() - 1] {
            std::fs::write(file.path(), &whole[..cut]).unwrap();
            file.append(&records[2..]).unwrap();
            let loaded = file.load().unwrap();
            // Without its end alone, the line is whole.
            let kept = if cut == whole.len() - 1 { 3 } else { 2 };
            assert_eq!((loaded.records.len(), loaded.notices.len()), (kept, 3 - kept), "cut at {cut}");
            assert_eq!(loaded.records.last(), Some(&records[2]));
        }
    }

    #[test]
    fn many_writers_at_once_lose_and_mix_nothing() {
        let scratch = Scratch::new("writers");
        let file = &scratch.file();
        std::thread::scope(|scope| {
            for writer in 1..=8 {
                scope.spawn(move || {
                    for at in 1..=25 {
                        file.append(&[record(writer, at, 1e-3)]).unwrap();
                    }
                });
            }
        });
        let loaded = file.load().unwrap();
        assert_eq!((loaded.records.len(), loaded.notices.len()), (200, 0));
        for writer in 1..=8 {
            let of = loaded.records.iter().filter(|r| r.problem.m == writer);
            assert_eq!(
                of.map(|r| r.trial.choice.int("tm")).collect::<Vec<_>>(),
                (1..=25).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn what_cannot_be_written_or_read_is_refused_with_advice() {
        let scratch = Scratch::new("refused");
        let file = &scratch.file();
        std::fs::create_dir_all(file.path()).unwrap();
        let message = file.append(&[record(20, 1, 1e-3)]).unwrap_err().to_string();
        assert!(message.contains("set WARPWRIGHT_WISDOM"), "{message}");
        assert!(file.load().unwrap_err().to_string().contains("cannot be read"));
    }

    /// A problem of this size whose matrices stand in memory as a key says: where rows are some way apart, as near as its
    /// alignment allows, or the next but so many, and where they start elsewhere, each in a place of its own.
    fn placed(mut problem: Problem, key: &Key, farther: usize) -> Problem {
        let bytes = problem.dtype().bytes();
        if key.start < Alignment::MOST {
            let one = key.start / bytes;
            problem.offset = Offsets { a: one, b: 2 * one, c: 3 * one };
        }
        if !key.dense {
            let Strides { a, b, c } = problem.ld;
            // The small matrix is as it is: B of tsmm, C of tsmttsm.
            let rows = [problem.stored_a().0, problem.stored_b().0, problem.stored_c().0];
            let of = [('a', a, rows[0]), ('b', b, rows[1]), ('c', c, rows[2])];
            let [a, b, c] = of.map(|(letter, ld, rows)| {
                let fits = |ld: &i64| 1 << (ld * bytes).trailing_zeros().min(5) == key.align;
                let is_apart = rows > 128 && (key.apart.is_empty() || key.apart.contains(letter));
                if is_apart { (ld + 1..).filter(fits).nth(farther).unwrap() } else { ld }
            });
            problem.ld = Strides { a, b, c };
        }
        problem
    }

    #[test]
    fn every_line_that_ships_is_read_and_is_a_choice_of_its_family() {
        for (name, text) in SHIPPED {
            let loaded = wisdom::parse(text, &|_| true);
            assert_eq!(loaded.skipped, [], "{name}");
            for record in loaded.records {
                let (family, key) = (kernels::family(&record.family).unwrap(), &record.problem);
                let target = Target::by_product(&record.gpu.name, record.gpu.sm_count).unwrap();
                let shape = format!("{}x{}x{}", key.m, key.n, key.k);
                let words = (shape.parse().unwrap(), key.dtype.parse().unwrap(), key.layout.parse().unwrap());
                let choice = &record.trial.choice;
                // Parameters that came later have their usual values in it. What the distance of rows decides is not in the key.
                let mut made = (0..8).map(|farther| {
                    let mut problem = placed(Problem::new(words.0, words.1, words.2), key, farther);
                    problem.beta.re = if key.beta == "zero" { 0.0 } else { 0.5 };
                    assert_eq!(Key::of(&problem), *key);
                    family.complete(choice, &problem, target)
                });
                let nearest = made.next().unwrap();
                let whole = nearest.or_else(|refusal| made.find_map(Result::ok).ok_or(refusal));
                let whole = whole.unwrap_or_else(|e| panic!("{shape} {}: {e}", key.dtype));
                assert!(choice.iter().all(|(name, value)| whole.get(name) == Some(value)), "{whole}");
            }
        }
    }
}
