//! Diagnoses: every refusal says where, what, because of what, and what to do instead.

use std::fmt;

/// Why something was refused, for a person who wants to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Where: a line of a text, a loop, a step of a schedule. Empty when there is only one place it can be.
    pub place: String,
    /// What is wrong, in one clause.
    pub what: String,
    /// The fact that makes it wrong. May be empty.
    pub because: String,
    /// What to do instead. May be empty.
    pub instead: String,
}

impl Diagnosis {
    /// A diagnosis that so far says only what is wrong.
    pub fn new(what: impl Into<String>) -> Diagnosis {
        Diagnosis { place: String::new(), what: what.into(), because: String::new(), instead: String::new() }
    }

    /// Says where; an existing place becomes the inner one: `outer: inner`.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Diagnosis {
        let place = place.into();
        self.place = if self.place.is_empty() { place } else { format!("{place}: {}", self.place) };
        self
    }

    /// Says because of what.
    #[must_use]
    pub fn because(mut self, because: impl Into<String>) -> Diagnosis {
        self.because = because.into();
        self
    }

    /// Says what to do instead.
    #[must_use]
    pub fn instead(mut self, instead: impl Into<String>) -> Diagnosis {
        self.instead = instead.into();
        self
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)?;
        if !self.because.is_empty() {
            write!(f, ", because {}", self.because)?;
        }
        if !self.instead.is_empty() {
            write!(f, "; {}", self.instead)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnosis {}
