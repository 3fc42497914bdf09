//! Families of kernels with parameters: what is tuned.
//!
//! A [`Family`] is an expression, a schedule written in the public language with holes in it, and what may fill the
//! holes: [`Parameter`]s, each with the values worth trying on a problem, and [`Constraint`]s between them. A
//! [`Choice`] fills every hole. The extents that a family calls short are constants of its kernels, the others are
//! arguments, as in every kernel.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_core::schedule::Schedule;
use warpwright_core::target::Target;

use super::gemm::{self, Fixed};
use super::{Kernel, Variant};
use crate::problem::Problem;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Int(i64),
    /// One of several words.
    Word(String),
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

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Word(value.to_string())
    }
}

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
pub fn parse_parameter(text: &str) -> Result<(String, Value), Diagnosis> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            let number = value.parse().map(Value::Int).ok();
            let flag = value.parse().map(Value::Flag).ok();
            Ok((name.to_string(), number.or(flag).unwrap_or_else(|| Value::from(value))))
        }
        _ => Err(Diagnosis::new(format!("`{text}` is not a parameter"))
            .instead("write its name and value, such as tm=4 or leapfrog=true")),
    }
}

/// A value for each parameter of a family, or for some while a choice is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choice(BTreeMap<String, Value>);

impl Choice {
    /// The choice with one more parameter, or with another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Choice {
        self.0.insert(name.to_string(), value.into());
        self
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The number that a parameter is; 0 where it is none.
    pub fn int(&self, name: &str) -> i64 {
        if let Some(Value::Int(value)) = self.get(name) { *value } else { 0 }
    }

    /// The word that a parameter is; empty where it is none.
    pub fn word(&self, name: &str) -> &str {
        if let Some(Value::Word(value)) = self.get(name) { value } else { "" }
    }

    /// Whether a parameter is switched on.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }

    /// Names and values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether nothing has been chosen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&words.join(" "))
    }
}

/// A hole in the schedule of a family.
#[derive(Debug)]
pub struct Parameter {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The values worth trying on a problem, the most usual first.
    pub values: fn(&Problem, &Target) -> Vec<Value>,
}

/// What has to hold between parameters.
#[derive(Debug)]
pub struct Constraint {
    /// What has to hold, as the end of a sentence that begins with "because".
    pub about: &'static str,
    /// The parameters it speaks of: it is tried as soon as these have values.
    pub on: &'static [&'static str],
    /// Whether it holds.
    pub holds: fn(&Choice, &Problem, &Target) -> bool,
}

/// Kernels of one kind, told apart by parameters.
#[derive(Debug)]
pub struct Family {
    /// The name on the command line, a C identifier.
    pub name: &'static str,
    /// What it computes and how, in one sentence.
    pub about: &'static str,
    /// Which extents are constants of its kernels for a problem; or why the family has none for it.
    pub fixed: fn(&Problem) -> Result<Fixed, Diagnosis>,
    /// Whether the family should be taken where nobody asks for one.
    pub suits: fn(&Problem) -> bool,
    /// Its parameters, those that decide most first.
    pub parameters: &'static [Parameter],
    /// What has to hold between them.
    pub constraints: &'static [Constraint],
    /// The schedule of a choice.
    pub schedule: fn(&Problem, &Choice) -> String,
    /// A sensible choice where nothing is known.
    pub usual: fn(&Problem, &Target) -> Choice,
}

impl Family {
    /// Every choice that the constraints allow, in order of the parameters; stops when `each` returns false.
    ///
    /// The constraints are tried as early as their parameters are known, so whole branches fall at once.
    pub fn choices(&self, problem: &Problem, target: &Target, each: &mut dyn FnMut(&Choice) -> bool) {
        let values: Vec<Vec<Value>> = self.parameters.iter().map(|p| (p.values)(problem, target)).collect();
        self.extend(&Choice::default(), &values, problem, target, each);
    }

    fn extend(
        &self,
        choice: &Choice,
        values: &[Vec<Value>],
        problem: &Problem,
        target: &Target,
        each: &mut dyn FnMut(&Choice) -> bool,
    ) -> bool {
        let known = choice.0.len();
        let Some(parameter) = self.parameters.get(known) else { return each(choice) };
        values[known].iter().all(|value| {
            let longer = choice.clone().with(parameter.name, value.clone());
            self.broken(&longer, parameter.name, problem, target).is_some()
                || self.extend(&longer, values, problem, target, each)
        })
    }

    /// The first constraint on a parameter, among those whose parameters all have values, that does not hold.
    fn broken(
        &self,
        choice: &Choice,
        parameter: &str,
        problem: &Problem,
        target: &Target,
    ) -> Option<&Constraint> {
        self.constraints.iter().find(|c| {
            c.on.contains(&parameter)
                && c.on.iter().all(|name| choice.get(name).is_some())
                && !(c.holds)(choice, problem, target)
        })
    }

    /// The usual choice with these values in it, checked.
    ///
    /// # Errors
    /// A parameter or a value that the family does not know, and constraints that do not hold.
    pub fn complete(&self, given: &Choice, problem: &Problem, target: &Target) -> Result<Choice, Diagnosis> {
        let mut choice = (self.usual)(problem, target);
        for (name, value) in given.iter() {
            let parameter = self.parameters.iter().find(|p| p.name == name).ok_or_else(|| {
                let known: Vec<_> = self.parameters.iter().map(|p| p.name).collect();
                Diagnosis::new(format!("{} has no parameter `{name}`", self.name))
                    .instead(format!("use one of {}", known.join(", ")))
            })?;
            let values = (parameter.values)(problem, target);
            let same_kind = values.iter().any(|v| std::mem::discriminant(v) == std::mem::discriminant(value));
            let is_word = matches!(value, Value::Word(_));
            if !same_kind || (is_word && !values.contains(value)) {
                let known: Vec<_> = values.iter().map(ToString::to_string).collect();
                return Err(Diagnosis::new(format!("{name}={value} is no choice of {}", self.name))
                    .instead(format!("try one of {}", known.join(", "))));
            }
            choice = choice.with(name, value.clone());
        }
        for parameter in self.parameters {
            if let Some(broken) = self.broken(&choice, parameter.name, problem, target) {
                return Err(Diagnosis::new(format!("{} cannot be made with {choice}", self.name))
                    .because(broken.about)
                    .instead(format!("change {}", broken.on.join(", "))));
            }
        }
        Ok(choice)
    }

    /// The kernel of a choice.
    ///
    /// # Errors
    /// Problems the family does not serve, and schedules that cannot be applied.
    pub fn build(&self, problem: &Problem, choice: &Choice) -> Result<Kernel, Diagnosis> {
        let variant = Variant { precision: problem.precision, layout: problem.layout };
        let fixed = (self.fixed)(problem)?;
        let precision = variant.precision.name().replace('-', "_");
        let name = format!("{}_{precision}_{}{fixed}", self.name, variant.layout);
        let place = |d: Diagnosis| d.at(format!("kernel {name} with {choice}"));
        let mut specification = gemm::specification_at(variant, fixed);
        specification.name.clone_from(&name);
        let schedule = Schedule::run(specification, &(self.schedule)(problem, choice)).map_err(place)?;
        Ok(Kernel { name, family: self.name.to_string(), parameters: choice.clone(), schedule })
    }
}
