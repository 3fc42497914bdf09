//! The text form of steps: `name(arguments, key=value) -> results`.

use std::fmt;

use super::handle::LoopRef;
use crate::diag::Diagnosis;

/// A step as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The primitive.
    pub name: String,
    /// The arguments in order.
    pub args: Vec<Argument>,
    /// `key=value` arguments in order.
    pub named: Vec<(String, String)>,
    /// The names after `->`.
    pub results: Vec<String>,
}

/// An argument: a number, a loop, or a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A number.
    Int(i64),
    /// `label.name`
    Loop(LoopRef),
    /// Any other word, such as a buffer or a memory.
    Word(String),
}

impl Call {
    /// A call without arguments.
    pub fn new(name: &str) -> Call {
        Call { name: name.into(), args: Vec::new(), named: Vec::new(), results: Vec::new() }
    }

    /// Adds a word.
    #[must_use]
    pub fn word(mut self, word: impl Into<String>) -> Call {
        self.args.push(Argument::Word(word.into()));
        self
    }

    /// Adds a loop.
    #[must_use]
    pub fn target(mut self, target: &LoopRef) -> Call {
        self.args.push(Argument::Loop(target.clone()));
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn int(mut self, value: i64) -> Call {
        self.args.push(Argument::Int(value));
        self
    }

    /// Adds `key=value`.
    #[must_use]
    pub fn option(mut self, key: &str, value: impl fmt::Display) -> Call {
        self.named.push((key.into(), value.to_string()));
        self
    }

    /// Sets the names after `->`.
    #[must_use]
    pub fn gives(mut self, results: impl IntoIterator<Item = impl Into<String>>) -> Call {
        self.results = results.into_iter().map(Into::into).collect();
        self
    }

    /// The number at a position.
    ///
    /// # Errors
    /// If there is none.
    pub fn int_at(&self, at: usize) -> Result<i64, Diagnosis> {
        match self.args.get(at) {
            Some(Argument::Int(value)) => Ok(*value),
            _ => Err(self.wrong(&format!("argument {} must be a number", at + 1))),
        }
    }

    /// The loop at a position.
    ///
    /// # Errors
    /// If there is none.
    pub fn loop_at(&self, at: usize) -> Result<LoopRef, Diagnosis> {
        match self.args.get(at) {
            Some(Argument::Loop(target)) => Ok(target.clone()),
            _ => Err(self.wrong(&format!("argument {} must be a loop, written label.name", at + 1))),
        }
    }

    /// The word at a position.
    ///
    /// # Errors
    /// If there is none.
    pub fn word_at(&self, at: usize) -> Result<&str, Diagnosis> {
        match self.args.get(at) {
            Some(Argument::Word(word)) => Ok(word),
            _ => Err(self.wrong(&format!("argument {} must be a name", at + 1))),
        }
    }

    /// The value of a `key=value` argument.
    pub fn option_of(&self, key: &str) -> Option<&str> {
        self.named.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The loop that a `key=label.name` argument names, if there is one.
    ///
    /// # Errors
    /// If its value is no loop.
    pub fn loop_option(&self, key: &str) -> Result<Option<LoopRef>, Diagnosis> {
        let Some(text) = self.option_of(key) else { return Ok(None) };
        match argument(text) {
            Ok(Argument::Loop(target)) => Ok(Some(target)),
            _ => Err(self.wrong(&format!("`{key}` must be a loop, written label.name"))),
        }
    }

    /// Exactly this many results, or none if `optional`.
    ///
    /// # Errors
    /// If there are more or fewer.
    pub fn results(&self, count: usize) -> Result<&[String], Diagnosis> {
        if self.results.len() == count {
            return Ok(&self.results);
        }
        Err(self.wrong(&format!("{count} names must follow `->`")))
    }

    /// A diagnosis that this call is not of the right form.
    pub fn wrong(&self, what: &str) -> Diagnosis {
        let usage = super::primitive::usage(&self.name);
        Diagnosis::new(what.to_string()).instead(usage.map(|u| format!("write {u}")).unwrap_or_default())
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Int(value) => write!(f, "{value}"),
            Argument::Loop(target) => write!(f, "{target}"),
            Argument::Word(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args = self.args.iter().map(ToString::to_string);
        let named = self.named.iter().map(|(k, v)| format!("{k}={v}"));
        write!(f, "{}({})", self.name, args.chain(named).collect::<Vec<_>>().join(", "))?;
        if !self.results.is_empty() {
            write!(f, " -> {}", self.results.join(", "))?;
        }
        Ok(())
    }
}

/// The calls of a text with their line numbers.
pub(super) fn calls(text: &str) -> Result<Vec<(usize, Call)>, Diagnosis> {
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let call = read(line).map_err(|e| e.at(format!("line {}: {line}", number + 1)))?;
            out.push((number + 1, call));
        }
    }
    Ok(out)
}

/// Numbers in steps are no larger, so that products of a few of them can be counted.
const MOST: u32 = 1 << 20;

fn read(line: &str) -> Result<Call, Diagnosis> {
    let form = || Diagnosis::new("not a step").instead("write name(arguments) -> results");
    let (name, rest) = line.split_once('(').ok_or_else(form)?;
    let (args, results) = rest.rsplit_once(')').ok_or_else(form)?;
    if !is_word(name.trim()) {
        return Err(form());
    }
    let large = |word: &&str| {
        let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        is_number && word.parse().map_or(true, |n: u32| n > MOST)
    };
    if let Some(number) = args.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(large) {
        return Err(Diagnosis::new(format!("`{number}` is too large"))
            .because(format!("no tile, stage or padding has more than {MOST} elements"))
            .instead("choose a smaller number"));
    }
    let mut call = Call::new(name.trim());
    for arg in args.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        if let Some((key, value)) = arg.split_once('=') {
            call.named.push((key.trim().into(), value.trim().into()));
        } else {
            call.args.push(argument(arg)?);
        }
    }
    let results = results.trim();
    if let Some(names) = results.strip_prefix("->") {
        call.results = names.split(',').map(|n| n.trim().to_string()).collect();
        if let Some(bad) = call.results.iter().find(|n| !is_word(n)) {
            return Err(Diagnosis::new(format!("`{bad}` is no name")));
        }
    } else if !results.is_empty() {
        return Err(form());
    }
    Ok(call)
}

fn argument(text: &str) -> Result<Argument, Diagnosis> {
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Argument::Int(value));
    }
    match text.split_once('.') {
        Some(("block", axis)) => Ok(Argument::Word(format!("block.{axis}"))),
        Some((label, name)) if is_word(label) && is_word(name) => {
            Ok(Argument::Loop(LoopRef::new(label, name)))
        }
        _ if text.chars().all(|c| c.is_ascii_alphanumeric() || "_.@:%/".contains(c)) => {
            Ok(Argument::Word(text.into()))
        }
        _ => Err(Diagnosis::new(format!("`{text}` is no argument"))),
    }
}

fn is_word(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
