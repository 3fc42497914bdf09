//! Results on disk, with what they were measured on.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_cuda::Device;
use warpwright_cuda::nvrtc::Nvrtc;

use crate::file::unreadable;

/// A file of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<T> {
    /// The version of this program.
    pub version: String,
    /// The day, as in 2026-11-21, in UTC.
    pub date: String,
    /// The GPU.
    pub gpu: String,
    /// The CUDA version of the driver.
    pub driver: String,
    /// The version of the driver itself, where the system says.
    #[serde(default)]
    pub driver_release: Option<String>,
    /// The version of NVRTC.
    pub nvrtc: Option<String>,
    /// The results.
    pub results: Vec<T>,
}

impl<T> Record<T> {
    /// Results of today on a GPU.
    pub fn new(device: &Device, results: Vec<T>) -> Record<T> {
        let info = device.info();
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        Record {
            version: env!("CARGO_PKG_VERSION").to_string(),
            date: today(),
            gpu: info.name.clone(),
            driver: version(info.driver_version),
            driver_release: std::fs::read_to_string(DRIVER).ok().and_then(|text| release(&text)),
            nvrtc: Nvrtc::get().ok().map(|n| version(n.version())),
            results,
        }
    }

    /// The version of the driver, or that of CUDA which it is for where that is all that is known.
    pub fn release(&self) -> String {
        self.driver_release.clone().unwrap_or_else(|| format!("for CUDA {}", self.driver))
    }

    /// Where the results are: `DIRECTORY/NAME-GPU-DATE`, and an ending.
    pub fn path(&self, directory: &Path, name: &str, ending: &str) -> PathBuf {
        let gpu = self.gpu.to_ascii_lowercase().replace(' ', "-");
        directory.join(format!("{name}-{gpu}-{}.{ending}", self.date))
    }
}

impl<T: Serialize> Record<T> {
    /// Writes the results to `DIRECTORY/NAME-GPU-DATE.json` and gives the path. A file that is there is replaced at once:
    /// whoever is killed meanwhile leaves the old one.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub fn write(&self, directory: &Path, name: &str) -> Result<PathBuf, Diagnosis> {
        let path = self.path(directory, name, "json");
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Diagnosis::new("the results cannot be written as JSON").because(e.to_string()))?;
        replace(&path, &(text + "\n"))?;
        Ok(path)
    }
}

/// Writes results of today to `DIRECTORY/NAME-GPU-DATE.json` and gives the path.
///
/// # Errors
/// As [`Record::write`].
pub fn write<T: Serialize + Clone>(
    directory: &Path,
    name: &str,
    device: &Device,
    results: &[T],
) -> Result<PathBuf, Diagnosis> {
    Record::new(device, results.to_vec()).write(directory, name)
}

/// Writes a file beside its place and then into it, so that nobody reads half of one.
///
/// # Errors
/// A directory that cannot be written to.
pub fn replace(path: &Path, text: &str) -> Result<(), Diagnosis> {
    let own = path.with_extension(format!("{}.part", std::process::id()));
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&own, text))
        .and_then(|()| std::fs::rename(&own, path))
        .map_err(|e| {
            Diagnosis::new(format!("{}: cannot be written", path.display()))
                .because(e.to_string())
                .instead("name a directory that can be written to")
        })
}

/// The records in `DIRECTORY/NAME-*.json`, the latest last; none where there is no such directory.
///
/// # Errors
/// A file that cannot be read or is no record of these results.
pub fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<Vec<Record<T>>, Diagnosis> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let is_ours = |path: &PathBuf| {
        let file = path.file_name().and_then(|f| f.to_str()).unwrap_or_default();
        file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".json"))
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(is_ours).collect();
    paths.sort();
    let one = |path: &PathBuf| -> Result<Record<T>, Diagnosis> {
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
        serde_json::from_str(&text).map_err(|e| {
            Diagnosis::new(format!("{}: no record of such results", path.display()))
                .because(e.to_string())
                .instead("remove it, or name another directory")
        })
    };
    let mut records: Vec<Record<T>> = paths.iter().map(one).collect::<Result<_, _>>()?;
    records.sort_by(|a, b| a.date.cmp(&b.date));
    Ok(records)
}

/// Where Linux says which driver is loaded.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// The first word that is a version, as in 580.159.04.
fn release(text: &str) -> Option<String> {
    let is_version = |w: &&str| w.contains('.') && w.split('.').all(|part| part.parse::<u32>().is_ok());
    text.split_whitespace().find(is_version).map(ToString::to_string)
}

/// The day, as in 2026-11-21, in UTC.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date((seconds / 86400) as i64)
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(days: i64) -> String {
    // Counted from 0000-03-01 in eras of 400 years, so that leap days come last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::{Record, date, read, release};

    fn record(date: &str, results: Vec<u32>) -> Record<u32> {
        Record {
            version: "0.1.0".to_string(),
            date: date.to_string(),
            gpu: "NVIDIA H200".to_string(),
            driver: "13.0".to_string(),
            driver_release: None,
            nvrtc: None,
            results,
        }
    }

    #[test]
    fn records_come_back_as_they_were_written_the_latest_last() {
        let directory = std::env::temp_dir().join(format!("warpwright-record-{}", std::process::id()));
        assert_eq!(read::<u32>(&directory, "t"), Ok(Vec::new()));
        let (old, new) = (record("2026-11-21", vec![1]), record("2026-11-22", vec![2, 3]));
        for r in [&new, &old, &new] {
            r.write(&directory, "t").unwrap();
        }
        record("2026-11-23", vec![9]).write(&directory, "tt").unwrap();
        assert_eq!(read::<u32>(&directory, "t"), Ok(vec![old, new]));
        std::fs::write(directory.join("t-x.json"), "{").unwrap();
        assert!(read::<u32>(&directory, "t").unwrap_err().to_string().contains("no record"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_version_of_the_driver_is_found_in_what_the_system_says() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build";
        assert_eq!(release(open).as_deref(), Some("580.159.04"));
        assert_eq!(release("no driver."), None);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11016), "2000-02-29");
        assert_eq!(date(20778), "2026-11-21");
    }
}
