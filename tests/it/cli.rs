//! The command as a user meets it: what is printed where, and the exit status.

use std::process::{Command, Output};

use serde_json::Value;

use num_complex::Complex64;
use warpwright::matrix::Matrix;
use warpwright_core::dtype::DType;

/// Runs the command with these arguments, separated by spaces.
pub fn warpwright(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the command runs")
}

/// Standard output as JSON, where the command ended with this status.
pub fn json(arguments: &str, status: i32) -> Value {
    let output = warpwright(arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

/// What the command says on standard error when it refuses, with nothing on standard output.
pub fn refusal(arguments: &str) -> String {
    let output = warpwright(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments} is refused");
    assert!(output.stdout.is_empty(), "{arguments} prints nothing on standard output");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn doctor_lists_every_library_with_advice_for_what_is_missing() {
    let found = json("doctor --json", 0);
    let libraries = found["libraries"].as_array().unwrap();
    assert_eq!(libraries.len(), 4);
    for library in libraries {
        assert!(library["path"].is_string() || library["advice"].is_string(), "{library}");
    }
    assert!(found["simulated_gpus"].as_array().unwrap().len() >= 9);
    let text = String::from_utf8(warpwright("doctor").stdout).unwrap();
    assert!(text.contains("--device auto is"), "{text}");
}

#[test]
fn wrong_use_ends_with_status_2() {
    assert!(refusal("").contains("Usage"));
    assert!(refusal("dance").contains("dance"));
}

#[test]
fn show_prints_every_stage_of_a_kernel() {
    let text = |arguments: &str| String::from_utf8(warpwright(arguments).stdout).unwrap();
    assert!(text("show sgemm_naive --stage spec").contains("acc[i, j] += A[i, k] * B[k, j]"));
    assert!(text("show sgemm_naive").contains("in block.x(ceil(M, 32))"));
    assert!(text("show 2 --layout cn --dtype c128").contains("conj("));
    assert!(text("show 1 --stage trace").contains("  2  split(C.i, 32)"));
    assert_eq!(text("show 1 --step 0"), text("show 1 --stage spec"));
    let difference = text("show 1 --step 1 --diff");
    assert!(difference.lines().any(|l| l.starts_with('+')) && difference.lines().any(|l| l.starts_with('-')));
    // A kernel of a family may be made for padded rows, which cannot be read as one.
    let padded = text("show tsmm --size 1000x24x24 --lda 25 --ldc 25");
    assert!(padded.contains("C: inout f32[M, 24; ldc]"), "{padded}");
    assert!(text("show tsmm --size 1000x24x24").contains("C: inout f32[24*M]"));
    let shown = json("show 1 --json", 0);
    assert_eq!((shown["stage"].as_str(), shown["step"].as_u64()), (Some("program"), shown["steps"].as_u64()));
}

#[test]
fn show_reads_programs_from_files() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sgemm_block_tiling.ww");
    let shown = json(&format!("show {file} --json"), 0);
    assert_eq!(shown["kernel"], "sgemm_block_tiling");
}

#[test]
fn an_unknown_kernel_or_step_or_type_is_refused_with_advice() {
    assert!(refusal("show sgemm_naive --lda 25").contains("--lda has no meaning here"));
    assert!(refusal("show no_such_kernel").contains("use one of sgemm_naive"));
    assert!(refusal("show 1 --step 99").contains("give a number from 0 to"));
    assert!(refusal("show 1 --dtype f8").contains("use one of f16, bf16"));
    assert!(refusal("show 1 --layout nx").contains("one letter for each of A and B"));
}

#[test]
fn gemm_reports_by_the_contract_and_writes_what_it_computes() {
    let directory = std::env::temp_dir().join(format!("warpwright-gemm-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let out = directory.join("c.npy");
    let report = json(&format!("gemm 33x17x29 --device sim:a6000 --json --out {}", out.display()), 0);
    assert_eq!(
        (report["problem"]["m"].as_i64(), report["device"]["gpu"].as_str()),
        (Some(33), Some("a6000"))
    );
    assert_eq!(report["check"]["passed"], true);
    assert_eq!(report["check"]["claims"], "launch");
    assert!(report["counters"]["fma"].as_u64().unwrap() >= 33 * 17 * 29);
    assert!(report["time"]["seconds"].is_null() && report["cublas"].is_null());
    let c = warpwright::npy::read(&out).unwrap();
    assert_eq!((c.rows(), c.columns()), (33, 17));
    let message = refusal(&format!("gemm 33x17x29 --device sim --a {}", out.display()));
    assert!(message.contains("33x17 matrix where 33x29 is wanted"), "{message}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn ladder_and_check_agree_that_rungs_are_right() {
    let rungs = json("ladder sgemm --rungs 1,2 --size 40 --device sim --json", 0);
    let rungs = rungs.as_array().unwrap();
    assert_eq!(rungs.iter().map(|r| r["rung"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(rungs.iter().all(|r| r["check"]["passed"] == true && r["change"].is_string()));
    let checked = json("check 2 --size 37x5x11 --layout tc --dtype c64 --json", 0);
    assert_eq!(checked["sizes"][0]["passed"], true);
}

#[test]
fn wrong_sizes_devices_and_files_are_refused_with_advice() {
    assert!(refusal("gemm 12x12").contains("write MxNxK"));
    assert!(refusal("gemm 12x12x12 --device sim:voodoo2").contains("use one of"));
    assert!(refusal("gemm 12x12x12 --device sim --a /no/such/file.npy").contains("cannot be read"));
    assert!(
        refusal("gemm 900000x900000x900000 --dtype c128 --device sim").contains("more memory than there is")
    );
    assert!(refusal("gemm 12x12x12 --device sim --lda 5").contains("give at least 12"));
}

#[test]
fn a_missing_file_is_refused_with_a_similar_name_or_where_it_was_looked_for() {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
    let similar = format!("use {programs}/sgemm_block_tiling.ww, which is there");
    let misspelt = format!("{programs}/sgemm_blok_tiling.ww");
    assert!(refusal(&format!("show {misspelt}")).contains(&similar));
    assert!(refusal(&format!("check {misspelt}")).contains(&similar));
    let problem = "gemm 12x12x12 --device sim";
    assert!(refusal(&format!("{problem} --schedule {misspelt}")).contains(&similar));

    let said = refusal(&format!("{problem} --a {programs}/nothing_like_it.npy"));
    assert!(said.contains(&format!("correct the name: {programs} has no file")), "{said}");
    let said = refusal(&format!("{problem} --a /no/such/file.npy"));
    assert!(said.contains("cannot be read") && said.contains("there is no directory /no/such"), "{said}");
    let said = refusal("show nothing_like_it.ww");
    let here = std::env::current_dir().unwrap();
    assert!(said.contains(&format!("{} has no file", here.display())), "{said}");
    assert!(refusal(&format!("show {programs}")).contains("name a file in that directory"));
}

/// Where there is a GPU these would measure it, which takes a while.
#[test]
fn what_needs_a_gpu_says_so() {
    for (what, advice) in [("bandwidth", "on a machine with one"), ("tsm", "for what the model says")] {
        let said = refusal(&format!("bench {what} --device sim"));
        assert!(said.contains("there is no GPU") && said.contains(advice), "{said}");
        assert!(refusal(&format!("bench {what} --bytes 7Q")).contains("write 2G"));
    }
    assert!(refusal("bench tsm --widths 129").contains("129"));
    assert!(refusal("bench tsm --sweep tiles --ops tsmm").contains("leave it out"));
    assert!(refusal("bench tsm --sweep shapes --widths 4").contains("leave out --widths"));
    for sweep in ["shapes", "strides --widths 4,8", "short --ops tsmm --dtypes f32"] {
        assert!(refusal(&format!("bench tsm --sweep {sweep} --device sim")).contains("there is no GPU"));
    }
    assert!(refusal("bench tsm --ops gemm").contains("use tsmttsm or tsmm"));
}

#[test]
fn the_compilers_benchmark_fails_where_a_kernel_takes_longer_than_the_limit() {
    let times = json("bench compiler --json --repeats 1 --limit 600000", 0);
    let times = times.as_array().unwrap();
    assert!(times.len() >= 18, "{times:?}");
    for time in times {
        let part = |name: &str| time[name].as_f64().unwrap();
        let parts = part("schedule_seconds") + part("validate_seconds") + part("emit_seconds");
        assert!((part("seconds") - parts).abs() < 1e-9, "{time}");
    }
    json("bench compiler --json --repeats 1 --limit 0", 1);
}

#[test]
fn matrices_that_do_not_fit_are_refused_by_name() {
    let directory = std::env::temp_dir().join(format!("warpwright-operands-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str, dtype: DType, rows: usize| {
        let mut matrix = Matrix::zeros(dtype, rows, 12, 12).unwrap();
        matrix.fill(|_, _| Complex64::new(1.0, 0.0));
        let path = directory.join(name);
        warpwright::npy::write(&path, &matrix).unwrap();
        path.display().to_string()
    };
    let with = |operand: &str| refusal(&format!("gemm 12x12x12 --device sim --a {operand}"));
    // Where, what is there, and what is wanted.
    let message = with(&file("wide.npy", DType::F64, 12));
    assert!(message.contains("wide.npy") && message.contains("f64") && message.contains("f32"), "{message}");
    let message = with(&file("tall.npy", DType::F32, 13));
    assert!(message.contains("tall.npy") && message.contains("13x12 matrix where 12x12"), "{message}");
    let whole = file("cut.npy", DType::F32, 12);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&whole, &bytes[..bytes.len() - 5]).unwrap();
    let message = with(&whole);
    assert!(message.contains("cut.npy") && message.contains("bytes"), "{message}");
    std::fs::write(&whole, "not a matrix").unwrap();
    let message = with(&whole);
    assert!(message.contains("cut.npy") && message.contains("npy"), "{message}");
    let message = with("/no/such/file.npy");
    assert!(
        message.contains("/no/such/file.npy cannot be read") || message.contains("No such file"),
        "{message}"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_and_is_no_success() {
    let output = warpwright("gemm 12x12x12 --device sim --out /dev/full");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("/dev/full"), "{message}");
    let output = warpwright("gemm 12x12x12 --device sim --out /no/such/directory/c.npy");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("/no/such/directory"), "{message}");
}

#[test]
fn a_cache_that_cannot_be_written_is_said_and_costs_nothing_else() {
    // A file stands where the directory would be, which stops even a privileged user.
    let file = std::env::temp_dir().join(format!("warpwright-no-cache-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let run = |arguments: &str| {
        Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(arguments.split_whitespace())
            .env("WARPWRIGHT_CACHE", &file)
            .output()
            .expect("the command runs")
    };
    let said = String::from_utf8(run("doctor").stdout).unwrap();
    assert!(said.contains("cannot be written: kernels are compiled anew each time"), "{said}");
    assert_eq!(run("gemm 12x12x12 --device sim").status.code(), Some(0));
    std::fs::remove_file(&file).unwrap();
}
