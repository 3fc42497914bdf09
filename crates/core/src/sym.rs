//! Symbols: a name for people and an identity for the compiler.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

static NEXT: AtomicU32 = AtomicU32::new(1);

/// A variable or a buffer. Two symbols are the same only if they come from one binding: names may repeat (sibling
/// thread nests are all called `tx`), identities never do, so no rewrite can capture a variable by accident.
///
/// Symbols order by creation, so that canonical forms built of them are deterministic.
#[derive(Clone)]
pub struct Sym {
    id: u32,
    name: Arc<str>,
}

impl Sym {
    /// A new symbol, different from every other.
    pub fn new(name: &str) -> Sym {
        Sym { id: NEXT.fetch_add(1, Memory::Relaxed), name: name.into() }
    }

    /// A new symbol of the same name: what a copy of a loop binds.
    pub fn fresh(&self) -> Sym {
        Sym { id: NEXT.fetch_add(1, Memory::Relaxed), name: self.name.clone() }
    }

    /// The name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity, for dense tables; larger means created later.
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
        f.write_str(&self.name)
    }
}
