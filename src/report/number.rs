//! Numbers as people read them.

/// A duration with the unit that fits: `12.3 ms`.
pub fn seconds(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1.0 => (1.0, "s"),
        v if v >= 1e-3 => (1e3, "ms"),
        v if v >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", significant(value * scale))
}

/// A rate in operations per second: `12.3 TFLOP/s`.
pub fn flops_per_second(value: f64) -> String {
    let (scale, unit) = match value {
        v if v >= 1e12 => (1e12, "TFLOP/s"),
        v if v >= 1e9 => (1e9, "GFLOP/s"),
        _ => (1e6, "MFLOP/s"),
    };
    format!("{} {unit}", significant(value / scale))
}

/// A bandwidth: `4.55 TB/s`.
pub fn bytes_per_second(value: f64) -> String {
    let (scale, unit) = if value >= 1e12 { (1e12, "TB/s") } else { (1e9, "GB/s") };
    format!("{} {unit}", significant(value / scale))
}

/// A number of bytes: `48 KiB`.
pub fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if scaled.fract() == 0.0 {
        format!("{scaled:.0} {}", units[unit])
    } else {
        format!("{} {}", significant(scaled), units[unit])
    }
}

/// A count with its digits in groups of three: `1 234 567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// An error or a bound: `1.2e-6`.
pub fn error(value: f64) -> String {
    if value == 0.0 { "0".to_string() } else { format!("{value:.1e}") }
}

/// Three significant digits, but never fewer than the whole part has.
fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, bytes_per_second, count, error, flops_per_second, seconds};

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(seconds(0.01234), "12.3 ms");
        assert_eq!(seconds(1.5e-6), "1.50 us");
        assert_eq!(seconds(1234.0), "1234 s");
        assert_eq!(flops_per_second(5.07e13), "50.7 TFLOP/s");
        assert_eq!(bytes_per_second(4.552e12), "4.55 TB/s");
        assert_eq!(bytes_per_second(672e9), "672 GB/s");
        assert_eq!(bytes(49152), "48 KiB");
        assert_eq!(bytes(1500), "1.46 KiB");
        assert_eq!(count(1234567), "1 234 567");
        assert_eq!(count(42), "42");
        assert_eq!(error(1.234e-6), "1.2e-6");
        assert_eq!(error(0.0), "0");
    }
}
