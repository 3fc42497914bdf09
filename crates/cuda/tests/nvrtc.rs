//! Compiling for real, on any machine with NVRTC; passed over with a line where there is none.

use warpwright_cuda::machine_code::reorder;
use warpwright_cuda::nvrtc::Nvrtc;
use warpwright_cuda::{
    CompileCache, CompileError, Error, Library, Options, Source, compile::compile, disassemble::disassemble,
    locate,
};

/// Two kernels of known cost: one plain, one with a barrier, shared memory and a warning.
const TWO_KERNELS: &str = r#"
extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }
extern "C" __global__ void swap(float* x) {
  __shared__ float held[64];
  int unused;
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[threadIdx.x ^ 1];
}
"#;

fn nvrtc() -> Option<&'static Nvrtc> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(Error::LibraryMissing { library: Library::Nvrtc, advice, .. }) => {
            assert!(advice.contains("pip install"), "the error must say how to get it: {advice}");
            eprintln!("skipped: no NVRTC here ({advice})");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

fn complaint(text: &str) -> CompileError {
    match compile(&Source::new("bad.cu", text), &Options::for_arch("sm_80")) {
        Err(Error::Compile(complaint)) => *complaint,
        other => panic!("expected a complaint, got {other:?}"),
    }
}

#[test]
fn machine_code_and_its_report_come_out_for_every_architecture_of_interest() {
    let Some(nvrtc) = nvrtc() else { return };
    let known = nvrtc.architectures().unwrap();
    for arch in ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"] {
        let number: u32 = arch.trim_start_matches("sm_").trim_end_matches('a').parse().unwrap();
        if !known.contains(&number) {
            eprintln!("skipped: this NVRTC does not know {arch}");
            continue;
        }
        let compiled =
            compile(&Source::new("two.cu", TWO_KERNELS), &Options::for_arch(arch).with_ptx()).unwrap();
        assert!(compiled.cubin.starts_with(b"\x7fELF"));
        assert_eq!(compiled.kernels.len(), 2, "{}", compiled.log);
        let (scale, swap) = (compiled.kernel("scale").unwrap(), compiled.kernel("swap").unwrap());
        assert!((1..=40).contains(&scale.registers) && (1..=40).contains(&swap.registers));
        // Later architectures set some shared memory aside for the system.
        assert!((256..=256 + 1024).contains(&swap.shared_bytes), "{swap:?}");
        assert_eq!((scale.barriers, swap.barriers), (0, 1));
        assert_eq!((scale.stack_bytes, scale.spill_store_bytes, scale.spill_load_bytes), (0, 0, 0));
        assert!(compiled.ptx.unwrap().contains(".entry scale"));
    }
}

#[test]
fn warnings_are_kept_on_success() {
    if nvrtc().is_none() {
        return;
    }
    let compiled = compile(&Source::new("two.cu", TWO_KERNELS), &Options::for_arch("sm_80")).unwrap();
    assert!(compiled.warnings().contains("\"unused\" was declared but never referenced"), "{}", compiled.log);
    assert!(!compiled.warnings().contains("ptxas"));
}

#[test]
fn a_cap_on_registers_shows_as_spills() {
    if nvrtc().is_none() {
        return;
    }
    // 64 values stay alive across a loop whose length is not known.
    let text = r#"
extern "C" __global__ void many(float* x, int n) {
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = x[i * n];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < 64; i++) v[i] = v[i] * v[(i + 7) % 64] + x[j];
  for (int i = 0; i < 64; i++) x[i * n] = v[i];
}
"#;
    let free = Options::for_arch("sm_80");
    let capped = Options { max_registers: Some(32), ..free.clone() };
    let source = Source::new("many.cu", text);
    let (free, capped) = (compile(&source, &free).unwrap(), compile(&source, &capped).unwrap());
    let (free, capped) = (free.kernel("many").unwrap(), capped.kernel("many").unwrap());
    assert!(free.registers > 64 && free.spill_store_bytes == 0, "{free:?}");
    assert!(capped.registers <= 32 && capped.spill_store_bytes > 0 && capped.stack_bytes > 0, "{capped:?}");
}

#[test]
fn a_bad_source_is_explained_with_its_line() {
    if nvrtc().is_none() {
        return;
    }
    let complaint = complaint("extern \"C\" __global__ void k(float* x) {\n  x[0] = y;\n}\n");
    assert_eq!((complaint.line, complaint.text.as_deref()), (Some(2), Some("  x[0] = y;")));
    assert!(complaint.message.contains("identifier \"y\" is undefined"), "{}", complaint.message);
    let shown = Error::Compile(Box::new(complaint)).to_string();
    assert!(shown.contains("bad.cu") && shown.contains("line 2: x[0] = y;"), "{shown}");
}

#[test]
fn bad_inline_assembly_is_explained_with_the_line_of_the_ptx() {
    if nvrtc().is_none() {
        return;
    }
    let text = "extern \"C\" __global__ void k(int* x) { asm volatile(\"no.such.instruction;\"); }";
    let complaint = complaint(text);
    assert!(complaint.text.as_deref().is_some_and(|t| t.contains("no.such.instruction")), "{complaint:?}");
}

#[test]
fn an_unknown_architecture_or_option_is_an_error() {
    if nvrtc().is_none() {
        return;
    }
    let source = Source::new("two.cu", TWO_KERNELS);
    for options in [
        Options::for_arch("sm_1"),
        Options { extra: vec!["--no-such-option".to_string()], ..Options::for_arch("sm_80") },
    ] {
        match compile(&source, &options) {
            Err(error @ Error::Nvrtc { advice: Some(_), .. }) => assert!(error.to_string().contains("help:")),
            other => panic!("{other:?}"),
        }
    }
    let null = compile(&Source::new("null.cu", "a\0b"), &Options::for_arch("sm_80"));
    assert!(matches!(null, Err(Error::Invalid { .. })));
}

#[test]
fn the_cache_gives_the_same_kernel_without_compiling() {
    if nvrtc().is_none() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let cache = CompileCache::at(root.path());
    let (source, options) = (Source::new("two.cu", TWO_KERNELS), Options::for_arch("sm_80"));
    let first = cache.compile(&source, &options).unwrap();
    let second = cache.compile(&source, &options).unwrap();
    assert_eq!((first.hit, second.hit), (false, true));
    assert_eq!(first.compiled, second.compiled);
}

#[test]
fn several_threads_compile_at_once() {
    if nvrtc().is_none() {
        return;
    }
    let compile_one = |n: u32| {
        let text = format!("extern \"C\" __global__ void k(int* x) {{ x[threadIdx.x] = {n}; }}");
        compile(&Source::new("k.cu", &text), &Options::for_arch("sm_80")).unwrap()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|n| scope.spawn(move || compile_one(n))).collect();
        for compilation in running {
            assert_eq!(compilation.join().unwrap().kernels.len(), 1);
        }
    });
}

#[test]
fn the_kernels_of_the_self_test_compile() {
    if nvrtc().is_none() {
        return;
    }
    for (name, text, arch) in [
        ("kernels.cu", include_str!("../examples/selftest/kernels.cu"), "sm_80"),
        ("kernels.cu", include_str!("../examples/selftest/kernels.cu"), "sm_90"),
        ("hopper.cu", include_str!("../examples/selftest/hopper.cu"), "sm_90"),
    ] {
        let compiled = compile(&Source::new(name, text), &Options::for_arch(arch)).unwrap();
        assert_eq!(compiled.warnings(), "");
        assert!(compiled.kernels.iter().all(|k| k.spill_store_bytes == 0));
    }
}

#[test]
fn machine_code_can_be_read_back() {
    if nvrtc().is_none() {
        return;
    }
    let compiled = compile(&Source::new("two.cu", TWO_KERNELS), &Options::for_arch("sm_80")).unwrap();
    let disassembly = match disassemble(&compiled.cubin) {
        Err(Error::Disassembler { advice, .. }) if locate::disassembler().is_none() => {
            eprintln!("skipped: no disassembler here ({advice})");
            return;
        }
        other => other.unwrap(),
    };
    let swap = disassembly.function("swap").unwrap();
    let count =
        |start: &str| swap.counts().iter().filter(|(name, _)| name.starts_with(start)).map(|(_, n)| n).sum();
    let expected: [(&str, usize); 5] = [("LDG", 1), ("STS", 1), ("BAR", 1), ("LDS", 1), ("STG", 1)];
    for (start, wanted) in expected {
        let found: usize = count(start);
        assert_eq!(found, wanted, "{start} in {:?}", swap.instructions);
    }
    assert!(matches!(disassemble(b"not machine code"), Err(Error::Disassembler { .. })));
}

/// An outer product of 8 x 8 in registers, again and again.
const OUTER_PRODUCT: &str = r#"
extern "C" __global__ void __launch_bounds__(128) outer(const float* a, const float* b, float* c, int n) {
  __shared__ float as[64][64], bs[64][64];
  for (int i = threadIdx.x; i < 4096; i += 128) { as[i / 64][i % 64] = a[i]; bs[i / 64][i % 64] = b[i]; }
  __syncthreads();
  float sums[8][8] = {};
  for (int r = 0; r < n; ++r)
    for (int k = 0; k < 64; ++k)
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sums[i][j] += as[8 * (threadIdx.x / 8 % 8) + i][k] * bs[k][8 * (threadIdx.x % 8) + j];
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(threadIdx.x * 8 + i) * 8 + j] = sums[i][j];
}
"#;

#[test]
fn multiply_adds_change_places_and_nothing_else_changes() {
    let Some(_) = nvrtc() else { return };
    let options = Options::for_arch("sm_90a");
    let source = Source::new("outer.cu", OUTER_PRODUCT);
    let before = compile(&source, &options).unwrap().cubin;
    let after = compile(&source, &options.clone().with_reordering(true)).unwrap().cubin;
    let mut reordered = before.clone();
    let found = reorder(&mut reordered);
    assert_eq!(reordered, after);
    assert!(found.functions == 1 && found.multiply_adds >= 64, "{found:?}");
    assert!(found.cycles[1] < found.cycles[0], "{found:?}");
    if locate::disassembler().is_none() {
        eprintln!("skipped: no nvdisasm here ({})", locate::NVDISASM_COMMAND);
        return;
    }
    let [before, after] =
        [before, after].map(|c| disassemble(&c).unwrap().function("outer").unwrap().instructions.clone());
    assert_ne!(before, after);
    let is_product = |i: &&String| i.starts_with("FFMA ");
    let operands = |i: &String| {
        let text = i.replace(".reuse", "");
        let mut operands: Vec<String> = text["FFMA ".len()..].split(", ").map(str::to_string).collect();
        operands[1..3].sort();
        operands
    };
    // Between other instructions, which stay where they are, stand the same products.
    let groups = |code: &[String]| -> Vec<Vec<Vec<String>>> {
        let groups = code.split(|i| !is_product(&i));
        groups.map(|g| g.iter().map(operands).collect()).collect()
    };
    let sorted = |code: &[String]| {
        let mut all = groups(code);
        all.iter_mut().for_each(|g| g.sort());
        all
    };
    assert_eq!(sorted(&before), sorted(&after));
    let others = |code: &[String]| -> Vec<String> {
        code.iter()
            .map(|i| if is_product(&i) { "FFMA".to_string() } else { i.replace(".reuse", "") })
            .collect()
    };
    assert_eq!(others(&before), others(&after));
    // What one multiply-add does for another, it does still.
    for (before, after) in groups(&before).iter().zip(&groups(&after)) {
        let uses =
            |a: &[String], b: &[String]| b[1..].contains(&a[0]) || a[1..].contains(&b[0]) || a[0] == b[0];
        for (at, later) in before.iter().enumerate() {
            for earlier in before[..at].iter().filter(|e| uses(e, later)) {
                let place = |of: &Vec<String>| after.iter().position(|i| i == of).unwrap();
                assert!(earlier == later || place(earlier) < place(later), "{earlier:?} {later:?}");
            }
        }
    }
}
