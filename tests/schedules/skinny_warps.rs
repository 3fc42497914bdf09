//! The families for tall and skinny products: how tiles of C are shared out among warps changes nothing of what they compute.

use warpwright::kernels;
use warpwright::kernels::family::Footprint;
use warpwright_core::target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

#[test]
fn instructions_behind_the_end_of_c_are_left_out() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form, conditions) in [
        // 50 columns in 7 tiles and 34 rows in 3: the last of four tiles of two warps each way.
        ("f64", (50, 34), "wm=2,wn=2,wk=2,copy=rows", "32*wm + 16*mi < 34 && 32*wn + 8*ni < 50"),
        (
            "c128",
            (9, 17),
            "numbers=parts,wm=2,wn=2,wk=1,copy=bulk,release=warps",
            "32*wm + 16*mi < 34 && 16*wn + 8*ni < 18",
        ),
        (
            "c128",
            (49, 10),
            "numbers=parts,wm=2,wn=5,wk=1,copy=bulk,release=role,stages=2",
            "24*wn + 8*ni < 98",
        ),
        ("c128", (17, 20), "numbers=whole,wm=1,wn=2,wk=2,copy=one", "16*wn + 8*ni < 17"),
        ("c128", (20, 33), "numbers=three,wm=2,wn=1,wk=1,copy=rows", "32*wm + 16*mi < 33"),
    ] {
        let problem = problem(family, widths, dtype);
        let given = format!("unit=mma,instruction=m16n8k4,depth=16,parts=3,omit=true,{form}");
        let choice = chosen(family, &problem, &given);
        let text = family.build(&problem, &choice).unwrap().program().to_string();
        assert!(text.contains(&format!("if {conditions} {{\n")), "{choice}:\n{text}");
        holds(family, &problem, &choice, &[0, 1, 47, 48, 49, 211]);
        // The model counts what is executed.
        let all = (family.footprint)(&problem, &choice.clone().with("omit", false), target::DEFAULT);
        let left = (family.footprint)(&problem, &choice, target::DEFAULT);
        assert!(left.multiply_adds < all.multiply_adds);
        assert_eq!(left, Footprint { multiply_adds: left.multiply_adds, uneven: left.uneven, ..all });
    }
    // 7 x 13 tiles among 4 x 5 warps: 23 of 91 for the fullest of four schedulers, and 26 among seven warps.
    let uneven = |form: &str| {
        let given = format!(
            "unit=mma,numbers=parts,instruction=m16n8k4,copy=bulk,depth=16,parts=3,wk=1,stages=2,{form}"
        );
        let wide = problem(family, (49, 49), "c128");
        (family.footprint)(&wide, &chosen(family, &wide, &given), target::DEFAULT).uneven
    };
    assert_eq!(uneven("wm=4,wn=5,omit=true"), Some(23.0 * 4.0 / 91.0));
    assert_eq!(uneven("wm=7,wn=1,release=role"), Some(26.0 * 4.0 / 91.0));
    assert_eq!(uneven("wm=7,wn=1"), None, "that follows from the number of warps");
    // Where all tiles count, or numbers are split, there is no choice.
    for (dtype, widths, form) in [("f64", (48, 32), "wm=2,wn=2"), ("f32", (50, 34), "wm=2,wn=2")] {
        let given = parameters(&format!("unit=mma,omit=true,{form}"));
        assert!(family.complete(&given, &problem(family, widths, dtype), target::DEFAULT).is_err());
    }
}
