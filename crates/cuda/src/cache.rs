//! Compiled kernels kept on disk, so that nothing is compiled twice.
//!
//! One entry is one file, named after the hash of everything that decides its content: the source, the options,
//! the target and the compiler's version. It begins with a line that says what it is, and carries a checksum.
//!
//! A cache must never make a program fail. An entry that is damaged, cut short or not ours is taken for absent
//! and written anew; a directory that cannot be written to, or a full disk, costs the saving and gives a
//! [`Notice`]. Entries are written beside their place and moved into it, so that a reader, or a second writer,
//! never sees half of one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::compile::{Compiled, Options, Source, compile};
use crate::error::Result;
use crate::machine_code;
use crate::nvrtc::Nvrtc;
use crate::resources;

/// The first line of every entry. A change of the format changes the number.
const HEADER: &[u8] = b"warpwright compiled kernel 1\n";

/// The cache of compiled kernels.
#[derive(Debug, Clone)]
pub struct CompileCache {
    directory: Option<PathBuf>,
    absent: &'static str,
}

/// What a compilation through the cache gave.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The compiled kernel.
    pub compiled: Compiled,
    /// Whether it came from the disk.
    pub hit: bool,
    /// What a person may want to know: each is a full sentence.
    pub notices: Vec<Notice>,
}

/// Something about the cache that is worth a line and no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Nothing is kept, because there is no directory for it.
    NoDirectory {
        /// Why there is none.
        reason: &'static str,
    },
    /// An entry was there and could not be used; it was compiled anew.
    Rebuilt {
        /// The entry's file.
        path: PathBuf,
        /// What was wrong with it.
        reason: &'static str,
    },
    /// The kernel was compiled but could not be kept.
    NotKept {
        /// The directory.
        directory: PathBuf,
        /// The system's words.
        reason: String,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Notice::NoDirectory { reason } => {
                write!(
                    f,
                    "compiled kernels are not kept: {reason}; set WARPWRIGHT_CACHE to a directory to keep them"
                )
            }
            Notice::Rebuilt { path, reason } => {
                write!(f, "the cached kernel {} {reason}; it was compiled anew", path.display())
            }
            Notice::NotKept { directory, reason } => write!(
                f,
                "the compiled kernel could not be kept in {}: {reason}; set WARPWRIGHT_CACHE to a directory with room that can be written to",
                directory.display()
            ),
        }
    }
}

impl CompileCache {
    /// The user's cache: `WARPWRIGHT_CACHE`, else `warpwright` below `XDG_CACHE_HOME` or `~/.cache`.
    /// `WARPWRIGHT_CACHE` set to nothing turns it off, without a notice.
    pub fn standard() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        if let Some(own) = variable("WARPWRIGHT_CACHE") {
            let directory = (!own.as_os_str().is_empty()).then_some(own);
            return Self { directory, absent: "" };
        }
        // The XDG convention: a relative path is to be ignored.
        let base = variable("XDG_CACHE_HOME").filter(|p| p.is_absolute());
        let base =
            base.or_else(|| variable("HOME").filter(|p| p.is_absolute()).map(|home| home.join(".cache")));
        Self {
            directory: base.map(|b| b.join("warpwright").join("kernels")),
            absent: "neither XDG_CACHE_HOME nor HOME is set",
        }
    }

    /// A cache in a directory of one's choice; it is made when first needed.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), absent: "" }
    }

    /// No cache: every compilation is done, silently.
    pub fn none() -> Self {
        Self { directory: None, absent: "" }
    }

    /// Where the entries are, if they are kept.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The entry of a source if it is there and sound, else the source compiled and kept.
    pub fn compile(&self, source: &Source<'_>, options: &Options) -> Result<Cached> {
        let nvrtc = Nvrtc::get()?;
        self.with(source, options, nvrtc.version(), || compile(source, options))
    }

    /// As [`CompileCache::compile`], for any compiler.
    fn with(
        &self,
        source: &Source<'_>,
        options: &Options,
        compiler: (u32, u32),
        build: impl FnOnce() -> Result<Compiled>,
    ) -> Result<Cached> {
        let mut notices = Vec::new();
        let Some(directory) = &self.directory else {
            if !self.absent.is_empty() {
                notices.push(Notice::NoDirectory { reason: self.absent });
            }
            return Ok(Cached { compiled: build()?, hit: false, notices });
        };
        let key = key(source, options, compiler);
        let path = directory.join(format!("{}.kernel", hex(&key)));
        if let Ok(bytes) = std::fs::read(&path) {
            match decode(&bytes, &key) {
                Ok([cubin, ptx, log]) => {
                    let compiled = assemble(cubin, ptx, log, options, compiler);
                    return Ok(Cached { compiled, hit: true, notices });
                }
                Err(reason) => notices.push(Notice::Rebuilt { path: path.clone(), reason }),
            }
        }
        let compiled = build()?;
        if let Err(error) = keep(directory, &path, &encode(&compiled, &key)) {
            notices.push(Notice::NotKept { directory: directory.clone(), reason: error.to_string() });
        }
        Ok(Cached { compiled, hit: false, notices })
    }
}

/// The hash of everything that decides what a compilation gives.
fn key(source: &Source<'_>, options: &Options, compiler: (u32, u32)) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        // The length goes first, so that no two lists of parts run together to the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(HEADER);
    add(format!("nvrtc {}.{}", compiler.0, compiler.1).as_bytes());
    add(&[options.keep_ptx as u8]);
    if options.reorder {
        add(format!("reordered {}", machine_code::VERSION).as_bytes());
    }
    for word in options.to_nvrtc() {
        add(word.as_bytes());
    }
    add(source.name.as_bytes());
    add(source.text.as_bytes());
    hash.finalize().into()
}

fn encode(compiled: &Compiled, key: &[u8; 32]) -> Vec<u8> {
    let mut body = Vec::new();
    let ptx = compiled.ptx.as_deref().unwrap_or("");
    for part in [&compiled.cubin[..], ptx.as_bytes(), compiled.log.as_bytes()] {
        body.extend_from_slice(&(part.len() as u64).to_le_bytes());
        body.extend_from_slice(part);
    }
    let mut bytes = HEADER.to_vec();
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&Sha256::digest(&body));
    bytes.extend_from_slice(&body);
    bytes
}

/// The three parts of an entry (machine code, PTX, log), or what is wrong with it.
fn decode(bytes: &[u8], key: &[u8; 32]) -> std::result::Result<[Vec<u8>; 3], &'static str> {
    let rest = bytes.strip_prefix(HEADER).ok_or("is not an entry of this cache")?;
    let (held_key, rest) = rest.split_first_chunk::<32>().ok_or("is cut short")?;
    let (checksum, mut body) = rest.split_first_chunk::<32>().ok_or("is cut short")?;
    if held_key != key {
        return Err("belongs to another source");
    }
    if Sha256::digest(body)[..] != checksum[..] {
        return Err("is damaged");
    }
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    for part in &mut parts {
        let (length, after) = body.split_first_chunk::<8>().ok_or("is cut short")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| "is damaged")?;
        let (held, after) = after.split_at_checked(length).ok_or("is cut short")?;
        *part = held.to_vec();
        body = after;
    }
    Ok(parts)
}

fn assemble(cubin: Vec<u8>, ptx: Vec<u8>, log: Vec<u8>, options: &Options, compiler: (u32, u32)) -> Compiled {
    let log = String::from_utf8_lossy(&log).into_owned();
    let ptx = options.keep_ptx.then(|| String::from_utf8_lossy(&ptx).into_owned());
    Compiled { cubin, ptx, kernels: resources::parse(&log), log, arch: options.arch.clone(), compiler }
}

/// Writes beside the place, then moves into it.
fn keep(directory: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(directory)?;
    let own = format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let temporary = directory.join(own);
    let written = write_whole(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: on a full disk the remains should not stay.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cached, CompileCache, Notice};
    use crate::compile::{Compiled, Options, Source};
    use crate::error::Result;
    use std::cell::Cell;
    use std::path::PathBuf;

    const LOG: &str = "ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Used 7 registers, used 0 barriers
";

    /// A compiler that counts how often it is called and gives something that depends on the source.
    struct Fake {
        calls: Cell<usize>,
    }

    impl Fake {
        fn new() -> Self {
            Self { calls: Cell::new(0) }
        }

        fn through(
            &self,
            cache: &CompileCache,
            text: &str,
            options: &Options,
            version: (u32, u32),
        ) -> Cached {
            let build = || -> Result<Compiled> {
                self.calls.set(self.calls.get() + 1);
                Ok(Compiled {
                    cubin: text.bytes().rev().collect(),
                    ptx: options.keep_ptx.then(|| format!("// {text}")),
                    log: LOG.to_string(),
                    kernels: crate::resources::parse(LOG),
                    arch: options.arch.clone(),
                    compiler: version,
                })
            };
            cache.with(&Source::new("k.cu", text), options, version, build).unwrap()
        }
    }

    fn entries(directory: &std::path::Path) -> Vec<PathBuf> {
        std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect()
    }

    #[test]
    fn the_second_compilation_comes_from_the_disk_and_is_the_same() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::at(root.path().join("made/when/needed"));
        let (fake, options) = (Fake::new(), Options::for_arch("sm_80").with_ptx());
        let first = fake.through(&cache, "text", &options, (13, 0));
        let second = fake.through(&cache, "text", &options, (13, 0));
        assert_eq!((first.hit, second.hit, fake.calls.get()), (false, true, 1));
        assert_eq!(first.compiled, second.compiled);
        assert_eq!(second.compiled.kernel("k").unwrap().registers, 7);
        assert!(first.notices.is_empty() && second.notices.is_empty());
    }

    #[test]
    fn source_options_target_and_compiler_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::at(root.path());
        let (fake, options) = (Fake::new(), Options::for_arch("sm_80"));
        fake.through(&cache, "text", &options, (13, 0));
        fake.through(&cache, "other", &options, (13, 0));
        fake.through(&cache, "text", &Options::for_arch("sm_90a"), (13, 0));
        fake.through(&cache, "text", &options, (12, 9));
        let limited = Options { max_registers: Some(64), ..options };
        fake.through(&cache, "text", &limited, (13, 0));
        fake.through(&cache, "text", &limited.with_reordering(true), (13, 0));
        assert_eq!((fake.calls.get(), entries(root.path()).len()), (6, 6));
    }

    #[test]
    fn every_damage_is_seen_and_repaired() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::at(root.path());
        let (fake, options) = (Fake::new(), Options::for_arch("sm_80"));
        let sound = fake.through(&cache, "text", &options, (13, 0)).compiled;
        let path = entries(root.path()).pop().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut damaged: Vec<Vec<u8>> = (0..bytes.len()).step_by(7).map(|n| bytes[..n].to_vec()).collect();
        for n in (0..bytes.len()).step_by(5) {
            let mut flipped = bytes.clone();
            flipped[n] ^= 1;
            damaged.push(flipped);
        }
        damaged.push(b"something else entirely".to_vec());
        for bad in damaged {
            std::fs::write(&path, &bad).unwrap();
            let again = fake.through(&cache, "text", &options, (13, 0));
            assert!(!again.hit && again.compiled == sound);
            assert!(matches!(again.notices[..], [Notice::Rebuilt { .. }]), "{:?}", again.notices);
            assert!(fake.through(&cache, "text", &options, (13, 0)).hit, "the repaired entry must serve");
        }
    }

    #[test]
    fn an_entry_under_a_wrong_name_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::at(root.path());
        let (fake, options) = (Fake::new(), Options::for_arch("sm_80"));
        fake.through(&cache, "one", &options, (13, 0));
        let one = entries(root.path()).pop().unwrap();
        fake.through(&cache, "two", &options, (13, 0));
        let two = entries(root.path()).into_iter().find(|p| *p != one).unwrap();
        std::fs::copy(&one, &two).unwrap();
        let again = fake.through(&cache, "two", &options, (13, 0));
        assert!(!again.hit);
        assert_eq!(again.compiled.cubin, b"owt");
    }

    #[test]
    fn a_directory_that_cannot_be_written_to_costs_only_a_notice() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, b"in the way").unwrap();
        let cache = CompileCache::at(file.join("below"));
        let cached = Fake::new().through(&cache, "text", &Options::for_arch("sm_80"), (13, 0));
        assert_eq!(cached.compiled.cubin, b"txet");
        assert!(matches!(cached.notices[..], [Notice::NotKept { .. }]));
        assert!(cached.notices[0].to_string().contains("WARPWRIGHT_CACHE"));
    }

    #[test]
    fn nothing_is_left_beside_the_entries() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::at(root.path());
        Fake::new().through(&cache, "text", &Options::for_arch("sm_80"), (13, 0));
        assert!(entries(root.path()).iter().all(|p| p.extension().is_some_and(|e| e == "kernel")));
        // A directory in the entry's place makes the move fail: the temporary file must go.
        let blocked = tempfile::tempdir().unwrap();
        let name = entries(root.path())[0].file_name().unwrap().to_owned();
        std::fs::create_dir(blocked.path().join(&name)).unwrap();
        let cached = Fake::new().through(
            &CompileCache::at(blocked.path()),
            "text",
            &Options::for_arch("sm_80"),
            (13, 0),
        );
        assert!(matches!(cached.notices[..], [Notice::NotKept { .. }]));
        assert_eq!(entries(blocked.path()).len(), 1);
    }
}
