//! A policy on disk: `config.json`, `model.safetensors` and, in `task.json`, the encoding of steps as numbers.

use std::path::Path;

use burn::tensor::Device;
use minrnn_model::{CheckpointConfig, CheckpointFiles, ModelConfig};

use crate::checkpoint::{LoadedModel, TASK_FILE, fill, load_any_model, policy_of, tensors_of};
use crate::data::offline_rl::StepEncoding;
use crate::model::{AnyModel, Decision};
use crate::new_directory::make_directory;
use crate::{Error, Result};

/// A policy with everything needed to act.
#[derive(Debug)]
pub struct Policy {
    /// The model's configuration.
    pub config: ModelConfig,
    /// The encoding of steps as numbers.
    pub encoding: StepEncoding,
    /// The model.
    pub model: Decision,
}

impl Policy {
    /// Creates the checkpoint directory `directory`, which must not exist, in one that does. It appears once it is complete and the policy
    /// has been read back.
    ///
    /// # Errors
    /// When `directory` exists, a file cannot be written, or configuration, encoding and model do not belong together.
    pub fn save(&self, directory: impl AsRef<Path>) -> Result<()> {
        let directory = directory.as_ref();
        let config = CheckpointConfig::new(ModelConfig { decision: true, ..self.config.clone() });
        let text = serde_json::to_vec_pretty(&self.encoding);
        let text = text.map_err(|error| Error::malformed(directory.join(TASK_FILE), error.to_string()))?;
        let tensors = tensors_of(&self.model)?;
        make_directory(directory, |unfinished| {
            fill(unfinished, &config, tensors, None, &[(TASK_FILE, text)])?;
            Self::load(unfinished, &Device::flex()).map(drop)
        })
    }

    /// Loads the policy in the directory `directory`.
    ///
    /// # Errors
    /// When a file is missing, damaged, or belongs to another model.
    pub fn load(directory: impl AsRef<Path>, device: &Device) -> Result<Self> {
        let directory = directory.as_ref();
        let LoadedModel { config, model, .. } = load_any_model(directory, device)?;
        let AnyModel::Policy(model) = model else {
            return Err(Error::malformed(directory, "expected a policy, found a model of sequences, which does not act"));
        };
        let config = config.model;
        let encoding = policy_of(&CheckpointFiles::open(directory)?, &config)?.0;
        Ok(Self { config, encoding, model })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;
    use minrnn_model::DIGESTS_FILE;

    use super::*;
    use crate::nn::Mode;
    use crate::ops::StepCodes;

    fn policy() -> Policy {
        let config = ModelConfig { input_width: 5, n_outputs: 1, decision: true, d_model: 8, ..Default::default() };
        let encoding =
            StepEncoding { mean: vec![0.1, -3.0], deviation: vec![1.5, 0.25], action_width: 1, return_scale: 1000.0, best_return: None };
        let model = Decision::new(&config, 1, &Device::flex()).unwrap();
        Policy { config, encoding, model }
    }

    #[test]
    fn what_is_saved_acts_the_same() {
        let (dir, policy) = (tempfile::tempdir().unwrap(), policy());
        policy.save(dir.path().join("p")).unwrap();
        let loaded = Policy::load(dir.path().join("p"), &Device::flex()).unwrap();
        assert_eq!((&loaded.config, &loaded.encoding), (&policy.config, &policy.encoding));
        let rows = Tensor::<3>::from_data([[[0.5, -1.0, 2.0, 0.0, 0.0], [0.4, 1.0, 0.3, -0.7, 0.001]]], &Device::flex());
        let act = |model: &Decision| model.forward(rows.clone(), None, &StepCodes::dense(), Mode::Evaluate).0.into_data();
        assert_eq!(act(&loaded.model), act(&policy.model));
    }

    #[test]
    fn nothing_is_written_over_and_nothing_written_that_cannot_be_read() {
        let (dir, policy) = (tempfile::tempdir().unwrap(), policy());
        let path = dir.path().join("p");
        policy.save(&path).unwrap();
        let digests = std::fs::read(path.join(DIGESTS_FILE)).unwrap();
        assert!(policy.save(&path).unwrap_err().to_string().contains("p': it already exists; name a new directory"));
        assert_eq!(std::fs::read(path.join(DIGESTS_FILE)).unwrap(), digests);
        let config = ModelConfig { d_model: 16, ..policy.config.clone() };
        let encoding = StepEncoding { mean: vec![0.0], deviation: vec![1.0], ..policy.encoding.clone() };
        let (of_config, of_encoding) = (Policy { config, ..self::policy() }, Policy { encoding, ..self::policy() });
        for misfit in [of_config, of_encoding] {
            let refused = misfit.save(dir.path().join("misfit")).unwrap_err();
            assert!(refused.to_string().contains("misfit"), "{refused}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_policy_of_before_the_configuration_said_so_is_one() {
        let (parent, policy) = (tempfile::tempdir().unwrap(), policy());
        let dir = parent.path().join("p");
        policy.save(&dir).unwrap();
        std::fs::remove_file(dir.join(DIGESTS_FILE)).unwrap();
        let path = dir.join(minrnn_model::CONFIG_FILE);
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(config["model"].as_object_mut().unwrap().remove("decision"), Some(true.into()));
        std::fs::write(&path, config.to_string()).unwrap();
        let loaded = Policy::load(&dir, &Device::flex()).unwrap();
        assert_eq!((&loaded.config, &loaded.encoding), (&policy.config, &policy.encoding));
        let refused = crate::checkpoint::load_model(&dir, &Device::flex()).unwrap_err();
        assert!(refused.to_string().contains("it is a policy"), "{refused}");
    }

    #[test]
    fn a_policy_without_its_statistics_is_refused() {
        let (parent, policy) = (tempfile::tempdir().unwrap(), policy());
        let dir = parent.path().join("p");
        policy.save(&dir).unwrap();
        std::fs::write(dir.join(TASK_FILE), "{}").unwrap();
        assert!(Policy::load(&dir, &Device::flex()).unwrap_err().to_string().contains("delete SHA256SUMS"));
        std::fs::remove_file(dir.join(DIGESTS_FILE)).unwrap();
        let refusal = |text: &str| {
            std::fs::write(dir.join(TASK_FILE), text).unwrap();
            Policy::load(&dir, &Device::flex()).unwrap_err().to_string()
        };
        assert!(refusal("{}").contains("means and deviations"));
        assert!(refusal(r#"{"mean": [0], "deviation": [1], "action_width": 1, "return_scale": 1}"#).contains("[4, 1]"));
        assert!(
            refusal(r#"{"mean": [0, 0], "deviation": [1], "action_width": 1, "return_scale": 1}"#).contains("2 means and 1 deviations")
        );
        assert!(refusal(r#"{"mean": [0, 0], "deviation": [1, 0], "action_width": 1, "return_scale": 1}"#).contains("deviation 1 is 0"));
        let endless = format!(r#"{{"mean": [0, 0], "deviation": [1, 1], "action_width": {}, "return_scale": 1}}"#, usize::MAX);
        assert!(refusal(&endless).contains("at most 65536 in both"));
        std::fs::remove_file(dir.join(TASK_FILE)).unwrap();
        assert!(Policy::load(&dir, &Device::flex()).unwrap_err().to_string().contains(TASK_FILE));
    }
}
