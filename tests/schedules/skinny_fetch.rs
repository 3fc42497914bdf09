//! The family `tsmm`: sectors that rows of C share with what lies between them are asked for ahead, which changes nothing of what is computed.

use warpwright::kernels;
use warpwright::kernels::family::Family;
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::check::check;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

const FETCHED: &str = "store=shared,passing=true,fetch=true";

/// Rows that stand some way apart.
fn padded(family: &Family, widths: (i64, i64), dtype: &str) -> Problem {
    let mut problem = problem(family, widths, dtype);
    problem.ld.a += 1;
    problem.ld.c += 3;
    problem
}

#[test]
fn sectors_of_gaps_are_asked_for_ahead() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (24, 24), "unit=mma,team=part,rows=64,wm=4,wn=1,groups=1"),
        ("f64", (9, 9), "unit=mma,team=part,rows=64,wm=2,wn=1,groups=1"),
        ("f32", (24, 24), "unit=mma,team=block,rows=64,wm=2,wn=1,groups=1"),
        ("c64", (9, 10), "unit=fma,team=part,wm=2,wn=1,groups=1"),
        ("c64", (16, 12), "unit=mma,team=part,rows=32,wm=2,wn=1,groups=1"),
        ("c128", (5, 7), "unit=mma,team=block,rows=32,wm=2,wn=1,groups=1"),
        ("f32", (1, 4), "unit=fma,team=part,wm=4,wn=1,groups=1"),
    ] {
        let problem = padded(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{FETCHED},{form}"));
        let kernel = family.build(&problem, &choice).unwrap();
        let text = kernel.program().to_string();
        let [asked, copied] = ["prefetch_l2(C", "cp.commit"].map(|word| text.find(word));
        let stored = text.rfind("C[");
        assert!(asked.is_some() && asked < copied && copied < stored, "{choice}:\n{text}");
        let rows = choice.int("rows").max(64);
        holds(family, &problem, &choice, &[0, 1, rows - 1, rows, rows + 1, 5 * rows + 3]);
    }
}

#[test]
fn sectors_that_are_stored_in_part_may_be_copied_and_waited_for() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (24, 24), "unit=mma,team=part,rows=64,wm=4,wn=1,groups=1"),
        ("f32", (24, 24), "unit=mma,team=block,rows=64,wm=2,wn=1,groups=1"),
        ("c64", (9, 10), "unit=fma,team=part,wm=2,wn=1,groups=1"),
        ("c128", (5, 7), "unit=mma,team=block,rows=32,wm=2,wn=1,groups=1"),
    ] {
        let problem = padded(family, widths, dtype);
        for (ends, before, behind) in [
            ("parts", "prefetch_l2_before(C", "prefetch_l2_behind(C"),
            ("copies", "copy_l2_before(C", "copy_l2_behind(C"),
            ("copies-behind", "copy_l2_before(C", "copy_l2_behind(C"),
        ] {
            let choice = chosen(family, &problem, &format!("{FETCHED},{form},ends={ends}"));
            let text = family.build(&problem, &choice).unwrap().program().to_string();
            // They belong to the group of copies that brings rows of A, for which everybody waits before the first store.
            let [before, behind, copied, waited] =
                [before, behind, "cp.commit", "cp.wait"].map(|word| text.find(word));
            let stored = text.rfind("C[");
            assert!(before.is_some() && before < copied && behind.is_some() && behind < copied, "{text}");
            assert!(copied < waited && waited < stored, "{choice}:\n{text}");
            let rows_first = text.find("cp_async").is_some_and(|of_a| Some(of_a) < before);
            assert_eq!(rows_first, ends == "copies-behind", "{choice}:\n{text}");
            let rows = choice.int("rows").max(64);
            holds(family, &problem, &choice, &[0, 1, rows - 1, rows + 1, 3 * rows + 3]);
        }
    }
}

#[test]
fn results_of_rows_that_stand_apart_may_lie_where_the_rows_lay() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, width, form) in [
        ("f64", 24, "fetch=true,ends=copies,passing=true,groups=1,team=block,rows=64,wm=4,wn=1"),
        ("f64", 17, "fetch=true,ends=copies-behind,passing=true,groups=1,team=part,rows=64,wm=2,wn=1"),
        ("f32", 32, "fetch=false,passing=true,groups=1,team=block,rows=64,wm=2,wn=2,numbers=split"),
        (
            "c64",
            24,
            "fetch=true,ends=copies,passing=true,groups=1,team=block,rows=64,wm=2,wn=1,numbers=split",
        ),
        ("c128", 9, "fetch=true,ends=parts,passing=true,groups=1,team=block,rows=32,wm=2,wn=1"),
        ("c128", 16, "fetch=false,passing=true,groups=1,team=part,rows=64,wm=2,wn=1"),
    ] {
        let problem = padded(family, (width, width), dtype);
        let bytes = [false, true].map(|in_place| {
            let given = format!("unit=mma,store=shared,{form},in_place={in_place}");
            let choice = chosen(family, &problem, &given);
            let rows = choice.int("rows");
            holds(family, &problem, &choice, &[0, 1, rows - 1, rows + 1, 5 * rows + 3]);
            let footprint = (family.footprint)(&problem, &choice, target::DEFAULT);
            if let Some((_, rest)) = form.split_once("ends=copies,") {
                let given = format!("unit=mma,store=shared,fetch=false,{rest},in_place={in_place}");
                let alone = (family.footprint)(&problem, &chosen(family, &problem, &given), target::DEFAULT);
                let of_words = footprint.shared_bytes - alone.shared_bytes;
                assert_eq!(of_words, 4 * footprint.threads, "a word of each thread: {choice}");
            }
            footprint.shared_bytes
        });
        assert!(bytes[1] < bytes[0], "{dtype} {width}: {bytes:?}");
    }
}

#[test]
fn every_step_towards_them_changes_nothing() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, form) in [
        ("f64", "unit=mma,team=part,rows=32,wm=2,wn=1,groups=1"),
        ("c64", "unit=fma,team=part,wm=2,wn=1,groups=1"),
    ] {
        let problem = padded(family, (5, 6), dtype);
        let choice = chosen(family, &problem, &format!("{FETCHED},{form}"));
        let kernel = family.build(&problem, &choice).unwrap();
        check(&kernel.schedule, &[("M", 131)], 1, true, 5).unwrap_or_else(|e| panic!("{choice}: {e}"));
    }
}

#[test]
fn dense_rows_share_no_sectors() {
    let family = kernels::family("tsmm").unwrap();
    let dense = problem(family, (24, 24), "f64");
    let refused = family.complete(&parameters(FETCHED), &dense, target::DEFAULT);
    assert!(refused.is_err_and(|d| d.to_string().contains("fetch")));
}

#[test]
fn rows_of_whole_sectors_share_none() {
    let family = kernels::family("tsmm").unwrap();
    let fetch = family.parameters.iter().find(|p| p.name == "fetch").unwrap();
    let form = "unit=mma,store=shared,passing=true,groups=1";
    let apart = |stride| {
        let mut problem = problem(family, (24, 24), "f64");
        (problem.ld.a, problem.ld.c) = (stride, stride);
        problem
    };
    let offered = |stride| {
        let choice = chosen(family, &apart(stride), form);
        (fetch.values)(&choice, &apart(stride), target::DEFAULT).len()
    };
    assert_eq!((offered(25), offered(28), offered(30)), (2, 1, 2), "28 numbers are seven sectors");
    let named = format!("{form},fetch=true,ends=copies");
    assert!(chosen(family, &apart(28), &named).flag("fetch"), "what wisdom has is a choice still");
}
