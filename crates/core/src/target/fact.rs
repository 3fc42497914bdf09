//! Numbers that know where they come from.

/// A number about a GPU, with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact<T> {
    /// The number.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A document that can be looked up.
    Published(&'static str),
    /// A run on the device, by us or by somebody who published raw output.
    Measured(&'static str),
    /// Arithmetic on other facts; the text says which.
    Derived(&'static str),
    /// Commonly stated, but checked against no document by us.
    NotVerified,
}

impl<T> Fact<T> {
    /// A number from a document.
    pub const fn published(value: T, document: &'static str) -> Self {
        Fact { value, source: Source::Published(document) }
    }

    /// A number from a run on the device.
    pub const fn measured(value: T, run: &'static str) -> Self {
        Fact { value, source: Source::Measured(run) }
    }

    /// A number computed from others.
    pub const fn derived(value: T, from: &'static str) -> Self {
        Fact { value, source: Source::Derived(from) }
    }

    /// A number that is commonly stated but that we have not verified.
    pub const fn not_verified(value: T) -> Self {
        Fact { value, source: Source::NotVerified }
    }
}
