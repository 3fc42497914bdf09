//! What a kernel costs, read from the assembler's report (`--ptxas-options=-v`).

use std::collections::BTreeMap;

/// The resources of one kernel, as the assembler reported them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name as it stands in the machine code (mangled, unless it is `extern "C"`).
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread: local memory, spilled registers included.
    pub stack_bytes: u32,
    /// Bytes stored by spilling, per thread and counted once per instruction.
    pub spill_store_bytes: u32,
    /// Bytes loaded by spilling, likewise.
    pub spill_load_bytes: u32,
    /// Bytes of static shared memory per block.
    pub shared_bytes: u32,
    /// Hardware barriers used.
    pub barriers: u32,
}

/// Reads the report of every kernel in a log. Lines that are not part of a report are passed over.
///
/// ```
/// let log = "ptxas info    : Compiling entry function 'k' for 'sm_90a'
/// ptxas info    : Function properties for k
/// ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
/// ptxas info    : Used 42 registers, used 1 barriers, 128 bytes smem
/// ";
/// let kernels = warpwright_cuda::resources::parse(log);
/// assert_eq!(kernels[0].registers, 42);
/// assert_eq!(kernels[0].shared_bytes, 128);
/// assert_eq!(kernels[0].spill_load_bytes, 12);
/// ```
pub fn parse(log: &str) -> Vec<KernelResources> {
    let mut kernels: Vec<KernelResources> = Vec::new();
    // Functions that are called and not inlined have properties too: only entries count, so the properties
    // wait until it is known whose they are.
    let mut properties: BTreeMap<String, [u32; 3]> = BTreeMap::new();
    let mut of: Option<String> = None;
    for line in log.lines() {
        if let Some(name) = between(line, "Compiling entry function '", "'") {
            kernels.push(KernelResources {
                name: name.to_string(),
                registers: 0,
                stack_bytes: 0,
                spill_store_bytes: 0,
                spill_load_bytes: 0,
                shared_bytes: 0,
                barriers: 0,
            });
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            of = Some(name.trim().to_string());
        } else if let Some(stack) = number_before(line, "bytes stack frame") {
            let stores = number_before(line, "bytes spill stores").unwrap_or(0);
            let loads = number_before(line, "bytes spill loads").unwrap_or(0);
            if let Some(name) = of.take() {
                properties.insert(name, [stack, stores, loads]);
            }
        } else if line.contains(": Used ")
            && let Some(kernel) = kernels.last_mut()
        {
            kernel.registers = number_before(line, "registers").unwrap_or(0);
            kernel.barriers = number_before(line, "barriers").unwrap_or(0);
            kernel.shared_bytes = number_before(line, "bytes smem").unwrap_or(0);
        }
    }
    for kernel in &mut kernels {
        if let Some([stack, stores, loads]) = properties.get(&kernel.name) {
            (kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) =
                (*stack, *stores, *loads);
        }
    }
    kernels
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split_once(after).map(|(name, _)| name)
}

/// The number that stands directly before a phrase.
fn number_before(line: &str, phrase: &str) -> Option<u32> {
    line.split_once(phrase)?.0.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// Two entries and a called function, as NVRTC 13.0 wrote them.
    const LOG: &str = "\
k.cu(3): warning #177-D: variable \"unused\" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90a'
ptxas info    : Function properties for k2
ptxas         .     1104 bytes stack frame, 1692 bytes spill stores, 2252 bytes spill loads
ptxas info    : Function properties for helper
ptxas         .     8 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 1104 bytes cumulative stack size
ptxas info    : Compile time = 33.920 ms
ptxas info    : Compiling entry function '_Z1qILi32EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z1qILi32EEvPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 128 bytes smem, 356 bytes cmem[0]
";

    #[test]
    fn each_entry_has_its_own_numbers() {
        let kernels = parse(LOG);
        assert_eq!(kernels.len(), 2);
        let [k2, q] = &kernels[..] else { unreachable!() };
        assert_eq!((k2.name.as_str(), k2.registers, k2.barriers, k2.shared_bytes), ("k2", 32, 0, 0));
        assert_eq!((k2.stack_bytes, k2.spill_store_bytes, k2.spill_load_bytes), (1104, 1692, 2252));
        assert_eq!(
            (q.name.as_str(), q.registers, q.barriers, q.shared_bytes),
            ("_Z1qILi32EEvPf", 10, 1, 128)
        );
        assert_eq!(q.spill_store_bytes, 0);
    }

    #[test]
    fn any_text_is_read_without_complaint() {
        assert!(parse("").is_empty());
        assert!(parse("ptxas info : Used registers\nFunction properties for \nbytes stack frame").is_empty());
    }
}
