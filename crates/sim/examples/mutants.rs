//! Prints what each checker says of each mutant:
//! `cargo run -p warpwright-sim --example mutants -- [SEED] [MOST OF EACH KIND] [PROGRAM]`.

#[path = "../tests/mutants/cases.rs"]
mod cases;

use warpwright_sim::mutate::{mutants, trial};

fn main() {
    let mut words = std::env::args().skip(1);
    let seed = words.next().map_or(1, |s| s.parse().expect("a seed is a number"));
    let most = words.next().map_or(2, |s| s.parse().expect("the most of each kind is a number"));
    let only = words.next();
    let (mut total, mut caught) = (0, 0);
    for case in cases::nine_programs() {
        if only.as_ref().is_some_and(|o| *o != case.name) {
            continue;
        }
        for mutant in mutants(&case.program, seed, most) {
            let verdict = trial::trial(&case, &mutant.program, seed);
            total += 1;
            caught += usize::from(verdict.threads.is_some());
            let threads = verdict.threads.unwrap_or_else(|| "-".into());
            println!("{} | {} | {} | {threads}", case.name, mutant.kind.name, mutant.site);
        }
    }
    println!("{total} mutants, {caught} caught by threads in random order");
}
