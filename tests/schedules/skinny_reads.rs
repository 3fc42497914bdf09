//! The families for tall and skinny products: how rows and parts of sums are read and copied changes nothing of what
//! they compute.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::tall_skinny::{holds, parameters, problem};

/// The usual choice with these parameters.
pub fn chosen(family: &Family, problem: &Problem, form: &str) -> Choice {
    family.complete(&parameters(form), problem, target::DEFAULT).unwrap_or_else(|d| panic!("{form}: {d}"))
}

#[test]
fn rows_that_are_read_together_are_all_of_them_added_up() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths) in [("f64", (1, 1)), ("c64", (3, 2)), ("f32", (5, 7)), ("c128", (2, 4))] {
        let problem = problem(family, widths, dtype);
        for (unroll, transposed, reduction) in
            [(2, true, "two-pass"), (4, false, "global"), (8, true, "local")]
        {
            let given = Choice::default().with("staging", "registers").with("unroll", unroll);
            let given = given.with("transposed", transposed).with("reduction", reduction).with("parts", 3);
            let choice = family.complete(&given.with("tm", 1), &problem, target::DEFAULT).unwrap();
            holds(family, &problem, &choice, &[0, 1, 255, 256, 257, 6 * 1024 - 1, 6 * 1024 + 1]);
        }
    }
}

#[test]
fn rows_are_read_and_written_in_pieces_of_sixteen_bytes() {
    let family = kernels::family("tsmm").unwrap();
    // Columns of a thread are whole pieces, or are not.
    for (dtype, widths, form, written) in [
        ("f32", (8, 8), "vector=4,threads=2,unroll=2,c_source=shared", true),
        ("f32", (7, 12), "vector=4,threads=2,unroll=1,c_source=shared", false),
        ("f32", (8, 4), "vector=4,threads=4,unroll=3,c_source=l1", false),
        ("f64", (6, 6), "vector=2,threads=1,unroll=1,c_source=registers", true),
        ("c64", (4, 10), "vector=2,threads=2,unroll=2,c_source=registers", true),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("staging=registers,block=128,{form}"));
        holds(family, &problem, &choice, &[0, 1, 257]);
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains("vectorize(a.c)"), "{steps}");
        assert_eq!(steps.contains("vectorize(C.e)"), written, "{steps}");
    }
    // There are no pieces of three or eight elements, of 12 or 32 bytes.
    for vector in ["vector=3", "vector=8"] {
        let given = parameters(&format!("staging=registers,{vector}"));
        let refused =
            family.complete(&given, &problem(family, (24, 24), "f32"), target::DEFAULT).unwrap_err();
        assert!(refused.to_string().contains("no whole number of pieces"), "{refused}");
    }
    // Rows of an odd number of elements have no such pieces.
    let odd = problem(family, (8, 7), "f32");
    assert!(family.complete(&parameters("staging=registers,vector=4"), &odd, target::DEFAULT).is_err());
}

#[test]
fn odd_rows_are_read_in_panels_of_sixteen_bytes() {
    let family = kernels::family("tsmttsm").unwrap();
    // Rows of A of 132, 20, 88, 24 and 68 bytes: four, four, two, two and two of them are whole pieces.
    for (dtype, widths, form, rows) in [
        ("f32", (33, 33), "tn=3,transposed=true", 4),
        ("f32", (7, 5), "tn=2,transposed=false,stages=3", 4),
        ("f32", (4, 22), "tn=4,transposed=false,depth=256", 2),
        ("c64", (9, 3), "tn=2,transposed=true", 2),
        ("f64", (16, 17), "tn=4,transposed=true,reduction=global", 2),
    ] {
        let problem = problem(family, widths, dtype);
        let choice =
            chosen(family, &problem, &format!("unit=fma,staging=shared,block=128,panel=true,parts=3,{form}"));
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains(&format!("split(mine.k, {rows}) -> k, r")), "{steps}");
        assert!(steps.contains("vectorize(a.v)"), "{steps}");
        holds(family, &problem, &choice, &[0, 1, 331, 997]);
    }
    let refused = |widths, dtype, form: &str| {
        let given = parameters(&format!("unit=fma,staging=shared,{form}"));
        family.complete(&given, &problem(family, widths, dtype), target::DEFAULT).unwrap_err().to_string()
    };
    // Rows of whole pieces have no panels, and a slice of threads takes no part of one.
    assert!(refused((32, 32), "f32", "panel=true").contains("panel"));
    let uneven = refused((33, 33), "f32", "panel=true,tn=3,block=128,depth=66");
    assert!(uneven.contains("a whole number of panels"), "{uneven}");
}

#[test]
fn rows_that_lanes_read_together_may_be_some_way_apart() {
    let family = kernels::family("tsmttsm").unwrap();
    // Two, four and eight rows apart, instructions of four, eight and sixteen terms, tiles that stand over the edge.
    for (dtype, widths, form) in [
        ("f64", (9, 17), "apart=4,instruction=m16n8k4,wm=1,wn=1,wk=2,depth=32,stages=2"),
        ("f64", (7, 33), "apart=4,instruction=m16n8k8,wm=3,wn=1,wk=1,depth=16,stages=3"),
        ("f64", (17, 31), "apart=4,instruction=m16n8k16,wm=2,wn=1,wk=1,depth=32,stages=2"),
        ("f64", (22, 18), "apart=2,instruction=m16n8k8,wm=2,wn=1,wk=2,depth=16,stages=2,reduction=global"),
        ("f64", (22, 18), "apart=2,instruction=m16n8k16,wm=1,wn=1,wk=2,depth=32,stages=2"),
        ("c128", (9, 9), "numbers=parts,apart=2,instruction=m16n8k4,wm=2,wn=1,wk=1,depth=16,stages=2"),
        ("c128", (5, 17), "numbers=whole,apart=2,instruction=m16n8k8,wm=2,wn=1,wk=1,depth=16,stages=2"),
        ("c128", (7, 7), "numbers=whole,apart=2,instruction=m8n8k4,wm=1,wn=1,wk=2,depth=32,stages=3"),
    ] {
        let form = format!("unit=mma,copy=bulk,parts=3,{form}");
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &form);
        holds(family, &problem, &choice, &[0, 1, 3, 31, 32, 33, 96, 97, 331]);
        let mut same = problem;
        if widths.0 == widths.1 {
            same.same = true;
            holds(family, &same, &chosen(family, &same, &form), &[1, 97, 331]);
        }
    }
    let refused = |width, form: &str| {
        let given = parameters(&format!("unit=mma,copy=bulk,{form}"));
        let problem = problem(family, (width, width), "f64");
        family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string()
    };
    // Rows of 100 doubles are in different banks as they are. A set of warps has four rows of a group, and eight are to be shared out.
    assert!(refused(100, "apart=2").contains("apart has no meaning"), "{}", refused(100, "apart=2"));
    let uneven = refused(18, "apart=2,instruction=m16n8k4,depth=16,wm=1,wk=4");
    assert!(uneven.contains("as far apart as instructions can share out"), "{uneven}");
}

#[test]
fn one_matrix_on_both_sides_is_read_in_panels_too() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width) in [("f32", 9), ("c64", 9)] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        let given = parameters("unit=fma,staging=shared,block=128,panel=true,parts=3,tn=3,transposed=false");
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap();
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn groups_of_dense_rows_come_by_one_bulk_copy() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (33, 33), "unit=fma,staging=shared,block=128,panel=false,depth=32,tm=7,tn=7,stages=3"),
        ("f32", (40, 21), "unit=fma,staging=shared,block=128,panel=true,tn=5,stages=2"),
        ("c64", (17, 9), "unit=fma,staging=shared,block=128,panel=false,tm=5,tn=3,stages=4"),
        ("f64", (23, 20), "unit=mma,depth=16,stages=2"),
        ("c128", (9, 12), "unit=mma,numbers=parts,depth=16,stages=3"),
        ("c128", (12, 9), "unit=mma,numbers=whole,depth=16,stages=2,reduction=global"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("copy=bulk,parts=3,{form}"));
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains("via=bulk") && !steps.contains("cp_async"), "{steps}");
        // No rows, some that end within 16 bytes and within a group, and whole groups.
        holds(family, &problem, &choice, &[0, 1, 96, 331, 997]);
    }
    let refused = |widths, dtype, form: &str| {
        let given = parameters(&format!("unit=fma,staging=shared,copy=bulk,{form}"));
        family.complete(&given, &problem(family, widths, dtype), target::DEFAULT).unwrap_err().to_string()
    };
    // 42 rows of 132 bytes are no whole pieces; a column is not dense rows.
    let uneven = refused((33, 33), "f32", "panel=false,block=128,tm=11,tn=5,depth=42");
    assert!(uneven.contains("no whole number of 16 bytes"), "{uneven}");
    assert!(refused((33, 1), "f32", "depth=64").contains("copy"));
}

#[test]
fn threads_may_keep_to_their_place_in_the_rows_that_they_copy() {
    for (name, dtype, widths, form) in [
        ("tsmttsm", "c64", (28, 28), "unit=fma,staging=shared,block=128"),
        ("tsmttsm", "f32", (28, 40), "unit=fma,staging=shared,block=128"),
        ("tsmttsm", "f64", (36, 20), "unit=mma"),
        ("tsmttsm", "c128", (12, 20), "unit=mma,numbers=parts"),
        ("tsmttsm", "c128", (24, 24), "unit=mma,numbers=whole"),
        ("tsmm", "f32", (56, 56), "unit=fma,staging=shared,team=part"),
        ("tsmm", "f32", (24, 36), "unit=fma,staging=shared,team=block"),
        ("tsmm", "c64", (24, 12), "unit=fma,staging=shared,team=part"),
        ("tsmm", "c128", (28, 12), "unit=mma,team=part"),
    ] {
        let family = kernels::family(name).unwrap();
        let problem = problem(family, widths, dtype);
        let given = parameters(&format!("{form},place=true"));
        let choice = family
            .complete(&given, &problem, target::DEFAULT)
            .unwrap_or_else(|d| panic!("{name} {form}: {d}"));
        let other = choice.clone().with("place", false);
        assert_ne!((family.schedule)(&problem, &choice), (family.schedule)(&problem, &other), "{choice}");
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn the_assembler_may_be_asked_for_no_blocks() {
    for (name, dtype, form) in [
        ("tsmm", "f32", "unit=fma,staging=shared"),
        ("tsmm", "c128", "unit=mma"),
        ("tsmm", "c64", "bands=2"),
        ("tsmttsm", "f32", "unit=fma,staging=shared"),
        ("tsmttsm", "c128", "unit=mma,areas=2"),
        ("tsmttsm", "f64", "unit=mma"),
        ("tsmttsm", "c64", "staging=shared,reduction=global"),
        ("tsmttsm", "f64", "unit=mma,reduction=global"),
    ] {
        let family = kernels::family(name).unwrap();
        let problem = problem(family, (64, 64), dtype);
        let choice = chosen(family, &problem, &format!("{form},bounded=false"));
        let [free, usual] =
            [choice.clone(), choice.clone().with("bounded", true)].map(|c| (family.schedule)(&problem, &c));
        assert!(free.contains("min_blocks=0") && usual == free.replace(", min_blocks=0", ""), "{free}");
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn dense_rows_of_any_length_move_as_one() {
    let ways = |name: &str, widths, dtype: &str, form: &str| {
        let family = kernels::family(name).unwrap();
        let problem = problem(family, widths, dtype);
        ["one", "rows"].map(|copy| {
            let given = parameters(&format!("{form},copy={copy}"));
            family.complete(&given, &problem, target::DEFAULT).map(|choice| {
                holds(family, &problem, &choice, &[1, 331]);
                (family.schedule)(&problem, &choice)
            })
        })
    };
    // Rows of whole pieces of 16 bytes, of others, and both together.
    for (name, dtype, widths, form) in [
        ("tsmttsm", "f64", (18, 18), "unit=mma"),
        ("tsmttsm", "f64", (6, 17), "unit=mma"),
        ("tsmttsm", "c128", (17, 9), "unit=mma,numbers=whole"),
        ("tsmttsm", "c128", (12, 7), "unit=mma,numbers=parts"),
        ("tsmttsm", "f32", (28, 44), "unit=fma,staging=shared,tm=4,tn=4,transposed=true"),
        ("tsmttsm", "c64", (10, 14), "unit=fma,staging=shared,tm=5,tn=2,transposed=false"),
        ("tsmm", "f64", (18, 18), "unit=mma,store=shared"),
        ("tsmm", "f64", (18, 34), "unit=mma,store=direct,team=part"),
        ("tsmm", "f64", (15, 18), "unit=mma,store=shared,team=block"),
        ("tsmm", "c128", (5, 21), "unit=mma,store=shared"),
        ("tsmm", "f32", (36, 48), "unit=fma,staging=shared,store=shared"),
        ("tsmm", "c64", (12, 10), "unit=fma,staging=shared,store=shared,team=part"),
    ] {
        let [one, rows] =
            ways(name, widths, dtype, form).map(|way| way.unwrap_or_else(|d| panic!("{form}: {d}")));
        assert!(rows.contains("fuse(As.r, As.c)") || rows.contains("split(As.c, "), "{rows}");
        assert!(!one.contains("As.c") && !one.contains("As.r"), "{one}");
    }
    // What a block needs of the columns is no one piece of memory, nor is what is copied of long rows at a time, and a
    // panel is read as the piece that it is.
    for (name, dtype, widths, form) in [
        ("tsmttsm", "f64", (96, 96), "unit=mma,areas=4"),
        ("tsmm", "f64", (64, 64), "unit=mma,depth=32,store=direct"),
        ("tsmm", "f64", (8, 8), "staging=registers,unit=fma"),
    ] {
        assert!(ways(name, widths, dtype, form).iter().all(Result::is_err), "{form}");
    }
    let [one, rows] = ways("tsmttsm", (33, 33), "f32", "unit=fma,staging=shared,panel=true");
    assert!(one.is_ok() && rows.is_err());
}

#[test]
fn neighbouring_lanes_may_stand_in_pairs() {
    // Even and odd numbers of lanes beside each other, in blocks, in parts of blocks, and in slices.
    for (name, dtype, widths, form, innermost) in [
        ("tsmm", "f32", (48, 48), "team=part,store=shared,tm=4,tn=12,piece=4", "jl, acc.il"),
        ("tsmm", "f32", (33, 33), "team=block,store=shared,rows=128,tm=4,tn=12,piece=4", "jt, acc.il"),
        ("tsmm", "c64", (10, 28), "team=part,store=shared,wn=1,tm=2,tn=4,piece=2", "jt, acc.il"),
        ("tsmttsm", "f32", (16, 32), "tm=8,tn=8,block=128", "jl, slice.il"),
        ("tsmttsm", "f32", (17, 24), "tm=4,tn=4,block=128,transposed=false", "jt, slice.il"),
        ("tsmttsm", "f32", (15, 15), "copy=rows,panel=false,tm=4,tn=8,block=128", "jl, slice.il"),
        ("tsmttsm", "c64", (8, 12), "tm=2,tn=2,block=128,stages=3", "jl, slice.il"),
    ] {
        let family = kernels::family(name).unwrap();
        let problem = problem(family, widths, dtype);
        let given = parameters(&format!("unit=fma,staging=shared,interleaved=true,{form}"));
        let choice = family
            .complete(&given, &problem, target::DEFAULT)
            .unwrap_or_else(|d| panic!("{name} {form}: {d}"));
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains(&format!("{innermost}, threads)")), "{steps}");
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn rows_that_make_long_code_may_be_multiplied_a_few_at_a_time() {
    let family = kernels::family("tsmttsm").unwrap();
    let completed = |dtype: &str, widths, form: &str| {
        let problem = problem(family, widths, dtype);
        let choice = family.complete(
            &parameters(&format!("unit=fma,staging=shared,{form}")),
            &problem,
            target::DEFAULT,
        );
        choice.map(|choice| (problem, choice))
    };
    // A thread has 16 rows of a group, 8, or 32.
    for (dtype, widths, form, steps) in [
        (
            "c64",
            (9, 9),
            "copy=one,panel=false,tm=9,tn=3,block=128,depth=640,stages=2,transposed=false,steps=4",
            4,
        ),
        ("c64", (33, 33), "copy=rows,panel=false,tm=8,tn=4,block=128,depth=32,steps=8", 8),
        ("f32", (47, 47), "copy=rows,panel=false,tm=12,tn=12,block=128,depth=64,stages=2,steps=2", 2),
        ("f32", (24, 24), "copy=one,tm=12,tn=12,block=128,depth=256,stages=2,steps=4", 4),
        ("c128", (33, 33), "tm=4,tn=4,block=128,depth=32,stages=2,steps=8", 8),
    ] {
        let (problem, choice) = completed(dtype, widths, form).unwrap_or_else(|d| panic!("{form}: {d}"));
        let schedule = (family.schedule)(&problem, &choice);
        assert!(schedule.contains(&format!("split(mine.k, {steps}) -> k, r")), "{schedule}");
        assert!(schedule.contains("unroll(mine.r, mine.i"), "{schedule}");
        holds(family, &problem, &choice, &[1, 331, 1500]);
        // Nothing said, all rows are unrolled, as before there was a choice.
        let without = form.rsplit_once(",steps").unwrap().0;
        let (_, usual) = completed(dtype, widths, without).unwrap();
        assert!(!(family.schedule)(&problem, &usual).contains("-> k, r"), "{usual}");
    }
    for (steps, because) in [(0, "try one of 8, 4, 2"), (3, "whole numbers of steps")] {
        let form = format!("copy=rows,panel=false,tm=12,tn=12,block=128,depth=64,stages=2,steps={steps}");
        let refusal = completed("f32", (47, 47), &form).unwrap_err().to_string();
        assert!(refusal.contains(because), "{refusal}");
    }
    // Little code is unrolled in any case, and panels are read one by one.
    for (widths, form) in [((16, 16), "tm=4,tn=4,block=128"), ((33, 33), "panel=true")] {
        let refusal = completed("f32", widths, &format!("{form},steps=2")).unwrap_err().to_string();
        assert!(refusal.contains("steps"), "{refusal}");
    }
}

#[test]
fn terms_that_unrolled_steps_leave_over_stand_apart() {
    let family = kernels::family("tsmm").unwrap();
    // 47, 23, 15 and 2 reads of a row.
    for (dtype, widths, form, peeled) in [
        ("f32", (9, 47), "steps=4,tm=4", true),
        ("f32", (12, 46), "steps=4,tm=2", true),
        ("c64", (7, 15), "steps=2,tm=2", true),
        ("f32", (12, 48), "steps=4,tm=4", false),
        ("f64", (6, 64), "unit=fma,depth=16,steps=4,tm=4", false),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("staging=shared,{form}"));
        let steps = (family.schedule)(&problem, &choice);
        assert_eq!(steps.contains(".ks, peel)"), peeled, "{steps}");
        holds(family, &problem, &choice, &[1, 257]);
    }
}

#[test]
fn parts_that_are_read_together_are_all_of_them_added_up() {
    let family = kernels::family("tsmttsm").unwrap();
    // A thread of the second pass has 1, 2 and 33 parts of an element, and 40 in two groups; then those of several sets.
    for (form, parts) in [
        ("staging=registers", [7, 33, 1056, 1270]),
        ("unit=mma,wk=4,depth=16", [7, 33, 132, 264]),
        ("staging=shared,block=128,depth=64", [7, 33, 132, 264]),
    ] {
        for parts in parts {
            let problem = problem(family, (4, 3), "f64");
            let given = parameters(form);
            let choice = family.complete(&given.with("parts", parts), &problem, target::DEFAULT).unwrap();
            holds(family, &problem, &choice, &[0, 331, 5000]);
        }
    }
}

#[test]
fn an_odd_number_of_threads_beside_each_other_is_made_even_for_pairs() {
    let family = kernels::family("tsmttsm").unwrap();
    // 13, 5 and 13 threads across, by panels: 14, 6 and 14 of them stand in pairs, and what is past the edge is guarded.
    for (dtype, widths, form, odd, even) in [
        ("f32", (49, 49), "tn=4,transposed=true", 13, 14),
        ("f32", (25, 17), "tn=5,transposed=true,copy=one", 5, 6),
        ("c64", (13, 15), "tn=1,transposed=true,depth=32", 13, 14),
    ] {
        let problem = problem(family, widths, dtype);
        for (interleaved, threads) in [(false, odd), (true, even)] {
            let form =
                format!("unit=fma,staging=shared,block=128,panel=true,{form},interleaved={interleaved}");
            let choice = chosen(family, &problem, &form);
            let steps = (family.schedule)(&problem, &choice);
            assert!(steps.contains(&format!("split(slice.j, {threads}) -> vj, j")), "{steps}");
            holds(family, &problem, &choice, &[0, 1, 331]);
        }
    }
    let refused = |widths, form: &str| {
        let given = parameters(&format!("unit=fma,staging=shared,panel=true,{form}"));
        family.complete(&given, &problem(family, widths, "f32"), target::DEFAULT).unwrap_err().to_string()
    };
    // There is no tile of fewer rows of C in a panel.
    assert!(refused((49, 49), "tm=8,tn=4").contains("takes all rows of C"));
}

#[test]
fn rows_that_come_in_pieces_end_with_few_zeros() {
    let family = kernels::family("tsmm").unwrap();
    // 117 terms of 40 are 120, and 113 of 20 are 120: rows of odd length, whose last piece is filled up with zeros and
    // read 16 bytes at a time like the others.
    for (dtype, widths, form) in [
        ("c64", (29, 117), "depth=40,tm=4,tn=10,piece=2,wm=2"),
        ("f32", (49, 113), "depth=20,tm=2,tn=20,piece=4"),
        ("f32", (49, 113), "depth=40,tm=4,tn=8,piece=4"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("unit=fma,staging=shared,{form}"));
        holds(family, &problem, &choice, &[1, 257]);
    }
}

#[test]
fn tiles_of_an_even_side_are_read_two_numbers_at_a_time() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (27, 33), "copy=rows,panel=false,tm=6,tn=10,block=128,depth=16"),
        ("f32", (113, 113), "copy=rows,panel=false,tm=6,tn=12,depth=8"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("unit=fma,staging=shared,{form}"));
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains("vectorize("), "{steps}");
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn tiles_of_dense_rows_are_read_in_whole_pieces_wherever_rows_start() {
    let family = kernels::family("tsmttsm").unwrap();
    // Rows that start in four ways, in two, all alike, and A's otherwise than B's; lanes in pairs, and in squares.
    for (dtype, widths, form) in [
        ("f32", (33, 35), "panel=false,copy=bulk,tm=12,tn=4,depth=16,stages=3"),
        ("f32", (25, 21), "panel=false,copy=one,tm=12,tn=8,depth=64,stages=2"),
        ("f32", (22, 22), "panel=false,copy=bulk,tm=12,tn=12,depth=64,stages=2,interleaved=true"),
        ("f32", (30, 31), "panel=false,copy=bulk,tm=8,tn=8,depth=32,stages=2,interleaved=true"),
        ("f32", (44, 28), "copy=one,tm=12,tn=8,depth=14,stages=2"),
        ("f32", (24, 19), "panel=false,copy=bulk,tm=4,tn=4,depth=16,stages=4"),
        ("f32", (47, 47), "panel=false,copy=bulk,tm=12,tn=12,depth=128,stages=2,steps=4,interleaved=true"),
        ("c64", (15, 13), "panel=false,copy=bulk,tm=2,tn=6,depth=16,stages=2,reduction=global"),
        ("c64", (23, 21), "panel=false,copy=one,tm=6,tn=6,depth=32,stages=2,interleaved=true"),
    ] {
        let problem = problem(family, widths, dtype);
        let form = format!("unit=fma,staging=shared,block=128,transposed=false,whole=true,parts=3,{form}");
        let choice = chosen(family, &problem, &form);
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains(", pieces=") && steps.contains("vectorize(a.v)"), "{steps}");
        holds(family, &problem, &choice, &[0, 1, 3, 331, 997]);
    }
    let refused = |widths, form: &str| {
        let given = parameters(&format!("unit=fma,staging=shared,block=128,panel=false,whole=true,{form}"));
        family.complete(&given, &problem(family, widths, "f32"), target::DEFAULT).unwrap_err().to_string()
    };
    // Elements that lie far apart are no pieces, nor are tiles of ten; and four rows start in four ways.
    assert!(refused((33, 33), "transposed=true,tm=12,tn=4").contains("whole"));
    assert!(refused((33, 33), "transposed=false,tm=10,tn=4").contains("whole"));
    let few = refused((33, 33), "transposed=false,copy=bulk,tm=12,tn=4,depth=24");
    assert!(few.contains("ways in which they start"), "{few}");
}

#[test]
fn one_matrix_on_both_sides_is_read_in_whole_pieces_too() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width, form) in [("f32", 21, "tm=8,tn=12"), ("c64", 17, "tm=6,tn=2")] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        let given = format!(
            "unit=fma,staging=shared,block=128,panel=false,transposed=false,whole=true,parts=3,{form}"
        );
        let choice = family.complete(&parameters(&given), &problem, target::DEFAULT).unwrap();
        holds(family, &problem, &choice, &[1, 331]);
    }
}

#[test]
fn rows_in_small_pieces_may_pass_through_registers() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (33, 33), "tm=8,tn=8,depth=16"),
        ("f32", (27, 50), "tm=6,tn=10,depth=16,stages=1"),
        ("f32", (13, 13), "tm=4,tn=4,depth=32,stages=2,reduction=global"),
        // Pieces of eight bytes, and tiles that go beyond the row: what is there is zeros without a load.
        ("f32", (22, 22), "tm=8,tn=4,depth=16,stages=1,transposed=true"),
        ("c64", (9, 15), "tm=4,tn=4,depth=16,stages=2"),
    ] {
        let problem = problem(family, widths, dtype);
        let given = format!("unit=fma,staging=shared,block=128,panel=false,copy=registers,parts=3,{form}");
        let choice = chosen(family, &problem, &given);
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains("via=registers") && !steps.contains("cp_async"), "{steps}");
        holds(family, &problem, &choice, &[0, 1, 331, 997]);
    }
    let refused = |widths, form: &str| {
        let given = parameters(&format!("unit=fma,staging=shared,copy=registers{form}"));
        family.complete(&given, &problem(family, widths, "f32"), target::DEFAULT).unwrap_err().to_string()
    };
    // Rows of whole pieces of 16 bytes come asynchronously, and registers hold one group ahead.
    assert!(refused((32, 32), "").contains("copy"));
    let many = refused((33, 33), ",stages=4");
    assert!(many.contains("1 or 2 stages"), "{many}");
}
