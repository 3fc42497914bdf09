//! What is on record of the figures, and the watch over the point that is being measured: a kernel that does not end is
//! recorded as such, so that the next run does not begin with it again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warpwright_core::diag::Diagnosis;

use super::measure::Also;
use super::{Key, NAME, Point, csv};
use crate::bench::record::{self, Record};
use crate::tune::record::Status;

/// The points that are on record, and where new ones go.
pub struct Log {
    /// The latest of each.
    pub known: HashMap<Key, Point>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// The record of today.
    today: Record<Point>,
    directory: Option<PathBuf>,
}

impl Log {
    /// Reads what a directory has about the GPU of a record, which is still empty.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn open(directory: Option<&Path>, mut today: Record<Point>) -> Result<Log, Diagnosis> {
        let records: Vec<Record<Point>> = match directory {
            Some(directory) => record::read(directory, NAME)?,
            None => Vec::new(),
        };
        let mut known = HashMap::new();
        for record in records.into_iter().filter(|r| r.gpu == today.gpu) {
            known.extend(record.results.iter().map(|p| (p.key.clone(), p.clone())));
            if record.date == today.date {
                today.results = record.results;
            }
        }
        Ok(Log { known, today, directory: directory.map(Path::to_path_buf), files: Vec::new() })
    }

    /// Whether a point is on record with a kernel of this text, at both paces, beside cuBLAS where that is there, and on what else
    /// is asked for.
    pub fn has(&self, key: &Key, text: &str, cublas: bool, also: Also) -> bool {
        let beside = |p: &Point| p.cublas_rested.is_some() || !cublas;
        let cached = |p: &Point| p.cached_rested.is_some() || !also.cached;
        let zeros = |p: &Point| p.zeros_rested.is_some() || !also.zeros;
        let whole = |p: &Point| p.rested.is_some() && beside(p) && cached(p) && zeros(p);
        self.known.get(key).is_some_and(|p| p.text == text && (p.status != Status::Correct || whole(p)))
    }

    /// Adds a point, or replaces it, and writes the files.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub fn add(&mut self, point: Point) -> Result<(), Diagnosis> {
        match self.today.results.iter_mut().find(|p| p.key == point.key) {
            Some(old) => *old = point.clone(),
            None => self.today.results.push(point.clone()),
        }
        self.known.insert(point.key.clone(), point);
        if let Some(directory) = &self.directory {
            let table = self.today.path(directory, NAME, "csv");
            record::replace(&table, &csv::table(&self.today))?;
            self.files = vec![self.today.write(directory, NAME)?, table];
        }
        Ok(())
    }
}

/// A watch over what is being measured.
pub struct Watch {
    log: Mutex<Log>,
    /// The point that is being measured, as it is recorded if it does not end, and since when.
    busy: Mutex<Option<(Instant, Point)>>,
    over: AtomicBool,
}

/// How long a point may take, references on the host included.
const LIMIT: Duration = Duration::from_secs(120);
/// How often the watch looks.
const PAUSE: Duration = Duration::from_millis(200);

impl Watch {
    /// A watch over points that go into a log.
    pub fn new(log: Log) -> Watch {
        Watch { log: Mutex::new(log), busy: Mutex::new(None), over: AtomicBool::new(false) }
    }

    /// A point is begun.
    pub fn begin(&self, point: &Point) {
        *held(&self.busy) = Some((Instant::now(), point.clone()));
    }

    /// A point has been measured.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub fn end(&self, point: Point) -> Result<(), Diagnosis> {
        *held(&self.busy) = None;
        held(&self.log).add(point)
    }

    /// Nothing more is to be measured.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// The log, when nothing is measured any more.
    pub fn into_log(self) -> Log {
        self.log.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks until it is told to stop; ends this process where a point does not end, which nothing else can.
    pub fn look(&self) {
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            let Some(late) = self.late(LIMIT) else { continue };
            let what = format!("{} {} of width {}", late.key.operation, late.key.dtype, late.width());
            let recorded = held(&self.log).add(late);
            let advice = match recorded {
                Ok(()) => "run this again with the same --record to go on with the next point".to_string(),
                Err(diagnosis) => diagnosis.to_string(),
            };
            eprintln!("error: {what} did not end within {} s; {advice}", LIMIT.as_secs());
            std::process::exit(2);
        }
    }

    /// The point that is being measured, if it has taken longer than this, as it is to be recorded.
    fn late(&self, limit: Duration) -> Option<Point> {
        let busy = held(&self.busy);
        let (since, point) = busy.as_ref().filter(|(since, _)| since.elapsed() > limit)?;
        let message = Some(format!("it did not end within {} s", since.elapsed().as_secs()));
        Some(Point { status: Status::Timeout, message, seconds: None, rested: None, ..point.clone() })
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Also, Log, Watch};
    use crate::bench::record::Record;
    use crate::bench::tsm::tests::{point, record};
    use crate::bench::tsm::{NAME, Point, csv};
    use crate::tune::record::Status;
    use std::time::Duration;

    #[test]
    fn a_run_goes_on_where_another_was_cut_and_measures_other_texts_again() {
        let directory = std::env::temp_dir().join(format!("warpwright-tsm-{}", std::process::id()));
        let empty = |date: &str| Record { results: Vec::new(), date: date.to_string(), ..record() };
        let open = |date: &str| Log::open(Some(&directory), empty(date)).unwrap();
        let mut log = open("2026-11-21");
        log.add(point(8, 0.5)).unwrap();
        log.add(point(16, 0.5)).unwrap();
        // The run is cut; the next is on another day.
        let mut log = open("2026-11-22");
        let (known, text) = (point(8, 0.5), point(8, 0.5).text);
        assert!(
            log.has(&known.key, &text, true, Also::default())
                && !log.has(&known.key, "other", true, Also::default())
        );
        assert!(!log.has(&point(32, 0.5).key, &text, true, Also::default()));
        log.add(Point { text: "other".to_string(), ..point(8, 0.25) }).unwrap();
        log.add(point(8, 0.125)).unwrap();
        assert_eq!(log.today.results, [point(8, 0.125)], "a point stands once in a file");
        let again = open("2026-11-22");
        assert_eq!(again.today.results, log.today.results);
        assert_eq!(again.known[&known.key], point(8, 0.125), "the latest counts");
        assert_eq!(again.known[&point(16, 0.5).key], point(16, 0.5));
        let table = std::fs::read_to_string(log.today.path(&directory, NAME, "csv")).unwrap();
        assert_eq!(table, csv::table(&log.today));
        let other = Record { gpu: "NVIDIA L4".to_string(), ..empty("2026-11-22") };
        assert!(Log::open(Some(&directory), other).unwrap().known.is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_point_without_cublas_is_measured_again_where_cublas_is_there() {
        let mut log = Log::open(None, Record { results: Vec::new(), ..record() }).unwrap();
        let alone = Point { cublas: None, cublas_rested: None, ..point(8, 0.5) };
        log.add(alone.clone()).unwrap();
        let has = |log: &Log, cublas: bool| log.has(&alone.key, &alone.text, cublas, Also::default());
        assert!(has(&log, false) && !has(&log, true));
        log.add(Point { status: Status::Correctness, seconds: None, ..alone.clone() }).unwrap();
        assert!(has(&log, true), "what failed was not compared");
    }

    #[test]
    fn a_point_of_an_older_record_is_measured_again_after_a_pause() {
        let mut log = Log::open(None, Record { results: Vec::new(), ..record() }).unwrap();
        let old = Point { rested: None, cublas_rested: None, ..point(8, 0.5) };
        log.add(old.clone()).unwrap();
        assert!(
            !log.has(&old.key, &old.text, true, Also::default())
                && !log.has(&old.key, &old.text, false, Also::default())
        );
    }

    #[test]
    fn a_point_is_measured_again_where_it_is_wanted_in_the_cache_or_on_zeros_too() {
        let mut log = Log::open(None, Record { results: Vec::new(), ..record() }).unwrap();
        let known = point(8, 0.5);
        log.add(known.clone()).unwrap();
        let has = |log: &Log, cached: bool, zeros: bool| {
            log.has(&known.key, &known.text, true, Also { cached, zeros })
        };
        assert!(has(&log, false, false) && !has(&log, true, false) && !has(&log, false, true));
        let cached = Point { cached: known.seconds, cached_rested: known.rested, ..known.clone() };
        log.add(cached.clone()).unwrap();
        assert!(has(&log, true, false) && !has(&log, true, true));
        log.add(Point { zeros: known.seconds, zeros_rested: known.rested, ..cached }).unwrap();
        assert!(has(&log, true, true));
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let mut log = Log::open(None, Record { results: Vec::new(), ..record() }).unwrap();
        log.add(point(8, 0.5)).unwrap();
        assert!(log.files.is_empty() && log.known.len() == 1);
    }

    #[test]
    fn a_point_that_does_not_end_is_known_by_it_and_one_that_ended_is_not() {
        let watch = Watch::new(Log::open(None, Record { results: Vec::new(), ..record() }).unwrap());
        assert_eq!(watch.late(Duration::ZERO), None, "nothing was begun");
        watch.begin(&point(8, 0.5));
        std::thread::sleep(Duration::from_millis(2));
        let late = watch.late(Duration::ZERO).unwrap();
        assert_eq!((late.status, late.seconds, &late.key), (Status::Timeout, None, &point(8, 0.5).key));
        assert_eq!(late.text, point(8, 0.5).text, "so it is not begun again");
        assert_eq!(watch.late(Duration::from_secs(1000)), None);
        watch.end(point(8, 0.25)).unwrap();
        assert_eq!(watch.late(Duration::ZERO), None);
        watch.stop();
        watch.look();
        let log = watch.into_log();
        assert_eq!(log.known[&late.key], point(8, 0.25));
    }
}
