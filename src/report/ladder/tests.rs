use warpwright_core::target::{self, Target};

use super::page;
use crate::kernels::{self, Variant};
use crate::ladder::measured::Source;
use crate::ladder::{Counted, Ladder, Registers, Rung, modelled};
use crate::problem::{Problem, Shape};
use crate::report::{
    CheckReport, ChosenBy, Claims, DeviceReport, FloatCheck, KernelReport, ProblemReport, Report, RungReport,
    Time,
};

fn problem() -> Problem {
    Problem::new(Shape::cube(4096), "f32".parse().unwrap(), "nn".parse().unwrap())
}

/// A rung as the page gets it, with the model's real numbers and no times.
fn rung(name: &str, registers: Option<u32>) -> Rung {
    let (problem, recipe) = (problem(), kernels::by_name(name).unwrap());
    let kernel = kernels::build(recipe, Variant::of(&problem)).unwrap();
    let known = registers.map(|count| Registers { count, by: Counted::Record });
    let (model, cuda) = modelled(&kernel, &problem, target::DEFAULT, known, false).unwrap();
    let small = Problem::new(Shape::cube(64), problem.precision, problem.layout);
    let report = Report {
        problem: ProblemReport::of(&small),
        device: DeviceReport { kind: "sim", gpu: "x".into() },
        kernel: KernelReport {
            name: kernel.name.clone(),
            family: kernel.family.clone(),
            parameters: kernel.parameters.clone(),
            chosen_by: ChosenBy::Named,
            launches: Vec::new(),
            schedule: kernel.schedule.text(),
            deterministic: true,
        },
        check: CheckReport {
            exact: None,
            float: FloatCheck { max_error: 0.5, bound: 1.0, passed: true },
            races: 0,
            out_of_bounds: 0,
            uninitialized: 0,
            barrier_faults: 0,
            claims: Claims::Launch,
            passed: true,
        },
        counters: None,
        time: Time::default(),
        tflops: None,
        cublas: None,
    };
    let report = RungReport {
        rung: recipe.rung,
        name: recipe.title.to_string(),
        change: recipe.change.to_string(),
        why: recipe.why.to_string(),
        report,
    };
    Rung { report, model, cuda, seconds: None }
}

fn ladder(rungs: Vec<Rung>) -> Ladder {
    Ladder {
        name: "sgemm".to_string(),
        problem: problem(),
        target: target::DEFAULT,
        source: None,
        cublas: None,
        rungs,
    }
}

/// Two rungs with times from a file.
fn timed() -> Ladder {
    let mut ladder = ladder(vec![rung("sgemm_naive", None), rung("sgemm_coalesced", Some(32))]);
    ladder.rungs[0].seconds = Some(0.25);
    ladder.rungs[1].seconds = Some(0.02);
    ladder.cublas = Some(0.0025);
    ladder.source = Some(Source {
        gpu: target::DEFAULT.product.to_string(),
        file: Some("old.json".into()),
        with: Some("2026-11-21".into()),
    });
    ladder
}

/// The row of the table of a rung that begins with these words, as its cells.
fn row<'a>(page: &'a str, rung: u32, name: &str) -> Vec<&'a str> {
    let (_, section) = page.split_once(&format!("<h2 id=\"rung{rung}\">")).expect("the rung");
    let (_, rest) = section.split_once(&format!("<tr><td>{name}</td>")).expect("the row");
    let (row, _) = rest.split_once("</tr>").unwrap();
    row.split("</td>").filter(|c| !c.is_empty()).map(|c| c.split_once('>').unwrap().1).collect()
}

#[test]
fn a_rung_has_its_idea_what_changes_and_numbers_beside_those_before() {
    let ladder = timed();
    let page = page(&ladder);
    let recipe = kernels::by_name("sgemm_coalesced").unwrap();
    assert!(page.contains(recipe.change) && page.contains(recipe.why));
    for part in ["<ins>+ split(C.i, 32) -&gt; by, ty</ins>", "<ins>+     const int n = 32*bx + tx;</ins>"] {
        assert!(page.contains(part), "the schedule and the CUDA C: {part}");
    }
    // 33 sectors for a multiply-add of a warp, and 5.
    assert_eq!(row(&page, 2, "sectors / multiply-add"), ["1.03", "<b>0.156</b>", "modelled"]);
    let assumed = ladder.rungs[0].model.registers.count.to_string();
    let of_both = "modelled; compiled, as recorded";
    assert_eq!(row(&page, 2, "registers of a thread"), [assumed.as_str(), "<b>32</b>", of_both]);
    assert_eq!(row(&page, 2, "times cuBLAS"), ["0.01", "<b>0.12</b>", "measured"]);
    assert_eq!(row(&page, 2, "threads of a block"), ["1024", "1024", "program"]);
    assert_eq!(row(&page, 1, "sectors / multiply-add"), ["1.03", "modelled"], "nothing before it");
}

#[test]
fn every_number_says_what_it_is_and_where_it_comes_from() {
    let text = page(&timed());
    for part in
        ["recorded in old.json", "2026-11-21", target::DEFAULT.product, "at 64x64x64, on the simulator"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains("<polyline class=\"path\""), "the path of the rungs");
    assert!(text.contains("cuBLAS, measured 55.0 TFLOP/s") && text.contains("TFLOP/s, measured"));
    let none = page(&ladder(vec![rung("sgemm_naive", None)]));
    assert!(none.contains("<b>measured</b>: nothing on this page") && !none.contains(", measured"));
    assert!(none.contains("1 naive, predicted"));
}

#[test]
fn predictions_lead_where_nothing_was_measured_and_stand_beside_measurements_else() {
    let rungs = || vec![rung("sgemm_naive", None), rung("sgemm_coalesced", None)];
    let alone = page(&ladder(rungs()));
    assert_eq!(alone.matches("<polyline class=\"path\"").count(), 2, "one for each roofline");
    assert!(alone.contains("1 naive, predicted") && alone.contains("By the model its time goes into"));
    let mut beside = timed();
    // 2 * 4096^3 operations in 0.125 s and in half of that.
    for (n, rung) in beside.rungs.iter_mut().enumerate() {
        rung.model.prediction.seconds = 0.125 / (n + 1) as f64;
    }
    let beside = page(&beside);
    assert_eq!(beside.matches("<polyline class=\"path\"").count(), 2, "only what was measured is joined");
    assert!(beside.contains("1 naive, predicted") && beside.contains("1 naive, measured"));
    assert_eq!(row(&beside, 2, "rate"), ["1.10 TFLOP/s", "<b>2.20 TFLOP/s</b>", "predicted"]);
}

#[test]
fn times_of_another_gpu_are_not_passed_off_as_those_of_this_one() {
    let mut other = timed();
    assert!(!page(&other).contains("cannot be compared"));
    other.target = Target::by_name("l4").unwrap();
    assert!(page(&other).contains("cannot be compared"));
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_escapes_what_it_is_given() {
    let mut ladder = timed();
    ladder.rungs[0].report.name = "<naive>".to_string();
    if let Some(source) = &mut ladder.source {
        source.file = Some("<file>".to_string());
    }
    let page = page(&ladder);
    assert!(page.contains("&lt;naive&gt;") && !page.contains("<naive>") && !page.contains("<file>"));
    for foreign in ["http", "<script", "<link", "@import", "url(", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}
