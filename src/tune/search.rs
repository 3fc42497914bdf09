//! Which candidate to measure next.
//!
//! First come the choices that are said to be good (those of near problems, the usual one), the best by the model that
//! differ in more than one parameter, and of every word and flag the best that has it, since a model may be blind to a
//! whole kind of kernels.
//! Then the search descends: it changes one parameter of the best candidate at a time, and when nothing near it is left,
//! of the second and third best. What budget remains goes in turn to the rest of the ranking, twice to candidates that differ
//! from the best in two parameters, and to candidates drawn from the whole space. Every candidate is measured once; what failed counts as infinitely slow.
//!
//! Candidates are asked for while others are still compiled or measured: what comes next is decided by what is known then.
//!
//! Nothing here knows time or chance: the same answers lead to the same questions, after a restart too.

use std::collections::HashSet;

use fastrand::Rng;
use warpwright_core::diag::Diagnosis;

use super::record::{Status, Trial};
use super::space::{Candidate, Space};
use crate::kernels::family::Choice;

/// Where what is measured gets its candidates from, and hands its results to.
pub trait Trials {
    /// Candidates to try, in any order, so many at most; none where none is left besides those that were handed out.
    fn more(&mut self, most: usize) -> Vec<Candidate>;

    /// Notes that everything is ready, such as operands in a GPU's memory: the time before is no part of a budget.
    fn begin(&mut self) {}

    /// The least time so far: what is much slower need not be timed exactly.
    fn best(&self) -> Option<f64> {
        None
    }

    /// Takes a result; gives whether to go on.
    ///
    /// # Errors
    /// What makes it pointless to go on.
    fn result(&mut self, trial: Trial) -> Result<bool, Diagnosis>;
}

/// Something that tries candidates.
pub trait Measure {
    /// Tries candidates until there are no more, or until it is told to end. Several may be worked on at a time.
    ///
    /// # Errors
    /// What makes it pointless to begin, or to go on: a candidate that fails is a result, not an error.
    fn measure(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis>;

    /// Times candidates that are known to be right once more and at length.
    ///
    /// # Errors
    /// As [`Measure::measure`].
    fn settle(&mut self, trials: &mut dyn Trials) -> Result<(), Diagnosis>;
}

/// How to search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seconds that may be spent, those of earlier runs included.
    pub seconds: f64,
    /// Candidates that may be tried, those of earlier runs included.
    pub candidates: usize,
    /// Which candidates to try.
    pub which: Which,
    /// Decides what is drawn.
    pub seed: u64,
}

/// Which candidates to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that promise most, by the model and by what is found on the way, while the budget lasts.
    Promising,
    /// All, in the order of the ranking, however long it takes.
    All,
    /// So many, drawn from all of them with equal chances: what a model can be judged by. However long it takes.
    Drawn(usize),
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { seconds: 60.0, candidates: usize::MAX, which: Which::Promising, seed: 1 }
    }
}

/// The best by the model that are tried before the search descends.
const FIRST: usize = 16;
/// How many of the best it descends from.
const STARTS: usize = 3;

/// What is known so far, and what to ask next.
#[derive(Debug)]
pub struct Search<'a> {
    space: &'a Space,
    plan: Plan,
    /// Candidates to begin with.
    first: Vec<usize>,
    /// Seconds of each candidate that was tried.
    tried: Vec<Option<f64>>,
    count: usize,
    /// Candidates that were handed out and have no result yet.
    asked: HashSet<usize>,
}

impl<'a> Search<'a> {
    /// A search that begins with the candidates that are said to be good.
    pub fn new(space: &'a Space, plan: Plan, said_to_be_good: &[Choice]) -> Search<'a> {
        let first = match plan.which {
            Which::Drawn(number) => drawn(space, number, plan.seed),
            Which::Promising | Which::All => Search::promising(space, said_to_be_good),
        };
        Search { space, plan, first, tried: vec![None; space.len()], count: 0, asked: HashSet::new() }
    }

    /// What a search begins with.
    fn promising(space: &Space, said_to_be_good: &[Choice]) -> Vec<usize> {
        let mut first: Vec<usize> = Vec::new();
        for place in said_to_be_good.iter().filter_map(|choice| space.place(choice)) {
            if !first.contains(&place) {
                first.push(place);
            }
        }
        let said = first.len();
        for place in 0..space.len() {
            if first.len() == said + FIRST {
                break;
            }
            // What differs in one parameter only is found by descending.
            if first.iter().all(|other| space.differences(*other, place) > 1) {
                first.push(place);
            }
        }
        for place in space.kinds() {
            if !first.contains(&place) {
                first.push(place);
            }
        }
        first
    }

    /// All candidates in the order in which they are tried where nothing is learned on the way.
    pub fn order(&self) -> Vec<usize> {
        let rest = (0..self.space.len()).filter(|place| !self.first.contains(place));
        self.first.iter().copied().chain(rest).collect()
    }

    /// Notes a result. Choices that are no candidates are passed over.
    pub fn tell(&mut self, trial: &Trial) {
        let Some(place) = self.space.place(&trial.choice) else { return };
        let seconds = match (trial.status, trial.seconds) {
            (Status::Correct, Some(seconds)) => seconds,
            _ => f64::INFINITY,
        };
        self.count += usize::from(self.tried[place].is_none());
        self.asked.remove(&place);
        self.tried[place] = Some(seconds);
    }

    /// How many candidates were tried.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The places of those that are right, the fastest first.
    pub fn ranking(&self) -> Vec<usize> {
        let mut places: Vec<(f64, usize)> = (0..self.tried.len())
            .filter_map(|p| self.tried[p].filter(|s| s.is_finite()).map(|s| (s, p)))
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// The least time so far.
    pub fn best(&self) -> Option<f64> {
        self.ranking().first().and_then(|place| self.tried[*place])
    }

    /// Whether the budget allows another candidate after so many seconds.
    pub fn may_go_on(&self, seconds: f64) -> bool {
        let is_left = self.count < self.plan.candidates.min(self.space.len());
        match self.plan.which {
            Which::Promising => is_left && seconds < self.plan.seconds,
            Which::All => is_left,
            Which::Drawn(_) => self.first.iter().any(|place| self.tried[*place].is_none()),
        }
    }

    /// So many candidates to try next, or fewer; none where all have been tried or handed out.
    pub fn next(&mut self, most: usize) -> Vec<usize> {
        let known = self.count + self.asked.len();
        let next = self.choose(most.min(self.plan.candidates.saturating_sub(known)));
        self.asked.extend(&next);
        next
    }

    fn choose(&self, room: usize) -> Vec<usize> {
        let open = |place: &usize| self.tried[*place].is_none() && !self.asked.contains(place);
        let by_rank = || (0..self.space.len()).filter(open);
        match self.plan.which {
            Which::All => return by_rank().take(room).collect(),
            Which::Drawn(_) => return self.first.iter().copied().filter(open).take(room).collect(),
            Which::Promising => {}
        }
        let first: Vec<usize> = self.first.iter().copied().filter(open).take(room).collect();
        if !first.is_empty() {
            return first;
        }
        for start in self.ranking().into_iter().take(STARTS) {
            let near: Vec<usize> = self.space.neighbours(start).into_iter().filter(open).take(room).collect();
            if !near.is_empty() {
                return near;
            }
        }
        // What has been tried decides what is drawn, so a search that was interrupted goes on as it would have.
        let known = self.count + self.asked.len();
        let mut rng = Rng::with_seed(self.plan.seed.wrapping_add(known as u64));
        let mut others: Vec<usize> = by_rank().collect();
        let best = self.ranking().first().copied();
        let is_near = |place: &usize| best.is_some_and(|best| self.space.differences(best, *place) == 2);
        let mut near: Vec<usize> = others.iter().copied().filter(is_near).collect();
        let mut rest: Vec<usize> = Vec::new();
        // Where one is asked for at a time, each kind has its turn too.
        let mut turn = rng.usize(..4);
        while rest.len() < room && !others.is_empty() {
            let place = match turn % 4 {
                0 => others.remove(0),
                1 | 2 if !near.is_empty() => near.swap_remove(rng.usize(..near.len())),
                _ => others.remove(rng.usize(..others.len())),
            };
            others.retain(|other| *other != place);
            near.retain(|other| *other != place);
            rest.push(place);
            turn += 1;
        }
        rest
    }
}

/// So many candidates, drawn by a seed. The model, which ranks the space, has no part in it.
fn drawn(space: &Space, number: usize, seed: u64) -> Vec<usize> {
    let mut places: Vec<(String, usize)> =
        (0..space.len()).map(|place| (space.candidates()[place].choice.to_string(), place)).collect();
    places.sort();
    let mut rng = Rng::with_seed(seed);
    rng.shuffle(&mut places);
    places.into_iter().take(number).map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::{Status, Trial};
    use super::super::space::{Candidate, Space};
    use super::{Plan, Search, Which};
    use crate::kernels::family::Choice;
    use std::collections::{BTreeSet, VecDeque};

    /// A landscape: seconds of a point, and what the model takes them for.
    struct Landscape {
        name: &'static str,
        /// The part of the space that has to be enough.
        part: usize,
        seconds: fn([i64; 5]) -> f64,
        modelled: fn([i64; 5]) -> f64,
    }

    /// Something between 1 and 1 + amount that depends on the point alone, like the whims of a compiler.
    fn whim(p: [i64; 5], amount: f64) -> f64 {
        let mixed =
            p.iter().fold(0x9e37_79b9_u64, |h, x| (h ^ *x as u64).wrapping_mul(0x0100_0000_01b3) ^ (h >> 29));
        1.0 + amount * ((mixed >> 16) % 1000) as f64 / 1000.0
    }

    /// Far from 5 and 3, with two parameters that only help together.
    fn bowl(p: [i64; 5]) -> f64 {
        let [a, b, c, d, e] = p.map(|x| x as f64);
        let together = if (c - d).abs() < 1.0 { 0.0 } else { 0.3 };
        1.0 + 0.05 * (a - 5.0).powi(2) + 0.08 * (b - 3.0).powi(2) + together + 0.1 * e + 0.02 * c
    }

    /// A ridge: what is good for one parameter depends on another.
    fn ridge(p: [i64; 5]) -> f64 {
        let [a, b, c, d, e] = p.map(|x| x as f64);
        1.0 + 0.2 * (a - b).abs() + 0.03 * (a - 6.0).abs() + 0.1 * (c - 1.0).abs() + 0.05 * d * (1.0 - e)
    }

    const LANDSCAPES: [Landscape; 3] = [
        Landscape {
            name: "a bowl, the model blind to one half",
            part: 10,
            seconds: |p| bowl(p) * whim(p, 0.02),
            modelled: |p| bowl([p[0], 3, p[2], p[2], p[4]]),
        },
        Landscape {
            name: "a bowl and a model that is the wrong way round",
            part: 5,
            seconds: |p| bowl(p) * whim(p, 0.02),
            modelled: |p| 9.0 - bowl(p),
        },
        Landscape {
            name: "a ridge and a model with whims of its own",
            part: 10,
            seconds: |p| ridge(p) * whim(p, 0.02),
            modelled: |p| ridge(p) * whim([p[4], p[3], p[2], p[1], p[0]], 0.5),
        },
    ];

    fn point(choice: &Choice) -> [i64; 5] {
        ["a", "b", "c", "d", "e"].map(|name| choice.int(name))
    }

    /// 8 x 8 x 4 x 4 x 2 points, less those that a constraint forbids.
    fn space(landscape: &Landscape) -> Space {
        let mut found = Vec::new();
        for at in 0..8 * 8 * 4 * 4 * 2 {
            let p = [at % 8, at / 8 % 8, at / 64 % 4, at / 256 % 4, at / 1024];
            if p[0] * p[1] > 40 {
                continue;
            }
            let choice =
                ["a", "b", "c", "d", "e"].iter().zip(p).fold(Choice::default(), |c, (n, v)| c.with(*n, v));
            let schedule = choice.to_string();
            found.push(Candidate { choice, schedule, modelled: (landscape.modelled)(p) });
        }
        Space::from_candidates(found, &[])
    }

    /// Every seventh candidate fails in one way or another.
    fn trial(landscape: &Landscape, choice: &Choice) -> Trial {
        let p = point(choice);
        let status = match p.iter().zip([3, 5, 7, 11, 13]).map(|(x, f)| x * f).sum::<i64>() % 21 {
            3 => Status::Timeout,
            10 => Status::Runtime,
            17 => Status::Correctness,
            _ => Status::Correct,
        };
        let seconds = Some((landscape.seconds)(p)).filter(|_| status != Status::Timeout);
        Trial { choice: choice.clone(), status, seconds, ..Trial::default() }
    }

    /// Searches until so many candidates were tried, and gives the choices in order.
    fn run(landscape: &Landscape, space: &Space, plan: Plan, known: &[Choice]) -> (Option<f64>, Vec<Choice>) {
        let mut search = Search::new(space, plan, &[]);
        known.iter().for_each(|choice| search.tell(&trial(landscape, choice)));
        let mut order = Vec::new();
        while search.may_go_on(0.0) {
            let batch = search.next(8);
            assert!(!batch.is_empty(), "there is something left to try");
            for place in batch {
                let choice = &space.candidates()[place].choice;
                order.push(choice.clone());
                search.tell(&trial(landscape, choice));
            }
        }
        (search.best(), order)
    }

    fn optimum(landscape: &Landscape, space: &Space) -> f64 {
        let right = space.candidates().iter().map(|c| trial(landscape, &c.choice));
        right.filter(|t| t.status == Status::Correct).filter_map(|t| t.seconds).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn a_small_part_of_the_space_is_enough_to_come_within_3_percent() {
        for landscape in &LANDSCAPES {
            let space = space(landscape);
            let optimum = optimum(landscape, &space);
            for seed in 1..=5 {
                let plan = Plan { candidates: space.len() / landscape.part, seed, ..Plan::default() };
                let (best, order) = run(landscape, &space, plan, &[]);
                assert_eq!(order.len(), space.len() / landscape.part, "{}", landscape.name);
                let best = best.unwrap();
                assert!(best <= 1.03 * optimum, "{}, seed {seed}: {best} of {optimum}", landscape.name);
            }
        }
    }

    #[test]
    fn an_exhaustive_search_tries_everything_once() {
        let landscape = &LANDSCAPES[0];
        let space = space(landscape);
        let (best, mut order) = run(landscape, &space, Plan { which: Which::All, ..Plan::default() }, &[]);
        assert_eq!(best, Some(optimum(landscape, &space)));
        order.sort();
        order.dedup();
        assert_eq!(order.len(), space.len());
    }

    #[test]
    fn what_is_drawn_depends_on_the_seed_and_not_on_the_model() {
        let drawn = |landscape: &Landscape, seed| {
            let plan = Plan { which: Which::Drawn(50), seconds: 0.0, seed, ..Plan::default() };
            let mut order = run(landscape, &space(landscape), plan, &[]).1;
            order.sort();
            order
        };
        let first = drawn(&LANDSCAPES[0], 1);
        assert_eq!(first.len(), 50);
        assert_eq!(first, drawn(&LANDSCAPES[1], 1), "the same points, whatever the model says of them");
        assert_ne!(first, drawn(&LANDSCAPES[0], 2));
    }

    #[test]
    fn the_budget_is_kept_and_what_is_known_is_not_asked_again() {
        let landscape = &LANDSCAPES[2];
        let space = space(landscape);
        let plan = |candidates| Plan { candidates, ..Plan::default() };
        let (_, first) = run(landscape, &space, plan(37), &[]);
        assert_eq!(first.len(), 37);
        let (best, rest) = run(landscape, &space, plan(90), &first);
        assert_eq!(rest.len(), 90 - 37);
        assert!(rest.iter().all(|c| !first.contains(c)));
        assert!(best.is_some());
        let search = Search::new(&space, Plan { seconds: 5.0, ..Plan::default() }, &[]);
        assert!(search.may_go_on(4.9) && !search.may_go_on(5.0));
    }

    #[test]
    fn the_same_answers_lead_to_the_same_questions() {
        let landscape = &LANDSCAPES[1];
        let space = space(landscape);
        let plan = |seed| Plan { candidates: 900, seed, ..Plan::default() };
        let (_, whole) = run(landscape, &space, plan(1), &[]);
        assert_eq!(run(landscape, &space, plan(1), &[]).1, whole);
        assert_ne!(run(landscape, &space, plan(2), &[]).1, whole, "the seed decides what is drawn");
        // Interrupted between two batches, it goes on as it would have.
        let (before, after) = whole.split_at(16);
        assert_eq!(run(landscape, &space, plan(1), before).1, after);
    }

    /// With many candidates on their way at any time, of which each result is known some candidates later.
    #[test]
    fn a_search_that_does_not_wait_for_results_finds_the_best_too() {
        for landscape in &LANDSCAPES {
            let space = space(landscape);
            let most = space.len() / landscape.part;
            let mut search = Search::new(&space, Plan { candidates: most, ..Plan::default() }, &[]);
            let (mut on_the_way, mut asked) = (VecDeque::new(), BTreeSet::new());
            loop {
                on_the_way.extend(search.next(10 - on_the_way.len()));
                let Some(place) = on_the_way.pop_front() else { break };
                assert!(asked.insert(place), "nothing is asked for twice");
                search.tell(&trial(landscape, &space.candidates()[place].choice));
            }
            assert_eq!((search.count(), asked.len()), (most, most), "{}", landscape.name);
            let (best, optimum) = (search.best().unwrap(), optimum(landscape, &space));
            assert!(best <= 1.03 * optimum, "{}: {best} of {optimum}", landscape.name);
        }
    }

    #[test]
    fn what_is_compiled_ahead_is_what_is_tried_first() {
        let space = space(&LANDSCAPES[0]);
        let good = [space.candidates().last().unwrap().choice.clone()];
        let mut search = Search::new(&space, Plan::default(), &good);
        let order = search.order();
        // What was said to be good and 16 by the model, before there is any result.
        let asked = [search.next(4), search.next(5), search.next(8)].concat();
        assert!(asked.len() == 17 && order.starts_with(&asked), "{} are asked for", asked.len());
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), space.len());
    }

    #[test]
    fn what_is_said_to_be_good_comes_first() {
        let space = space(&LANDSCAPES[0]);
        let last = space.candidates().last().unwrap().choice.clone();
        let mut search = Search::new(&space, Plan::default(), &[Choice::default(), last.clone()]);
        assert_eq!(space.candidates()[search.next(1)[0]].choice, last);
    }
}
