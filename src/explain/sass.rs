//! The instructions that NVIDIA's compiler makes: how many of each kind, in the loop that multiplies the most or in the whole
//! kernel. Compiling takes a second or more, so it is done only where it is asked for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::disassemble::{Function, disassemble};

use crate::compile;
use crate::gpu::{diagnosis, options};
use crate::modelled;
use crate::problem::Problem;

/// What the compiler made of a launch. Counted in machine code, not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// How the numbers came about: by the compiler, counted in what it made.
    pub kind: &'static str,
    /// The kernel.
    pub kernel: String,
    /// The architecture that it was compiled for.
    pub arch: String,
    /// NVRTC's version.
    pub compiler: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of registers that are kept in memory.
    pub spilled_bytes: u32,
    /// Instructions in all.
    pub instructions: usize,
    /// What is counted: `loop` or `kernel`.
    pub part: &'static str,
    /// The instructions of that part.
    pub counted: usize,
    /// How many of each kind, the most first.
    pub mix: Vec<Group>,
}

/// Instructions of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The kind.
    pub name: &'static str,
    /// How many there are.
    pub count: usize,
    /// The part of all that are counted.
    pub part: f64,
    /// Operations of this kind, with how often each occurs, the most first.
    pub operations: Vec<(String, usize)>,
}

/// Compiles the launches that are made, and counts. What is left of a program with several versions is what the problem needs.
///
/// # Errors
/// No NVRTC or no disassembler, and source that does not compile.
pub fn of(
    modelled: &modelled::Subject,
    problem: &Problem,
    target: &Target,
) -> Result<Vec<Machine>, Diagnosis> {
    let text = compile::cuda_for(modelled.valid(), problem)?;
    let settings = options(&target.arch_for(&[]), &text, target);
    let unknown = |sym| Diagnosis::new(format!("`{sym}` has no value when the kernel is launched"));
    let numbers = text.launched(&|s| modelled.value(s)).map_err(unknown)?;
    let mut out = Vec::new();
    for number in numbers {
        let name = &text.kernels[number].name;
        let file = format!("{name}.cu");
        let unit = warpwright_cuda::Source::new(&file, &text.units[number]);
        let compiled = warpwright_cuda::compile::compile(&unit, &settings).map_err(diagnosis)?;
        let disassembly = disassemble(&compiled.cubin).map_err(diagnosis)?;
        let (Some(resources), Some(function)) = (compiled.kernel(name), disassembly.function(name)) else {
            return Err(Diagnosis::new(format!("the compiler made no kernel `{name}`")));
        };
        let hottest = hottest(function);
        let range = hottest.clone().unwrap_or(0..function.instructions.len());
        out.push(Machine {
            kind: "compiled",
            kernel: name.clone(),
            arch: compiled.arch.clone(),
            compiler: format!("{}.{}", compiled.compiler.0, compiled.compiler.1),
            registers: resources.registers,
            spilled_bytes: resources.spill_store_bytes,
            instructions: function.instructions.len(),
            part: if hottest.is_some() { "loop" } else { "kernel" },
            counted: range.len(),
            mix: mix(&function.counts_in(range)),
        });
    }
    Ok(out)
}

/// The innermost loop with the most instructions that multiply; `None` where no loop multiplies.
fn hottest(function: &Function) -> Option<Range<usize>> {
    let multiplies = |l: &Range<usize>| -> usize {
        let counts = function.counts_in(l.clone());
        counts.iter().filter(|(operation, _)| kind(operation) == MATH).map(|(_, n)| n).sum()
    };
    let innermost = |l: &&Range<usize>| {
        !function
            .loops
            .iter()
            .any(|other| other != *l && l.start <= other.start && other.end <= l.end && multiplies(other) > 0)
    };
    let found = function.loops.iter().filter(innermost).max_by_key(|l| multiplies(l))?;
    (multiplies(found) > 0).then(|| found.clone())
}

/// The name of the kind of instructions that the kernel is there for.
const MATH: &str = "multiply-adds";

/// The kinds, each with the beginnings of its operations. What is in none is other.
const KINDS: &[(&str, &[&str])] = &[
    (MATH, &["FFMA", "DFMA", "HFMA", "HMMA", "DMMA", "IMMA", "HGMMA", "QGMMA", "IGMMA"]),
    (
        "other floating point",
        &["FADD", "FMUL", "DADD", "DMUL", "HADD", "HMUL", "FMNMX", "FSETP", "DSETP", "F2F", "MUFU", "FSEL"],
    ),
    ("shared memory", &["LDS", "STS", "LDSM", "STSM", "ATOMS"]),
    (
        "global memory",
        &["LDG", "STG", "LDGSTS", "UBLKCP", "UTMALDG", "UTMASTG", "RED", "ATOMG", "ATOM", "LD", "ST"],
    ),
    ("local memory", &["LDL", "STL"]),
    ("constants", &["LDC", "ULDC"]),
    (
        "control",
        &[
            "BRA",
            "EXIT",
            "RET",
            "CALL",
            "BSSY",
            "BSYNC",
            "WARPSYNC",
            "BREAK",
            "NANOSLEEP",
            "YIELD",
            "JMP",
            "BRX",
        ],
    ),
    (
        "synchronisation",
        &["BAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "MEMBAR", "WARPGROUP", "ARRIVES", "ERRBAR", "CCTL"],
    ),
    ("moves", &["MOV", "UMOV", "S2R", "S2UR", "CS2R", "R2UR", "SHFL", "PRMT", "SEL", "VOTE"]),
    (
        "integer",
        &[
            "IMAD", "IADD", "IADD3", "ISETP", "LEA", "LOP3", "SHF", "UIADD3", "UIMAD", "ULEA", "ULOP3",
            "USHF", "UISETP", "PLOP3", "UPLOP3", "IABS", "IMNMX", "I2F", "F2I", "USEL", "VIADD", "BREV",
            "FLO", "POPC", "UPRMT", "VIMNMX", "R2P", "P2R", "SGXT", "VABSDIFF",
        ],
    ),
];

fn kind(operation: &str) -> &'static str {
    let stem = operation.split('.').next().unwrap_or_default();
    // HFMA2 and HADD2 are two at a time.
    let stem = stem.strip_suffix('2').filter(|s| s.starts_with('H')).unwrap_or(stem);
    KINDS.iter().find(|(_, stems)| stems.contains(&stem)).map_or("other", |(name, _)| *name)
}

fn mix(counts: &BTreeMap<&str, usize>) -> Vec<Group> {
    let all: usize = counts.values().sum();
    let mut groups: Vec<Group> = Vec::new();
    for (operation, count) in counts {
        let name = kind(operation);
        let entry = (operation.to_string(), *count);
        match groups.iter_mut().find(|g| g.name == name) {
            Some(group) => {
                group.count += count;
                group.operations.push(entry);
            }
            None => groups.push(Group { name, count: *count, part: 0.0, operations: vec![entry] }),
        }
    }
    for group in &mut groups {
        group.part = group.count as f64 / all.max(1) as f64;
        group.operations.sort_by_key(|(_, count)| Reverse(*count));
    }
    groups.sort_by_key(|g| Reverse(g.count));
    groups
}

#[cfg(test)]
mod tests {
    use super::{Function, hottest, kind, mix};

    #[test]
    fn operations_have_kinds_and_the_inner_loop_that_multiplies_counts() {
        assert_eq!(
            ["FFMA", "DMMA.884", "LDS.128", "LDGSTS.E.BYPASS.128", "IMAD.WIDE", "BRA", "HFMA2.MMA", "XYZZY"]
                .map(kind),
            [
                "multiply-adds",
                "multiply-adds",
                "shared memory",
                "global memory",
                "integer",
                "control",
                "multiply-adds",
                "other"
            ]
        );
        // A loop around two, of which the second multiplies more.
        let lines = [
            "MOV R1, R2",
            "FFMA R6, R6, R3, R6",
            "@P1 BRA `(.L_2)",
            "FFMA R4, R4, R3, R4",
            "FFMA R5, R5, R3, R5",
            "@P0 BRA `(.L_1)",
            "BRA `(.L_0)",
        ];
        let function = Function {
            name: "k".to_string(),
            instructions: lines.map(str::to_string).to_vec(),
            loops: vec![1..3, 3..6, 0..7],
        };
        assert_eq!(hottest(&function), Some(3..6));
        let mix = mix(&function.counts_in(3..6));
        assert_eq!((mix[0].name, mix[0].count, mix[1].name), ("multiply-adds", 2, "control"));
        let still = Function { loops: vec![0..1, 6..7], ..function };
        assert_eq!(hottest(&still), None);
    }
}
