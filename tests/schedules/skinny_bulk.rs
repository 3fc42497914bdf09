//! The families for tall and skinny products: groups of rows that bulk copies bring, and who asks for them, change nothing of what they
//! compute.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Footprint};
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

/// How often barriers of the block stand in the text of a kernel.
fn meetings(family: &Family, problem: &Problem, choice: &Choice) -> usize {
    let kernel = family.build(problem, choice).unwrap_or_else(|e| panic!("{e}"));
    let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    compile::cuda(&valid).unwrap_or_else(|e| panic!("{e}")).text.matches("__syncthreads();").count()
}

#[test]
fn groups_that_a_bulk_copy_brings_are_given_back_by_warps() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f64", (23, 20), "unit=mma,depth=16,wm=1,wn=1,wk=2,stages=2"),
        ("f64", (25, 9), "unit=mma,depth=32,stages=4"),
        ("c128", (9, 12), "unit=mma,numbers=parts,depth=16,stages=2"),
        ("c128", (15, 11), "unit=mma,numbers=parts,depth=16,wm=1,wn=4,wk=1,stages=3"),
        ("c128", (12, 9), "unit=mma,numbers=whole,depth=16,stages=4,reduction=global"),
        ("c128", (9, 7), "unit=mma,numbers=three,depth=16,stages=3"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("copy=bulk,release=warps,parts=3,{form}"));
        let steps = (family.schedule)(&problem, &choice);
        assert!(steps.contains("via=bulk, release=warps"), "{steps}");
        let other = choice.clone().with("release", "block");
        assert_eq!((family.schedule)(&problem, &other), steps.replace(", release=warps", ""));
        let meetings = [&choice, &other].map(|c| meetings(family, &problem, c));
        assert_eq!(meetings[0] + 1, meetings[1], "{choice}: the block does not meet in the loop");
        // Blocks of no group, one, as many as stages and more, the last of which may hang over.
        let group = 3 * choice.int("depth");
        let whole = (0..=6).map(|groups| groups * group);
        let long: Vec<i64> = whole.chain([1, group - 1, group + 1, 2 * group + 3, 7 * group - 5]).collect();
        holds(family, &problem, &choice, &long);
        // The model: no meeting, and one more barrier for each slot.
        let [by_warps, by_block] =
            [&choice, &other].map(|c| (family.footprint)(&problem, c, target::DEFAULT));
        assert!(by_warps.meetings == 0.0 && by_block.meetings > 0.0);
        let shared_bytes = by_block.shared_bytes + 8 * choice.int("stages");
        assert_eq!(by_warps, Footprint { meetings: 0.0, shared_bytes, ..by_block });
        // A warp more that does nothing but ask for copies.
        let by_role = choice.clone().with("release", "role");
        assert_eq!((family.schedule)(&problem, &by_role), steps.replace("release=warps", "release=role"));
        holds(family, &problem, &by_role, &long);
        let footprint = (family.footprint)(&problem, &by_role, target::DEFAULT);
        let uneven = footprint.uneven;
        assert_eq!(footprint, Footprint { threads: by_warps.threads + 32, uneven, ..by_warps });
        // It multiplies nothing: schedulers have what the others have.
        let warps = by_warps.threads / 32;
        assert_eq!(uneven, Some((warps as f64 / 4.0).ceil() * 4.0 / warps as f64));
    }
    // Nothing said, the block meets.
    let problem = problem(family, (51, 51), "c128");
    let usual = chosen(family, &problem, "copy=bulk");
    assert_eq!(usual.word("release"), "block");
    let known = usual.iter().filter(|(name, _)| *name != "release");
    let known = known.fold(Choice::default(), |c, (name, value)| c.with(name, *value));
    assert_eq!((family.schedule)(&problem, &usual), (family.schedule)(&problem, &known));
    for (form, release) in ["copy=one", "copy=rows", "copy=bulk,areas=2", "unit=fma,copy=bulk"]
        .into_iter()
        .flat_map(|form| [(form, "warps"), (form, "role")])
    {
        let given = parameters(&format!("release={release},{form}"));
        assert!(family.complete(&given, &problem, target::DEFAULT).is_err(), "{form}");
    }
    // Nine warps have no more registers than twelve: 19 tiles of C in complex128 fit in those of eight.
    let wide = self::problem(family, (76, 30), "c128");
    let fits = |release: &str| {
        let form =
            "unit=mma,numbers=parts,copy=bulk,instruction=m16n8k4,wk=2,wm=4,wn=1,depth=16,stages=2,parts=3";
        family.complete(&parameters(&format!("{form},release={release}")), &wide, target::DEFAULT).is_ok()
    };
    assert_eq!(["warps", "role"].map(fits), [true, false]);
}

#[test]
fn rows_that_a_bulk_copy_brings_are_multiplied_and_given_back_by_warps() {
    let family = kernels::family("tsmm").unwrap();
    for (widths, form) in [
        ((17, 9), "numbers=parts,instruction=m16n8k4,rows=32,wm=2,wn=2,stages=2"),
        ((12, 20), "numbers=expanded,instruction=m16n8k8,rows=16,wm=1,wn=3,stages=3"),
        ((7, 12), "numbers=whole,instruction=m8n8k4,rows=64,wm=4,wn=1,stages=4"),
        ((20, 24), "numbers=parts,instruction=m16n8k4,rows=48,wm=3,wn=2,stages=2"),
        ((9, 13), "numbers=three,instruction=m16n8k4,rows=32,wm=2,wn=1,stages=2"),
    ] {
        let problem = problem(family, widths, "c128");
        let form = format!("unit=mma,copy=bulk,store=direct,team=block,blocks=3,{form}");
        let rows = chosen(family, &problem, &form).int("rows");
        // Blocks of no group, one, as many as stages and more, the last of which may hang over.
        let long: Vec<i64> =
            (0..=5).map(|groups| 3 * rows * groups).chain([1, rows + 1, 7 * rows - 5]).collect();
        let [by_warps, by_role] =
            ["warps", "role"].map(|release| chosen(family, &problem, &format!("{form},release={release}")));
        for (choice, via) in [(&by_warps, "via=bulk, release=warps"), (&by_role, "via=bulk, release=role")] {
            assert!((family.schedule)(&problem, choice).contains(via), "{choice}");
            let kernel = family.build(&problem, choice).unwrap();
            let text = compile::validated(kernel.program(), target::DEFAULT).unwrap().program().to_string();
            let (_, groups) = text.split_once("    for blk in 0..").expect("a loop over groups");
            assert!(!groups.contains("\n      barrier\n"), "the block does not meet in the loop:\n{text}");
            holds(family, &problem, choice, &long);
        }
        let [warps, role] = [&by_warps, &by_role].map(|c| (family.footprint)(&problem, c, target::DEFAULT));
        assert_eq!((warps.meetings, role.meetings), (0.0, 0.0));
        assert_eq!(role, Footprint { threads: warps.threads + 32, uneven: role.uneven, ..warps });
    }
    // Only whole rows come so, and only from where bulk copies may begin.
    let refused = |form: &str, problem: &Problem| {
        family.complete(&parameters(&format!("unit=mma,copy=bulk,{form}")), problem, target::DEFAULT).is_err()
    };
    let square = problem(family, (40, 40), "c128");
    assert!(!refused("team=block,store=direct", &square));
    for form in
        ["team=part,store=shared", "team=block,store=shared", "team=block,store=direct,depth=8", "stages=1"]
    {
        assert!(refused(form, &square), "{form}");
    }
    let mut padded = problem(family, (40, 40), "c128");
    padded.ld.a += 1;
    assert!(refused("team=block", &padded) && refused("team=block", &problem(family, (40, 40), "f64")));
}
