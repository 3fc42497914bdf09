//! The families for tall and skinny products: numbers that are made of products of parts, where that is permitted.

use warpwright::choose;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Permissions};
use warpwright::problem::Multiplications;
use warpwright::tune::record::Gpu;
use warpwright::tune::wisdom::Wisdom;
use warpwright_core::target;

use crate::tall_skinny::{forms, holds, problem};

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
        let mut choices = Vec::new();
        family.choices(&problem, target::DEFAULT, Permissions::NONE, &given, &mut |choice| {
            choices.push(choice.clone());
            true
        });
        for choice in choices.iter().step_by(choices.len() / 6) {
            assert!((family.needs)(choice).three_multiplications && !(family.needs)(choice).any_order);
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

#[test]
fn f32_numbers_are_split_into_parts_where_that_is_permitted() {
    let split = Permissions { split: true, ..Permissions::NONE };
    for (at, (name, widths, dtype, layout, same)) in [
        ("tsmttsm", (17, 9), "f32", "tn", false),
        ("tsmttsm", (33, 33), "f32", "tn", true),
        ("tsmttsm", (7, 21), "c64", "cn", false),
        ("tsmttsm", (12, 12), "c64", "tn", true),
        ("tsmm", (9, 17), "f32", "nn", false),
        ("tsmm", (33, 20), "f32", "nn", false),
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
        let mut choices = Vec::new();
        let given = Choice::default().with("unit", "mma");
        family.choices(&problem, target::DEFAULT, split, &given, &mut |choice| {
            choices.push(choice.clone());
            true
        });
        for choice in choices.iter().step_by(choices.len() / 6) {
            assert!((family.needs)(choice).split && choice.word("numbers").starts_with("split"), "{choice}");
            assert_eq!(family.multiplications(choice), Multiplications::Split);
            holds(family, &problem, choice, &[0, 331]);
        }
        // Nobody else is given them, and whoever asks for matrix units hears what they need.
        for permissions in [Permissions::NONE, Permissions { split: false, ..Permissions::ALL }] {
            let mut permitted = 0;
            family.choices(&problem, target::DEFAULT, permissions, &given, &mut |_| {
                permitted += 1;
                true
            });
            assert_eq!(permitted, 0);
        }
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("is chosen only where somebody asks for it"), "{refused}");
    }
}

#[test]
fn split_numbers_are_chosen_where_work_takes_the_time_and_they_are_permitted() {
    let (target, gpu) = (target::DEFAULT, Gpu::of_target(target::DEFAULT));
    for (family, dtype) in [("tsmttsm", "f32"), ("tsmm", "f32"), ("tsmttsm", "c64")] {
        let family = kernels::family(family).unwrap();
        let mut large = problem(family, (113, 113), dtype);
        *if family.name == "tsmm" { &mut large.shape.m } else { &mut large.shape.k } = 1_000_000;
        for split in [true, false] {
            let permissions = Permissions { split, ..Permissions::NONE };
            let chosen = choose::parameters(family, &large, target, &gpu, &Wisdom::default(), permissions);
            let chosen = chosen.unwrap().0.parameters;
            assert_eq!(chosen.word("numbers").starts_with("split"), split, "{chosen}");
        }
    }
}

#[test]
fn three_real_products_are_chosen_where_work_takes_the_time_and_they_are_permitted() {
    for family in kernels::FAMILIES {
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
