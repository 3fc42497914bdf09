//! Why one choice is ahead of another, in words: what bounds it, and what the other lacks. By the model, which may be
//! wrong; the times beside it may be measured.

use super::rank::Estimate;
use crate::kernels::family::Choice;
use crate::report::number::seconds;

/// What bounds a choice.
pub fn bound(estimate: &Estimate) -> String {
    let first = estimate.terms.limiter();
    let others = estimate.terms.all().into_iter().filter(|t| t.name != first.name);
    let (next, second) = others.map(|t| (t.about, t.seconds)).fold(("", 0.0), greater);
    format!(
        "bound by {}: {} alone, then {next} with {} (modelled; {:.0} warps a multiprocessor)",
        first.about,
        seconds(first.seconds),
        seconds(second),
        estimate.warps
    )
}

/// What a choice lacks that the best one has: how they differ, and the term of the model in which that shows most.
pub fn lack(best: (&Choice, &Estimate), other: (&Choice, &Estimate)) -> String {
    let differs: Vec<String> =
        other.0.iter().filter(|(n, v)| best.0.get(n) != Some(v)).map(|(n, v)| format!("{n}={v}")).collect();
    let whole = best.1.seconds.max(f64::MIN_POSITIVE);
    // A term counts by what it adds to the whole, so that doubling something small is no reason.
    let both = best.1.terms.all().into_iter().zip(other.1.terms.all());
    let worse = both.map(|(a, b)| (a.about, (b.seconds - a.seconds) / whole));
    let (name, more) = worse.fold(("", 0.0), greater);
    let reason = if more < 0.01 {
        "the model sees no reason".to_string()
    } else {
        format!("its {name} take {:.0} % of the best time more (modelled)", 100.0 * more)
    };
    format!("with {}: {reason}", differs.join(" "))
}

fn greater<'a>(most: (&'a str, f64), term: (&'a str, f64)) -> (&'a str, f64) {
    if term.1 > most.1 { term } else { most }
}

#[cfg(test)]
mod tests {
    use super::{bound, lack};
    use crate::kernels::family::Choice;
    use crate::tune::rank::{Estimate, Terms};

    const BEST: Estimate = Estimate {
        seconds: 1e-3,
        terms: Terms {
            memory: 9e-4,
            arithmetic: 5e-4,
            cache: 1e-4,
            issue: 1e-4,
            latency: 1e-4,
            meetings: 1e-5,
            start: 0.0,
            launch: 1e-6,
        },
        warps: 16.0,
        rounds: 1.0,
        imbalance: 1.0,
    };

    #[test]
    fn the_greatest_term_bounds_and_the_one_that_grew_most_is_the_lack() {
        assert!(
            bound(&BEST).starts_with("bound by traffic with device memory: 900 us alone, then multiply-adds")
        );
        let choice = |tm: i64| Choice::default().with("tm", tm).with("tn", 4);
        let said = lack(
            (&choice(8), &BEST),
            (&choice(2), &Estimate { terms: Terms { cache: 4e-4, launch: 3e-6, ..BEST.terms }, ..BEST }),
        );
        assert_eq!(
            said,
            "with tm=2: its passes through cache and shared memory take 30 % of the best time more (modelled)"
        );
        let said = lack((&choice(8), &BEST), (&choice(7), &BEST));
        assert_eq!(said, "with tm=7: the model sees no reason");
    }
}
