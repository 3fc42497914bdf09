//! What the simulator says of small programs: counters, hazards, pictures, domains, samples.

mod common;

use common::{read, specification, text};
use num_complex::Complex;
use warpwright_core::ir::Program;
use warpwright_sim::exact::{self, ExactReport, Trials};
use warpwright_sim::{
    Arguments, Blocks, Claim, Counters, HazardKind, Mode, Options, Report, Tensor, simulate,
};

fn floats(values: impl Iterator<Item = f32>) -> Tensor {
    Tensor::from(values.flat_map(f32::to_le_bytes).collect::<Vec<_>>())
}

fn run(
    program: &Program,
    integers: &[(&str, i64)],
    tensors: &[(&str, Tensor)],
    mode: Mode,
) -> (Report, Arguments) {
    let mut arguments = Arguments::default();
    arguments.integers.extend(integers.iter().map(|(n, v)| ((*n).to_string(), *v)));
    arguments.tensors.extend(tensors.iter().map(|(n, t)| ((*n).to_string(), t.clone())));
    arguments.scalars.insert("alpha".into(), Complex::new(1.0, 0.0));
    arguments.scalars.insert("beta".into(), Complex::new(0.0, 0.0));
    let options = Options { mode, ..Options::default() };
    let report = simulate(program, &mut arguments, &options).unwrap_or_else(|d| panic!("{d}"));
    (report, arguments)
}

fn values(arguments: &Arguments, name: &str) -> Vec<f32> {
    let bytes = &arguments.tensors[name].bytes;
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn counters(body: &str) -> Counters {
    let program = read(&format!(
        "program p(n: size, x: in f32[4096], y: out f32[4096]) {{ for b in block.x(1) {{ {body} }} }}"
    ));
    let (report, _) =
        run(&program, &[("n", 4096)], &[("x", floats((0..4096).map(|i| i as f32)))], Mode::Simt);
    assert!(report.passed(), "{report}");
    report.counters
}

#[test]
fn requests_sectors_and_wavefronts_are_those_of_a_profiler() {
    let coalesced = counters("for t in threads(256@1) { y[t] = x[t] }");
    assert_eq!((coalesced.global_load_requests, coalesced.global_load_sectors), (8, 32));
    assert_eq!((coalesced.global_store_requests, coalesced.global_store_sectors), (8, 32));
    let strided = counters("for t in threads(32@1) { y[t] = x[32*t] }");
    assert_eq!((strided.global_load_requests, strided.global_load_sectors), (1, 32));
    let wide = counters("for t in threads(32@1) { for v in vector 0..4 { y[4*t + v] = x[4*t + v] } }");
    assert_eq!((wide.global_load_requests, wide.global_load_sectors), (1, 16));
    // A row that is read at once and stored as a column is stored element by element.
    let turned = counters(
        "alloc s: f32[4, 32] shared
         for t in threads(32@1) { for v in vector 0..4 { s[v, t] = x[4*t + v] } }
         barrier
         for t in threads(32@1) { y[t] = s[0, t] }",
    );
    assert_eq!((turned.global_load_requests, turned.global_load_sectors), (1, 16));
    assert_eq!((turned.shared_store_requests, turned.shared_store_wavefronts), (4, 4));
    // Parts of a number lie in a plane each, of which all are asked for.
    let split = counters(
        "alloc s: f32[32] shared split
         for t in threads(32@1) { s[t] = x[t] }
         barrier
         for t in threads(32@1) { y[t] = s[t] }",
    );
    assert_eq!((split.shared_store_requests, split.shared_store_wavefronts), (2, 2));
    assert_eq!((split.shared_load_requests, split.shared_load_wavefronts), (2, 2));
    // One element for all is read once.
    let spread = counters("for t in threads(32@1) { for v in vector 0..4 { y[4*t + v] = x[t] } }");
    assert_eq!((spread.global_load_requests, spread.global_load_sectors), (1, 4));
    assert_eq!((spread.global_store_requests, spread.global_store_sectors), (1, 16));
    // Each lane owns two neighbours in a row of a matrix instruction's result.
    let owned = |by: &str, store: &str| {
        counters(&format!(
            "for w in threads(1@32) {{ alloc acc: f32[16, 8] reg frag D16x8
               for (i, j) in own acc[:, :] {{ acc[i, j] = x[0] }}
               for (i, j{by}) in own acc[:, :] {{ {store} }} }}"
        ))
    };
    let single = owned("", "y[8*i + j] = acc[i, j]");
    assert_eq!((single.global_store_requests, single.global_store_sectors), (4, 32));
    let pairs = owned(" by 2", "for v in vector 0..2 { y[8*i + j + v] = acc[i, j + v] }");
    assert_eq!((pairs.global_store_requests, pairs.global_store_sectors), (2, 16));
    let columns = counters(
        "alloc s: f32[32, 32] shared
         for t in threads(32@1) { for i in 0..32 { s[i, t] = x[32*i + t] } }
         barrier
         for t in threads(32@1) { y[t] = s[t, 0] }",
    );
    assert_eq!((columns.shared_store_requests, columns.shared_store_wavefronts), (32, 32));
    assert_eq!((columns.shared_load_requests, columns.shared_load_wavefronts), (1, 32));
    assert_eq!(columns.barriers, 1);
    let padded = counters(
        "alloc s: f32[32, 32] shared layout (r, c) => 33*r + c
         for t in threads(32@1) { for i in 0..32 { s[i, t] = x[32*i + t] } }
         barrier
         for t in threads(32@1) { y[t] = s[t, 0] }",
    );
    assert_eq!((padded.shared_load_requests, padded.shared_load_wavefronts), (1, 1));
    let branches = counters("for t in threads(64@1) { if t < 40 { y[t] = x[t] } }");
    assert_eq!(branches.divergent_branches, 1);
}

#[test]
fn multiply_adds_are_counted_for_active_lanes() {
    let c = counters(
        "for t in threads(40@1) { alloc a: f32[1] reg a[0] = 0 for k in 0..10 { a[0] += x[k] * x[t] } y[t] = a[0] }",
    );
    assert_eq!(c.fma, 400);
    let program = read(&text("sgemm_block_tiling"));
    let matrix = || floats((0..256 * 256).map(|i| (i % 7) as f32));
    let integers = [("M", 256), ("N", 128), ("K", 24), ("lda", 24), ("ldb", 128), ("ldc", 128), ("beta0", 1)];
    let (report, _) =
        run(&program, &integers, &[("A", matrix()), ("B", matrix()), ("C", matrix())], Mode::Simt);
    assert!(report.passed(), "{report}");
    assert_eq!(report.counters.fma, 256 * 128 * 24);
    assert_eq!((report.counters.blocks_simulated, report.counters.blocks_total), (2, 2));
    assert_eq!(report.counters.barriers, 2 * 2 * 3);
    assert_eq!(report.launches[0].grid, [1, 2, 1]);
    let worst = report.sites.iter().max_by_key(|s| s.counters.shared_load_wavefronts).expect("some");
    // Sixteen threads read 8 words apart: four words in each of four banks.
    assert!(worst.place.contains("Bs[ki, 8*tx + j]"), "{}", worst.place);
}

#[test]
fn the_pictures_behave_as_the_rules_say() {
    let picture = |name: &str| read(&text(&format!("pictures/{name}")));
    let check = |spec: &str, name: &str, sizes: &[(&str, i64)], mode: Mode| {
        let trials = Trials { options: Options { mode, ..Options::default() }, ..Trials::default() };
        exact::check(&read(spec), &picture(name), sizes, &trials)
    };
    let reversed = "program spec(n: size, x: in f32[n], y: out f32[n]) {
        for i in 0..n { y[i] = x[i/256*256 + 255 - i%256] } }";
    let sum = "program spec(n: size, x: in f32[n], y: out f32[1]) { y[0] = 0 for i in 0..n/32 { y[0] += x[32*i] } }";
    let has = |r: &ExactReport, kind: HazardKind| r.run.hazards.iter().any(|h| h.kind == kind);
    // A barrier-free exchange inside one thread loop: in order the first threads read what nobody has written.
    let wrong = check(reversed, "thread_loop_not_split", &[("n", 512)], Mode::InOrder).expect("runs");
    assert!(has(&wrong, HazardKind::Uninitialised));
    for mode in [Mode::InOrder, Mode::Simt] {
        let right = check(reversed, "thread_loop_split", &[("n", 512)], mode).expect("runs");
        assert!(right.passed(), "{}", right.run);
        let inside = check(sum, "roles_inside", &[("n", 320)], mode).expect("runs");
        assert!(inside.passed(), "{} {}", inside.differing, inside.run);
    }
    let outside = check(sum, "roles_outside", &[("n", 320)], Mode::InOrder).expect("runs");
    assert!(has(&outside, HazardKind::Hang), "{}", outside.run);
    let tiling = specification("sgemm_virtual_threads");
    let sizes = [("M", 33), ("N", 130), ("K", 9)];
    for (name, mode) in [
        ("tiling_0_specification", Mode::InOrder),
        ("tiling_1_bound", Mode::InOrder),
        ("tiling_1_bound", Mode::Simt),
        ("tiling_2_staged", Mode::InOrder),
    ] {
        let report = check(&tiling, name, &sizes, mode).unwrap_or_else(|d| panic!("{name}: {d}"));
        assert!(report.passed(), "{name}: {} differ, {}", report.differing, report.run);
    }
    // Element statements of a whole block, or of a warp, are no GPU programs.
    for name in ["tiling_0_specification", "tiling_2_staged"] {
        assert!(check(&tiling, name, &sizes, Mode::Simt).is_err(), "{name}");
    }
}

#[test]
fn a_hazard_says_where_what_and_who() {
    let program = read(
        "program p(n: size, x: in f32[n], y: out f32[n]) { for b in block.x(1) {
            alloc s: f32[64] shared
            for t in threads(64@1) { s[t] = x[t] }
            for t in threads(64@1) { y[t] = s[63 - t] }
        } }",
    );
    let (report, _) = run(&program, &[("n", 64)], &[("x", floats((0..64).map(|i| i as f32)))], Mode::Simt);
    assert_eq!(report.races(), 64);
    let hazard = &report.hazards[0];
    assert_eq!(hazard.kind, HazardKind::Race);
    assert!(hazard.place.contains("y[t] = s["), "{hazard}");
    assert!(hazard.what.contains("s[63]") && hazard.what.contains("thread 63"), "{hazard}");
}

#[test]
fn blocks_that_write_one_element_race_and_atomics_do_not() {
    let text = |op: &str| {
        format!(
            "program p(n: size, y: inout f32[1]) {{ for b in block.x(n) {{ for t in threads(1@1) {{ {op} }} }} }}"
        )
    };
    let go = |op: &str| run(&read(&text(op)), &[("n", 7)], &[("y", floats([0.0].into_iter()))], Mode::Simt);
    assert!(go("y[0] = 1").0.races() > 0);
    assert!(go("y[0] += 1").0.races() > 0);
    let (report, arguments) = go("atomic y[0] += 1");
    assert!(report.passed(), "{report}");
    assert_eq!(values(&arguments, "y"), [7.0]);
}

#[test]
fn infinities_and_nans_behave_as_in_blas() {
    let program = read(&text("sgemm_block_tiling"));
    let integers = [("M", 3), ("N", 2), ("K", 5), ("lda", 5), ("ldb", 2), ("ldc", 2), ("beta0", 1)];
    let a = floats((0..15).map(|i| if i == 6 { f32::INFINITY } else { 1.0 }));
    let b = floats((0..10).map(|i| if i == 9 { f32::NAN } else { 1.0 }));
    let c = floats((0..6).map(|_| f32::NAN));
    for mode in [Mode::InOrder, Mode::Simt] {
        let tensors = [("A", a.clone()), ("B", b.clone()), ("C", c.clone())];
        let (report, arguments) = run(&program, &integers, &tensors, mode);
        assert!(report.passed(), "{report}");
        let got = values(&arguments, "C");
        assert_eq!((got[0], got[2], got[4]), (5.0, f32::INFINITY, 5.0), "{mode:?}");
        assert!(got[1].is_nan() && got[3].is_nan() && got[5].is_nan(), "{mode:?}");
    }
}

#[test]
fn storage_types_round_and_accumulators_do_not() {
    let program = read(
        "program p(n: size, x: in bf16[n], y: out bf16[1], z: out f32[1]) { for b in block.x(1) {
            for t in threads(1@1) {
                alloc s: f32[1] reg
                s[0] = 0
                for i in 0..n { s[0] += f32(x[i]) }
                y[0] = bf16(s[0])
                z[0] = s[0]
            } } }",
    );
    let ones = Tensor::from([0x80, 0x3f].repeat(257));
    let (report, arguments) = run(&program, &[("n", 257)], &[("x", ones)], Mode::Simt);
    assert!(report.passed(), "{report}");
    assert_eq!(values(&arguments, "z"), [257.0]);
    assert_eq!(arguments.tensors["y"].bytes, [0x80, 0x43], "257 is 256 in bf16");
}

#[test]
fn complex_and_integer_programs_are_checked_exactly() {
    let complex = |conj: &str| {
        read(&format!(
            "program p(M: size, K: size, A: in c64[M, K; lda], y: out c64[M]) {{
                for b in block.x(ceil(M, 32)) {{ for t in threads(32@1) {{ if 32*b + t < M {{
                    alloc s: c64[1] reg
                    s[0] = 0
                    for k in 0..K {{ s[0] += {conj}(A[32*b + t, k]) * A[32*b + t, k] }}
                    y[32*b + t] = s[0]
                }} }} }} }}"
        ))
    };
    let spec = read(
        "program spec(M: size, K: size, A: in c64[M, K; lda], y: out c64[M]) {
            for i in 0..M { y[i] = 0 for k in 0..K { y[i] += conj(A[i, k]) * A[i, k] } } }",
    );
    let sizes = [("M", 37), ("K", 11)];
    let right = exact::check(&spec, &complex("conj"), &sizes, &Trials::default()).expect("runs");
    assert!(right.passed(), "{}", right.run);
    assert_eq!(right.run.counters.fma, 4 * 37 * 11);
    let wrong = exact::check(&spec, &complex(""), &sizes, &Trials::default()).expect("runs");
    assert_eq!(wrong.differing, 37);
    // i i z = -z, and i is not -i.
    let turned = |value: &str| {
        read(&format!(
            "program p(n: size, x: in c64[n], y: out c64[n]) {{
                for b in block.x(ceil(n, 32)) {{ for t in threads(32@1) {{
                    if 32*b + t < n {{ y[32*b + t] = {value} }} }} }} }}"
        ))
    };
    let spec = |value: &str| {
        read(&format!(
            "program spec(n: size, x: in c64[n], y: out c64[n]) {{ for i in 0..n {{ y[i] = {value} }} }}"
        ))
    };
    let equal = |spec: &Program, value: &str| {
        exact::check(spec, &turned(value), &[("n", 40)], &Trials::default()).expect("runs").equal()
    };
    assert!(equal(&spec("-x[i]"), "times_i(times_i(x[32*b + t]))"));
    assert!(equal(&spec("conj(times_i(x[i]))"), "-times_i(conj(x[32*b + t]))"));
    assert!(!equal(&spec("times_i(x[i])"), "-times_i(x[32*b + t])"));
    let largest = |from: &str| {
        read(&format!(
            "program p(n: size, x: in f32[n], y: out f32[1]) {{ for b in block.x(1) {{ for t in threads(1@1) {{
                alloc m: f32[1] reg
                m[0] = x[0]
                for i in {from}..n {{ m[0] max= x[i] }}
                y[0] = m[0]
            }} }} }}"
        ))
    };
    let spec = read(
        "program spec(n: size, x: in f32[n], y: out f32[1]) { y[0] = x[0] for i in 0..n { y[0] max= x[i] } }",
    );
    let trials = Trials { count: 20, ..Trials::default() };
    assert!(exact::check(&spec, &largest("1"), &[("n", 5)], &trials).expect("runs").passed());
    assert!(!exact::check(&spec, &largest("3"), &[("n", 5)], &trials).expect("runs").equal());
}

/// Copies 128 floats, four at a time, from tensors that start at these bytes behind a multiple of 16.
fn copied(instruction: &str, [x, y]: [usize; 2]) -> (Report, Vec<f32>) {
    let program = read(&format!(
        "program p(x: in f32[128], y: out f32[128]) {{ for b in block.x(1) {{
            alloc s: f32[128] shared
            for t in threads(32@1) {{ {instruction} }}
            cp.commit
            cp.wait 0
            barrier
            for t in threads(32@1) {{ for v in vector 0..4 {{ y[4*t + v] = s[4*t + v] }} }}
        }} }}"
    ));
    let floats = |start| Tensor { start, ..floats((0..128).map(|i| i as f32)) };
    let (report, arguments) = run(&program, &[], &[("x", floats(x)), ("y", floats(y))], Mode::Simt);
    (report, values(&arguments, "y"))
}

#[test]
fn accesses_are_aligned_to_their_size_wherever_tensors_start() {
    let by_vector = "for v in vector 0..4 { s[4*t + v] = x[4*t + v] }";
    for instruction in [by_vector, "cp_async16_f32(s[4*t +: 4], x[4*t +: 4], 4)"] {
        for (starts, faults) in [([0, 0], 0), ([32, 16], 0), ([4, 0], 1), ([0, 8], 1), ([8, 12], 2)] {
            let (report, copy) = copied(instruction, starts);
            let operands = report.hazards.iter().filter(|h| h.kind == HazardKind::Operand);
            assert_eq!((operands.count(), report.hazards.len()), (faults, faults), "{starts:?}: {report}");
            assert_eq!(copy, (0..128).map(|i| i as f32).collect::<Vec<_>>(), "{starts:?}");
        }
    }
    // What lies before and behind a tensor is nobody's.
    let beyond =
        read("program p(y: out f32[32]) { for b in block.x(1) { for t in threads(34@1) { y[t - 1] = 1 } } }");
    let y = Tensor { start: 4, ..floats((0..32).map(|_| 0.0)) };
    let (report, arguments) = run(&beyond, &[], &[("y", y)], Mode::Simt);
    assert_eq!(report.count(&[HazardKind::OutOfBounds]), 2, "{report}");
    assert_eq!(values(&arguments, "y"), [1.0; 32]);
    // One by one elements are where they can be, and a warp touches one sector more.
    let by_element = "for u in 0..4 { s[32*u + t] = x[32*u + t] }";
    let (report, _) = copied(by_element, [4, 0]);
    assert!(report.passed(), "{report}");
    assert_eq!((report.counters.global_load_requests, report.counters.global_load_sectors), (4, 20));
    assert_eq!(copied(by_element, [32, 0]).0.counters.global_load_sectors, 16);
}

#[test]
fn runs_of_owned_elements_are_aligned_accesses() {
    let program = read(
        "program p(y: inout f64[128]) { for b in block.x(1) { for w in threads(1@32) {
           alloc acc: f64[16, 8] reg frag D16x8
           for (i, j by 2) in own acc[:, :] { for v in vector 0..2 { acc[i, j + v] = y[8*i + j + v] } }
           for (i, j by 2) in own acc[:, :] { for v in vector 0..2 { y[8*i + j + v] = acc[i, j + v] + y[8*i + j + v] } }
         } } }",
    );
    for (start, faults) in [(0, 0), (8, 6)] {
        for mode in [Mode::Simt, Mode::InOrder] {
            let bytes = (0..128).flat_map(|i| f64::from(i).to_le_bytes()).collect::<Vec<_>>();
            let (report, after) = run(&program, &[], &[("y", Tensor { start, ..Tensor::from(bytes) })], mode);
            let faults = if mode == Mode::Simt { faults } else { 0 };
            assert_eq!(report.count(&[HazardKind::Operand]), faults, "{start}: {report}");
            let twice: Vec<u8> = (0..128).flat_map(|i| f64::from(2 * i).to_le_bytes()).collect();
            assert_eq!(after.tensors["y"].bytes, twice);
        }
    }
}

#[test]
fn the_exact_check_takes_tensors_to_start_as_they_declare() {
    let program = |align: &str| {
        read(&format!(
            "program p(x: in f32[64]{align}, y: out f32[64]) {{ for b in block.x(1) {{ for t in threads(32@1) {{
                for v in vector 0..2 {{ y[2*t + v] = x[2*t + v] }} }} }} }}"
        ))
    };
    let spec = read("program spec(x: in f32[64], y: out f32[64]) { for i in 0..64 { y[i] = x[i] } }");
    for (align, passes) in [("", true), (" align 8", true), (" align 4", false)] {
        let report = exact::check(&spec, &program(align), &[], &Trials::default()).expect("runs");
        assert!(report.equal(), "{align}");
        assert_eq!(report.run.passed(), passes, "{align}: {}", report.run);
    }
}

#[test]
fn a_sample_says_that_it_is_one_and_compares_what_it_computed() {
    let (program, spec) = (read(&text("sgemm_block_tiling")), read(&specification("sgemm_block_tiling")));
    let options = Options { blocks: Blocks::Sample(32), ..Options::default() };
    let trials = Trials { options, ..Trials::default() };
    let report =
        exact::check(&spec, &program, &[("M", 1100), ("N", 1300), ("K", 10)], &trials).expect("runs");
    assert!(report.passed(), "{}", report.run);
    assert_eq!(report.claim(), Claim::Sample);
    assert_eq!((report.run.counters.blocks_simulated, report.run.counters.blocks_total), (25, 99));
    // Four full rows of tiles and the last, 1100 - 8 * 128 = 76 high; the same for columns, the last 20 wide.
    assert_eq!(report.compared, 2 * (4 * 128 + 76) * (4 * 128 + 20));
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let program = read(&text("hgemm_cp_async"));
    let sizes = [("M", 4), ("N", 4), ("K", 4), ("lda", 5), ("ldb", 8)];
    let spec = read(&specification("hgemm_cp_async"));
    let refused = exact::check(&spec, &program, &sizes, &Trials::default()).expect_err("odd row stride");
    assert!(refused.to_string().contains("lda % 8") || refused.to_string().contains("lda%8"), "{refused}");
    let missing = exact::check(&spec, &program, &[("M", 4)], &Trials::default()).expect_err("no N");
    assert!(missing.to_string().contains("not known"), "{missing}");
    let huge = [("M", 1 << 40), ("N", 1 << 40), ("K", 0)];
    assert!(exact::check(&spec, &program, &huge, &Trials::default()).is_err());
}
