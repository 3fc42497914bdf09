//! Prints what each checker says of each mutant:
//! `cargo run --release -p warpwright-sim --example mutants -- [SEED] [MOST OF EACH KIND] [PROGRAM | -] [quick]`.
//! `quick` asks the SIMT engine first, and the others only where it has nothing to say.

#[path = "../tests/mutants/cases.rs"]
mod cases;

use warpwright_sim::mutate::trial;

fn main() {
    let mut words = std::env::args().skip(1);
    let seed = words.next().map_or(1, |s| s.parse().expect("a seed is a number"));
    let most = words.next().map_or(1, |s| s.parse().expect("the most of each kind is a number"));
    let only = words.next().filter(|w| w != "-");
    let effort = if words.next().is_some() { trial::Effort::UntilCaught } else { trial::Effort::All };
    let cases: Vec<_> =
        cases::nine_programs().into_iter().filter(|c| only.as_ref().is_none_or(|o| *o == c.name)).collect();
    let trials = trial::trials(&cases, seed, most, effort);
    fn text<T: std::fmt::Display>(complaint: &Option<T>) -> String {
        complaint.as_ref().map_or_else(|| "-".into(), T::to_string)
    }
    for trial in &trials {
        println!("{}: {}: {}", trial.case.name, trial.mutant.kind.name, trial.mutant.site);
        println!("    refused:  {}", text(&trial.verdict.refused));
        println!("    in order: {}", text(&trial.verdict.in_order));
        println!("    classes:  {}", text(&trial.verdict.classes));
        println!("    SIMT:     {}", text(&trial.verdict.simt));
        println!("    threads:  {} ({:?})", text(&trial.verdict.threads), trial.verdict.agreement());
    }
    let count = |f: fn(&trial::Verdict) -> bool| trials.iter().filter(|t| f(&t.verdict)).count();
    println!(
        "{} mutants: {} refused; {} caught in order, {} by class, {} as SIMT; {} caught in all; {} wrong under threads",
        trials.len(),
        count(|v| v.refused.is_some()),
        count(|v| v.in_order.is_some()),
        count(|v| v.classes.is_some()),
        count(|v| v.simt.is_some()),
        count(trial::Verdict::caught),
        count(|v| v.threads.is_some()),
    );
}
