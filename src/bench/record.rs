//! Results on disk, with what they were measured on.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_cuda::Device;
use warpwright_cuda::nvrtc::Nvrtc;

/// A file of results.
#[derive(Debug, Serialize)]
pub struct Record<'a, T> {
    /// The version of this program.
    pub version: &'static str,
    /// The day, as in 2026-11-21, in UTC.
    pub date: String,
    /// The GPU.
    pub gpu: String,
    /// The CUDA version of the driver.
    pub driver: String,
    /// The version of NVRTC.
    pub nvrtc: Option<String>,
    /// The results.
    pub results: &'a [T],
}

/// Writes results to `DIRECTORY/NAME-GPU-DATE.json` and gives the path.
pub fn write<T: Serialize>(
    directory: &Path,
    name: &str,
    device: &Device,
    results: &[T],
) -> Result<PathBuf, Diagnosis> {
    let info = device.info();
    let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let record = Record {
        version: env!("CARGO_PKG_VERSION"),
        date: today(),
        gpu: info.name.clone(),
        driver: version(info.driver_version),
        nvrtc: Nvrtc::get().ok().map(|n| version(n.version())),
        results,
    };
    let file = format!("{name}-{}-{}.json", record.gpu.to_ascii_lowercase().replace(' ', "-"), record.date);
    let path = directory.join(file);
    let failed =
        |because: String| Diagnosis::new(format!("{}: cannot be written", path.display())).because(because);
    let text = serde_json::to_string_pretty(&record).map_err(|e| failed(e.to_string()))?;
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, text + "\n"))
        .map_err(|e| failed(e.to_string()))?;
    Ok(path)
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
    use super::date;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11016), "2000-02-29");
        assert_eq!(date(20778), "2026-11-21");
    }
}
