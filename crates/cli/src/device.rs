//! Where a command computes.

use burn::tensor::Device;
use minrnn::device::DeviceChoice;

use crate::failure::WrongInput;

/// The environment variable that names a device if no flag does.
const VARIABLE: &str = "MINRNN_DEVICE";

/// `--device`, to be flattened into the arguments of a command.
#[derive(clap::Args, Clone, Default)]
pub struct DeviceArg {
    /// Where to compute: cpu, vulkan, vulkan:1 (the second), …, or auto; see minrnn devices [default: $MINRNN_DEVICE, else cpu]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

impl DeviceArg {
    /// The device of the flag, or else of the environment.
    pub fn given(&self) -> minrnn::Result<Option<DeviceChoice>> {
        let variable = || std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
        self.device.clone().or_else(variable).map(|name| name.parse()).transpose()
    }

    /// The choice, or the processor if there is none.
    pub fn choice(&self) -> minrnn::Result<DeviceChoice> {
        Ok(self.given()?.unwrap_or_default())
    }

    /// The device, opened.
    pub fn open(&self) -> minrnn::Result<Device> {
        self.choice()?.open()
    }

    /// Whether the inference runtime computes, which runs only on the processor.
    pub fn is_cpu(&self) -> minrnn::Result<bool> {
        Ok(self.open()? == Device::flex())
    }

    /// Refuses any device but the processor for a packed model, which only the inference runtime reads.
    pub fn expect_cpu(&self) -> anyhow::Result<()> {
        if self.is_cpu()? {
            return Ok(());
        }
        let sentence = "a packed model runs on the CPU; leave --device out, or give a run directory or a checkpoint";
        Err(WrongInput(sentence.to_owned()).into())
    }
}
