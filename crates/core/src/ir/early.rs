//! Programs whose calls begin while what was launched before them still runs.

use std::fmt;

use crate::diag::Diagnosis;

/// How the calls of a program that begins early overlap with what is launched before and behind them. No result depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// What blocks of the first launch ask for before they wait, if anything.
    pub asks: Option<Asks>,
    /// Which launches let what follows begin before they wait themselves.
    pub lets: Lets,
}

/// What is brought to the second-level cache before anything may be read: where a launch before this one still writes to it, what is read later is what that has
/// written all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Of each input, its first KiB.
    pub kib: i64,
    /// Who asks for them.
    pub by: AskedBy,
}

impl Asks {
    /// A GiB: more than any second-level cache holds.
    pub const MOST_KIB: i64 = 1 << 20;
}

/// How a grid asks for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// One thread of each block, for a piece of 2048 bytes at a time, the blocks in turn.
    Bulk,
    /// Every thread, for a line of 128 bytes at a time, all in turn.
    Lines,
}

/// Which launches of a call let what follows begin before they wait themselves, and not after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lets {
    /// All but the last one of several.
    #[default]
    Most,
    /// None of them.
    None,
    /// All of them.
    All,
}

impl AskedBy {
    const ALL: [AskedBy; 2] = [AskedBy::Bulk, AskedBy::Lines];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            AskedBy::Bulk => "bulk",
            AskedBy::Lines => "lines",
        }
    }

    /// What a word means.
    ///
    /// # Errors
    /// A word that means nothing here.
    pub fn by_name(name: &str) -> Result<AskedBy, Diagnosis> {
        AskedBy::ALL.into_iter().find(|by| by.name() == name).ok_or_else(|| {
            Diagnosis::new(format!("nobody asks for bytes by {name}")).instead("ask by bulk or by lines")
        })
    }
}

impl Lets {
    const EACH: [Lets; 3] = [Lets::Most, Lets::None, Lets::All];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Lets::Most => "most",
            Lets::None => "none",
            Lets::All => "all",
        }
    }

    /// What a word means.
    ///
    /// # Errors
    /// A word that means nothing here.
    pub fn by_name(name: &str) -> Result<Lets, Diagnosis> {
        Lets::EACH.into_iter().find(|lets| lets.name() == name).ok_or_else(|| {
            Diagnosis::new(format!("{name} are no launches that let others begin"))
                .instead("say most (all but the last of several), none or all")
        })
    }
}

/// As behind the parameters of a program.
impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("begins_early")?;
        if let Some(asks) = self.asks {
            write!(f, " asks {} KiB {}", asks.kib, asks.by.name())?;
        }
        if self.lets != Lets::default() {
            write!(f, " lets {}", self.lets.name())?;
        }
        Ok(())
    }
}
