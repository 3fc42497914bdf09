//! The model counts what the simulator counts, without running anything.

use std::time::Instant;

use warpwright::bind::Binding;
use warpwright::compile::validated;
use warpwright::kernels::family::{Choice, parse_parameter};
use warpwright::kernels::{self, Kernel, Variant};
use warpwright::problem::Problem;
use warpwright::report::Counters;
use warpwright::simulator::{SimOptions, count};
use warpwright_core::model::count::{Counts, Reuse, launches};
use warpwright_core::model::path::Path;
use warpwright_core::model::time::{self, Time};
use warpwright_core::model::traffic::{self, Traffic};
use warpwright_core::target;

fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
    Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
}

/// The kernel of a recipe, and a problem for it.
fn of_recipe(name: &str, dtype: &str, layout: &str, shape: &str) -> (Kernel, Problem) {
    let variant = Variant::new(dtype.parse().unwrap(), layout.parse().unwrap());
    let kernel = kernels::build(kernels::by_name(name).unwrap(), variant).unwrap_or_else(|e| panic!("{e}"));
    (kernel, problem(shape, dtype, layout))
}

/// The kernel of a family with these parameters, and the problem.
fn of_family(name: &str, dtype: &str, layout: &str, shape: &str, parameters: &str) -> (Kernel, Problem) {
    let (family, problem) = (kernels::family(name).unwrap(), problem(shape, dtype, layout));
    let given = parameters.split(',').map(|p| parse_parameter(p).unwrap());
    let given = given.fold(Choice::default(), |choice, (name, value)| choice.with(name, value));
    let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    (family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}")), problem)
}

/// What the model counts of a kernel as it is compiled.
fn compiled((kernel, problem): &(Kernel, Problem)) -> Counts {
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let binding = Binding::new(valid.program(), problem, 8).unwrap();
    let all =
        launches(valid.program(), &|s| binding.value(s), Reuse::AsCompiled).unwrap_or_else(|e| panic!("{e}"));
    all.into_iter().reduce(|a, b| a.and(&b)).expect("a launch")
}

/// What the simulator and the model count of a kernel, over all launches; and the seconds that the model takes.
fn both((kernel, problem): &(Kernel, Problem)) -> (Counters, Counts, f64) {
    let name = &kernel.name;
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let simulated = count(&valid, problem, &SimOptions { full: true, ..SimOptions::default() });
    let binding = Binding::new(valid.program(), problem, 8).unwrap();
    let start = Instant::now();
    let all =
        launches(valid.program(), &|s| binding.value(s), Reuse::AsWritten).unwrap_or_else(|e| panic!("{e}"));
    let seconds = start.elapsed().as_secs_f64();
    let sum = all.into_iter().reduce(|a, b| a.and(&b)).expect("a launch");
    (simulated.unwrap_or_else(|e| panic!("{name}: {e}")).expect("counters"), sum, seconds)
}

/// The counts that both have, by name: simulated, modelled.
fn pairs(simulated: &Counters, modelled: &Counts) -> [(&'static str, f64, f64); 10] {
    let (s, m) = (simulated, modelled);
    [
        ("global load requests", s.global_load_requests as f64, m.global_load_requests),
        ("global load sectors", s.global_load_sectors as f64, m.global_load_sectors),
        ("global store requests", s.global_store_requests as f64, m.global_store_requests),
        ("global store sectors", s.global_store_sectors as f64, m.global_store_sectors),
        ("shared load requests", s.shared_load_requests as f64, m.shared_load_requests),
        ("shared load wavefronts", s.shared_load_wavefronts as f64, m.shared_load_wavefronts),
        ("shared store requests", s.shared_store_requests as f64, m.shared_store_requests),
        ("shared store wavefronts", s.shared_store_wavefronts as f64, m.shared_store_wavefronts),
        ("multiply-adds", s.fma as f64, m.multiply_adds()),
        ("barriers", s.barriers as f64, m.barriers),
    ]
}

#[test]
fn where_all_warps_do_the_same_the_model_counts_what_the_simulator_does() {
    for (name, dtype, layout) in [
        ("sgemm_naive", "f32", "nn"),
        ("sgemm_coalesced", "f32", "nn"),
        ("sgemm_shared_memory", "f32", "nn"),
        ("sgemm_block_tiling_1d", "f32", "nn"),
        ("sgemm_block_tiling_2d", "f32", "nn"),
        ("sgemm_block_tiling_2d", "c64", "cn"),
        ("sgemm_vectorized", "f32", "nt"),
        ("sgemm_warp_tiling", "f32", "nn"),
        ("sgemm_double_buffering", "f32", "nn"),
        ("sgemm_padded_tile", "f32", "nn"),
        ("tvm_virtual_threads", "f32", "tn"),
    ] {
        let (simulated, modelled, _) = both(&of_recipe(name, dtype, layout, "256x256x128"));
        for (what, simulated, modelled) in pairs(&simulated, &modelled) {
            let same = (modelled - simulated).abs() <= 1e-9 * simulated.max(1.0);
            assert!(same, "{name} {dtype} {layout}: {what}: {simulated} simulated, {modelled} modelled");
        }
    }
}

#[test]
fn where_warps_differ_the_model_is_near() {
    let recipes = ["sgemm_naive", "sgemm_shared_memory", "sgemm_block_tiling_2d", "sgemm_warp_tiling"];
    let of_recipes = recipes.map(|name| of_recipe(name, "f32", "nn", "300x270x133"));
    let of_families = [
        ("tsmttsm", "f64", "tn", "8x8x20000", "unit=fma,staging=registers,tm=4,tn=4,parts=8,block=128"),
        (
            "tsmttsm",
            "f32",
            "tn",
            "33x33x4000",
            "staging=shared,copy=one,tm=11,tn=11,parts=8,block=128,stages=2",
        ),
        (
            "tsmttsm",
            "c128",
            "cn",
            "20x20x4000",
            "unit=mma,numbers=whole,instruction=m16n8k4,parts=8,depth=16,stages=3",
        ),
        (
            "tsmttsm",
            "c128",
            "cn",
            "49x49x4000",
            "unit=mma,numbers=parts,copy=bulk,release=role,parts=8,depth=32,stages=2",
        ),
        ("tsmm", "f64", "nn", "4000x24x20", "unit=mma,store=shared,blocks=8"),
        ("tsmm", "c64", "nn", "4000x36x20", "unit=fma,staging=shared,blocks=8"),
        // Parts of split numbers lie in planes.
        ("tsmm", "f32", "nn", "4000x49x49", "unit=mma,split_once=true,columns_apart=7,copy=one,blocks=8"),
        ("tsmm", "c64", "nn", "4000x32x40", "unit=mma,numbers=split,split_once=true,wn=1,blocks=8"),
        ("tsmm", "c128", "nn", "4000x58x58", "unit=mma,numbers=parts,team=part,blocks=8"),
    ]
    .map(|(name, dtype, layout, shape, parameters)| of_family(name, dtype, layout, shape, parameters));
    for case in of_recipes.into_iter().chain(of_families) {
        let (simulated, modelled, seconds) = both(&case);
        // A millisecond or less where the compiler optimises, on one of two cores in 2026.
        assert!(seconds < 0.1, "{}: {seconds} s", case.0.name);
        for (what, simulated, modelled) in pairs(&simulated, &modelled) {
            // Copies of small groups are asked for by a part of the warps, of which few are walked.
            let (least, most) = if what == "multiply-adds" { (0.97, 1.03) } else { (0.6, 1.25) };
            let near = (least * simulated..=most * simulated).contains(&modelled);
            assert!(near, "{}: {what}: {simulated} simulated, {modelled} modelled", case.0.name);
        }
    }
}

/// The traffic of the launches of a kernel, if so many blocks are resident at a time.
fn traffic((kernel, problem): &(Kernel, Problem), resident: i64) -> Vec<Vec<Traffic>> {
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let binding = Binding::new(valid.program(), problem, 8).unwrap();
    traffic::launches(valid.program(), &|s| binding.value(s), &|_| resident).unwrap()
}

#[test]
fn blocks_and_waves_share_what_they_read() {
    let case = of_recipe("sgemm_block_tiling_2d", "f32", "nn", "4096x4096x2048");
    let [of_launch] = &traffic(&case, 132)[..] else { panic!("one launch") };
    let of = |name: &str| of_launch.iter().find(|t| t.buffer == name).unwrap();
    // 32 x 32 blocks of 128 x 128; a wave has all columns of four rows of blocks and a part of the fifth.
    let (a, b, c) = (of("A"), of("B"), of("C"));
    let (blocks, waves) = (1024.0, 1024.0 / 132.0);
    assert_eq!(a.compulsory, 4096.0 * 2048.0 * 4.0);
    assert_eq!(a.by_blocks, blocks * 128.0 * 2048.0 * 4.0);
    assert_eq!(a.by_waves, waves * 5.0 * 128.0 * 2048.0 * 4.0);
    assert_eq!((b.by_blocks, b.by_waves), (blocks * 128.0 * 2048.0 * 4.0, waves * 4096.0 * 2048.0 * 4.0));
    assert_eq!((c.by_blocks, c.compulsory), (4096.0 * 4096.0 * 4.0, 4096.0 * 4096.0 * 4.0));
    assert_eq!([a, b, c].map(|t| (t.reads, t.writes)), [(true, false), (true, false), (false, true)]);
    // With beta the old C is read, too: it comes and goes.
    let (kernel, mut problem) = case;
    problem.beta.re = 0.5;
    let with_beta = traffic(&(kernel, problem), 132);
    let old = with_beta[0].iter().find(|t| t.buffer == "C").unwrap();
    assert_eq!((old.reads, old.writes, old.compulsory), (true, true, 2.0 * c.compulsory));
    assert_eq!((old.by_waves, old.by_blocks), (2.0 * c.by_waves, c.by_blocks));
    // What the requests of all blocks ask for is no less than what blocks touch.
    let (_, counts, _) = both(&of_recipe("sgemm_block_tiling_2d", "f32", "nn", "256x256x128"));
    let asked = |name: &str| counts.sectors.iter().find(|(n, _)| n == name).unwrap().1 * 32.0;
    assert_eq!(asked("A"), 4.0 * 128.0 * 128.0 * 4.0);
    // All of A is read once, by whichever blocks.
    let skinny = of_family("tsmttsm", "f64", "tn", "9x7x20000", "unit=mma,parts=8");
    let first = &traffic(&skinny, 132)[0];
    assert_eq!(first.iter().find(|t| t.buffer == "A").unwrap().compulsory, 20000.0 * 9.0 * 8.0);
}

#[test]
fn compilers_load_once_what_does_not_change_and_neighbours_together() {
    let of = |name: &str| {
        let case = of_recipe(name, "f32", "nn", "256x256x128");
        let (written, compiled) = (both(&case).1, compiled(&case));
        // For each multiply-add of a warp.
        let warps = written.fma / 32.0;
        [&written, &compiled].map(|c| (c.shared_load_requests / warps, c.global_lines / warps))
    };
    // Lanes read an element of A in a line each in the first, and one for all of them in the second; C is stored at the end.
    let [naive, coalesced] = ["sgemm_naive", "sgemm_coalesced"].map(of);
    assert!((33.0..34.0).contains(&naive[0].1) && (2.0..2.1).contains(&coalesced[0].1));
    // A step of 32 terms: a row of As in pieces of 16 bytes, a column of Bs one by one.
    let [written, compiled] = of("sgemm_shared_memory");
    assert_eq!((written.0, compiled.0), (2.0, 1.25));
    // A tile of 8 x 8: 16 loads for 64 multiply-adds, whether a schedule or a compiler keeps them in registers.
    let [_, compiled] = of("sgemm_block_tiling_2d");
    assert!(compiled.0 <= 0.25, "{compiled:?}");
}

/// What the model says of a kernel of a ladder, f32 nn, on a GPU.
fn time_of(name: &str, shape: &str, gpu: &str) -> Time {
    let (kernel, problem) = of_recipe(name, "f32", "nn", shape);
    let gpu = target::Target::by_name(gpu).unwrap();
    let valid = validated(kernel.program(), gpu).unwrap_or_else(|e| panic!("{e}"));
    let binding = Binding::new(valid.program(), &problem, 8).unwrap();
    time::of(valid.program(), &|s| binding.value(s), gpu, None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_warp_waits_for_what_nothing_hides() {
    // 128 steps of 32 terms: each copies two tiles, meets, multiplies, meets.
    let path = |name: &str| {
        let path = time_of(name, "4096x4096x4096", "h200").launches[0].path;
        Path { memory_waits: (path.memory_waits * 1e6).round() / 1e6, ..path }
    };
    let blocked = path("sgemm_shared_memory");
    assert_eq!((blocked.memory_waits, blocked.barriers, blocked.iterations), (128.0, 256.0, 128.0));
    // 512 steps of 8; two copies of four elements for each thread, or of 16 bytes.
    let [scalar, wide] = ["sgemm_block_tiling_2d", "sgemm_vectorized"].map(path);
    assert_eq!((scalar.memory_waits, wide.memory_waits), (512.0, 512.0));
    assert_eq!((scalar.copies, wide.copies), (512.0 * 8.0, 512.0 * 2.0));
    // Only the first step is waited for where the next one's data are on their way during this one.
    for ahead in ["sgemm_register_staging", "sgemm_async_copies", "tvm_register_staging"] {
        let waits = path(ahead).memory_waits;
        assert!((0.99..1.01).contains(&waits), "{ahead}: {waits}");
    }
    // A copy to the other buffer that is stored before anything is multiplied hides nothing.
    assert_eq!(path("sgemm_double_buffering").memory_waits, 257.0);
}

#[test]
fn the_model_says_what_limits_each_kernel() {
    let of = |name: &str| time_of(name, "4096x4096x4096", "h200");
    // One line a cycle; then instructions; then shared memory; at last the multiply-adds themselves.
    for (name, limiter) in [
        ("sgemm_naive", "l1"),
        ("sgemm_coalesced", "issue"),
        ("sgemm_shared_memory", "l1"),
        ("sgemm_async_copies", "arithmetic"),
    ] {
        let time = of(name);
        assert_eq!(time.limiter, limiter, "{name}: {:?}", time.shares);
        let shares: f64 = time.shares.values().iter().sum();
        assert!((shares - 1.0).abs() < 1e-9 && time.seconds > 0.0, "{name}: {shares}");
        // No term alone takes longer than all together.
        assert!(time.terms.values().iter().all(|t| *t <= time.seconds * 1.0001), "{name}: {time:?}");
    }
    // 64 blocks keep 64 of 132 multiprocessors busy, one each.
    let small = time_of("sgemm_tuned_tile", "1024x1024x1024", "h200");
    let launch = &small.launches[0];
    assert_eq!((launch.rounds, launch.counts.blocks), (1.0, 64.0));
    assert!((launch.imbalance - 132.0 / 64.0).abs() < 1e-9);
    assert!(small.seconds > 2.0 * of("sgemm_tuned_tile").seconds / 64.0, "idle multiprocessors cost");
}

#[test]
fn registers_that_a_compiler_found_count() {
    let (kernel, problem) = of_recipe("sgemm_tuned_tile", "f32", "nn", "4096x4096x4096");
    let h200 = target::Target::by_name("h200").unwrap();
    let valid = validated(kernel.program(), h200).unwrap();
    let binding = Binding::new(valid.program(), &problem, 8).unwrap();
    let with = |registers: Option<&[i64]>| {
        time::of(valid.program(), &|s| binding.value(s), h200, registers).map(|t| t.launches[0].clone())
    };
    let (estimated, many) = (with(None).unwrap(), with(Some(&[250])).unwrap());
    assert!(estimated.registers_estimated && !many.registers_estimated);
    assert_eq!((estimated.occupancy.blocks, many.occupancy.blocks), (2, 1));
    assert!(many.seconds > 1.05 * estimated.seconds, "one block hides less");
    let refused = with(Some(&[300])).unwrap_err().to_string();
    assert!(refused.contains("not one block") && refused.contains("300 registers"), "{refused}");
}

/// What the model says of a choice of a family on an H100.
fn time_of_family(case: &(Kernel, Problem)) -> Time {
    let (kernel, problem) = case;
    let h100 = target::Target::by_name("h100-sxm").unwrap();
    let valid = validated(kernel.program(), h100).unwrap_or_else(|e| panic!("{e}"));
    let binding = Binding::new(valid.program(), problem, 8).unwrap();
    time::of(valid.program(), &|s| binding.value(s), h100, None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn blocks_that_take_every_so_many_rows_read_what_they_visit() {
    let of = |leapfrog: &str| {
        let parameters = format!(
            "unit=fma,staging=registers,tm=4,tn=4,parts=528,block=128,reduction=two-pass,leapfrog={leapfrog}"
        );
        let case = of_family("tsmttsm", "f64", "tn", "8x8x1000000", &parameters);
        traffic(&case, 132)[0].iter().find(|t| t.buffer == "A").unwrap().clone()
    };
    for leapfrog in ["true", "false"] {
        let a = of(leapfrog);
        // Four waves of blocks read a quarter of the rows each, and a part of a step more.
        let all = 8.0 * 8.0 * 1e6;
        assert_eq!(a.compulsory, all);
        assert!(
            (0.99 * all..1.6 * all).contains(&a.by_waves),
            "leapfrog={leapfrog}: {} of {all}",
            a.by_waves
        );
    }
}

#[test]
fn of_rows_that_stand_apart_memory_gives_what_lies_between_too() {
    let (kernel, mut problem) =
        of_family("tsmttsm", "f64", "tn", "4x4x10000000", "unit=fma,staging=registers");
    [problem.ld.a, problem.ld.b] = [8, 8];
    let bytes = |fetches: Option<i64>| {
        let program = warpwright_core::ir::Program { fetches, ..kernel.program().clone() };
        let h200 = target::Target::by_name("h200").unwrap();
        let valid = validated(&program, h200).unwrap_or_else(|e| panic!("{e}"));
        let binding = Binding::new(valid.program(), &problem, 8).unwrap();
        let time = time::of(valid.program(), &|s| binding.value(s), h200, None).unwrap();
        time.launches[0].memory_bytes / 640e6
    };
    // Rows of 32 bytes, 64 apart: as many pieces of 64 bytes, half as many bytes by sectors.
    let [usual, sectors] = [bytes(None), bytes(Some(32))];
    assert!((1.9..2.1).contains(&usual) && (0.95..1.05).contains(&sectors), "{usual} {sectors}");
}

#[test]
fn a_second_pass_of_few_blocks_waits_for_its_loads() {
    // 51 sums of each of 528 parts, that three blocks read: measured 972 us, of which a profiler gave the first launch 368 (H100).
    let slow = "block=256,bounded=false,copy=bulk,depth=204,panel=false,parts=528,reduction=two-pass,\
                stages=2,staging=shared,tm=3,tn=10,transposed=false,unit=fma";
    let time = time_of_family(&of_family("tsmttsm", "f64", "tn", "3x50x2358000", slow));
    let [first, second] = [0, 1].map(|at| time.launches[at].seconds);
    assert!((300e-6..450e-6).contains(&first), "{first}");
    assert!(second > 300e-6, "{second}");
}

#[test]
fn instructions_of_matrix_units_count() {
    let of = |dtype: &str, layout: &str, parameters: &str| {
        let case = of_family("tsmttsm", dtype, layout, "16x16x100000", parameters);
        time_of_family(&case).launches[0].counts.clone()
    };
    let common = "unit=mma,parts=132,depth=32,stages=2,wk=2,wm=1,wn=1";
    // f64, 16 x 8 x 8 at a time: two instructions for 16 columns of eight terms.
    let whole = of("f64", "tn", &format!("{common},instruction=m16n8k8"));
    let steps = whole.products[0].1 / (16.0 * 16.0 * 8.0);
    assert_eq!((whole.matrix, whole.small_products), (2.0 * steps, 0.0));
    // Those of 8 rows are half as fast on GPUs that have others.
    let small = of("f64", "tn", &format!("{common},instruction=m8n8k4"));
    assert_eq!(small.small_products, small.products[0].1);
    // f32: three products of tf32, and 6 numbers a lane to take apart for each instruction.
    let split = of("f32", "tn", &format!("{common},numbers=split"));
    let instructions = split.products[0].1 / (16.0 * 8.0 * 8.0);
    assert_eq!(split.matrix, instructions * (3.0 + 3.0 * 6.0));
}

/// Where there are instructions of four warps, those of one reach 0.63 of the rate: as many products take 1.58 times as long, but for how evenly
/// blocks are shared out.
#[test]
fn matrix_instructions_of_one_warp_are_slower_where_four_share_others() {
    let arithmetic = |name: &str, gpu: &str| {
        let (kernel, problem) = of_recipe(name, "bf16", "nt", "4096x4096x4096");
        let gpu = target::Target::by_name(gpu).unwrap();
        let valid = validated(kernel.program(), gpu).unwrap_or_else(|e| panic!("{e}"));
        let binding = Binding::new(valid.program(), &problem, 8).unwrap();
        let time = time::of(valid.program(), &|s| binding.value(s), gpu, None);
        time.unwrap_or_else(|e| panic!("{e}")).launches[0].terms.arithmetic
    };
    let [by_one, by_four] = ["hgemm_cp_async", "hgemm_warpgroups"].map(|name| arithmetic(name, "h200"));
    assert!((1.4..1.8).contains(&(by_one / by_four)), "{by_one} {by_four}");
    // An A100 has no others: its datasheet says what instructions of one warp reach, 2 x 4096^3 at 312 TFLOP/s.
    let there = arithmetic("hgemm_cp_async", "a100-40gb");
    assert!((1.0..1.1).contains(&(there / (2.0 * 4096f64.powi(3) / 312e12))), "{there}");
}

#[test]
fn signs_are_free_and_complex_sums_are_two() {
    let choice = "unit=fma,staging=shared,copy=one,tm=4,tn=2,parts=132,block=128,depth=32,stages=3";
    let counts = |layout: &str| {
        time_of_family(&of_family("tsmttsm", "c64", layout, "12x30x100000", choice)).launches[0]
            .counts
            .clone()
    };
    // 12 x 30 elements of C are whole tiles: four multiply-adds for each product, and nothing else.
    let conjugated = counts("cn");
    assert_eq!(conjugated.arithmetic, counts("tn").arithmetic);
    // Two sets of 3 x 15 threads fill 90 of 96 lanes.
    let lanes = conjugated.arithmetic * 32.0 / conjugated.fma;
    assert!((lanes - 96.0 / 90.0).abs() < 0.001, "{lanes}");
}
