//! The family `tsmttsm`: fragments that lanes read straight from device memory change nothing of what is computed.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Permissions};
use warpwright::problem::{Offsets, Problem};
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

const DIRECT: &str = "unit=mma,staging=registers";

/// Rows that stand some way apart.
fn padded(family: &Family, widths: (i64, i64), dtype: &str) -> Problem {
    let mut problem = problem(family, widths, dtype);
    problem.ld.a += 3;
    problem.ld.b += 1;
    problem
}

#[test]
fn fragments_come_straight_from_device_memory() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (9, 9), "leapfrog=true,wk=4,depth=32,parts=3"),
        ("f64", (20, 17), "leapfrog=false,wk=2,wm=2,wn=1,depth=64,parts=2,instruction=m16n8k16"),
        ("f32", (24, 24), "leapfrog=true,wk=4,depth=32,parts=2"),
        ("f32", (12, 31), "leapfrog=false,wk=2,depth=128,parts=3"),
        ("c64", (9, 16), "leapfrog=true,wk=8,depth=64,parts=2,numbers=split-parts"),
        ("c64", (5, 12), "leapfrog=false,wk=4,depth=32,parts=2,numbers=split"),
        ("c128", (16, 16), "leapfrog=true,wk=4,wm=1,wn=1,depth=32,parts=3,numbers=whole,instruction=m8n8k4"),
        ("c128", (33, 9), "leapfrog=true,wk=1,wm=2,wn=2,depth=16,parts=2,numbers=parts,instruction=m16n8k8"),
        (
            "c128",
            (7, 24),
            "leapfrog=false,wk=2,depth=64,parts=2,numbers=whole,instruction=m16n8k4,reduction=global",
        ),
    ] {
        let problem = padded(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{DIRECT},{form}"));
        let (depth, parts) = (choice.int("depth"), choice.int("parts"));
        holds(
            family,
            &problem,
            &choice,
            &[0, 1, depth - 1, depth, depth + 1, parts * depth - 3, 3 * parts * depth + 5],
        );
        // Nothing passes through shared memory before the parts come together.
        let text = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(!text.contains("cp_async") && !text.contains("As"), "{choice}:\n{text}");
    }
}

#[test]
fn every_step_towards_them_changes_nothing() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("c128", (9, 7), "leapfrog=true,wk=2,depth=16,parts=2,numbers=whole,instruction=m8n8k4"),
        ("f32", (5, 12), "leapfrog=false,wk=2,depth=32,parts=2"),
    ] {
        let problem = padded(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{DIRECT},{form}"));
        let kernel = family.build(&problem, &choice).unwrap();
        check(&kernel.schedule, &[("K", 3 * choice.int("depth") + 2)], 1, true, 5)
            .unwrap_or_else(|e| panic!("{choice}: {e}"));
    }
}

#[test]
fn a_matrix_times_itself_and_one_that_starts_anywhere_are_read_so_too() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width, same, start) in
        [("f64", 12, true, 0), ("c128", 9, true, 1), ("f32", 16, false, 1), ("c64", 8, false, 3)]
    {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = same;
        problem.offset = Offsets { a: start, b: start, c: 1 };
        problem.ld.a += i64::from(same) * 2;
        problem.ld.b += i64::from(same) * 2;
        let choice = chosen(family, &problem, &format!("{DIRECT},wk=2,depth=32,parts=2,leapfrog=true"));
        holds(family, &problem, &choice, &[0, 31, 64, 197]);
    }
}

/// What bulk copies bring is not read otherwise.
#[test]
fn dense_rows_are_staged() {
    let family = kernels::family("tsmttsm").unwrap();
    let dense = problem(family, (16, 16), "c128");
    let direct = parameters(DIRECT);
    assert!(family.complete(&direct, &dense, target::DEFAULT).is_err());
    let mut any = false;
    family.choices(
        &padded(family, (16, 16), "c128"),
        target::DEFAULT,
        Permissions::NONE,
        &Choice::default(),
        &mut |choice| {
            any |= choice.word("unit") == "mma" && choice.word("staging") == "registers";
            !any
        },
    );
    assert!(any, "padded rows have such choices");
}
