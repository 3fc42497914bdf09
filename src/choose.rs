//! Which kernel to use when nobody names one.
//!
//! Tall and skinny products go to a family with parameters. Its parameters are those that were measured to be the best
//! for this problem on this GPU; else those of a problem that differs in a long extent only, in factors or in conjugation; else those of a problem nearby
//! that was tuned, of several the one whose parameters the model calls the fastest here, unless it says that they would be
//! slow and the problem is no short one beside others of its length; else those that the model ranks first. Where nobody has tuned a family, or this problem at any such length, on this kind of GPU,
//! what was found on a sister counts, of the same compute capability and with as many multiprocessors. Other products go to a kernel
//! of the ladders, by rule.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Launch;
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile;
use crate::kernels::family::{Choice, Family, Permissions};
use crate::kernels::{self, Kernel, Recipe, Variant, granularity};
use crate::problem::{Alignment, Problem};
use crate::report::ChosenBy;
use crate::tune::alike::{is_as_short, is_near, is_same_but_long};
use crate::tune::rank;
use crate::tune::record::{Gpu, Key, Record};
use crate::tune::space;
use crate::tune::wisdom::{self, Wisdom};

/// The family with parameters that should be taken for a problem, if there is one.
pub fn family(problem: &Problem) -> Option<&'static Family> {
    kernels::FAMILIES.iter().copied().find(|f| (f.suits)(problem))
}

/// The parameters of a family for a problem for which permissions suffice, and who chose them.
///
/// # Errors
/// Constraints that no choice fulfils.
pub fn parameters(
    family: &Family,
    problem: &Problem,
    target: &Target,
    gpu: &Gpu,
    wisdom: &Wisdom,
    permissions: Permissions,
) -> Result<(Kernel, ChosenBy), Diagnosis> {
    let key = Key::of(problem);
    // What others have found need not suit this version, this problem or this table: it has to make a kernel that fits.
    let make = |given: &Choice| -> Option<Kernel> {
        let choice = family.complete(given, problem, target).ok()?;
        // What needs no permission for a longer sum may need one here.
        if !family.permits(permissions, problem, &choice) {
            return None;
        }
        let kernel = family.build(problem, &choice).ok()?;
        compile::validated(kernel.program(), target).is_ok().then_some(kernel)
    };
    let teacher = wisdom.teacher(gpu, family.name);
    let by = if teacher.kind() == gpu.kind() { ChosenBy::Wisdom } else { ChosenBy::Neighbour };
    if let Some(best) = wisdom.best(teacher, family.name, &key, permissions) {
        if let Some(kernel) = make(&best.trial.choice) {
            return Ok((kernel, by));
        }
        // Matrices of one class may still start at different multiples of its alignment.
        let adapted = || make(&space::adapted(family, &best.trial.choice, problem, target));
        if let Some(kernel) = (key.start < Alignment::MOST).then(adapted).flatten() {
            return Ok((kernel, ChosenBy::Neighbour));
        }
    }
    let modelled = |choice: &Choice| rank::estimate(family, problem, choice, target).map(|e| e.seconds);
    let mut near = wisdom.near(teacher, family.name, &key, permissions);
    // The very problem on a sister, or one that differs in a long extent only, tells more than others do on this GPU.
    if !near.iter().any(|(_, record)| is_same_but_long(family, problem, &key, &record.problem)) {
        let alike = |other: &Key| is_same_but_long(family, problem, &key, other);
        let on_sisters = wisdom.elsewhere(gpu, family.name, &key, &alike, permissions);
        let mut on_sisters = on_sisters.into_iter().filter(|r| r.gpu.sm_count == gpu.sm_count);
        let of_sister = |record: &Record| match record.problem == key {
            true => make(&record.trial.choice),
            false => make(&space::adapted(family, &record.trial.choice, problem, target)),
        };
        if let Some(kernel) = on_sisters.find_map(of_sister) {
            return Ok((kernel, ChosenBy::Neighbour));
        }
        // Problems nearby may have been tuned on a sister only.
        let nobody = !near.iter().any(|(_, record)| is_near(&key, &record.problem));
        if let (true, ChosenBy::Wisdom, Some(sister)) = (nobody, by, wisdom.sister(gpu, family.name)) {
            near.extend(wisdom.near(sister, family.name, &key, permissions));
            near.sort_by(|(here, _), (there, _)| here.total_cmp(there));
        }
    }
    for (record, choice) in of_neighbours(family, problem, target, &key, &near) {
        let Some(kernel) = make(&choice) else { continue };
        // What was best for another width or length altogether may have tiles or parts that this one has no use for.
        let much_worse = || {
            let other = space::descend(family, problem, target, permissions).ok()?;
            let is_of_this_kind = KIND.iter().all(|n| other.get(n) == kernel.parameters.get(n));
            let much = if is_of_this_kind { WORSE } else { WORSE_THAN_ANOTHER_KIND };
            Some(modelled(&kernel.parameters)? > much * modelled(&other)?)
        };
        let much_worse = || much_worse() == Some(true);
        let alike = is_same_but_long(family, problem, &key, &record.problem);
        if alike || is_as_short(&key, &record.problem) || !much_worse() {
            return Ok((kernel, ChosenBy::Neighbour));
        }
    }
    if let Some(kernel) = make(&space::descend(family, problem, target, permissions)?) {
        return Ok((kernel, ChosenBy::Model));
    }
    let usual = family.complete(&Choice::default(), problem, target)?;
    Ok((family.build(problem, &usual)?, ChosenBy::Rule))
}

/// Whether somebody tuned this problem, or one that differs from it in a long extent only, and not by much: what was found
/// is used without asking the model.
pub fn is_tuned(
    family: &Family,
    problem: &Problem,
    gpu: &Gpu,
    wisdom: &Wisdom,
    permissions: Permissions,
) -> bool {
    let key = Key::of(problem);
    wisdom.best(gpu, family.name, &key, permissions).is_some()
        || wisdom.near(gpu, family.name, &key, permissions).iter().any(|(_, record)| {
            key.is_computed_alike(&record.problem) && is_same_but_long(family, problem, &key, &record.problem)
        })
}

/// The best choices for the problems nearest to one, as they suit it: if one differs in a long extent only, that and then
/// the nearest, else the one that the model calls the fastest first.
fn of_neighbours<'a>(
    family: &Family,
    problem: &Problem,
    target: &Target,
    key: &Key,
    near: &[(f64, &'a Record)],
) -> Vec<(&'a Record, Choice)> {
    let near: Vec<&(f64, &Record)> =
        near.iter().filter(|(_, r)| granularity::suits(&r.trial.choice, problem, target)).collect();
    let is_same = |record: &Record| is_same_but_long(family, problem, key, &record.problem);
    // What has to be permitted need not be faster: of the nearest that need this or that, the one with the most done in a second.
    let mut needing: Vec<&Record> = Vec::new();
    let (alike, others): (Vec<_>, Vec<_>) = near
        .iter()
        .map(|(_, record)| *record)
        .filter(|record| is_same(record))
        .partition(|record| key.is_computed_alike(&record.problem));
    for record in alike.into_iter().chain(others) {
        if needing.iter().all(|other| wisdom::needs(other) != wisdom::needs(record)) {
            needing.push(record);
        }
    }
    let of_a_product =
        |r: &Record| wisdom::seconds(r) / (r.problem.m * r.problem.n * r.problem.k).max(1) as f64;
    needing.sort_by(|a, b| of_a_product(a).total_cmp(&of_a_product(b)));
    let mut best: Vec<&Record> = needing.into_iter().take(1).collect();
    let same = !best.is_empty();
    for (_, record) in near.iter().filter(|(_, r)| is_near(key, &r.problem)) {
        if best.last().is_none_or(|last| last.problem != record.problem) {
            best.push(record);
        }
        if best.len() == NEIGHBOURS {
            break;
        }
    }
    let adapted = |record: &'a Record| {
        let choice = space::adapted(family, &record.trial.choice, problem, target);
        let choice = family.complete(&choice, problem, target).ok()?;
        // What was good by a flag that does not suit here is no guide.
        let flags_stay = KIND.iter().all(|n| record.trial.choice.flag(n) == choice.flag(n));
        flags_stay.then_some((record, choice))
    };
    let mut found: Vec<(&Record, Choice)> = best.into_iter().filter_map(adapted).collect();
    if !same {
        let seconds = |choice: &Choice| {
            rank::estimate(family, problem, choice, target).map_or(f64::INFINITY, |e| e.seconds)
        };
        found.sort_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
    }
    found
}

/// Parameters that tell kinds of kernels apart.
const KIND: [&str; 3] = ["unit", "staging", "passing"];

/// The kernel for a problem that gives the same bits on every GPU, where values of parameters may be given: it is chosen
/// from the problem alone, by rule, and needs nothing that some GPU lacks.
///
/// # Errors
/// Values that the family does not know, and problems for which there is no kernel.
pub fn reproducible(family: Option<&Family>, given: &Choice, problem: &Problem) -> Result<Kernel, Diagnosis> {
    let target = Target::oldest();
    let Some(family) = family else { return kernel(problem, target) };
    let fixed =
        given.iter().fold((family.reproducible)(problem), |choice, (name, value)| choice.with(name, *value));
    match family.complete(&fixed, problem, target) {
        Ok(choice) => family.build(problem, &choice),
        // The family's form for every GPU need not suit every width.
        Err(_) if given.is_empty() => kernel(problem, target),
        Err(refusal) => Err(refusal),
    }
}

/// A choice for a problem of other short extents is not taken if the model says that it takes this many times as long as
/// another: more than the model's own error, a factor of 1.2 or so.
const WORSE: f64 = 1.3;
/// The same where the other is of another kind, such as one that reads rows into registers instead of shared memory: A^H B in complex64,
/// wider than 64, takes 1.3 times as long as modelled by registers and 0.7 times through shared memory (10 and 147 candidates, H200s, 2026-11-23).
const WORSE_THAN_ANOTHER_KIND: f64 = 2.0;
/// How many problems nearby are asked for their best choice before the model is asked for its own. At 56 problems of which
/// no width was known, both had been measured (what searches tried on one H200, 2026-11-22): the choice of the nearest problem was slower
/// than the best that was tried by 10.9 % in the geometric mean and 5.1 times as slow at worst, the one of six that the
/// model calls the fastest by 5.9 % and 1.4 times at worst.
const NEIGHBOURS: usize = 6;

/// A sensible kernel for a problem on a GPU that no family with parameters suits: the highest rung of the ladder `hgemm`, else the tile of the ladder
/// `sgemm` that should take the least time, else the highest rung below, in each case one that has a schedule for the
/// variant, fits the GPU, and whose assumptions hold of the problem. Products that are small in C get one with small
/// tiles.
pub fn kernel(problem: &Problem, target: &Target) -> Result<Kernel, Diagnosis> {
    let variant = Variant::of(problem);
    let fits = |recipe: &'static Recipe| fitting(recipe, variant, problem, target);
    let small = problem.shape.m <= SMALL || problem.shape.n <= SMALL;
    let mut rungs = kernels::ladder("sgemm")?;
    if small {
        rungs.retain(|r| r.rung <= LAST_SMALL_RUNG);
    } else if let Some(kernel) = kernels::ladder("hgemm")?.into_iter().rev().find_map(fits) {
        return Ok(kernel);
    } else if let Some(kernel) = fastest_tile(problem, target, fits)? {
        return Ok(kernel);
    }
    rungs.into_iter().rev().find_map(fits).ok_or_else(|| {
        Diagnosis::new(format!("no kernel fits {} {} {}", problem.shape, problem.precision, problem.layout))
            .instead("name one with --kernel to see why")
    })
}

/// Products with at most this many rows or columns would waste most of a large tile.
const SMALL: i64 = 48;
/// The last rung with tiles of 32 x 32.
const LAST_SMALL_RUNG: u32 = 3;
/// The tiles at the end of the ladder `sgemm`, and their speed in TFLOP/s where blocks are many: f32 at 4096 on an
/// H200, bench/results.
const TILES: [(&str, f64); 2] = [("sgemm_turned_lanes", 53.8), ("sgemm_small_tile", 51.5)];

/// The tile that should take the least time: blocks run in rounds, one block a multiprocessor, and the last round
/// takes as long as the others even if few blocks are left for it.
fn fastest_tile(
    problem: &Problem,
    target: &Target,
    fits: impl Fn(&'static Recipe) -> Option<Kernel>,
) -> Result<Option<Kernel>, Diagnosis> {
    let mut best: Option<(f64, Kernel)> = None;
    for (name, speed) in TILES {
        let Some(kernel) = fits(kernels::by_name(name)?) else { continue };
        let Some(blocks) = blocks(&kernel, problem) else { continue };
        let multiprocessors = i64::from(target.sm_count.value);
        let rounds = (blocks + multiprocessors - 1) / multiprocessors;
        let time = rounds as f64 / blocks as f64 / speed;
        if best.as_ref().is_none_or(|(least, _)| time < *least) {
            best = Some((time, kernel));
        }
    }
    Ok(best.map(|(_, kernel)| kernel))
}

/// The number of blocks of the first launch, if there are any.
fn blocks(kernel: &Kernel, problem: &Problem) -> Option<i64> {
    let binding = Binding::new(kernel.program(), problem, 1).ok()?;
    let launches = Launch::all(&kernel.program().body).ok()?;
    let mut blocks = 1_i64;
    for block in &launches.first()?.blocks {
        blocks = blocks.checked_mul(block.extent.eval(&|s| binding.value(s)).ok()?)?;
    }
    (blocks > 0).then_some(blocks)
}

/// The kernel of a recipe, if there is one that can be used.
fn fitting(recipe: &Recipe, variant: Variant, problem: &Problem, target: &Target) -> Option<Kernel> {
    let kernel = kernels::build(recipe, variant).ok()?;
    compile::validated(kernel.program(), target).ok()?;
    Binding::new(kernel.program(), problem, 1).ok()?;
    Some(kernel)
}

#[cfg(test)]
mod tests {
    use super::{LAST_SMALL_RUNG, is_same_but_long, is_tuned, kernel, parameters, rank, space};
    use crate::kernels;
    use crate::kernels::family::{Choice, Permissions};
    use crate::problem::Problem;
    use crate::report::ChosenBy;
    use crate::tune::record::{Gpu, Key, Record, Trial};
    use crate::tune::wisdom::Wisdom;
    use warpwright_core::target::{self, Target};

    /// A record that this choice of tsmttsm is the fastest for an f64 product of this size.
    fn record(shape: &str, choice: Choice) -> Record {
        let key = Key::of(&skinny(shape));
        let trial = Trial { choice, seconds: Some(1e-3), ..Trial::default() };
        Record::new("2026-11-22", &Gpu::of_target(target::DEFAULT), "tsmttsm", &key, "", trial)
    }

    fn skinny(shape: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap())
    }

    fn chosen(shape: &str, records: &[Record]) -> (Choice, ChosenBy) {
        let mut wisdom = Wisdom::default();
        wisdom.extend(records.iter().cloned());
        let (family, gpu) = (kernels::family("tsmttsm").unwrap(), Gpu::of_target(target::DEFAULT));
        let (kernel, by) =
            parameters(family, &skinny(shape), target::DEFAULT, &gpu, &wisdom, Permissions::NONE).unwrap();
        (kernel.parameters, by)
    }

    #[test]
    fn what_has_to_be_permitted_is_taken_where_it_does_more_in_a_second() {
        let atomics =
            Choice::default().with("staging", "registers").with("reduction", "global").with("tm", 4);
        let usual =
            Choice::default().with("staging", "registers").with("reduction", "two-pass").with("tm", 7);
        let family = kernels::family("tsmttsm").unwrap();
        let of = |shape: &str, choice: &Choice, seconds: f64| Record {
            trial: Trial { seconds: Some(seconds), ..record(shape, choice.clone()).trial },
            ..record(shape, choice.clone())
        };
        // The one with atomics is of a nearer length; it takes 1.3 or 0.7 times as long for each row.
        for (seconds, reduction) in [(1.3e-3, "two-pass"), (0.7e-3, "global")] {
            let mut wisdom = Wisdom::default();
            wisdom.extend([of("28x28x1000000", &atomics, seconds), of("28x28x4000000", &usual, 4e-3)]);
            let gpu = Gpu::of_target(target::DEFAULT);
            let taken = |permissions| {
                let problem = skinny("28x28x1100000");
                let made = parameters(family, &problem, target::DEFAULT, &gpu, &wisdom, permissions);
                made.unwrap().0.parameters.word("reduction")
            };
            assert_eq!(taken(Permissions { any_order: true, ..Permissions::NONE }), reduction);
            assert_eq!(taken(Permissions::NONE), "two-pass");
        }
    }

    #[test]
    fn nothing_is_long_where_all_extents_are_constants_of_the_kernel() {
        let layer =
            |shape: &str| Problem::new(shape.parse().unwrap(), "f32".parse().unwrap(), "nn".parse().unwrap());
        let same = |family: &str, one: Problem, other: Problem| {
            let family = kernels::family(family).unwrap();
            is_same_but_long(family, &one, &Key::of(&one), &Key::of(&other))
        };
        assert!(same("tsmttsm", skinny("28x28x1000000"), skinny("28x28x4000000")));
        assert!(!same("tsmttsm", skinny("28x28x1000000"), skinny("29x28x1000000")));
        // Half of the columns are half of the blocks.
        assert!(!same("tiled", layer("1024x2048x2048"), layer("1024x4096x4096")));
    }

    /// It was chosen by the model, and took 33 times as long as cuBLAS: a thread of 512 has 128 registers, and this one wants 176.
    #[test]
    fn a_row_ahead_that_does_not_fit_in_registers_is_no_bargain() {
        let problem =
            Problem::new("67x67x900000".parse().unwrap(), "c64".parse().unwrap(), "cn".parse().unwrap());
        let family = kernels::family("tsmttsm").unwrap();
        let seconds =
            |choice: &Choice| rank::estimate(family, &problem, choice, target::DEFAULT).unwrap().seconds;
        let form =
            Choice::default().with("unit", "fma").with("staging", "registers").with("transposed", true);
        let starved = form.with("block", 512).with("tm", 5).with("tn", 10).with("leapfrog", true);
        let starved = family.complete(&starved, &problem, target::DEFAULT).unwrap();
        let chosen = space::descend(family, &problem, target::DEFAULT, Permissions::NONE).unwrap();
        let (starved, chosen) = (seconds(&starved), seconds(&chosen));
        assert!(starved > 4.0 * chosen, "{starved} s and {chosen} s");
    }

    #[test]
    fn what_was_measured_comes_before_neighbours_and_those_before_the_model() {
        let by_threads = Choice::default().with("unit", "fma").with("staging", "registers");
        let fma = |tm: i64, tn: i64| by_threads.clone().with("tm", tm).with("tn", tn);
        let tile = |c: &Choice| (c.int("tm"), c.int("tn"));
        let records = [
            record("12x12x1000000", fma(3, 4)),
            record("6x6x1000000", fma(3, 6)),
            record("12x12x100000000", fma(2, 2)),
        ];
        let (choice, by) = chosen("12x12x1000000", &records);
        assert_eq!((tile(&choice), by), ((3, 4), ChosenBy::Wisdom));
        let (choice, by) = chosen("5x5x1000000", &records[1..2]);
        // 3 does not divide 5, but leaves less than a tile over; 6 is nearest to 5.
        assert_eq!((tile(&choice), by), ((3, 5), ChosenBy::Neighbour));
        // Eight times as wide is too far, eight times as long is not.
        assert_eq!(chosen("104x104x1000000", &records[..1]).1, ChosenBy::Model);
        assert_eq!(chosen("12x12x8000000", &records[..1]).1, ChosenBy::Neighbour);
        assert_eq!(chosen("20x20x1000000", &[]).1, ChosenBy::Model);
    }

    #[test]
    fn of_several_neighbours_the_model_chooses_unless_one_differs_in_length_only() {
        let staged = Choice::default().with("unit", "mma").with("parts", 264);
        let by_threads = Choice::default().with("unit", "fma").with("staging", "registers").with("tm", 1);
        // The nearest is 30 columns wide and was done in tiles of one element: the model knows better for 28.
        let records = [record("30x30x1000000", by_threads.clone()), record("24x24x1000000", staged.clone())];
        // Where nobody else is near, it chooses itself.
        assert_eq!(chosen("28x28x1000000", &records[..1]).1, ChosenBy::Model);
        let (choice, by) = chosen("28x28x1000000", &records);
        assert_eq!((choice.word("unit"), by), ("mma", ChosenBy::Neighbour));
        // What was measured for the same width is trusted, whatever the model says.
        let records = [record("28x28x2000000", by_threads), record("24x24x1000000", staged)];
        let (choice, by) = chosen("28x28x1000000", &records);
        assert_eq!((choice.word("unit"), by), ("fma", ChosenBy::Neighbour));
        // Also if another width was tuned for a length that is nearer by more than the widths differ.
        let at = |longer: &str| {
            [
                record(longer, records[0].trial.choice.clone()),
                record("26x26x1000000", records[1].trial.choice.clone()),
            ]
        };
        assert_eq!(chosen("28x28x1000000", &at("28x28x16000000")).0.word("unit"), "fma");
        assert_eq!(chosen("28x28x1000000", &at("28x28x17000000")).0.word("unit"), "mma");
    }

    #[test]
    fn of_short_products_a_neighbour_of_the_same_length_knows_more_than_the_model() {
        let slow = Choice::default().with("unit", "fma").with("staging", "registers").with("tm", 1);
        let by = |shape: &str, known: &str| chosen(shape, &[record(known, slow.clone())]).1;
        assert_eq!(by("28x28x10000", "30x30x10000"), ChosenBy::Neighbour);
        assert_eq!(by("28x28x1000000", "30x30x1000000"), ChosenBy::Model);
        assert_eq!(by("28x28x10000", "30x30x40000"), ChosenBy::Model);
        assert_eq!(by("28x28x10000", "40x40x10000"), ChosenBy::Model);
    }

    #[test]
    fn what_suits_much_longer_sums_only_is_passed_over() {
        // 128 slices in each of 396 blocks leave more behind than there is to read.
        let slices = Choice::default().with("unit", "fma").with("staging", "shared").with("block", 128);
        let slices = slices.with("depth", 128).with("parts", 396).with("tm", 4).with("tn", 4);
        let records = [record("4x4x6000000", slices)];
        assert_eq!(chosen("4x4x3000000", &records).1, ChosenBy::Neighbour);
        let (choice, by) = chosen("4x4x100000", &records);
        assert_eq!(by, ChosenBy::Model, "{choice}");
    }

    /// Of products wider than 64 columns nobody has measured blocks that make room: there the choice by such blocks of a neighbour is passed over, and
    /// that of one further away is taken.
    #[test]
    fn a_choice_by_blocks_that_make_room_is_no_guide_where_they_are_not_worth_trying() {
        let (family, gpu) = (kernels::family("tsmm").unwrap(), Gpu::of_target(target::DEFAULT));
        let product = |width: i64| {
            let shape = format!("4000000x{width}x{width}").parse().unwrap();
            Problem::new(shape, "f64".parse().unwrap(), "nn".parse().unwrap())
        };
        let given = |passing: bool| {
            let rows = if passing { 64 } else { 32 };
            Choice::default().with("unit", "mma").with("rows", rows).with("passing", passing)
        };
        let known = |width: i64, passing: bool| {
            let problem = product(width);
            let choice = family.complete(&given(passing), &problem, target::DEFAULT).unwrap();
            Record { problem: Key::of(&problem), family: "tsmm".to_string(), ..record("8x8x1000000", choice) }
        };
        let mut wisdom = Wisdom::default();
        wisdom.extend([known(64, true), known(60, false)]);
        let taken = |width: i64| {
            let problem = product(width);
            let (kernel, by) =
                parameters(family, &problem, target::DEFAULT, &gpu, &wisdom, Permissions::NONE).unwrap();
            assert!(matches!(by, ChosenBy::Wisdom | ChosenBy::Neighbour), "{width}: {by:?}");
            (kernel.parameters.flag("passing"), kernel.parameters.int("rows"))
        };
        assert_eq!([64, 62, 66, 60].map(taken), [(true, 64), (true, 64), (false, 32), (false, 32)]);
    }

    #[test]
    fn what_makes_no_kernel_here_is_passed_over() {
        let wide = Choice::default().with("unit", "fma").with("tm", 100).with("tn", 100);
        assert_eq!(chosen("24x24x1000000", &[record("24x24x1000000", wide)]).1, ChosenBy::Model);
        let unknown = Choice::default().with("unit", "abacus");
        assert_eq!(chosen("24x24x1000000", &[record("24x24x1000000", unknown)]).1, ChosenBy::Model);
        // The neighbour's number of blocks would leave most of them without a row.
        let many = Choice::default().with("unit", "fma").with("parts", 1056);
        let (choice, by) = chosen("12x12x5000", &[record("12x12x40000", many)]);
        assert_eq!(by, ChosenBy::Neighbour);
        assert!(choice.int("parts") <= 5000 / 32, "{choice}");
    }

    #[test]
    fn elements_of_16_bits_go_to_the_matrix_units_of_a_gpu_that_has_them() {
        let chosen = |layout: &str, gpu: &str| {
            let dtype = "bf16-f32".parse().unwrap();
            let problem = Problem::new("512x512x512".parse().unwrap(), dtype, layout.parse().unwrap());
            kernel(&problem, Target::by_name(gpu).unwrap()).unwrap().name
        };
        assert_eq!(chosen("nt", "h200"), "hgemm_wide_warpgroups_bf16_f32_nt");
        assert_eq!(chosen("nn", "a6000"), "hgemm_cp_async_bf16_f32_nn");
        assert!(chosen("nn", "gtx980").starts_with("sgemm"));
    }

    #[test]
    fn the_tile_fills_the_multiprocessors() {
        let chosen = |shape: &str| {
            let problem = Problem::new(shape.parse().unwrap(), "f32".parse().unwrap(), "nn".parse().unwrap());
            kernel(&problem, Target::by_name("h200").unwrap()).unwrap().name
        };
        for (shape, tile) in [
            ("1024x1024x1024", "small_tile"),
            ("2048x2048x2048", "turned_lanes"),
            ("4095x4095x4095", "turned_lanes"),
            ("4097x4097x4097", "small_tile"),
            ("8192x8192x8192", "turned_lanes"),
        ] {
            assert!(chosen(shape).contains(tile), "{shape}: {}", chosen(shape));
        }
    }

    #[test]
    fn every_type_and_layout_has_a_kernel() {
        for (shape, dtype, layout) in [
            ("512x512x512", "f32", "nn"),
            ("33x999x5", "c128", "cn"),
            ("7x7x7", "bf16", "tt"),
            ("64x64x0", "i32", "nt"),
        ] {
            let problem =
                Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap());
            let chosen = kernel(&problem, target::DEFAULT).unwrap();
            let recipe = kernels::all().find(|r| chosen.name.starts_with(r.name)).expect("a recipe");
            assert!(problem.shape.m > 48 || recipe.rung <= LAST_SMALL_RUNG, "{shape}: {}", chosen.name);
        }
    }

    #[test]
    fn what_was_tuned_without_factors_serves_products_with_them_and_with_conjugates() {
        let choice =
            |tm: i64| Choice::default().with("unit", "fma").with("staging", "registers").with("tm", tm);
        let of = |problem: &Problem, tm: i64| Record {
            problem: Key::of(problem),
            ..record("8x8x1000000", choice(tm))
        };
        let (family, gpu) = (kernels::family("tsmttsm").unwrap(), Gpu::of_target(target::DEFAULT));
        let taken = |problem: &Problem, records: &[Record]| {
            let mut wisdom = Wisdom::default();
            wisdom.extend(records.iter().cloned());
            let found = parameters(family, problem, target::DEFAULT, &gpu, &wisdom, Permissions::NONE);
            let (kernel, by) = found.unwrap();
            assert_eq!(by, ChosenBy::Neighbour);
            let tuned = is_tuned(family, problem, &gpu, &wisdom, Permissions::NONE);
            (kernel.parameters.int("tm"), tuned)
        };
        let plain = skinny("20x20x4000000");
        let (mut added, mut negative) = (plain, plain);
        added.beta.re = 1.0;
        (negative.alpha.re, negative.beta.re) = (-1.0, 1.0);
        let known = [of(&plain, 4), of(&skinny("21x21x4000000"), 7), of(&skinny("19x19x4000000"), 7)];
        assert_eq!([&added, &negative].map(|p| taken(p, &known)), [(4, false), (4, false)]);
        // What was tuned with the same factors tells more, though it is half as long.
        let half = Problem { beta: added.beta, ..skinny("20x20x2000000") };
        let and_half = [known.to_vec(), vec![of(&half, 2)]].concat();
        assert_eq!((taken(&added, &and_half), taken(&negative, &and_half)), ((2, true), (4, false)));
        // A^T B and A^H B of complex numbers differ in signs, those of real ones in nothing.
        let complex = |dtype: &str, layout: &str, shape: &str| {
            Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
        };
        let [tn, cn] = ["tn", "cn"].map(|layout| complex("c64", layout, "20x20x4000000"));
        let wider = complex("c64", "cn", "21x21x4000000");
        assert_eq!(taken(&cn, &[of(&tn, 5), of(&wider, 7)]), (5, false));
        assert_eq!(Key::of(&complex("f64", "cn", "20x20x4000000")), Key::of(&plain));
    }

    #[test]
    fn the_problem_on_a_sister_tells_more_than_its_neighbours_here() {
        let choice =
            |tm: i64| Choice::default().with("unit", "fma").with("staging", "registers").with("tm", tm);
        let own = record("24x24x4000000", choice(4));
        let sister = Gpu::of_target(Target::by_name("h100-sxm").unwrap());
        let there = Record { gpu: sister, ..record("20x20x4000000", choice(5)) };
        let tm = |records: &[Record]| chosen("20x20x4000000", records).0.int("tm");
        assert_eq!(chosen("20x20x4000000", &[own.clone(), there.clone()]).1, ChosenBy::Neighbour);
        assert_eq!(tm(&[own.clone(), there.clone()]), 5);
        assert_eq!(tm(std::slice::from_ref(&own)), 4, "without it the neighbour is asked");
        let longer = Record { gpu: there.gpu.clone(), ..record("20x20x3800000", choice(5)) };
        assert_eq!(tm(&[own.clone(), longer]), 5, "another length is as good");
        // A sister that is faster, and knows a nearer length, knows no more than what was tuned here.
        let faster = Record {
            gpu: there.gpu.clone(),
            trial: Trial { seconds: Some(1e-9), ..record("20x20x3950000", choice(5)).trial },
            ..record("20x20x3950000", choice(5))
        };
        assert_eq!(tm(&[own.clone(), faster, record("20x20x3900000", choice(2))]), 2);
        // Of a length at which nothing was tuned here, what a sister knows of others is asked for.
        let short = |gpu: &Gpu, tm| Record { gpu: gpu.clone(), ..record("24x24x10000", choice(tm)) };
        let of_short = |records: &[Record]| chosen("20x20x10000", records);
        assert_eq!(of_short(std::slice::from_ref(&own)).1, ChosenBy::Model);
        let (found, by) = of_short(&[own.clone(), short(&there.gpu, 4)]);
        assert_eq!((found.int("tm"), by), (4, ChosenBy::Neighbour));
        let much_longer = Record { gpu: there.gpu.clone(), ..record("20x20x400000000", choice(5)) };
        assert_eq!(tm(&[own.clone(), much_longer]), 4, "as long as it is not another altogether");
        // The same problem with another length, on this GPU, comes first; and its own record before all.
        assert_eq!(tm(&[own.clone(), there.clone(), record("20x20x3900000", choice(2))]), 2);
        assert_eq!(tm(&[own, there, record("20x20x4000000", choice(10))]), 10);
    }
}
