//! GPUs as data.
//!
//! A [`Target`] is one named GPU: what every device of its compute capability has in common ([`Limits`]),
//! what it can do ([`Capability`]), and what is particular to the product (clock, memory, rates). Nothing
//! here computes anything but look-ups and unit conversions; the rules of [`crate::occupancy`] and the time model
//! read these numbers.
//!
//! Two rules keep the data honest:
//!
//! - every number that is particular to a product is a [`Fact`], which carries its [`Source`] or says that
//!   nobody has verified it;
//! - the rest of the compiler asks for a capability (`target.has(Capability::CpAsync)`), never for a name
//!   or a compute capability.
//!
//! A new GPU is one file in `gpus/` and one line in its list.

mod capability;
mod fact;
mod gpus;
mod levels;
mod limits;
mod pipe;

pub use capability::Capability;
pub use fact::{Fact, Source};
pub use gpus::{ALL, DEFAULT};
pub use levels::{Level, Levels};
pub use limits::{ComputeCapability, Limits};
pub use pipe::{Pipe, Rate};

use crate::diag::Diagnosis;
use crate::dtype::DType;

/// One named GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The name a user types: lower case, words joined by `-`.
    pub name: &'static str,
    /// The name the vendor sells it under.
    pub product: &'static str,
    /// The generation of its instruction set and its multiprocessors.
    pub compute: ComputeCapability,
    /// What every multiprocessor of this compute capability offers.
    pub limits: &'static Limits,
    /// Streaming multiprocessors that a kernel can use.
    pub sm_count: Fact<u32>,
    /// The boost clock in MHz: the one that datasheet peaks are computed from.
    pub boost_mhz: Fact<u32>,
    /// The lowest clock in MHz that was seen while work went on and on that brings the GPU to its limit of power, where
    /// somebody measured it.
    pub sustained_mhz: Option<Fact<u32>>,
    /// Device memory in bytes.
    pub memory_bytes: Fact<u64>,
    /// Peak bandwidth of device memory in bytes per second, as the vendor states it.
    pub dram_bytes_per_second: Fact<f64>,
    /// The bandwidth that a plain streaming read reaches, in bytes per second, where somebody measured it.
    pub dram_read_bytes_per_second: Option<Fact<f64>>,
    /// The bandwidth, reads and writes together, that a streaming copy reaches, in bytes per second, where somebody
    /// measured it.
    pub dram_copy_bytes_per_second: Option<Fact<f64>>,
    /// The second-level cache in bytes.
    pub l2_bytes: Fact<u64>,
    /// How long each level of memory takes, and how much it gives a multiprocessor.
    pub levels: Levels,
    /// Multiply-adds per clock and multiprocessor, for each pipe the device has.
    pub rates: &'static [Rate],
    /// The most real floating-point operations a second that any product of real or complex elements was measured to
    /// reach, by the type of the real ones, where somebody measured it.
    pub product_flops_per_second: &'static [(DType, Fact<f64>)],
}

impl Target {
    /// The GPU with this name. Case does not matter, and `_` or a space may stand for `-`.
    pub fn by_name(name: &str) -> Result<&'static Target, Diagnosis> {
        let wanted = name.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        ALL.iter().copied().find(|t| t.name == wanted).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|t| t.name).collect();
            Diagnosis::new(format!("unknown GPU `{name}`"))
                .instead(format!("use one of {}", known.join(", ")))
        })
    }

    /// The GPU in the tables that a driver's product name most likely means, if any: `NVIDIA H200` is `h200`.
    ///
    /// The longest table entry whose words all occur in the name wins, so that `NVIDIA H100 PCIe` is not
    /// taken for an `H100 SXM`; a product that names no variant (`NVIDIA H100 80GB HBM3`) is told apart by
    /// its number of multiprocessors.
    pub fn by_product(product: &str, sm_count: u32) -> Option<&'static Target> {
        Target::matching(product, |t| t.sm_count.value == sm_count)
    }

    /// The same where nothing is known but the name: of those that it may mean the one sold under this very name, else
    /// the latest in the list.
    pub fn by_product_name(product: &str) -> Option<&'static Target> {
        let sold = ALL.iter().copied().find(|t| t.product.eq_ignore_ascii_case(product));
        sold.or_else(|| Target::matching(product, |_| true))
    }

    fn matching(product: &str, may_be: impl Fn(&Target) -> bool) -> Option<&'static Target> {
        let found = product.to_ascii_lowercase();
        let words: Vec<&str> = found.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        ALL.iter()
            .copied()
            .filter(|t| may_be(t))
            .filter(|t| t.model_words().iter().all(|w| words.contains(&w.as_str())))
            .max_by_key(|t| t.matching_words(&words))
    }

    /// The GPU in the tables that stands for one that is not: of the same compute capability, or of the latest one
    /// before it. What runs on an older generation runs on a newer one, but for features that are not carried over.
    pub fn nearest(compute: ComputeCapability) -> Option<&'static Target> {
        ALL.iter().copied().filter(|t| t.compute <= compute).max_by_key(|t| t.compute)
    }

    /// The GPU of the tables with the oldest compute capability: a kernel that fits it, and needs nothing that it lacks,
    /// fits every other.
    pub fn oldest() -> &'static Target {
        ALL.iter().copied().min_by_key(|t| t.compute).unwrap_or(DEFAULT)
    }

    /// Whether a kernel for this GPU may use the given feature.
    pub fn has(&self, capability: Capability) -> bool {
        capability.present_on(self.compute)
    }

    /// The architecture to compile for when nothing special is wanted, such as `sm_90`.
    pub fn arch(&self) -> String {
        self.compute.arch()
    }

    /// The architecture to compile for when the program needs `capabilities`: the features that NVIDIA does
    /// not carry over to later generations need the architecture-specific spelling, such as `sm_90a`.
    pub fn arch_for(&self, capabilities: &[Capability]) -> String {
        let suffix = if capabilities.iter().any(|c| c.architecture_specific()) { "a" } else { "" };
        format!("{}{suffix}", self.compute.arch())
    }

    /// Multiply-adds per second of one pipe at the boost clock, or `None` where the GPU lacks it.
    pub fn fma_per_second(&self, pipe: Pipe) -> Option<f64> {
        let rate = self.rates.iter().find(|r| r.pipe == pipe)?;
        Some(f64::from(rate.fma_per_clock.value) * f64::from(self.sm_count.value) * self.boost_hz())
    }

    /// The boost clock in Hz.
    pub fn boost_hz(&self) -> f64 {
        f64::from(self.boost_mhz.value) * 1e6
    }

    /// The words of the table name that a product name has to contain: those that tell models apart, not
    /// the variant (`sxm`, `pcie`, `40gb`), which drivers leave out or spell differently.
    fn model_words(&self) -> Vec<String> {
        let model = self.name.split('-').next().unwrap_or(self.name);
        match model.strip_prefix("rtx") {
            // `rtx2080ti` is sold as `RTX 2080 Ti`.
            Some(number) => {
                let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
                let rest = number[digits.len()..].to_string();
                [digits, rest].into_iter().filter(|w| !w.is_empty()).collect()
            }
            None => match model.strip_prefix("gtx") {
                Some(number) => vec![number.to_string()],
                None => vec![model.to_string()],
            },
        }
    }

    /// How many words of the table name occur in a product name.
    fn matching_words(&self, words: &[&str]) -> usize {
        self.name.split('-').filter(|part| words.iter().any(|w| w.starts_with(part))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Capability, ComputeCapability, Limits, Pipe, Source, Target};

    #[test]
    fn names_are_unique_and_in_the_form_that_look_up_expects() {
        for (i, target) in ALL.iter().enumerate() {
            assert_eq!(target.name, target.name.to_ascii_lowercase().replace(['_', ' '], "-"));
            assert!(
                ALL[..i].iter().all(|t| t.name != target.name),
                "{} stands twice in the list",
                target.name
            );
        }
    }

    #[test]
    fn look_up_forgives_case_and_separators() {
        assert_eq!(Target::by_name("H100_SXM").unwrap().name, "h100-sxm");
        assert_eq!(Target::by_name(" a6000 ").unwrap().name, "a6000");
    }

    #[test]
    fn what_fits_the_oldest_gpu_fits_every_other() {
        let oldest = Target::oldest().limits;
        for target in ALL {
            let limits = target.limits;
            assert!(limits.shared_per_block_opt_in >= oldest.shared_per_block_opt_in, "{}", target.name);
            assert!(limits.registers_per_block >= oldest.registers_per_block, "{}", target.name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = Target::by_name("h300").unwrap_err().to_string();
        assert!(message.starts_with("unknown GPU `h300`; use one of "), "{message}");
        for target in ALL {
            assert!(message.contains(target.name), "{message}");
        }
    }

    #[test]
    fn product_names_of_drivers_find_their_table() {
        let found = |product, sms| Target::by_product(product, sms).map(|t| t.name);
        assert_eq!(found("NVIDIA H200", 132), Some("h200"));
        assert_eq!(found("NVIDIA H100 80GB HBM3", 132), Some("h100-sxm"));
        assert_eq!(found("NVIDIA H100 PCIe", 114), Some("h100-pcie"));
        assert_eq!(found("NVIDIA A100-SXM4-80GB", 108), Some("a100-80gb"));
        assert_eq!(found("NVIDIA A100-SXM4-40GB", 108), Some("a100-40gb"));
        assert_eq!(found("Tesla V100-PCIE-16GB", 80), Some("v100-pcie"));
        assert_eq!(found("NVIDIA GeForce RTX 2080 Ti", 68), Some("rtx2080ti"));
        assert_eq!(found("NVIDIA RTX A6000", 84), Some("a6000"));
        assert_eq!(found("NVIDIA L40", 142), Some("l40"));
        assert_eq!(found("NVIDIA GeForce GTX 980", 16), Some("gtx980"));
        assert_eq!(found("Quadro K600", 1), None);
        for target in ALL {
            assert_eq!(Target::by_product_name(target.product).map(|t| t.name), Some(target.name));
        }
        let named = |product| Target::by_product_name(product).map(|t| t.name);
        assert_eq!(named("NVIDIA H100 80GB HBM3"), Some("h100-sxm"));
        assert_eq!(named("Quadro K600"), None);
    }

    #[test]
    fn a_gpu_without_a_table_is_stood_for_by_its_generation() {
        let nearest =
            |major, minor| Target::nearest(ComputeCapability { major, minor }).map(|t| t.compute.to_string());
        assert_eq!(nearest(8, 7).as_deref(), Some("8.6"));
        assert_eq!(nearest(12, 1).as_deref(), Some("12.0"));
        assert_eq!(nearest(3, 5), None);
    }

    #[test]
    fn every_gpu_has_its_limits_and_states_where_its_numbers_come_from() {
        for target in ALL {
            assert_eq!(Some(target.limits), Limits::of(target.compute), "{}", target.name);
            let levels = target.levels.named().map(|(_, level)| {
                [level.latency_cycles.map(|f| f.source), level.bytes_per_cycle.map(|f| f.source)]
            });
            let sources = [
                Some(target.sm_count.source),
                Some(target.boost_mhz.source),
                target.sustained_mhz.map(|f| f.source),
                Some(target.memory_bytes.source),
                Some(target.dram_bytes_per_second.source),
                Some(target.l2_bytes.source),
            ];
            let sources = sources.into_iter().chain(levels.into_iter().flatten()).flatten();
            for source in sources.chain(target.rates.iter().map(|r| r.fma_per_clock.source)) {
                match source {
                    Source::Published(text) | Source::Measured(text) | Source::Derived(text) => {
                        assert!(text.len() > 8, "{}: '{text}' is no source", target.name);
                    }
                    Source::NotVerified => {}
                }
            }
        }
    }

    #[test]
    fn peaks_follow_from_lanes_and_clocks() {
        let teraflops =
            |name, pipe| 2.0 * Target::by_name(name).unwrap().fma_per_second(pipe).unwrap() / 1e12;
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
        assert!(close(teraflops("h200", Pipe::F32), 66.9));
        assert!(close(teraflops("h200", Pipe::F64), 33.5));
        assert!(close(teraflops("a6000", Pipe::F32), 38.7));
        assert!(close(teraflops("a100-80gb", Pipe::TensorF16), 312.0));
        assert_eq!(Target::by_name("gtx980").unwrap().fma_per_second(Pipe::TensorF16), None);
    }

    #[test]
    fn capabilities_follow_the_generations() {
        let has = |name, capability| Target::by_name(name).unwrap().has(capability);
        assert!(!has("v100-pcie", Capability::CpAsync) && has("a100-40gb", Capability::CpAsync));
        assert!(
            !has("rtx4090", Capability::Tma)
                && has("h100-sxm", Capability::Tma)
                && has("rtx5090", Capability::Tma)
        );
        assert!(
            has("h200", Capability::Wgmma)
                && !has("b200", Capability::Wgmma)
                && !has("rtx5090", Capability::Wgmma)
        );
        assert!(!has("gtx980", Capability::AtomicAddF64) && has("v100-sxm2", Capability::AtomicAddF64));
    }

    #[test]
    fn features_that_are_not_carried_over_ask_for_their_own_architecture() {
        let h200 = Target::by_name("h200").unwrap();
        assert_eq!(h200.arch(), "sm_90");
        assert_eq!(h200.arch_for(&[Capability::Tma, Capability::Mbarrier]), "sm_90");
        assert_eq!(h200.arch_for(&[Capability::Tma, Capability::Wgmma]), "sm_90a");
        assert_eq!(ComputeCapability { major: 12, minor: 1 }.arch(), "sm_121");
    }
}
