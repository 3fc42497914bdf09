//! Which device computes: the simulator, for a GPU of the tables, or a GPU through CUDA.

use std::fmt;
use std::str::FromStr;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};
use warpwright_cuda::{Library, device, locate};

use crate::report::DeviceReport;
use crate::{gpu, target_file};

/// What a user asks for with `--device`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceChoice {
    /// The first GPU if there is one, else the simulator.
    Auto,
    /// The simulator, as the given GPU.
    Sim(&'static Target),
    /// The GPU with this number.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<DeviceChoice, Diagnosis> {
        let (kind, which) = match text.split_once(':') {
            Some((kind, which)) => (kind, Some(which)),
            None => (text, None),
        };
        match (kind.to_ascii_lowercase().as_str(), which) {
            ("auto", None) => Ok(DeviceChoice::Auto),
            ("sim", None) => Ok(DeviceChoice::Sim(target::DEFAULT)),
            ("sim", Some(name)) => target_file::find(name).map(DeviceChoice::Sim),
            ("cuda", None) => Ok(DeviceChoice::Cuda(0)),
            ("cuda", Some(number)) => number.parse().map(DeviceChoice::Cuda).map_err(|_| {
                Diagnosis::new(format!("`{number}` is not the number of a GPU"))
                    .instead("write cuda:0, cuda:1, ...")
            }),
            _ => Err(Diagnosis::new(format!("`{text}` is not a device"))
                .instead("use auto, sim, sim:GPU, cuda or cuda:NUMBER")),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Sim(target) => write!(f, "sim:{}", target.name),
            DeviceChoice::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// A device that is ready.
pub enum Device {
    /// The simulator, as this GPU.
    Sim(&'static Target),
    /// A GPU, with the table that describes it.
    Cuda(warpwright_cuda::Device, &'static Target),
}

impl DeviceChoice {
    /// The device, and what is worth saying about the choice.
    pub fn open(self) -> Result<(Device, Vec<String>), Diagnosis> {
        match self {
            DeviceChoice::Sim(target) => Ok((Device::Sim(target), Vec::new())),
            DeviceChoice::Cuda(number) => Ok((open_gpu(number)?, Vec::new())),
            DeviceChoice::Auto if device::list().devices.is_empty() => {
                Ok((Device::Sim(target::DEFAULT), Vec::new()))
            }
            DeviceChoice::Auto => match locate::find(Library::Nvrtc).advice {
                None => Ok((open_gpu(0)?, Vec::new())),
                Some(advice) => {
                    let notice = format!(
                        "there is a GPU, but kernels cannot be compiled for it, so this runs on the simulator; get NVRTC: {advice}"
                    );
                    Ok((Device::Sim(target::DEFAULT), vec![notice]))
                }
            },
        }
    }
}

fn open_gpu(number: usize) -> Result<Device, Diagnosis> {
    let device = warpwright_cuda::Device::open(number).map_err(gpu::diagnosis)?;
    let target = gpu::target_of(&device)?;
    Ok(Device::Cuda(device, target))
}

impl Device {
    /// The table of the GPU that is simulated or used.
    pub fn target(&self) -> &'static Target {
        match self {
            Device::Sim(target) | Device::Cuda(_, target) => target,
        }
    }

    /// The device in a report.
    pub fn report(&self) -> DeviceReport {
        match self {
            Device::Sim(target) => DeviceReport { kind: "sim", gpu: target.name.to_string() },
            Device::Cuda(device, _) => DeviceReport { kind: "cuda", gpu: device.info().name.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceChoice;
    use warpwright_core::target;

    #[test]
    fn devices_are_read_and_printed() {
        for text in ["auto", "sim:a100-40gb", "cuda:1"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        assert_eq!("sim".parse::<DeviceChoice>().unwrap(), DeviceChoice::Sim(target::DEFAULT));
        assert_eq!("cuda".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(0));
    }

    #[test]
    fn a_wrong_device_gets_the_list() {
        let message = |text: &str| text.parse::<DeviceChoice>().unwrap_err().to_string();
        assert!(message("sim:voodoo2").contains("unknown GPU `voodoo2`; use one of gtx980"));
        assert!(message("gpu").contains("use auto, sim"));
        assert!(message("cuda:x").contains("cuda:0"));
    }
}
