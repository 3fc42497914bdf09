//! Files that a user names: why one cannot be read, and what to do about it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warpwright_core::diag::Diagnosis;

/// What to say of a file that cannot be read: the system's reason, and a file of a similar name or the directory that
/// was looked in.
pub fn unreadable(path: &Path, error: &io::Error) -> Diagnosis {
    let instead = match error.kind() {
        io::ErrorKind::NotFound => instead_of_missing(path),
        io::ErrorKind::IsADirectory => "name a file in that directory".to_string(),
        io::ErrorKind::PermissionDenied => "make it readable, or name another file".to_string(),
        io::ErrorKind::InvalidData => "name a text file in UTF-8".to_string(),
        _ => "name another file".to_string(),
    };
    Diagnosis::new(format!("{}: cannot be read", path.display())).because(error.to_string()).instead(instead)
}

/// Writes a text file: whole, or not at all.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Diagnosis> {
    let failed = |error: io::Error| {
        Diagnosis::new(format!("{}: cannot be written", path.display()))
            .because(error.to_string())
            .instead("name a file in a directory that can be written to")
    };
    // What is no plain file, such as a terminal, has to be written as it is.
    if path.exists() && !path.is_file() {
        return fs::write(path, text).map_err(failed);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        // What is left over does no harm.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

fn instead_of_missing(path: &Path) -> String {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    if !directory.is_dir() {
        return format!("correct the path: there is no directory {}", shown.display());
    }
    match most_similar(path, directory) {
        Some(other) => format!("use {}, which is there", other.display()),
        None => {
            format!("correct the name: {} has no file of this name or a similar one", shown.display())
        }
    }
}

/// The file of a directory whose name needs the fewest edits to be that of `path`: at most a third of its letters.
fn most_similar(path: &Path, directory: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let distance = |entry: &std::fs::DirEntry| edits(entry.file_name().to_str()?, wanted);
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let files = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_file()));
    let near = files.filter_map(|e| Some((distance(&e).filter(|d| 3 * d <= wanted.len())?, e.file_name())));
    near.min().map(|(_, name)| path.with_file_name(name))
}

/// How many letters have to be inserted, removed or replaced to make one name of the other; none for long names.
fn edits(a: &str, b: &str) -> Option<usize> {
    const LONGEST: usize = 256;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > LONGEST {
        return None;
    }
    // `row[j]`: the edits between the letters of `a` so far and the first `j` of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn edits_are_insertions_removals_and_replacements() {
        for (a, b, distance) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("a.npy", "a.npz", 1), ("x", "x", 0)]
        {
            assert_eq!((edits(a, b), edits(b, a)), (Some(distance), Some(distance)));
        }
    }
}
