//! What wisdom there is for a device.

use super::output::notice;
use crate::device::Device;
use crate::tune::file::WisdomFile;
use crate::tune::record::Gpu;
use crate::tune::summary;
use crate::tune::wisdom::Wisdom;

/// What is known of a family. A product can be computed without, so a file that cannot be read costs a notice.
pub fn wisdom(family: &str) -> Wisdom {
    let (wisdom, notices) = summary::known(family, WisdomFile::standard().as_ref(), false)
        .unwrap_or_else(|unreadable| (Wisdom::default(), vec![unreadable.to_string()]));
    notices.iter().for_each(|n| notice(n));
    wisdom
}

/// The GPU of a device as wisdom names it: for a simulated one, the GPU that it stands for.
pub fn gpu_of(device: &Device) -> Gpu {
    match device {
        Device::Sim(target) => Gpu::of_target(target),
        Device::Cuda(gpu, _) => Gpu::of_device(gpu.info(), None),
    }
}
