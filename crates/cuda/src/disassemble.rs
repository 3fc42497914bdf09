//! Machine code back to text, by NVIDIA's disassembler. No GPU is needed.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::locate;

/// The instructions of every kernel in a piece of machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disassembly {
    /// The disassembler's text.
    pub text: String,
    /// The kernels and called functions, in the text's order.
    pub functions: Vec<Function>,
}

/// The instructions of one kernel, or of a function that was not inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name as it stands in the machine code.
    pub name: String,
    /// Its instructions as written, predicates included, in order. The branch to itself and the filling that
    /// the compiler puts after the end are left out.
    pub instructions: Vec<String>,
    /// The loops: from an instruction that a later one branches back to, to that branch, which is the last of the range.
    pub loops: Vec<Range<usize>>,
}

impl Disassembly {
    /// The instructions of the kernel of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }
}

impl Function {
    /// How often each operation occurs, by its full name, as in `LDG.E.128`.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        self.counts_in(0..self.instructions.len())
    }

    /// How often each operation occurs in a part of the instructions.
    pub fn counts_in(&self, part: Range<usize>) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for operation in self.instructions.get(part).unwrap_or_default().iter().filter_map(|i| operation(i)) {
            *counts.entry(operation).or_default() += 1;
        }
        counts
    }
}

/// The operation of an instruction, behind its predicate: `LDG.E` of `@!P0 LDG.E R2, [R4.64]`.
fn operation(instruction: &str) -> Option<&str> {
    instruction.split_whitespace().find(|word| !word.starts_with('@'))
}

/// Disassembles machine code.
pub fn disassemble(cubin: &[u8]) -> Result<Disassembly> {
    let advice =
        || format!("{}, or put a CUDA toolkit's bin directory on the PATH", locate::NVDISASM_COMMAND);
    let failed = |reason: String| Error::Disassembler { reason, advice: advice() };
    let tool = locate::disassembler().ok_or_else(|| failed("was not found".to_string()))?;
    // The tool wants to seek in its input, so a file it must be.
    let file = Scratch::with(cubin).map_err(|e| failed(format!("could not be given its input: {e}")))?;
    let run = Command::new(&tool).arg("-c").arg(&file.path).output();
    let output = run.map_err(|e| failed(format!("could not be run: {}: {e}", tool.display())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(failed(format!("failed: {said}")));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Disassembly { functions: parse(&text), text })
}

/// Reads the disassembler's text.
fn parse(text: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(".text.").and_then(|l| l.strip_suffix(':')) {
            labels.clear();
            functions.push(Function { name: name.to_string(), instructions: Vec::new(), loops: Vec::new() });
            continue;
        }
        let Some(function) = functions.last_mut() else { continue };
        let here = function.instructions.len();
        if let Some(label) = line.strip_suffix(':').filter(|l| l.starts_with(".L")) {
            labels.insert(label, here);
        } else if let Some(instruction) = instruction(line) {
            let to =
                branches_to(instruction).and_then(|label| labels.get(label)).filter(|begin| **begin < here);
            function.loops.extend(to.map(|begin| *begin..here + 1));
            function.instructions.push(instruction.to_string());
        }
    }
    for function in &mut functions {
        let filling = |i: &String| matches!(operation(i), Some("NOP" | "BRA"));
        // Behind the last EXIT or RET stands only what is never reached.
        let end = function.instructions.iter().rposition(|i| !filling(i)).map_or(0, |last| last + 1);
        function.instructions.truncate(end);
        function.loops.retain(|l| l.end <= end);
    }
    functions
}

/// The label that a branch such as ``@P1 BRA `(.L_x_1)`` goes to.
fn branches_to(instruction: &str) -> Option<&str> {
    let branches = operation(instruction)?.split('.').next() == Some("BRA");
    let (_, label) = instruction.split_once("`(").filter(|_| branches)?;
    Some(label.split_once(')')?.0)
}

/// The instruction on a line such as `/*0010*/   S2R R2, SR_TID.X ;`.
fn instruction(line: &str) -> Option<&str> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    u64::from_str_radix(address, 16).ok()?;
    Some(rest.split_once(';')?.0.trim().trim_start_matches('{').trim())
}

/// A file of our own in the system's directory for such, gone when dropped.
struct Scratch {
    path: std::path::PathBuf,
}

impl Scratch {
    fn with(bytes: &[u8]) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("warpwright-{}-{}.cubin", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // `create_new`, so that a link planted under the name is not followed.
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        let scratch = Self { path };
        file.write_all(bytes)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    const TEXT: &str = "\
.text.one:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
.L_x_1:
        /*0020*/               @P1 BRA `(.L_x_1) ;
        /*0030*/                   LDG.E.128 R8, desc[UR4][R2.64+0x10] ;
        /*0038*/               @P2 BRA.U UP0, `(.L_x_1) ;
        /*0040*/                   EXIT ;
.L_x_2:
        /*0050*/                   BRA `(.L_x_2);
        /*0060*/                   NOP;
.L_x_3:


//--------------------- .text.two --------------------------
.text.two:
        /*0000*/                   EXIT ;
";

    #[test]
    fn instructions_are_counted_per_function_up_to_the_end() {
        let functions = parse(TEXT);
        assert_eq!(functions.len(), 2);
        assert_eq!(functions[0].instructions.len(), 6);
        assert_eq!(functions[0].instructions[1], "@!P0 LDG.E.128 R4, desc[UR4][R2.64]");
        assert_eq!(functions[0].counts()["LDG.E.128"], 2);
        assert_eq!(functions[0].counts()["BRA"], 1);
        let loops: Vec<(usize, usize)> = functions[0].loops.iter().map(|l| (l.start, l.end)).collect();
        assert_eq!(loops, [(2, 5)], "the branch to itself at the end, and to what is here, are none");
        assert_eq!(functions[0].counts_in(2..5)["LDG.E.128"], 1);
        assert_eq!((functions[1].name.as_str(), functions[1].instructions.len()), ("two", 1));
    }
}
