//! The families for tall and skinny products: numbers that are made of products of parts, where that is permitted.

use warpwright::choose;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Permissions};
use warpwright::problem::Multiplications;
use warpwright::tune::record::Gpu;
use warpwright::tune::wisdom::Wisdom;
use warpwright_core::target;

use crate::drawn::{drawn, forms};
use crate::tall_skinny::{holds, parameters, problem};

#[test]
fn three_real_products_make_a_complex_one_where_that_is_permitted() {
    let given = Choice::default().with("numbers", "three");
    for (at, (name, widths, layout, same)) in [
        ("tsmttsm", (4, 3), "cn", false),
        ("tsmttsm", (20, 9), "tn", false),
        ("tsmttsm", (33, 33), "cn", true),
        ("tsmttsm", (12, 12), "tn", true),
        ("tsmm", (4, 3), "nn", false),
        ("tsmm", (9, 20), "nn", false),
        ("tsmm", (33, 34), "nn", false),
    ]
    .into_iter()
    .enumerate()
    {
        let family = kernels::family(name).unwrap();
        let mut problem = problem(family, widths, "c128");
        problem.layout = layout.parse().unwrap();
        problem.same = same;
        problem.ld.a += [0, 1][at % 2];
        problem.ld.b += [0, 1][at % 2];
        let choices = drawn(family, &problem, Permissions::NONE, &given, 6);
        assert_eq!(choices.len(), 6);
        for choice in &choices {
            let needed = family.needs(problem.precision, problem.shape.k, choice);
            assert!(needed.three_multiplications && !needed.any_order);
            holds(family, &problem, choice, &[0, 331]);
        }
        // Nobody else is given them.
        let allowed = |permissions| {
            let all = forms(family, &problem, &["numbers"], permissions);
            all.iter().any(|(form, _)| form == "three")
        };
        assert!(allowed(Permissions::ALL));
        assert!(allowed(Permissions { three_multiplications: true, ..Permissions::NONE }));
        assert!(!allowed(Permissions::NONE));
        assert!(!allowed(Permissions { any_order: true, ..Permissions::NONE }));
        let usual = family.complete(&Choice::default(), &problem, target::DEFAULT).unwrap();
        assert_ne!(usual.word("numbers"), "three");
    }
}

/// As parts, stored straight from registers or through shared memory, by blocks and by parts of them, in bands and in pieces
/// of rows; rows of whole pieces of 16 bytes and others, dense and some way apart.
#[test]
fn complex_numbers_are_multiplied_as_their_parts() {
    let family = kernels::family("tsmm").unwrap();
    for (at, (widths, dtype, form)) in [
        ((1, 2), "c128", "instruction=m16n8k4"),
        ((2, 3), "c64", ""),
        ((3, 5), "c128", "instruction=m16n8k4"),
        ((7, 5), "c64", "rows=256,wm=8"),
        ((16, 17), "c128", "instruction=m16n8k8,wn=2,copy=one"),
        ((17, 16), "c64", "wn=2"),
        ((31, 33), "c128", "instruction=m16n8k16,wn=2,copy=rows"),
        ((33, 31), "c64", "depth=16,wn=3,stages=2"),
        ((33, 31), "c128", "instruction=m16n8k4,rows=64,depth=16,stages=3,wn=3"),
        ((57, 57), "c128", "instruction=m16n8k4,rows=64,wm=4,wn=1,bands=1,depth=57,stages=1"),
        // Rows of the small matrix that are longer than there are threads.
        ((35, 6), "c128", "instruction=m16n8k4,rows=32,wm=2,wn=1"),
        ((34, 6), "c64", "rows=32,wm=2,wn=1"),
        ((65, 66), "c128", "bands=4,instruction=m16n8k8,depth=16"),
        ((96, 65), "c64", "bands=2,depth=16"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut problem = problem(family, widths, dtype);
        problem.ld.a += [0, 0, 1][at % 3];
        problem.ld.b += [0, 1][at % 2];
        problem.ld.c += [0, 0, 3][at % 3];
        for (turn, (team, store)) in
            [("block", "direct"), ("part", "shared"), ("block", "shared"), ("part", "direct")]
                .into_iter()
                .enumerate()
        {
            // Two of these for each, one after the other.
            if (turn + 4 - at % 4) % 4 > 1 {
                continue;
            }
            // The real matrix as it is read, and stored as such.
            let stored = turn % 2 == 0;
            let numbers = match dtype {
                "c128" if stored => "expanded",
                "c128" => "parts",
                _ => "split-parts",
            };
            let given = format!("unit=mma,numbers={numbers},team={team},store={store},{form}");
            let mut given = parameters(given.trim_end_matches(',')).with("blocks", 2);
            if dtype == "c64" {
                given = given.with("split_once", stored);
            }
            let choice = family
                .complete(&given, &problem, target::DEFAULT)
                .unwrap_or_else(|e| panic!("{widths:?} {given}: {e}"));
            assert_eq!(
                family.multiplications(&choice) == Multiplications::SPLIT,
                dtype == "c64",
                "others are those of the definition"
            );
            let rows = choice.int("rows");
            holds(family, &problem, &choice, &[0, 1, rows - 1, 2 * rows + 1, 331]);
        }
    }
}

#[test]
fn f32_numbers_are_split_into_parts_where_sums_are_long_or_that_is_permitted() {
    let split = Permissions { split: true, ..Permissions::NONE };
    for (at, (name, widths, dtype, layout, same)) in [
        ("tsmttsm", (17, 9), "f32", "tn", false),
        ("tsmttsm", (33, 33), "f32", "tn", true),
        ("tsmttsm", (7, 21), "c64", "cn", false),
        ("tsmttsm", (12, 12), "c64", "tn", true),
        ("tsmm", (9, 17), "f32", "nn", false),
        ("tsmm", (33, 32), "f32", "nn", false),
        ("tsmm", (33, 15), "f32", "nn", false),
        ("tsmm", (20, 11), "c64", "nn", false),
        ("tsmm", (11, 5), "c64", "nn", false),
    ]
    .into_iter()
    .enumerate()
    {
        let family = kernels::family(name).unwrap();
        let mut problem = problem(family, widths, dtype);
        problem.layout = layout.parse().unwrap();
        problem.same = same;
        problem.ld.a += [0, 1][at % 2];
        problem.ld.b += [0, 1][at % 2];
        let given = Choice::default().with("unit", "mma");
        let choices = drawn(family, &problem, split, &given, 24);
        assert_eq!(choices.len(), 24);
        for (number, choice) in choices.iter().enumerate() {
            assert!(choice.word("numbers").starts_with("split"), "{choice}");
            let chain = u8::try_from(choice.int("chain")).unwrap();
            let whole = Multiplications::SPLIT;
            let by = if choice.get("chain").is_some() { Multiplications::Split { chain } } else { whole };
            assert_eq!(family.multiplications(choice), by);
            // A sum has a small enough bound where threads add it up in enough pieces.
            let steps = (problem.shape.k + 7) / 8;
            let asks = name == "tsmm" && (choice.get("chain").is_none() || i64::from(chain) == steps);
            let needed = family.needs(problem.precision, problem.shape.k, choice);
            assert_eq!(needed, Permissions { split: asks, ..Permissions::NONE }, "{choice}");
            if number % 4 == 0 {
                holds(family, &problem, choice, &[0, 331]);
            }
        }
        if name == "tsmttsm" {
            continue;
        }
        // Nobody else is given sums that ask for it, and where all do whoever asks for matrix units hears what they need.
        let pieces = choices.iter().any(|choice| choice.get("chain").is_some());
        assert_eq!(pieces, problem.shape.k >= if dtype == "f32" { 16 } else { 11 }, "{}", problem.shape);
        for permissions in [Permissions::NONE, Permissions { split: false, ..Permissions::ALL }] {
            let permitted = drawn(family, &problem, permissions, &given, 24);
            for choice in &permitted {
                assert!(choice.get("chain").is_some() && choice.word("numbers") == "split", "{choice}");
            }
            assert_eq!(!permitted.is_empty(), pieces, "{}", problem.shape);
        }
        if pieces {
            let uneven = given.clone().with("numbers", "split").with("chain", 7);
            let refused = family.complete(&uneven, &problem, target::DEFAULT).unwrap_err().to_string();
            assert!(refused.contains("as many instructions each"), "{refused}");
            continue;
        }
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("is chosen only where somebody asks for it"), "{refused}");
    }
}

#[test]
fn split_numbers_are_chosen_where_work_takes_the_time_and_their_bound_is_no_larger_or_they_are_permitted() {
    let (target, gpu) = (target::DEFAULT, Gpu::of_target(target::DEFAULT));
    for (family, dtype, width, terms) in [
        ("tsmttsm", "f32", 113, 0),
        ("tsmm", "f32", 113, 113),
        ("tsmm", "f32", 113, 15),
        ("tsmm", "f32", 113, 30),
        ("tsmttsm", "c64", 62, 0),
        ("tsmm", "c64", 62, 62),
    ] {
        let family = kernels::family(family).unwrap();
        let mut large = problem(family, (width, width), dtype);
        *if family.name == "tsmm" { &mut large.shape.m } else { &mut large.shape.k } = 1_000_000;
        if family.name == "tsmm" {
            large.shape.k = terms;
        }
        for split in [true, false] {
            let permissions = Permissions { split, ..Permissions::NONE };
            let chosen = choose::parameters(family, &large, target, &gpu, &Wisdom::default(), permissions);
            let chosen = chosen.unwrap().0.parameters;
            assert_eq!(chosen.word("numbers").starts_with("split"), split || terms != 15, "{chosen}");
        }
    }
}

#[test]
fn three_real_products_are_chosen_where_work_takes_the_time_and_they_are_permitted() {
    for family in kernels::TALL_SKINNY {
        let mut large = problem(family, (128, 128), "c128");
        // Long enough for the last launch not to count.
        *if family.name == "tsmm" { &mut large.shape.m } else { &mut large.shape.k } = 1_000_000;
        let (target, gpu) = (target::DEFAULT, Gpu::of_target(target::DEFAULT));
        for (three_multiplications, any_order) in [(true, false), (false, true)] {
            let permissions = Permissions { any_order, three_multiplications, ..Permissions::NONE };
            let chosen = choose::parameters(family, &large, target, &gpu, &Wisdom::default(), permissions);
            let chosen = chosen.unwrap().0.parameters;
            assert_eq!(chosen.word("numbers") == "three", three_multiplications, "{chosen}");
        }
        // Real numbers have no parts, and threads multiply them as they are.
        for (dtype, unit) in [("f64", "mma"), ("c64", "fma"), ("c128", "fma")] {
            let problem = problem(family, (8, 8), dtype);
            let given = Choice::default().with("numbers", "three").with("unit", unit);
            assert!(family.complete(&given, &problem, target::DEFAULT).is_err(), "{dtype} {unit}");
        }
    }
}
