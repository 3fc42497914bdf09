//! What fills the holes of a family's schedule: values of its parameters, and a value for each of them.
//!
//! A space has hundreds of thousands of choices, so they are small: names and words are kept once for all of them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpwright_core::diag::Diagnosis;

/// A word that is kept as long as the program runs: the name of a parameter, or a value of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(&'static str);

impl Word {
    /// The word with this text.
    pub fn of(text: &str) -> Word {
        static WORDS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.get(text) {
            return Word(known);
        }
        let kept: &'static str = Box::leak(text.into());
        words.insert(kept);
        Word(kept)
    }
}

impl From<&'static str> for Word {
    fn from(text: &'static str) -> Word {
        Word(text)
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        String::deserialize(deserializer).map(|text| Word::of(&text))
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Int(i64),
    /// One of several words.
    Word(Word),
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Flag(value)
    }
}

impl From<&'static str> for Value {
    fn from(value: &'static str) -> Value {
        Value::Word(value.into())
    }
}

impl From<Word> for Value {
    fn from(value: Word) -> Value {
        Value::Word(value)
    }
}

impl Value {
    /// Whether another value is of this one's kind and could stand in its place: a number is positive and no larger than
    /// [`MOST`], or one of those that are known, as words are.
    pub(super) fn is_like(&self, other: &Value, known: &[Value]) -> bool {
        match (self, other) {
            (Value::Int(_), Value::Int(n)) => (1..=MOST).contains(n) || known.contains(other),
            (Value::Flag(_), Value::Flag(_)) => true,
            (Value::Word(_), Value::Word(_)) => known.contains(other),
            _ => false,
        }
    }
}

/// The largest number that a parameter can be: products of a few of them can be counted.
const MOST: i64 = 1 << 12;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Word(value) => f.write_str(value),
        }
    }
}

/// Reads `name=value`: yes or no is written `true` or `false`.
///
/// # Errors
/// No name, or no value.
pub fn parse_parameter(text: &str) -> Result<(Word, Value), Diagnosis> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            let number = value.parse().map(Value::Int).ok();
            let flag = value.parse().map(Value::Flag).ok();
            Ok((Word::of(name), number.or(flag).unwrap_or_else(|| Word::of(value).into())))
        }
        _ => Err(Diagnosis::new(format!("`{text}` is not a parameter"))
            .instead("write its name and value, such as tm=4 or leapfrog=true")),
    }
}

/// A value for each parameter of a family, or for some while a choice is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice(
    /// In order of the names.
    Vec<(Word, Value)>,
);

impl Choice {
    /// The choice with these parameters; of those of one name, the last counts.
    pub fn of(parameters: &[(Word, Value)]) -> Choice {
        parameters.iter().fold(Choice::default(), |choice, (name, value)| choice.with(*name, *value))
    }

    /// The choice with one more parameter, or with another value of it.
    #[must_use]
    pub fn with(mut self, name: impl Into<Word>, value: impl Into<Value>) -> Choice {
        let (name, value) = (name.into(), value.into());
        match self.0.binary_search_by(|(known, _)| known.cmp(&name)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
        self
    }

    /// The choice without these parameters.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Choice {
        self.0.retain(|(name, _)| !names.contains(&&**name));
        self
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        // Most names differ in length: searches ask for millions of them.
        self.0.iter().find(|(k, _)| k.0.len() == name.len() && k.0 == name).map(|(_, value)| value)
    }

    /// The number that a parameter is; 0 where it is none.
    pub fn int(&self, name: &str) -> i64 {
        if let Some(Value::Int(value)) = self.get(name) { *value } else { 0 }
    }

    /// The word that a parameter is; empty where it is none.
    pub fn word(&self, name: &str) -> &'static str {
        if let Some(Value::Word(value)) = self.get(name) { value.0 } else { "" }
    }

    /// Whether a parameter is switched on.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }

    /// Names and values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (name.0, value))
    }

    /// Whether nothing has been chosen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Choice, D::Error> {
        let values = BTreeMap::<Word, Value>::deserialize(deserializer)?;
        Ok(Choice(values.into_iter().collect()))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&words.join(" "))
    }
}
