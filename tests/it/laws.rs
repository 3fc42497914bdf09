//! The laws of the house, as ARCHITECTURE.md states them: who may import whom, and where GPUs may be named.
//!
//! Only code is read: comments are cut out, and so are tests, which may look at anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warpwright_core::target;

/// What each module of core may import, besides itself. A part of a module that stands higher than the rest has a
/// line of its own, and may import the rest.
const CORE: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("sym", &[]),
    ("dtype", &["diag"]),
    ("index", &["diag", "sym", "dtype"]),
    ("layout", &["diag", "sym", "dtype", "index"]),
    ("target", &["diag", "dtype", "index"]),
    ("latency", &["target"]),
    ("occupancy", &["diag", "target"]),
    ("ir", &["diag", "sym", "dtype", "index", "layout", "target"]),
    ("instr", &["diag", "sym", "dtype", "index", "layout", "target", "ir"]),
    ("te", &["diag", "sym", "dtype", "index", "ir"]),
    ("schedule", &["diag", "sym", "dtype", "index", "layout", "ir", "ir/validate", "instr", "te"]),
    ("passes", &["diag", "sym", "dtype", "index", "layout", "ir", "ir/validate", "instr"]),
    ("emit", &["diag", "sym", "dtype", "index", "layout", "target", "ir", "ir/validate", "instr"]),
    ("model", &["diag", "sym", "dtype", "index", "layout", "target", "ir", "instr", "occupancy", "latency"]),
    ("ir/validate", &["diag", "sym", "dtype", "index", "layout", "target", "ir", "instr"]),
];

/// Where a GPU or a compute capability may be named; in the last, as part of the names of files that were measured on it.
const MAY_NAME_GPUS: &[&str] =
    &["crates/core/src/target/", "crates/core/src/instr/", "src/kernels/", "src/validation/tables.rs"];

#[test]
fn crates_import_downwards() {
    let dependencies = |manifest: &str| -> Vec<String> {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let section = text.split("\n[dependencies]").nth(1).expect("a list of dependencies");
        let section = section.split("\n[").next().unwrap_or_default();
        section
            .lines()
            .filter(|l| l.starts_with("warpwright"))
            .map(|l| l[..l.find(['.', ' ', '=']).unwrap()].to_string())
            .collect()
    };
    assert!(dependencies("crates/core/Cargo.toml").is_empty(), "core imports nothing of ours");
    assert_eq!(dependencies("crates/sim/Cargo.toml"), ["warpwright-core"], "sim imports core alone");
    assert_eq!(dependencies("crates/cuda/Cargo.toml"), ["warpwright-core"], "cuda imports core alone");
}

#[test]
fn modules_of_core_import_downwards() {
    let allowed: BTreeMap<&str, &[&str]> = CORE.iter().copied().collect();
    let source = root().join("crates/core/src");
    let mut broken = Vec::new();
    for file in rust_files("crates/core/src") {
        let path = module_path(file.strip_prefix(&source).unwrap());
        if path.is_empty() {
            continue;
        }
        // The longest beginning of the path that has a line.
        let lines = (1..=path.len()).rev().map(|n| path[..n].join("/"));
        let Some((module, may)) = lines.filter_map(|m| allowed.get(m.as_str()).map(|may| (m, may))).next()
        else {
            broken.push(format!("{}: module `{}` has no line in the import law", shown(&file), path[0]));
            continue;
        };
        for (line, code) in code_lines(&file) {
            for imported in imported_modules(&code, &path) {
                if imported != *module
                    && allowed.contains_key(imported.as_str())
                    && !may.contains(&imported.as_str())
                {
                    broken.push(format!("{}:{line}: `{module}` may not import `{imported}`", shown(&file)));
                }
            }
        }
    }
    assert!(broken.is_empty(), "the import law is broken:\n{}", broken.join("\n"));
}

#[test]
fn nothing_imports_the_command_line() {
    for file in rust_files("src") {
        let name = shown(&file);
        if name.starts_with("src/cli/") || name == "src/main.rs" {
            continue;
        }
        for (line, code) in code_lines(&file) {
            assert!(
                !words(&code).any(|w| w == "cli") || code.contains("mod cli"),
                "{name}:{line} imports cli: {code}"
            );
        }
    }
}

#[test]
fn gpus_are_named_only_where_they_are_described() {
    let models: Vec<&str> = target::ALL.iter().map(|t| t.name.split('-').next().unwrap_or(t.name)).collect();
    // `l4` and `l40` are too short to tell from other names.
    let named = |word: &str| {
        let architecture = ["sm_", "compute_"]
            .iter()
            .any(|p| word.strip_prefix(p).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
        architecture || models.iter().any(|m| m.len() > 3 && word == *m)
    };
    let mut broken = Vec::new();
    for file in ["src", "crates"].iter().flat_map(|d| rust_files(d)) {
        let name = shown(&file);
        if MAY_NAME_GPUS.iter().any(|p| name.starts_with(p)) || name.contains("/tests/") {
            continue;
        }
        for (line, code) in code_lines(&file) {
            for word in words(&code).filter(|w| named(&w.to_ascii_lowercase())) {
                broken.push(format!("{name}:{line}: `{word}`"));
            }
        }
    }
    assert!(broken.is_empty(), "ask for a capability instead of naming a GPU:\n{}", broken.join("\n"));
}

#[test]
fn kernels_use_the_public_schedule_language_only() {
    let allowed = ["diag", "dtype", "index", "ir::Program", "schedule::Schedule", "target", "te"];
    // What has to be permitted depends on the bound of its error, which is part of the reference.
    let ours = ["bind", "kernels", "problem", "reference"];
    for file in rust_files("src/kernels") {
        for (line, code) in code_lines(&file) {
            for (start, _) in code.match_indices("warpwright_core::") {
                let path = &code[start + "warpwright_core::".len()..];
                assert!(
                    allowed.iter().any(|a| path.starts_with(a)),
                    "{}:{line} imports {path}",
                    shown(&file)
                );
            }
            for module in imported_modules(&code, &[]).iter().filter(|_| code.contains("crate::")) {
                assert!(ours.contains(&module.as_str()), "{}:{line} imports {module}", shown(&file));
            }
        }
    }
}

/// What each part of the tuner may import of the library, besides what stands in every list: `kernels`, `problem`.
/// Those that know neither files nor processes nor GPUs come first.
const TUNER: &[(&str, &[&str])] = &[
    ("accuracy", &["metrics"]),
    ("record", &[]),
    ("alike", &["record"]),
    ("rank", &[]),
    ("space", &["rank"]),
    ("candidates", &["parallel", "rank", "record", "space"]),
    ("search", &["record", "space"]),
    ("wisdom", &["record"]),
    ("t4", &["record"]),
    ("why", &["rank", "report"]),
    ("prediction", &["rank", "report", "roofline", "why"]),
    ("file", &["record", "wisdom"]),
    ("summary", &["file", "record", "wisdom"]),
    (
        "session",
        &[
            "alike",
            "bench",
            "candidates",
            "file",
            "record",
            "roofline",
            "search",
            "space",
            "summary",
            "wisdom",
        ],
    ),
    ("worker", &["record"]),
    ("compilers", &[]),
    ("measure", &["compilers", "record", "search", "space", "worker"]),
    ("bench", &["bind", "compile", "gpu", "inputs", "matrix", "measure", "record", "reference", "worker"]),
    ("mod", &[]),
];

#[test]
fn the_tuner_imports_downwards_and_only_who_chooses_or_judges_imports_it() {
    let allowed: BTreeMap<&str, &[&str]> = TUNER.iter().copied().collect();
    let mut broken = Vec::new();
    for file in rust_files("src") {
        let name = shown(&file);
        let part = name.strip_prefix("src/tune/").and_then(|n| n.strip_suffix(".rs"));
        let measures = ["src/bench/tsm/", "src/bench/fc/"];
        let chooses = name == "src/choose.rs" || measures.iter().any(|place| name.starts_with(place));
        let judges = name.starts_with("src/validation/");
        let may_import_it = part.is_some() || name.starts_with("src/cli/") || chooses || judges;
        for (line, code) in code_lines(&file) {
            let imported = imported_modules(&code, &["tune".to_string()]);
            if code.contains("crate::tune") && !may_import_it {
                broken.push(format!("{name}:{line} imports the tuner"));
            }
            let Some(part) = part else { continue };
            let may =
                allowed.get(part).unwrap_or_else(|| panic!("{name} has no line in the law of the tuner"));
            for module in imported {
                if !may.contains(&module.as_str()) && !["kernels", "problem"].contains(&module.as_str()) {
                    broken.push(format!("{name}:{line} imports {module}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "the law of the tuner is broken:\n{}", broken.join("\n"));
}

#[test]
fn cuda_text_is_only_in_the_emitter_and_in_spellings() {
    let may = ["crates/core/src/emit/", "crates/core/src/instr/", "crates/cuda/"];
    let cuda =
        ["__global__", "__shared__", "__syncthreads", "__device__", "threadIdx", "blockIdx", "asm volatile"];
    for file in ["src", "crates"].iter().flat_map(|d| rust_files(d)) {
        let name = shown(&file);
        if may.iter().any(|p| name.starts_with(p)) || name.contains("/tests/") {
            continue;
        }
        for (line, code) in code_lines(&file) {
            assert!(!cuda.iter().any(|c| code.contains(c)), "{name}:{line} holds CUDA text: {code}");
        }
    }
}

#[test]
fn files_begin_by_saying_what_they_are() {
    for file in ["src", "crates", "tests"].iter().flat_map(|d| rust_files_with_tests(d)) {
        let text = fs::read_to_string(&file).unwrap();
        let is_test_module = file.file_name().is_some_and(|n| n == "tests.rs");
        assert!(is_test_module || text.starts_with("//!"), "{} has no //! header", shown(&file));
    }
}

/// The top-level modules of the same crate that a line of code mentions by path.
fn imported_modules(code: &str, path: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        found.extend(first_names(&code[start + "crate::".len()..]));
    }
    for (start, _) in code.match_indices("super::") {
        if code[..start].ends_with("super::") {
            continue;
        }
        let mut rest = &code[start..];
        let mut level = path.len();
        while let Some(after) = rest.strip_prefix("super::") {
            rest = after;
            level = level.saturating_sub(1);
        }
        if level == 0 {
            found.extend(first_names(rest));
        }
    }
    found
}

/// The names that a path continues with: one, or those of a brace list.
fn first_names(rest: &str) -> Vec<String> {
    let name =
        |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    match rest.strip_prefix('{') {
        Some(list) => list
            .split('}')
            .next()
            .unwrap_or_default()
            .split(',')
            .map(name)
            .filter(|n| !n.is_empty())
            .collect(),
        None => vec![name(rest)],
    }
}

/// The module that a file of a crate's `src` is: `ir/parse/expr.rs` is `ir`, `parse`, `expr`.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> =
        file.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod" || last == "lib") {
        path.pop();
    }
    path
}

/// The numbered lines of a file that are code and not tests, without their comments.
fn code_lines(file: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split("//").next().unwrap_or_default().to_string()))
        .filter(|(_, line)| !line.trim().is_empty())
        .collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// The Rust files under a directory, without those that hold only tests.
fn rust_files(directory: &str) -> Vec<PathBuf> {
    let mut files = rust_files_with_tests(directory);
    files.retain(|f| f.file_name().is_some_and(|n| n != "tests.rs"));
    files
}

fn rust_files_with_tests(directory: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root().join(directory)];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no Rust files under {directory}");
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

#[test]
fn the_reader_of_imports_sees_what_it_should() {
    let path: Vec<String> = ["ir", "parse", "expr"].map(String::from).to_vec();
    assert_eq!(imported_modules("use crate::index::{Cond, Index};", &path), ["index"]);
    assert_eq!(imported_modules("use crate::{emit, ir::Program};", &path), ["emit", "ir"]);
    assert_eq!(imported_modules("use super::super::super::schedule::Schedule;", &path), ["schedule"]);
    assert!(imported_modules("use super::super::buffer::Buffer;", &path).is_empty());
    assert_eq!(module_path(Path::new("ir/parse/mod.rs")), ["ir", "parse"]);
}
