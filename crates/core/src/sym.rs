//! Symbols: a name for people and an identity for the compiler.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering as Memory};
use std::sync::{LazyLock, Mutex, PoisonError};

static NEXT: AtomicU32 = AtomicU32::new(1);

/// Every name ever given to a symbol, once: programs copy symbols all the time, and a shared name costs nothing to
/// copy. Names come from programs and schedules that people write, so there are few, and they are kept for good.
static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);

fn shared(name: &str) -> &'static str {
    // A set of strings is whole whatever happened to the thread that held it.
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = String::from(name).leak();
    names.insert(kept);
    kept
}

/// A variable or a buffer. Two symbols are the same only if they come from one binding: names may repeat (sibling
/// thread nests are all called `tx`), identities never do, so no rewrite can capture a variable by accident.
///
/// Symbols order by creation, so that canonical forms built of them are deterministic.
#[derive(Clone)]
pub struct Sym {
    id: u32,
    name: &'static str,
}

impl Sym {
    /// A new symbol, different from every other.
    pub fn new(name: &str) -> Sym {
        Sym { id: NEXT.fetch_add(1, Memory::Relaxed), name: shared(name) }
    }

    /// A new symbol of the same name: what a copy of a loop binds.
    pub fn fresh(&self) -> Sym {
        Sym { id: NEXT.fetch_add(1, Memory::Relaxed), name: self.name }
    }

    /// The name for people.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The identity, for dense tables; larger means created later.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl PartialEq for Sym {
    fn eq(&self, other: &Sym) -> bool {
        self.id == other.id
    }
}

impl Eq for Sym {}

impl Hash for Sym {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialOrd for Sym {
    fn partial_cmp(&self, other: &Sym) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sym {
    fn cmp(&self, other: &Sym) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl fmt::Debug for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.id)
    }
}

impl fmt::Display for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
