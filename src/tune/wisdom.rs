//! What the records say: which choices were tried for a problem, which is best, and which problems are near.

use std::collections::HashMap;

use super::record::{Gpu, Key, Record, Status};
use crate::kernels;
use crate::kernels::family::{Choice, Permissions};

/// Records, of each configuration the latest.
#[derive(Clone, Debug, Default)]
pub struct Wisdom {
    records: Vec<Record>,
    places: HashMap<Configuration, usize>,
}

/// What one record is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Configuration {
    gpu: String,
    family: String,
    problem: Key,
    choice: Choice,
    rested: bool,
}

/// The records of a text, and the lines that are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The records, in order.
    pub records: Vec<Record>,
    /// Number and fault of each line that was passed over.
    pub skipped: Vec<(usize, String)>,
}

/// Reads lines. Those that are damaged or not ours are passed over, empty ones and comments (`#`) silently; so are
/// those that `wanted` says no to, which is asked before anything is read.
pub fn parse(text: &str, wanted: &dyn Fn(&str) -> bool) -> Parsed {
    let mut parsed = Parsed::default();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || !wanted(line) {
            continue;
        }
        match Record::parse(line) {
            Ok(record) => parsed.records.push(record),
            Err(fault) => parsed.skipped.push((at + 1, fault)),
        }
    }
    parsed
}

impl Wisdom {
    /// Adds records; of two on the same configuration, timed at the same pace, the later counts.
    pub fn extend(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            let configuration = Configuration {
                gpu: record.gpu.kind(),
                family: record.family.clone(),
                problem: record.problem.clone(),
                choice: record.trial.choice.clone(),
                rested: record.trial.rested,
            };
            match self.places.get(&configuration) {
                Some(place) => self.records[*place] = record,
                None => {
                    self.places.insert(configuration, self.records.len());
                    self.records.push(record);
                }
            }
        }
    }

    /// Every record.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The records of a problem.
    pub fn tried(&self, gpu: &Gpu, family: &str, problem: &Key) -> Vec<&Record> {
        let kind = gpu.kind();
        self.of(&kind, family, &|r| r.problem == *problem)
    }

    /// The fastest right configuration of a problem for which permissions suffice.
    pub fn best(&self, gpu: &Gpu, family: &str, problem: &Key, permissions: Permissions) -> Option<&Record> {
        let tried = self.tried(gpu, family, problem).into_iter();
        tried.filter(|r| is_good(r, permissions)).min_by(|a, b| faster(a, b))
    }

    /// Right configurations of other problems with operands of the same type that are transposed alike, and how far those are: the nearest problems
    /// first, and of each problem the fastest first. Permissions suffice for all of them.
    pub fn near(
        &self,
        gpu: &Gpu,
        family: &str,
        problem: &Key,
        permissions: Permissions,
    ) -> Vec<(f64, &Record)> {
        let kind = gpu.kind();
        let right = self.of(&kind, family, &|r| is_good(r, permissions) && r.problem != *problem);
        let mut found: Vec<(f64, &Record)> =
            right.into_iter().filter_map(|r| problem.distance(&r.problem).map(|d| (d, r))).collect();
        // At the same distance, all of one problem come before any of another.
        let size = |r: &Record| (r.problem.m, r.problem.n, r.problem.k);
        found.sort_by(|(d, a), (e, b)| d.total_cmp(e).then(size(a).cmp(&size(b))).then(faster(a, b)));
        found
    }

    /// Right configurations on other GPUs of the same compute capability, of a problem and of those that are alike, the nearest first and of
    /// each problem the fastest: what to try early.
    pub fn elsewhere(
        &self,
        gpu: &Gpu,
        family: &str,
        problem: &Key,
        alike: &dyn Fn(&Key) -> bool,
        permissions: Permissions,
    ) -> Vec<&Record> {
        let is_sister = |other: &Gpu| other.compute == gpu.compute && other.kind() != gpu.kind();
        let is_of = |other: &Key| other == problem || alike(other);
        let known = self.records.iter().filter(|r| r.family == family && is_sister(&r.gpu));
        let mut found: Vec<(f64, &Record)> = known
            .filter(|r| is_of(&r.problem) && is_good(r, permissions))
            .filter_map(|r| problem.distance(&r.problem).map(|distance| (distance, r)))
            .collect();
        found.sort_by(|(d, a), (e, b)| d.total_cmp(e).then(faster(a, b)));
        found.into_iter().map(|(_, record)| record).collect()
    }

    /// The GPU whose records of a family are used on this one: one of its own kind where anybody has tuned the family on that, else a
    /// sister, if there is one.
    pub fn teacher<'a>(&'a self, gpu: &'a Gpu, family: &str) -> &'a Gpu {
        let own = gpu.kind();
        let is_own = self.records.iter().any(|r| r.family == family && r.gpu.kind() == own);
        if is_own { gpu } else { self.sister(gpu, family).unwrap_or(gpu) }
    }

    /// A GPU of another kind, of the same compute capability and with as many multiprocessors, on which somebody has tuned a family.
    pub fn sister(&self, gpu: &Gpu, family: &str) -> Option<&Gpu> {
        let own = gpu.kind();
        let is_sister = |other: &Gpu| {
            other.compute == gpu.compute && other.sm_count == gpu.sm_count && other.kind() != own
        };
        self.records.iter().find(|r| r.family == family && is_sister(&r.gpu)).map(|r| &r.gpu)
    }

    /// The fastest right record of every problem, family and GPU among those that need the same permissions: what is
    /// worth shipping.
    pub fn distilled(&self) -> Vec<&Record> {
        let mut best: Vec<&Record> = Vec::new();
        let mut places: HashMap<(String, &str, &Key, Permissions), usize> = HashMap::new();
        for record in self.records.iter().filter(|r| is_good(r, Permissions::ALL)) {
            let next = best.len();
            let about = (record.gpu.kind(), record.family.as_str(), &record.problem, needs(record));
            let place = *places.entry(about).or_insert(next);
            if place == next {
                best.push(record);
            } else if faster(record, best[place]).is_lt() {
                best[place] = record;
            }
        }
        best
    }

    fn of(&self, gpu: &str, family: &str, also: &dyn Fn(&Record) -> bool) -> Vec<&Record> {
        let known = self.records.iter().filter(|r| r.family == family && also(r));
        known.filter(|r| r.gpu.kind() == gpu).collect()
    }
}

/// The time of a record; infinite where it is not right.
pub fn seconds(record: &Record) -> f64 {
    match record.trial.status {
        Status::Correct => record.trial.seconds.unwrap_or(f64::INFINITY),
        _ => f64::INFINITY,
    }
}

/// The permissions that a record's choice needs, as its family says.
pub fn needs(record: &Record) -> Permissions {
    let family = kernels::family(&record.family);
    let precision = record.problem.dtype.parse();
    family.zip(precision.ok()).map_or(Permissions::NONE, |(family, precision)| {
        family.needs(precision, record.problem.k, &record.trial.choice)
    })
}

/// Whether a configuration is right and permissions suffice for it.
fn is_good(record: &Record, permissions: Permissions) -> bool {
    seconds(record).is_finite() && permissions.cover(needs(record))
}

/// Times that were taken at length come before those of a quick look: the best of many quick looks is partly luck. Times of a GPU that
/// has rested are the shorter ones, so where a problem was tuned at both paces, what won rested is chosen.
fn faster(a: &Record, b: &Record) -> std::cmp::Ordering {
    b.trial.settled.cmp(&a.trial.settled).then(seconds(a).total_cmp(&seconds(b)))
}

#[cfg(test)]
mod tests {
    use super::super::record::{Gpu, Key, Record, Status, Trial};
    use super::super::tests::record;
    use super::{Wisdom, parse};
    use crate::kernels::family::{Choice, Permissions};
    use warpwright_core::target::Target;

    fn wisdom(records: &[Record]) -> Wisdom {
        let mut wisdom = Wisdom::default();
        wisdom.extend(records.iter().cloned());
        wisdom
    }

    #[test]
    fn damaged_and_foreign_lines_cost_only_themselves() {
        let good: Vec<Record> = (1..=3).map(|tm| record(20, tm, 1e-3)).collect();
        let line = |at: usize| good[at].line().unwrap();
        let half = &line(1)[..40];
        let text = format!("# notes\n{}\n{half}\n{{\"other\": 1}}\n{}{}", line(0), line(1), line(2));
        let parsed = parse(&text, &|_| true);
        assert_eq!(parsed.records, good);
        assert_eq!(parsed.skipped.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [4, 5]);
        let some = parse(&text, &|line| line.contains("\"tm\":2"));
        assert_eq!((some.records.len(), some.skipped.len()), (1, 0));
    }

    #[test]
    fn the_fastest_right_configuration_is_the_best_and_the_latest_word_counts() {
        let mut wisdom = wisdom(&[record(20, 4, 2e-3), record(20, 5, 1e-3), record(20, 10, 3e-3)]);
        let (gpu, key) = (record(20, 4, 1.0).gpu, record(20, 4, 1.0).problem);
        let best =
            |w: &Wisdom| w.best(&gpu, "tsmttsm", &key, Permissions::NONE).map(|r| r.trial.choice.int("tm"));
        assert_eq!(best(&wisdom), Some(5));
        let mut wrong = record(20, 5, 1e-3);
        wrong.trial.status = Status::Correctness;
        wisdom.extend([wrong]);
        assert_eq!((best(&wisdom), wisdom.records().len()), (Some(4), 3));
        let settled = Trial { settled: true, ..record(20, 10, 2.1e-3).trial };
        wisdom.extend([Record { trial: settled, ..record(20, 10, 1.0) }]);
        assert_eq!(best(&wisdom), Some(10), "what was timed at length is believed first");
        assert_eq!(wisdom.best(&gpu, "tsmm", &key, Permissions::ALL), None);
        let other = Gpu::of_target(Target::by_name("a6000").unwrap());
        assert_eq!(wisdom.best(&other, "tsmttsm", &key, Permissions::ALL), None);
    }

    #[test]
    fn a_gpu_on_which_nobody_has_tuned_a_family_learns_from_its_sister() {
        let kinds = |name: &str| Gpu::of_target(Target::by_name(name).unwrap());
        let (h100, smaller, other) = (kinds("h100-sxm"), kinds("h100-pcie"), kinds("a6000"));
        let tuned = record(20, 4, 1e-3);
        assert_ne!(tuned.gpu.kind(), h100.kind());
        let wisdom = wisdom(std::slice::from_ref(&tuned));
        assert_eq!(wisdom.teacher(&h100, "tsmttsm"), &tuned.gpu);
        assert_eq!(wisdom.teacher(&tuned.gpu, "tsmttsm"), &tuned.gpu);
        for (gpu, family) in [(&smaller, "tsmttsm"), (&other, "tsmttsm"), (&h100, "tsmm")] {
            assert_eq!(wisdom.teacher(gpu, family), gpu, "{family} on {}", gpu.name);
        }
        let mut both = wisdom.clone();
        both.extend([Record { gpu: h100.clone(), ..record(64, 5, 1e-3) }]);
        assert_eq!(both.teacher(&h100, "tsmttsm"), &h100, "what it knows itself counts more");
    }

    #[test]
    fn near_problems_come_by_the_distance_of_each_extent() {
        let all = [record(64, 1, 1e-3), record(24, 2, 2e-3), record(24, 3, 1e-3), record(4, 4, 1e-3)];
        let wisdom = wisdom(&all);
        let near = wisdom.near(&all[0].gpu, "tsmttsm", &record(20, 1, 1.0).problem, Permissions::NONE);
        assert_eq!(near.iter().map(|(_, r)| r.trial.choice.int("tm")).collect::<Vec<_>>(), [3, 2, 1, 4]);
        // 21 columns of f64 are not aligned to 16 bytes: all others are further away.
        let other = record(21, 1, 1.0).problem;
        let distances = |problem| {
            let near = wisdom.near(&all[0].gpu, "tsmttsm", problem, Permissions::NONE);
            near.iter().map(|(distance, _)| *distance).fold(f64::INFINITY, f64::min)
        };
        assert!(distances(&other) > 0.5 && distances(&record(20, 1, 1.0).problem) < 0.5);
        // Twice the rows are nearer than four columns more.
        let longer = Key { k: 2 * all[1].problem.k, ..all[1].problem.clone() };
        assert!(all[1].problem.distance(&longer) < all[1].problem.distance(&record(28, 1, 1.0).problem));
    }

    #[test]
    fn the_same_problem_on_other_gpus_of_the_kind_is_found_elsewhere() {
        let own = record(64, 1, 1e-3);
        let on = |name: &str, tm, seconds| Record {
            gpu: Gpu::of_target(Target::by_name(name).unwrap()),
            ..record(64, tm, seconds)
        };
        let other_problem = Record { gpu: on("h100-sxm", 0, 1.0).gpu, ..record(24, 5, 1e-4) };
        let all = [
            own.clone(),
            on("h100-sxm", 2, 3e-3),
            on("h100-sxm", 3, 2e-3),
            on("a6000", 4, 1e-4),
            other_problem,
        ];
        let wisdom = wisdom(&all);
        let gpu = Gpu::of_target(Target::by_name("h200").unwrap());
        assert_eq!(own.gpu.kind(), gpu.kind(), "the records of these tests are of this GPU");
        let found = |alike: &dyn Fn(&Key) -> bool| {
            let found = wisdom.elsewhere(&gpu, "tsmttsm", &own.problem, alike, Permissions::NONE);
            found.iter().map(|r| r.trial.choice.int("tm")).collect::<Vec<_>>()
        };
        assert_eq!(found(&|_| false), [3, 2]);
        assert_eq!(found(&|other| other.m == 24), [3, 2, 5], "the problem itself comes first");
    }

    #[test]
    fn one_line_a_problem_is_left_when_distilled() {
        let all = [record(64, 1, 2e-3), record(64, 2, 1e-3), record(24, 3, 1e-3)];
        let wisdom = wisdom(&all);
        assert_eq!(wisdom.distilled(), [&all[1], &all[2]]);
    }

    #[test]
    fn what_adds_in_any_order_is_found_only_where_that_is_permitted() {
        let atomics = |tm| Record {
            trial: Trial {
                choice: Choice::default().with("tm", tm).with("reduction", "global"),
                ..record(20, tm, 1e-3).trial
            },
            ..record(20, tm, 1e-3)
        };
        let all = [record(20, 1, 2e-3), atomics(2), record(24, 3, 2e-3)];
        let wisdom = wisdom(&all);
        let best = |permissions| wisdom.best(&all[0].gpu, "tsmttsm", &all[0].problem, permissions);
        assert_eq!((best(Permissions::NONE), best(Permissions::ALL)), (Some(&all[0]), Some(&all[1])));
        let near = |permissions| wisdom.near(&all[0].gpu, "tsmttsm", &all[2].problem, permissions).len();
        assert_eq!((near(Permissions::NONE), near(Permissions::ALL)), (1, 2));
        assert_eq!(wisdom.distilled().len(), 3, "both are worth keeping");
    }
}
