//! Any model that a configuration can describe.

use burn::module::Module;
use burn::tensor::Device;
use minrnn_model::ModelConfig;

use super::decision::Decision;
use super::sequence_model::SequenceModel;
use crate::{Error, Result};

/// A sequence model or a policy.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub enum AnyModel {
    /// A sequence model.
    Sequence(SequenceModel),
    /// A policy.
    Policy(Decision),
}

impl AnyModel {
    /// The model described by `config`, with weights drawn from `seed`.
    ///
    /// # Errors
    /// When the configuration is not valid.
    pub fn new(config: &ModelConfig, seed: u64, device: &Device) -> Result<Self> {
        Ok(match config.decision {
            true => Self::Policy(Decision::new(config, seed, device)?),
            false => Self::Sequence(SequenceModel::new(config, seed, device)?),
        })
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        match self {
            Self::Sequence(model) => model.device(),
            Self::Policy(policy) => policy.device(),
        }
    }

    /// The sequence model.
    ///
    /// # Errors
    /// When it is a policy.
    pub fn sequence(&self) -> Result<&SequenceModel> {
        match self {
            Self::Sequence(model) => Ok(model),
            Self::Policy(_) => Err(Error::Config("expected a model of sequences, found a policy, which acts".into())),
        }
    }
}
