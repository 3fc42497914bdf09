//! Prints what each checker says of each mutant: `cargo run -p warpwright-sim --example mutants -- [SEED] [MOST] [PROGRAM]`.

#[path = "../tests/mutants/cases.rs"]
mod cases;

use warpwright_sim::coroutine::{self, Policy};
use warpwright_sim::mutate;

fn main() {
    let mut words = std::env::args().skip(1);
    let seed = words.next().map_or(1, |s| s.parse().expect("a seed is a number"));
    let most = words.next().map_or(2, |s| s.parse().expect("the most of each kind is a number"));
    let only = words.next();
    let (mut total, mut caught) = (0, 0);
    for case in cases::nine_programs() {
        if only.as_ref().is_some_and(|o| o != case.name) {
            continue;
        }
        let start = std::time::Instant::now();
        let mutants = mutate::mutants(&case.program, seed, most);
        println!("{}: {} mutants in {:?}", case.name, mutants.len(), start.elapsed());
        for mutant in mutants {
            total += 1;
            let start = std::time::Instant::now();
            let mut verdict = None;
            for shape in &case.shapes {
                for seed in 0..2 {
                    if verdict.is_some() { break; }
                    let before = cases::arguments(&case.program, shape, seed);
                    let mut after = before.clone();
                    let policy = if seed == 0 { Policy::latest(seed) } else { Policy::from_seed(seed) };
                    verdict = match coroutine::run(&mutant.program, &mut after, policy) {
                        Err(fault) => Some(fault.to_string()),
                        Ok(()) => cases::first_difference(&case, &before, &after),
                    };
                }
            }
            caught += usize::from(verdict.is_some());
            println!("{:?} | {} | {} | {} | {:?}", case.name, mutant.kind.name, mutant.site, verdict.unwrap_or("-".into()), start.elapsed());
        }
    }
    println!("{total} mutants, {caught} caught by threads in random order");
}
