//! How much has to be under way at a time to hide that it takes long.
//!
//! While a warp waits, others must have something to do: [`warps_to_hide`] counts them. For memory this is Little's law:
//! what is under way is what passes in a second times the seconds that each piece takes. [`bytes_in_flight`],
//! [`bandwidth`] and [`cycles`] are that law, solved for each of its three quantities.

use crate::target::Target;

/// Warps that must be ready to run while one waits `latency_cycles` for a value, when each of them keeps the scheduler
/// busy for `busy_cycles` before it has to wait as well. The waiting warp is not counted. `busy_cycles` of 0 count as 1.
pub fn warps_to_hide(latency_cycles: u64, busy_cycles: u64) -> u64 {
    latency_cycles.div_ceil(busy_cycles.max(1))
}

/// Bytes that have to be under way for a bandwidth in bytes per second, where each takes `cycles` of a clock in Hz.
pub fn bytes_in_flight(bytes_per_second: f64, cycles: f64, clock_hz: f64) -> f64 {
    bytes_per_second * cycles / clock_hz
}

/// The bandwidth in bytes per second at which so many bytes are under way.
pub fn bandwidth(bytes_in_flight: f64, cycles: f64, clock_hz: f64) -> f64 {
    bytes_in_flight * clock_hz / cycles
}

/// The cycles of a clock in Hz that each byte takes, where so many are under way and pass at this bandwidth in bytes per
/// second: T = f N 8 / b of N threads that each wait for 8 bytes.
pub fn cycles(bytes_in_flight: f64, bytes_per_second: f64, clock_hz: f64) -> f64 {
    bytes_in_flight * clock_hz / bytes_per_second
}

/// Bytes that each multiprocessor of a GPU has to have under way to read device memory at full bandwidth: as fast as was
/// measured, or as the vendor states. `None` where nobody measured the latency of its memory.
///
/// A loaded memory takes longer than the idle one that latencies are measured on, so this is the least.
pub fn bytes_in_flight_per_sm(target: &Target) -> Option<f64> {
    let latency = target.levels.dram.latency_cycles?.value;
    let full = target.dram_read_bytes_per_second.unwrap_or(target.dram_bytes_per_second).value;
    Some(bytes_in_flight(full, latency.into(), target.boost_hz()) / f64::from(target.sm_count.value))
}

#[cfg(test)]
mod tests {
    use super::{bandwidth, bytes_in_flight, bytes_in_flight_per_sm, cycles, warps_to_hide};
    use crate::target::Target;

    #[test]
    fn the_course_notes_count_of_warps() {
        // Seed 001: four cycles an instruction, a load after every fourth, 200 cycles for the load.
        assert_eq!(warps_to_hide(200, 4 * 4), 13);
        assert_eq!([warps_to_hide(208, 16), warps_to_hide(0, 16), warps_to_hide(200, 0)], [13, 0, 200]);
    }

    const CLOCK: f64 = 1.38e9;

    /// Table 1 of seed 003, a V100-PCIe: threads of the whole GPU, and GB/s with 1, 4 and 16 loads of 8 bytes in flight.
    const TABLE_1: [(f64, [f64; 3]); 6] = [
        (128.0, [3.0, 10.1, 16.3]),
        (80.0 * 128.0, [228.0, 629.0, 815.0]),
        (80.0 * 256.0, [419.0, 824.0, 877.0]),
        (80.0 * 512.0, [681.0, 872.0, 884.0]),
        (80.0 * 1024.0, [834.0, 884.0, 887.0]),
        (80.0 * 2048.0, [879.0, 891.0, 877.0]),
    ];
    const LOADS: [f64; 3] = [1.0, 4.0, 16.0];

    #[test]
    fn the_papers_latencies_follow_from_its_bandwidths() {
        let latency = |row: usize| cycles(TABLE_1[row].0 * 8.0, TABLE_1[row].1[0] * 1e9, CLOCK);
        assert!((latency(0) - 470.0).abs() < 2.0, "{}: the paper says about 470", latency(0));
        assert!((latency(3) - 664.0).abs() < 1.0, "{}: the paper says about 664", latency(3));
        // The more is under way, the longer each load takes.
        let latencies: Vec<f64> = (0..TABLE_1.len()).map(latency).collect();
        assert!(latencies.is_sorted(), "{latencies:?}");
    }

    #[test]
    fn no_bandwidth_of_the_papers_table_is_beyond_littles_law() {
        // 435 cycles were measured on the idle memory, 891 GB/s at best.
        for (threads, measured) in TABLE_1 {
            for (loads, gigabytes) in LOADS.into_iter().zip(measured) {
                let law = bandwidth(threads * loads * 8.0, 435.0, CLOCK).min(891e9);
                assert!(gigabytes * 1e9 <= law, "{threads} threads, {loads} loads: {gigabytes} of {law}");
            }
        }
        // Where little is under way it is nearly reached: 3.0 of 3.2 and 228 of 260 GB/s.
        for (threads, measured) in &TABLE_1[..2] {
            assert!(measured[0] * 1e9 > 0.85 * bandwidth(threads * 8.0, 435.0, CLOCK), "{threads}");
        }
    }

    #[test]
    fn the_three_forms_are_one_law() {
        let under_way = bytes_in_flight(900e9, 500.0, 1.5e9);
        assert_eq!(under_way, 300_000.0);
        assert!((bandwidth(under_way, 500.0, 1.5e9) / 900e9 - 1.0).abs() < 1e-12);
        assert!((cycles(under_way, 900e9, 1.5e9) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn a_gpu_wants_some_kilobytes_from_each_multiprocessor() {
        let v100 = Target::by_name("v100-pcie").unwrap();
        // 866 GB/s and 436 cycles at 1.38 GHz: 274 kB, of 80 multiprocessors.
        assert!((bytes_in_flight_per_sm(v100).unwrap() - 3420.0).abs() < 5.0);
        assert_eq!(bytes_in_flight_per_sm(Target::by_name("gtx980").unwrap()), None);
    }
}
