//! Which device computes: the simulator, for a GPU of the tables, or a GPU through CUDA.

use std::fmt;
use std::str::FromStr;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};

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
            ("sim", Some(name)) => Target::by_name(name).map(DeviceChoice::Sim),
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
