//! GPUs and where their numbers come from: what `targets` prints.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use warpwright_core::target::{Fact, Limits, Pipe, Source, Target};

use super::number::{bytes, flops_per_second};
use super::table::{numbers, render, words};

/// A number with its source.
#[derive(Clone, Debug, Serialize)]
pub struct FactReport {
    /// The number, in the unit that its field names.
    pub value: Value,
    /// How it is known: `published`, `measured`, `derived` or `not_verified`.
    pub kind: &'static str,
    /// From what; null where it is not verified.
    pub source: Option<&'static str>,
}

impl FactReport {
    fn of<T: Copy + Into<Value>>(fact: &Fact<T>) -> FactReport {
        let (kind, source) = match fact.source {
            Source::Published(source) => ("published", Some(source)),
            Source::Measured(source) => ("measured", Some(source)),
            Source::Derived(source) => ("derived", Some(source)),
            Source::NotVerified => ("not_verified", None),
        };
        FactReport { value: fact.value.into(), kind, source }
    }

    fn maybe<T: Copy + Into<Value>>(fact: &Option<Fact<T>>) -> Option<FactReport> {
        fact.as_ref().map(FactReport::of)
    }
}

/// A GPU with all its numbers. What nobody measured is null.
#[derive(Clone, Debug, Serialize)]
pub struct TargetReport {
    /// The name that options take.
    pub name: &'static str,
    /// The name that it is sold under.
    pub product: &'static str,
    /// Its compute capability.
    pub compute_capability: String,
    /// What is particular to the product, by field: each number with its source.
    #[serde(flatten)]
    pub facts: BTreeMap<&'static str, Option<FactReport>>,
    /// Multiply-adds per cycle and multiprocessor, by pipe.
    pub fma_per_cycle: BTreeMap<&'static str, FactReport>,
    /// Floating-point operations per second that follow from that at the boost clock, by pipe.
    pub peak_flops_per_second: BTreeMap<&'static str, f64>,
    /// The most that any product was measured to reach, by type.
    pub product_flops_per_second: BTreeMap<String, FactReport>,
    /// Latency and bandwidth of each level of memory.
    pub levels: BTreeMap<&'static str, LevelReport>,
    /// The limits of its compute capability.
    pub limits: Value,
}

/// A level of memory.
#[derive(Clone, Debug, Serialize)]
pub struct LevelReport {
    /// Cycles of the boost clock from a load to its value.
    pub latency_cycles: Option<FactReport>,
    /// Bytes per cycle and multiprocessor.
    pub bytes_per_cycle: Option<FactReport>,
}

impl TargetReport {
    /// Everything that is known of a GPU.
    pub fn of(target: &Target) -> TargetReport {
        let facts = [
            ("sm_count", Some(FactReport::of(&target.sm_count))),
            ("boost_mhz", Some(FactReport::of(&target.boost_mhz))),
            ("sustained_mhz", FactReport::maybe(&target.sustained_mhz)),
            ("memory_bytes", Some(FactReport::of(&target.memory_bytes))),
            ("dram_bytes_per_second", Some(FactReport::of(&target.dram_bytes_per_second))),
            ("dram_read_bytes_per_second", FactReport::maybe(&target.dram_read_bytes_per_second)),
            ("dram_copy_bytes_per_second", FactReport::maybe(&target.dram_copy_bytes_per_second)),
            ("l2_bytes", Some(FactReport::of(&target.l2_bytes))),
        ];
        let peak = |pipe: Pipe| Some((pipe.name(), 2.0 * target.fma_per_second(pipe)?));
        let products = target.product_flops_per_second.iter();
        let levels = target.levels.named().map(|(name, level)| {
            let latency_cycles = FactReport::maybe(&level.latency_cycles);
            (name, LevelReport { latency_cycles, bytes_per_cycle: FactReport::maybe(&level.bytes_per_cycle) })
        });
        TargetReport {
            name: target.name,
            product: target.product,
            compute_capability: target.compute.to_string(),
            facts: facts.into(),
            fma_per_cycle: target
                .rates
                .iter()
                .map(|r| (r.pipe.name(), FactReport::of(&r.fma_per_clock)))
                .collect(),
            peak_flops_per_second: Pipe::ALL.into_iter().filter_map(peak).collect(),
            product_flops_per_second: products
                .map(|(dtype, fact)| (dtype.to_string(), FactReport::of(fact)))
                .collect(),
            levels: levels.into(),
            limits: limits(target.limits),
        }
    }

    /// Every number on a line of its own, with its source.
    pub fn describe(&self) -> String {
        let mut rows = Vec::new();
        let mut row = |name: String, fact: &Option<FactReport>| {
            let Some(fact) = fact else {
                rows.push(vec![name, "-".to_string(), "nobody measured it".to_string()]);
                return;
            };
            let source = match fact.source {
                Some(source) => format!("{}: {source}", fact.kind),
                None => "not verified".to_string(),
            };
            rows.push(vec![name, amount(&fact.value), source]);
        };
        for (name, fact) in &self.facts {
            row((*name).to_string(), fact);
        }
        for (pipe, fact) in &self.fma_per_cycle {
            row(format!("fma_per_cycle.{pipe}"), &Some(fact.clone()));
        }
        for (dtype, fact) in &self.product_flops_per_second {
            row(format!("product_flops_per_second.{dtype}"), &Some(fact.clone()));
        }
        for (name, level) in &self.levels {
            row(format!("levels.{name}.latency_cycles"), &level.latency_cycles);
            row(format!("levels.{name}.bytes_per_cycle"), &level.bytes_per_cycle);
        }
        let mut limits = Vec::new();
        for (name, value) in self.limits.as_object().into_iter().flatten() {
            limits.push(vec![name.clone(), amount(value)]);
        }
        format!(
            "{} ({}), compute capability {}\n\n{}\n\n{}",
            self.name,
            self.product,
            self.compute_capability,
            render(&[words("number"), numbers("value"), words("source")], &rows),
            render(&[words("limit"), words("value")], &limits)
        )
    }
}

/// The limits of a compute capability as JSON, with their source.
pub fn limits(limits: &Limits) -> Value {
    json!({
        "compute_capability": limits.compute.to_string(),
        "warps_per_sm": limits.warps_per_sm,
        "blocks_per_sm": limits.blocks_per_sm,
        "threads_per_block": Limits::THREADS_PER_BLOCK,
        "registers_per_sm": limits.registers_per_sm,
        "registers_per_block": limits.registers_per_block,
        "registers_per_thread": limits.registers_per_thread,
        "register_allocation_unit": limits.register_allocation_unit,
        "sub_partitions": limits.sub_partitions,
        "shared_per_sm": limits.shared_per_sm,
        "shared_per_block_default": Limits::SHARED_PER_BLOCK_DEFAULT,
        "shared_per_block_opt_in": limits.shared_per_block_opt_in,
        "shared_allocation_unit": limits.shared_allocation_unit,
        "shared_reserved_per_block": limits.shared_reserved_per_block,
        "shared_carveouts_kib": limits.shared_carveouts_kib,
        "barriers_per_sm": limits.barriers_per_sm,
        "portable_cluster_blocks": limits.portable_cluster_blocks,
        "source": limits.source,
        "not_verified": limits.not_verified,
    })
}

/// The limits of every compute capability in a table. Those that are not verified have a question mark.
pub fn limits_table() -> String {
    let columns = [
        words("cc"),
        numbers("warps "),
        numbers("blocks "),
        numbers("registers "),
        numbers("of a block "),
        numbers("of a thread "),
        numbers("unit "),
        numbers("parts "),
        numbers("shared "),
        numbers("of a block "),
        numbers("kept "),
        numbers("unit "),
        numbers("barriers "),
        words("carve-outs, KiB"),
    ];
    let row = |l: &&Limits| {
        let marked = |field: &str, text: String| {
            let mark = if l.not_verified.contains(&field) { "?" } else { " " };
            text + mark
        };
        let number = |field: &str, value: u32| marked(field, value.to_string());
        let size = |field: &str, value: u32| marked(field, bytes(value.into()));
        let carveouts: Vec<String> = l.shared_carveouts_kib.iter().map(u32::to_string).collect();
        vec![
            l.compute.to_string(),
            number("warps_per_sm", l.warps_per_sm),
            number("blocks_per_sm", l.blocks_per_sm),
            number("registers_per_sm", l.registers_per_sm),
            number("registers_per_block", l.registers_per_block),
            number("registers_per_thread", l.registers_per_thread),
            number("register_allocation_unit", l.register_allocation_unit),
            number("sub_partitions", l.sub_partitions),
            size("shared_per_sm", l.shared_per_sm),
            size("shared_per_block_opt_in", l.shared_per_block_opt_in),
            size("shared_reserved_per_block", l.shared_reserved_per_block),
            number("shared_allocation_unit", l.shared_allocation_unit),
            l.barriers_per_sm.map_or_else(|| "- ".to_string(), |n| number("barriers_per_sm", n)),
            marked("shared_carveouts_kib", carveouts.join(" ")),
        ]
    };
    let table = render(&columns, &Limits::all().iter().map(row).collect::<Vec<_>>());
    format!("{table}\n\n? is not verified, - sets no limit. Sources: --json.")
}

fn amount(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_string(),
        Value::Array(values) => values.iter().map(amount).collect::<Vec<_>>().join(" "),
        Value::Number(number) => match number.as_f64() {
            Some(real) if !number.is_u64() && real >= 1e6 => format!("{real:e}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// GPUs in a table, a line each. A number that is not verified has a question mark.
pub fn table(targets: &[&Target]) -> String {
    fn marked<T>(fact: &Fact<T>, text: String) -> String {
        if fact.source == Source::NotVerified { text + "?" } else { text + " " }
    }
    let columns = [
        words("name"),
        words("cc"),
        numbers("SMs "),
        numbers("boost MHz "),
        numbers("sustained "),
        numbers("memory "),
        numbers("GB/s "),
        numbers("read "),
        numbers("L2 "),
        numbers("f32 peak"),
        numbers("f64 peak"),
        numbers("f16 matrix"),
    ];
    let dash = || "- ".to_string();
    let row = |t: &&Target| {
        let gigabytes = |fact: &Fact<f64>| marked(fact, format!("{:.0}", fact.value / 1e9));
        let peak = |pipe: Pipe| {
            t.fma_per_second(pipe).map_or_else(|| "-".to_string(), |rate| flops_per_second(2.0 * rate))
        };
        vec![
            t.name.to_string(),
            t.compute.to_string(),
            marked(&t.sm_count, t.sm_count.value.to_string()),
            marked(&t.boost_mhz, t.boost_mhz.value.to_string()),
            t.sustained_mhz.as_ref().map_or_else(dash, |f| marked(f, f.value.to_string())),
            marked(&t.memory_bytes, bytes(t.memory_bytes.value)),
            gigabytes(&t.dram_bytes_per_second),
            t.dram_read_bytes_per_second.as_ref().map_or_else(dash, gigabytes),
            marked(&t.l2_bytes, bytes(t.l2_bytes.value)),
            peak(Pipe::F32),
            peak(Pipe::F64),
            peak(Pipe::TensorF16),
        ]
    };
    let table = render(&columns, &targets.iter().map(row).collect::<Vec<_>>());
    format!(
        "{table}\n\n? is not verified, - is not measured or not there. The source of each number, and every other number: targets NAME, or --json."
    )
}
