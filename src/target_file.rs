//! A GPU of one's own, described in a file.
//!
//! The file is TOML, and has the fields of [`Target`] in their units:
//!
//! ```toml
//! name = "my-gpu"                     # lower case, words joined by -
//! compute_capability = "8.6"          # from which every limit of occupancy follows
//! sm_count = 28
//! boost_mhz = { value = 1777, source = "the vendor's page" }
//! memory_bytes = 12_884_901_888
//! dram_bytes_per_second = 360e9
//! l2_bytes = 3_145_728
//!
//! [fma_per_cycle]                     # multiply-adds per cycle and multiprocessor, for each pipe
//! f32 = 128
//!
//! [levels.dram]                       # may be left out, as may be all of the next line
//! latency_cycles = 550                # product, sustained_mhz, dram_read_... and dram_copy_bytes_per_second
//! ```
//!
//! A number without a source counts as not verified. `warpwright targets NAME --toml` prints a GPU of the tables in this
//! form.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{
    ALL, ComputeCapability, Fact, Level, Levels, Limits, Pipe, Rate, Source, Target,
};

use crate::file::unreadable;

/// More bytes than any description has.
const LARGEST: u64 = 1 << 20;

/// The GPU that is meant by a name of the tables or by the path of a file.
pub fn find(name: &str) -> Result<&'static Target, Diagnosis> {
    let path = Path::new(name);
    match Target::by_name(name) {
        Err(unknown) => {
            let is_a_path = path.extension().is_some() || path.components().count() > 1;
            if is_a_path || path.exists() {
                return read(path);
            }
            let instead = format!("{}, or give a file that describes one", unknown.instead);
            Err(unknown.instead(instead))
        }
        known => known,
    }
}

/// Reads the description of a GPU. It stays in memory for as long as the process runs, as those of the tables do.
pub fn read(path: &Path) -> Result<&'static Target, Diagnosis> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|e| unreadable(path, &e))?;
    if text.len() as u64 > LARGEST {
        return Err(Diagnosis::new("is too long to describe a GPU").at(path.display().to_string()));
    }
    parse(&text).map_err(|fault| fault.at(path.display().to_string()))
}

/// A GPU in the form of a file.
pub fn print(target: &Target) -> Result<String, Diagnosis> {
    let table = Table::try_from(Description::of(target))
        .map_err(|e| Diagnosis::new("the GPU cannot be written as TOML").because(e.to_string()))?;
    let mut text = String::new();
    section("", &table, &mut text);
    Ok(text)
}

/// Writes a table: numbers, with their sources on the same line, before the tables within it.
fn section(path: &str, table: &Table, text: &mut String) {
    let inner = |value: &Value| value.as_table().filter(|t| !t.contains_key("value")).cloned();
    for (key, value) in table.iter().filter(|(_, value)| inner(value).is_none()) {
        text.push_str(&format!("{key} = {value}\n"));
    }
    for (key, within) in table.iter().filter_map(|(key, value)| Some((key, inner(value)?))) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if within.values().any(|value| inner(value).is_none()) {
            text.push_str(&format!("\n[{path}]\n"));
        }
        section(&path, &within, text);
    }
}

/// The description of a GPU. What must be there is optional here, so that all that is missing can be named at once.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Description {
    name: Option<String>,
    product: Option<String>,
    compute_capability: Option<String>,
    sm_count: Option<Number<u32>>,
    boost_mhz: Option<Number<u32>>,
    sustained_mhz: Option<Number<u32>>,
    memory_bytes: Option<Number<u64>>,
    dram_bytes_per_second: Option<Number<f64>>,
    dram_read_bytes_per_second: Option<Number<f64>>,
    dram_copy_bytes_per_second: Option<Number<f64>>,
    l2_bytes: Option<Number<u64>>,
    fma_per_cycle: Option<BTreeMap<String, Number<u32>>>,
    #[serde(default)]
    levels: BTreeMap<String, LevelDescription>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LevelDescription {
    latency_cycles: Option<Number<u32>>,
    bytes_per_cycle: Option<Number<f64>>,
}

/// A number, with its source or without.
#[derive(Serialize, Deserialize, Clone)]
#[serde(untagged, expecting = "a number is wanted, or { value = NUMBER, source = \"TEXT\" }")]
enum Number<T> {
    Bare(T),
    Sourced { value: T, source: String },
}

impl<T: Copy> Number<T> {
    fn of(fact: &Fact<T>) -> Number<T> {
        let value = fact.value;
        match fact.source {
            Source::Published(source) | Source::Measured(source) | Source::Derived(source) => {
                Number::Sourced { value, source: source.to_string() }
            }
            Source::NotVerified => Number::Bare(value),
        }
    }

    fn value(&self) -> T {
        match self {
            Number::Bare(value) | Number::Sourced { value, .. } => *value,
        }
    }

    fn fact(&self) -> Fact<T> {
        match self {
            Number::Bare(value) => Fact::not_verified(*value),
            Number::Sourced { value, source } => Fact::published(*value, kept(source)),
        }
    }
}

/// A text that lasts as long as the process.
fn kept(text: &str) -> &'static str {
    Box::leak(text.to_string().into_boxed_str())
}

/// The GPU that a text describes.
pub fn parse(text: &str) -> Result<&'static Target, Diagnosis> {
    let description: Description = toml::from_str(text).map_err(|e| damaged(text, &e))?;
    description.complete()
}

/// What is wrong with a text that is no description, with its line.
fn damaged(text: &str, error: &toml::de::Error) -> Diagnosis {
    let message = error.message().trim().replace('\n', "; ");
    let wrong = Diagnosis::new(format!("is no description of a GPU: {message}"))
        .instead("compare it with what `warpwright targets NAME --toml` prints");
    let Some(start) = error.span().map(|span| span.start.min(text.len())) else { return wrong };
    let before = &text.as_bytes()[..start];
    let number = before.iter().filter(|b| **b == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    wrong.at(format!("line {number} (`{line}`)"))
}

impl Description {
    fn complete(self) -> Result<&'static Target, Diagnosis> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(Diagnosis::new(format!("lacks {}", missing.join(", ")))
                .because("nothing about a GPU is guessed")
                .instead("compare it with what `warpwright targets NAME --toml` prints"));
        }
        self.check()?;
        let name = self.name.as_deref().unwrap_or_default();
        let limits = limits(self.compute_capability.as_deref().unwrap_or_default())?;
        let fact = |number: &Option<Number<f64>>| number.as_ref().map(Number::fact);
        let absent = || Diagnosis::new("lacks a field");
        let rates = rates(&self.fma_per_cycle.clone().unwrap_or_default())?;
        Ok(Box::leak(Box::new(Target {
            name: kept(name),
            product: kept(self.product.as_deref().unwrap_or(name)),
            compute: limits.compute,
            limits,
            sm_count: self.sm_count.as_ref().ok_or_else(absent)?.fact(),
            boost_mhz: self.boost_mhz.as_ref().ok_or_else(absent)?.fact(),
            sustained_mhz: self.sustained_mhz.as_ref().map(Number::fact),
            memory_bytes: self.memory_bytes.as_ref().ok_or_else(absent)?.fact(),
            dram_bytes_per_second: fact(&self.dram_bytes_per_second).ok_or_else(absent)?,
            dram_read_bytes_per_second: fact(&self.dram_read_bytes_per_second),
            dram_copy_bytes_per_second: fact(&self.dram_copy_bytes_per_second),
            l2_bytes: self.l2_bytes.as_ref().ok_or_else(absent)?.fact(),
            levels: self.levels()?,
            rates: Box::leak(rates.into_boxed_slice()),
            product_flops_per_second: &[],
        })))
    }

    /// The fields that must be there and are not.
    fn missing(&self) -> Vec<&'static str> {
        let wanted = [
            ("name", self.name.is_some()),
            ("compute_capability", self.compute_capability.is_some()),
            ("sm_count", self.sm_count.is_some()),
            ("boost_mhz", self.boost_mhz.is_some()),
            ("memory_bytes", self.memory_bytes.is_some()),
            ("dram_bytes_per_second", self.dram_bytes_per_second.is_some()),
            ("l2_bytes", self.l2_bytes.is_some()),
            ("fma_per_cycle", self.fma_per_cycle.as_ref().is_some_and(|rates| !rates.is_empty())),
        ];
        wanted.into_iter().filter(|(_, there)| !there).map(|(field, _)| field).collect()
    }

    /// Numbers of which a GPU has more than none, and a name of its own.
    fn check(&self) -> Result<(), Diagnosis> {
        let name = self.name.as_deref().unwrap_or_default();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(Diagnosis::new(format!("name: `{name}` is no name of a GPU"))
                .instead("use lower-case letters, digits, - and ."));
        }
        if ALL.iter().any(|t| t.name == name) {
            return Err(Diagnosis::new(format!("name: `{name}` is a GPU of the tables"))
                .because("what is found out about one must not count for the other")
                .instead("give it a name of its own"));
        }
        let whole = |number: &Option<Number<u32>>| number.as_ref().map(|n| f64::from(n.value()));
        let large = |number: &Option<Number<u64>>| number.as_ref().map(|n| n.value() as f64);
        let real = |number: &Option<Number<f64>>| number.as_ref().map(Number::value);
        let mut numbers: Vec<(String, Option<f64>)> = [
            ("sm_count", whole(&self.sm_count)),
            ("boost_mhz", whole(&self.boost_mhz)),
            ("sustained_mhz", whole(&self.sustained_mhz)),
            ("memory_bytes", large(&self.memory_bytes)),
            ("dram_bytes_per_second", real(&self.dram_bytes_per_second)),
            ("dram_read_bytes_per_second", real(&self.dram_read_bytes_per_second)),
            ("dram_copy_bytes_per_second", real(&self.dram_copy_bytes_per_second)),
            ("l2_bytes", large(&self.l2_bytes)),
        ]
        .map(|(field, value)| (field.to_string(), value))
        .to_vec();
        for (pipe, rate) in self.fma_per_cycle.iter().flatten() {
            numbers.push((format!("fma_per_cycle.{pipe}"), Some(f64::from(rate.value()))));
        }
        for (level, of) in &self.levels {
            numbers.push((format!("levels.{level}.latency_cycles"), whole(&of.latency_cycles)));
            numbers.push((format!("levels.{level}.bytes_per_cycle"), real(&of.bytes_per_cycle)));
        }
        let wrong = numbers.iter().find(|(_, value)| value.is_some_and(|v| !(v > 0.0 && v.is_finite())));
        match wrong {
            None => Ok(()),
            Some((field, value)) => {
                Err(Diagnosis::new(format!("{field}: {} cannot be", value.unwrap_or(0.0)))
                    .instead("give a number above 0, or leave the field out where it may be"))
            }
        }
    }

    fn levels(&self) -> Result<Levels, Diagnosis> {
        let mut levels = Levels::UNKNOWN;
        for (name, given) in &self.levels {
            let level = match name.as_str() {
                "shared" => &mut levels.shared,
                "l1" => &mut levels.l1,
                "l2" => &mut levels.l2,
                "dram" => &mut levels.dram,
                _ => {
                    return Err(Diagnosis::new(format!("levels.{name}: there is no such level"))
                        .instead("use shared, l1, l2 or dram"));
                }
            };
            *level = Level {
                latency_cycles: given.latency_cycles.as_ref().map(Number::fact),
                bytes_per_cycle: given.bytes_per_cycle.as_ref().map(Number::fact),
            };
        }
        Ok(levels)
    }

    fn of(target: &Target) -> Description {
        let level = |level: &Level| LevelDescription {
            latency_cycles: level.latency_cycles.as_ref().map(Number::of),
            bytes_per_cycle: level.bytes_per_cycle.as_ref().map(Number::of),
        };
        let measured = |(_, level): &(&str, &Level)| **level != Level::UNKNOWN;
        let named = target.levels.named().into_iter().filter(measured);
        let rate = |r: &Rate| (r.pipe.name().to_string(), Number::of(&r.fma_per_clock));
        Description {
            name: Some(target.name.to_string()),
            product: Some(target.product.to_string()),
            compute_capability: Some(target.compute.to_string()),
            sm_count: Some(Number::of(&target.sm_count)),
            boost_mhz: Some(Number::of(&target.boost_mhz)),
            sustained_mhz: target.sustained_mhz.as_ref().map(Number::of),
            memory_bytes: Some(Number::of(&target.memory_bytes)),
            dram_bytes_per_second: Some(Number::of(&target.dram_bytes_per_second)),
            dram_read_bytes_per_second: target.dram_read_bytes_per_second.as_ref().map(Number::of),
            dram_copy_bytes_per_second: target.dram_copy_bytes_per_second.as_ref().map(Number::of),
            l2_bytes: Some(Number::of(&target.l2_bytes)),
            fma_per_cycle: Some(target.rates.iter().map(rate).collect()),
            levels: named.map(|(name, of)| (name.to_string(), level(of))).collect(),
        }
    }
}

/// The limits of a compute capability in words.
fn limits(compute: &str) -> Result<&'static Limits, Diagnosis> {
    let parsed = compute.split_once('.').and_then(|(major, minor)| {
        Some(ComputeCapability { major: major.parse().ok()?, minor: minor.parse().ok()? })
    });
    parsed.and_then(Limits::of).ok_or_else(|| {
        let known: Vec<String> = Limits::all().iter().map(|l| l.compute.to_string()).collect();
        Diagnosis::new(format!("compute_capability: `{compute}` is none that the tables know"))
            .instead(format!("use one of {}", known.join(", ")))
    })
}

fn rates(given: &BTreeMap<String, Number<u32>>) -> Result<Vec<Rate>, Diagnosis> {
    let rate = |(name, number): (&String, &Number<u32>)| {
        let pipe = Pipe::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
            let known = Pipe::ALL.map(Pipe::name).join(", ");
            Diagnosis::new(format!("fma_per_cycle.{name}: there is no such pipe"))
                .instead(format!("use {known}"))
        })?;
        Ok(Rate::new(pipe, number.fact()))
    };
    given.iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::{parse, print};
    use warpwright_core::target::{ALL, Source, Target};

    const PLAIN: &str = "name = \"mine\"\ncompute_capability = \"8.6\"\nsm_count = 28\nboost_mhz = 1777\n\
                         memory_bytes = 12884901888\ndram_bytes_per_second = 360e9\nl2_bytes = 3145728\n\
                         [fma_per_cycle]\nf32 = 128\n";

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_description_becomes_a_gpu() {
        let mine = parse(PLAIN).unwrap();
        assert_eq!((mine.name, mine.product, mine.sm_count.value), ("mine", "mine", 28));
        assert_eq!(mine.limits.warps_per_sm, 48);
        assert_eq!(mine.sm_count.source, Source::NotVerified);
        let sourced =
            PLAIN.replace("sm_count = 28", "sm_count = { value = 28, source = \"the vendor's page\" }");
        assert_eq!(parse(&sourced).unwrap().sm_count.source, Source::Published("the vendor's page"));
    }

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        assert!(refusal("").starts_with(
            "lacks name, compute_capability, sm_count, boost_mhz, memory_bytes, dram_bytes_per_second, \
             l2_bytes, fma_per_cycle"
        ));
        for field in ["name", "compute_capability", "sm_count", "boost_mhz", "memory_bytes", "l2_bytes"] {
            let text: String =
                PLAIN.lines().filter(|l| !l.starts_with(field)).map(|l| format!("{l}\n")).collect();
            assert!(refusal(&text).starts_with(&format!("lacks {field}, because")), "{}", refusal(&text));
        }
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_line_and_field() {
        let with = |from: &str, to: &str| refusal(&PLAIN.replace(from, to));
        let wrong = with("sm_count = 28", "sm_count = \"many\"");
        assert!(
            wrong.starts_with("line 3 (`sm_count = \"many\"`)") && wrong.contains("a number is wanted"),
            "{wrong}"
        );
        assert!(with("sm_count = 28", "sm_count = -1").contains("sm_count"));
        assert!(with("sm_count = 28", "sm_count = 0").starts_with("sm_count: 0 cannot be"));
        assert!(with("360e9", "nan").starts_with("dram_bytes_per_second: NaN cannot be"));
        assert!(with("boost_mhz", "boost_ghz").contains("boost_ghz"));
        assert!(with("8.6", "4.2").contains("compute_capability: `4.2`"));
        assert!(with("f32 = 128", "f8 = 128").contains("fma_per_cycle.f8: there is no such pipe"));
        assert!(with("mine", "h200").contains("name: `h200` is a GPU of the tables"));
        assert!(with("mine", "My GPU").contains("name: `My GPU`"));
        let level = format!("{PLAIN}[levels.l9]\nlatency_cycles = 3\n");
        assert!(refusal(&level).contains("levels.l9: there is no such level"));
        // Cut anywhere, it is refused or lacks something; it never panics.
        for cut in 0..PLAIN.len() - 1 {
            if let Ok(target) = parse(&PLAIN[..cut]) {
                assert!(PLAIN[..cut].contains("f32 = 1"), "{cut}: {}", target.name);
            }
        }
    }

    #[test]
    fn every_gpu_of_the_tables_survives_being_printed_and_read() {
        for target in ALL {
            let text = print(target).unwrap().replacen(&format!("\"{}\"", target.name), "\"another\"", 1);
            let read = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let value = |t: &Target| {
                (
                    t.compute,
                    t.sm_count.value,
                    t.boost_mhz.value,
                    t.l2_bytes.value,
                    t.rates.len(),
                    t.boost_hz(),
                )
            };
            assert_eq!(value(read), value(target));
            let latency = |t: &Target| t.levels.dram.latency_cycles.map(|f| f.value);
            assert_eq!((latency(read), read.product), (latency(target), target.product));
            let nothing = [read.sm_count.source, target.sm_count.source].map(|s| s == Source::NotVerified);
            assert_eq!(nothing[0], nothing[1], "{}", target.name);
        }
    }
}
