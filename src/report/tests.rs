use num_complex::Complex64;
use serde_json::{Value, json};

use super::{
    CheckReport, ChosenBy, Claims, Counters, Cublas, DeviceReport, ExactCheck, Factor, FloatCheck,
    KernelReport, Kind, LaunchReport, ProblemReport, Report, RungReport, Time,
};
use crate::kernels::family::Choice;
use crate::problem::{Layout, Precision, Problem, Shape};
use warpwright_core::dtype::DType;

fn report() -> Report {
    let problem = Problem::new(Shape { m: 2, n: 3, k: 4 }, Precision::Of(DType::F32), Layout::NN);
    Report {
        problem: ProblemReport::of(&problem),
        device: DeviceReport { kind: "sim", gpu: "x".into() },
        kernel: KernelReport {
            name: "k".into(),
            family: "f".into(),
            parameters: Choice::default(),
            chosen_by: ChosenBy::Rule,
            launches: vec![LaunchReport {
                grid: [1, 2, 3],
                block: [32, 1, 1],
                shared_bytes: 0,
                registers: None,
            }],
            schedule: "split i 2".into(),
            deterministic: true,
        },
        check: CheckReport {
            exact: Some(ExactCheck { trials: 2, passed: true, at: None }),
            float: FloatCheck { max_error: 0.5, bound: 1.0, passed: true },
            races: 0,
            out_of_bounds: 0,
            uninitialized: 0,
            barrier_faults: 0,
            claims: Claims::Launch,
            passed: true,
        },
        counters: Some(Counters { fma: 24, ..Counters::default() }),
        time: Time::default(),
        tflops: None,
        cublas: None,
    }
}

#[test]
fn the_contract_of_the_command_line_holds_field_by_field() {
    let expected = json!({
        "problem": {"m": 2, "n": 3, "k": 4, "dtype": "f32", "layout": "nn", "alpha": 1.0, "beta": 0.0},
        "device": {"kind": "sim", "gpu": "x"},
        "kernel": {
            "name": "k", "family": "f",
            "launches": [{"grid": [1, 2, 3], "block": [32, 1, 1], "shared_bytes": 0, "registers": null}],
            "schedule": "split i 2", "chosen_by": "rule", "deterministic": true
        },
        "check": {
            "exact": {"trials": 2, "passed": true},
            "float": {"max_error": 0.5, "bound": 1.0, "passed": true},
            "races": 0, "out_of_bounds": 0, "uninitialized": 0, "barrier_faults": 0,
            "claims": "launch", "passed": true
        },
        "counters": {
            "kind": "simulated",
            "global_load_requests": 0, "global_load_sectors": 0,
            "global_store_requests": 0, "global_store_sectors": 0,
            "shared_load_requests": 0, "shared_load_wavefronts": 0,
            "shared_store_requests": 0, "shared_store_wavefronts": 0,
            "fma": 24, "barriers": 0, "divergent_branches": 0, "blocks_simulated": 0, "blocks_total": 0
        },
        "time": {"seconds": null, "kind": null},
        "tflops": null,
        "cublas": null
    });
    assert_eq!(serde_json::to_value(report()).unwrap(), expected);
}

#[test]
fn measured_numbers_say_so_and_rungs_add_their_fields_at_the_top() {
    let mut inner = report();
    inner.time = Time { seconds: Some(0.25), kind: Some(Kind::Measured) };
    inner.cublas = Some(Cublas { seconds: 0.5, tflops: 1.0 });
    let rung = RungReport {
        rung: 5,
        name: "2D block tiling".into(),
        change: "more work".into(),
        why: "it fits".into(),
        report: inner,
    };
    let value = serde_json::to_value(rung).unwrap();
    assert_eq!(value["rung"], 5);
    assert_eq!((&value["change"], &value["why"]), (&json!("more work"), &json!("it fits")));
    assert_eq!(value["time"], json!({"seconds": 0.25, "kind": "measured"}));
    assert_eq!(value["cublas"]["tflops"], 1.0);
    assert!(matches!(value["kernel"], Value::Object(_)));
}

#[test]
fn complex_factors_are_pairs() {
    let json = |re, im| serde_json::to_value(Factor(Complex64::new(re, im))).unwrap();
    assert_eq!(json(2.0, 0.0), json!(2.0));
    assert_eq!(json(2.0, -1.0), json!([2.0, -1.0]));
}

#[test]
fn a_report_reads_as_a_few_lines() {
    let text = super::text::describe(&report(), None);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "k: 2x3x4 f32 nn on x (sim)");
    assert_eq!(lines[1], "  launch   grid 1x2x3, block 32x1x1, 0 B shared");
    assert!(text.contains("equal to the specification in 2 trials"), "{text}");
    assert!(text.contains("no races") && text.contains("in the whole launch"), "{text}");
    assert!(!text.contains("time"), "nothing was timed: {text}");
}

#[test]
fn what_is_wrong_stands_out() {
    let mut wrong = report();
    wrong.check.races = 3;
    wrong.check.exact = Some(ExactCheck { trials: 1, passed: false, at: Some("261x7x5".into()) });
    wrong.check.float.passed = false;
    let text = super::text::describe(&wrong, None);
    for part in ["NOT EQUAL", "at 261x7x5", "WRONG", "FOUND in the whole launch: 3 races"] {
        assert!(text.contains(part), "{text}");
    }
}
