//! Devices by name: where tensors are stored and operations run.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::{DeviceProblem, Error, Result};

/// A kind of device; all except the CPU require the feature of their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceKind {
    /// The CPU.
    #[default]
    Cpu,
    /// NVIDIA's CUDA.
    Cuda,
    /// Apple's Metal.
    Metal,
    /// AMD's ROCm.
    Rocm,
    /// Vulkan: NVIDIA, AMD, Intel.
    Vulkan,
    /// WebGPU.
    WebGpu,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Cuda, Self::Metal, Self::Rocm, Self::Vulkan, Self::WebGpu];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
            Self::Rocm => "rocm",
            Self::Vulkan => "vulkan",
            Self::WebGpu => "webgpu",
        }
    }

    /// The devices of this kind; `None` if the program was built without it.
    fn devices(self) -> Option<Vec<Device>> {
        match self {
            Self::Cpu => Some(vec![Device::flex()]),
            #[cfg(feature = "cuda")]
            Self::Cuda => Some(enumerate(burn::tensor::DeviceType::Cuda)),
            #[cfg(feature = "metal")]
            Self::Metal => Some(enumerate(burn::tensor::DeviceType::Metal)),
            #[cfg(feature = "rocm")]
            Self::Rocm => Some(enumerate(burn::tensor::DeviceType::Rocm)),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Some(enumerate(burn::tensor::DeviceType::Vulkan)),
            #[cfg(feature = "webgpu")]
            Self::WebGpu => Some(enumerate(burn::tensor::DeviceType::WebGpu)),
            #[allow(unreachable_patterns, reason = "with every feature on")]
            _ => None,
        }
    }
}

/// Whether a GPU has been opened.
static GPU_OPEN: AtomicBool = AtomicBool::new(false);

/// Whether a GPU has been opened by [`DeviceChoice::open`]: its driver may then report failures by panicking.
pub fn is_gpu_open() -> bool {
    GPU_OPEN.load(Ordering::Relaxed)
}

/// A runtime that panics because its driver is missing has no devices.
#[cfg(feature = "gpu")]
fn enumerate(kind: burn::tensor::DeviceType) -> Vec<Device> {
    std::panic::catch_unwind(|| Device::enumerate(kind).into_iter().collect()).unwrap_or_default()
}

/// A device by name: `cpu`, `vulkan`, `vulkan:1` (the second one), or `auto` for the first GPU, otherwise the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU, or the CPU if there is none.
    Auto,
    /// The device of that kind and number, counted from 0.
    Fixed(DeviceKind, usize),
}

impl Default for DeviceChoice {
    fn default() -> Self {
        Self::Fixed(DeviceKind::Cpu, 0)
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(kind, 0) => f.write_str(kind.name()),
            Self::Fixed(kind, index) => write!(f, "{}:{index}", kind.name()),
        }
    }
}

impl From<DeviceChoice> for String {
    fn from(choice: DeviceChoice) -> Self {
        choice.to_string()
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (name, index) = text.split_once(':').unwrap_or((text, "0"));
        let kind = DeviceKind::ALL.into_iter().find(|kind| kind.name() == name);
        match (kind, index.parse()) {
            (Some(kind), Ok(index)) => Ok(Self::Fixed(kind, index)),
            _ => {
                let names = DeviceKind::ALL.map(DeviceKind::name).join(", ");
                Err(Error::Config(format!(
                    "there is no device '{text}'; expected auto or one of {names}, with :1 for the second of its kind"
                )))
            }
        }
    }
}

impl DeviceChoice {
    /// Opens the device.
    ///
    /// # Errors
    /// When the program was built without its kind, or the machine has no such device.
    pub fn open(self) -> Result<Device> {
        let device = self.find()?;
        if device != Device::flex() {
            GPU_OPEN.store(true, Ordering::Relaxed);
        }
        Ok(device)
    }

    fn find(self) -> Result<Device> {
        let Self::Fixed(kind, index) = self else {
            let first =
                DeviceKind::ALL.into_iter().filter(|&kind| kind != DeviceKind::Cpu).find_map(|kind| kind.devices()?.into_iter().next());
            return Ok(first.unwrap_or_else(Device::flex));
        };
        let name = kind.name();
        let Some(devices) = kind.devices() else {
            return Err(DeviceProblem::NotBuilt(name).into());
        };
        let count = devices.len();
        devices.into_iter().nth(index).ok_or_else(|| {
            Error::from(match count {
                0 => DeviceProblem::NoneFound(name),
                _ => DeviceProblem::TooFew { choice: self.to_string(), kind: name, count },
            })
        })
    }
}

/// An available device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// How to request it.
    pub choice: DeviceChoice,
    /// The name it reports.
    pub name: String,
}

/// Every device of every kind the program was built with.
pub fn available() -> Vec<Available> {
    let of_kind = |kind: DeviceKind| {
        let devices = kind.devices().unwrap_or_default().into_iter().enumerate();
        devices.map(move |(index, device)| Available { choice: DeviceChoice::Fixed(kind, index), name: name_of(&device) })
    };
    DeviceKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// The kinds the program was built with.
pub fn built_with() -> Vec<DeviceKind> {
    let cfg = |kind: &DeviceKind| match kind {
        DeviceKind::Cpu => true,
        DeviceKind::Cuda => cfg!(feature = "cuda"),
        DeviceKind::Metal => cfg!(feature = "metal"),
        DeviceKind::Rocm => cfg!(feature = "rocm"),
        DeviceKind::Vulkan => cfg!(feature = "vulkan"),
        DeviceKind::WebGpu => cfg!(feature = "webgpu"),
    };
    DeviceKind::ALL.into_iter().filter(cfg).collect()
}

/// The name a device reports; `the processor` for the CPU.
pub fn name_of(device: &Device) -> String {
    #[cfg(feature = "gpu")]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    let _ = device;
    "the processor".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in ["auto", "cpu", "vulkan", "cuda:3", "webgpu"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        for name in ["", "gpu", "vulkan:", "cuda:x", "cpu:-1"] {
            assert!(name.parse::<DeviceChoice>().unwrap_err().to_string().contains("vulkan"), "{name}");
        }
    }

    #[test]
    fn the_processor_is_always_there_and_once() {
        assert!(DeviceChoice::default().open().is_ok());
        let error = DeviceChoice::Fixed(DeviceKind::Cpu, 1).open().unwrap_err().to_string();
        assert!(error.contains("cpu:1"), "{error}");
        assert_eq!(available()[0].choice, DeviceChoice::default());
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_kind_that_was_not_built_is_named() {
        let error = DeviceChoice::Fixed(DeviceKind::Cuda, 0).open().unwrap_err().to_string();
        assert!(error.contains("the feature cuda"), "{error}");
    }
}
