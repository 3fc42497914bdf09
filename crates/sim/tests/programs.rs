//! The nine programs compute what their specifications say, in both modes, and nothing is flagged.

mod common;

use common::{CASES, read, specification, text};
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Mode, Options};

fn all(mode: Mode) {
    let mut failures = Vec::new();
    for (name, sizes) in CASES {
        let (program, spec) = (read(&text(name)), read(&specification(name)));
        let trials = Trials { options: Options { mode, ..Options::default() }, ..Trials::default() };
        match exact::check(&spec, &program, sizes, &trials) {
            Ok(report) if report.passed() => {}
            Ok(report) => failures.push(format!(
                "{name} {sizes:?}: {} of {} elements differ, first {:?}; {}",
                report.differing, report.compared, report.first, report.run
            )),
            Err(diagnosis) => failures.push(format!("{name} {sizes:?}: {diagnosis}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn in_order_they_equal_their_specifications() {
    all(Mode::InOrder);
}

#[test]
fn as_simt_they_equal_their_specifications_without_a_hazard() {
    all(Mode::Simt);
}
