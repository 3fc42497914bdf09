//! How much memory the machine can still give, so that a product that does not fit is refused before it is begun.

use std::fs;

use warpwright_core::diag::Diagnosis;

use crate::problem::Problem;
use crate::report::number;

/// Refuses a product whose matrices, held `copies` times, do not fit into what the machine has left.
pub fn check_fits(problem: &Problem, copies: f64) -> Result<(), Diagnosis> {
    let wanted = problem.bytes()? as f64 * copies;
    match available() {
        Some(available) if wanted > available as f64 => Err(Diagnosis::new(format!(
            "{} in {} needs more memory than there is",
            problem.shape, problem.precision
        ))
        .because(format!(
            "it takes about {} and {} are left",
            number::bytes(wanted as u64),
            number::bytes(available)
        ))
        .instead("choose a smaller size")),
        _ => Ok(()),
    }
}

/// Bytes that can still be allocated, where the system says: of the machine, or of the group the process is in.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_available(&text));
    let read = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = read("/sys/fs/cgroup/memory.max")
        .zip(read("/sys/fs/cgroup/memory.current"))
        .map(|(most, now)| most.saturating_sub(now));
    match (machine, group) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The line `MemAvailable:  123 kB`, in bytes.
fn meminfo_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{check_fits, meminfo_available};
    use crate::problem::{Layout, Precision, Problem, Shape};
    use warpwright_core::dtype::DType;

    #[test]
    fn the_line_of_meminfo_is_found() {
        assert_eq!(meminfo_available("MemTotal: 9 kB\nMemAvailable:    3 kB\n"), Some(3072));
        assert_eq!(meminfo_available("MemTotal: 9 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_product_larger_than_any_machine_is_refused() {
        let problem = |n| Problem::new(Shape::cube(n), Precision::Of(DType::F64), Layout::NN);
        assert!(check_fits(&problem(16), 1.0).is_ok());
        let message = check_fits(&problem(20_000_000), 1.0).unwrap_err().to_string();
        assert!(
            message.contains("needs more memory than there is") && message.contains("smaller"),
            "{message}"
        );
    }
}
