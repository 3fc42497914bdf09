//! Points that vary one thing about the kernels of `tsmttsm` by threads, the rest being what the model ranks first.

use std::collections::BTreeMap;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::target::Target;

use super::job::Wanted;
use super::{Figure, Operation, WIDTHS, length};
use crate::gpu::stage::SHORT;
use crate::kernels::family::{Choice, Family, Permissions};
use crate::problem::Problem;
use crate::tune::rank;

/// Widths where none are named.
const TILE_WIDTHS: [i64; 2] = [16, 32];
const REDUCTION_WIDTHS: [i64; 2] = [4, 16];
/// Lengths of the figure of reductions: from a thousand to a hundred million, two a decade.
const LENGTHS: [f64; 11] = [1e3, 3.16e3, 1e4, 3.16e4, 1e5, 3.16e5, 1e6, 3.16e6, 1e7, 3.16e7, 1e8];

/// What a figure varies.
fn varied(figure: Figure) -> &'static [&'static str] {
    match figure {
        Figure::Widths | Figure::Shapes | Figure::Strides | Figure::Short | Figure::Split => &[],
        Figure::Tiles => &["tm", "tn"],
        Figure::Reductions => &["reduction"],
        Figure::Options => &["leapfrog", "transposed"],
    }
}

/// The points of a figure for an element type, at these widths or at its usual ones.
///
/// # Errors
/// A family without the form by threads, which would be a fault of this program.
pub fn wanted(
    figure: Figure,
    dtype: DType,
    widths: &[i64],
    bytes: usize,
    target: &Target,
) -> Result<Vec<Wanted>, Diagnosis> {
    let usual: &[i64] = match figure {
        Figure::Tiles => &TILE_WIDTHS,
        Figure::Reductions => &REDUCTION_WIDTHS,
        _ => &WIDTHS,
    };
    let mut wanted = Vec::new();
    for width in if widths.is_empty() { usual } else { widths } {
        let lengths = match figure {
            Figure::Reductions => LENGTHS.map(rounded).to_vec(),
            _ => vec![length(dtype, *width, bytes)],
        };
        for length in lengths {
            let problem = Operation::Tsmttsm.problem(dtype, *width, length);
            let point = Wanted::new(figure, Operation::Tsmttsm, dtype, problem);
            let family = point.family()?;
            for (varied, choice) in choices(figure, family, &problem, target)? {
                let mut point = point.clone();
                point.key.varied = varied;
                point.choice = Some(choice);
                wanted.push(point);
            }
        }
    }
    Ok(wanted)
}

/// A length to which operands can be repeated: beyond the short one a multiple of it.
fn rounded(length: f64) -> i64 {
    let short = SHORT as f64;
    if length <= short { length as i64 } else { ((length / short).round() * short) as i64 }
}

/// The choices to compare, each with what it is about.
fn choices(
    figure: Figure,
    family: &Family,
    problem: &Problem,
    target: &Target,
) -> Result<Vec<(Choice, Choice)>, Diagnosis> {
    let by_threads = Choice::default().with("unit", "fma").with("staging", "registers");
    let best = best_of_each(family, problem, target, &by_threads, varied(figure));
    if figure != Figure::Reductions {
        return Ok(best);
    }
    let mut all = Vec::new();
    for (varied, choice) in best {
        if varied.is_empty() {
            // One block adds up everything: there is nothing to reduce.
            all.push((Choice::default().with("parts", choice.int("parts")), choice));
            continue;
        }
        // The same kernel but for how its parts come together.
        let of_family = family.parameters.iter().find(|p| p.name == "reduction");
        let values = of_family.map_or(Vec::new(), |p| (p.values)(&choice, problem, target));
        let others = values.into_iter().map(|value| {
            (Choice::default().with("reduction", value), choice.clone().with("reduction", value))
        });
        all.extend(others.filter(|(_, choice)| family.allows(choice, problem, target)));
    }
    Ok(all)
}

/// Of all choices with some given values that add in a fixed order, the one that the model ranks first for each
/// combination of what is varied.
fn best_of_each(
    family: &Family,
    problem: &Problem,
    target: &Target,
    given: &Choice,
    varied: &[&'static str],
) -> Vec<(Choice, Choice)> {
    let mut best: BTreeMap<Choice, (f64, Choice)> = BTreeMap::new();
    family.choices(problem, target, Permissions::NONE, given, &mut |choice| {
        let values = varied.iter().filter_map(|name| Some((name, choice.get(name)?)));
        let about = values.fold(Choice::default(), |c, (name, value)| c.with(*name, *value));
        let seconds = rank::estimate(family, problem, choice, target).map_or(f64::INFINITY, |e| e.seconds);
        let slot = best.entry(about).or_insert((f64::INFINITY, choice.clone()));
        if seconds < slot.0 {
            *slot = (seconds, choice.clone());
        }
        true
    });
    best.into_iter().map(|(about, (_, choice))| (about, choice)).collect()
}

#[cfg(test)]
mod tests {
    use super::{LENGTHS, REDUCTION_WIDTHS, rounded, wanted};
    use crate::bench::tsm::{Figure, WIDTHS};
    use crate::gpu::stage::SHORT;
    use crate::kernels::family::Choice;
    use std::collections::HashSet;
    use warpwright_core::dtype::DType;
    use warpwright_core::target;

    fn points(figure: Figure, widths: &[i64]) -> Vec<(super::Wanted, Choice)> {
        let all = wanted(figure, DType::F64, widths, 1 << 30, target::DEFAULT).unwrap();
        let keys: HashSet<_> = all.iter().map(|w| w.key.clone()).collect();
        assert_eq!(keys.len(), all.len(), "no point stands twice");
        all.into_iter().map(|w| (w.clone(), w.choice.unwrap())).collect()
    }

    #[test]
    fn every_figure_varies_what_it_is_about_and_nothing_that_would_make_another_kind_of_kernel() {
        let tiles = points(Figure::Tiles, &[16]);
        assert!(tiles.len() > 60, "{}", tiles.len());
        assert!(tiles.iter().any(|(_, c)| (c.int("tm"), c.int("tn")) == (8, 4)));
        let options = points(Figure::Options, &[]);
        assert_eq!(options.len(), 4 * WIDTHS.len());
        let reductions = points(Figure::Reductions, &[]);
        let of_length = |k: i64| -> Vec<&(super::Wanted, Choice)> {
            let is_there =
                |(w, c): &&(super::Wanted, Choice)| w.key.size.k == k && c.get("reduction").is_some();
            reductions.iter().filter(is_there).collect()
        };
        for (w, c) in tiles.iter().chain(&options).chain(&reductions) {
            assert_eq!((c.word("unit"), c.word("staging")), ("fma", "registers"));
            assert!(w.key.varied.iter().all(|(name, value)| c.get(name) == Some(value)));
            let in_order = ["two-pass", ""].contains(&c.word("reduction"));
            assert!(w.key.figure == Figure::Reductions || in_order);
        }
        for length in LENGTHS {
            let all = of_length(rounded(length));
            assert_eq!(
                all.len(),
                3 * REDUCTION_WIDTHS.len(),
                "two passes and two kinds of atomics at {length}"
            );
            // They have everything else in common.
            let without = |c: &Choice| c.clone().with("reduction", "");
            assert!(all[..3].iter().all(|(_, c)| without(c) == without(&all[0].1)));
        }
    }

    #[test]
    fn lengths_are_short_or_repeat_the_short_one() {
        for length in LENGTHS {
            let k = rounded(length);
            assert!((k as f64 / length - 1.0).abs() < 0.06, "{k} for {length}");
            assert!(k <= SHORT || k % SHORT == 0);
        }
    }
}
