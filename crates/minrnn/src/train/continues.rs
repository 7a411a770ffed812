//! Which settings may change when a run is resumed: those that would make it a different run must stay.

use minrnn_model::CheckpointConfig;

use super::experiment::Experiment;
use super::experiment::keys::SHAPED;
use crate::{Error, Result};

/// Keys of `[data]` that say where the data are; digests ensure that the data are the same.
const PLACES: [&str; 4] = ["path", "corpus", "validation", "test"];

impl Experiment {
    /// Keys of `[train]` that may change on resume: how long and how fast the model learns, and how training is monitored and computed.
    pub const MAY_CHANGE: [&'static str; 18] = [
        "max_iterations",
        "lr",
        "min_lr",
        "warmup",
        "schedule",
        "lr_decay_iterations",
        "weight_decay",
        "clip_norm",
        "eval_every",
        "eval_iterations",
        "checkpoint_every",
        "patience",
        "solved_at",
        "precision",
        "checkpoint_blocks",
        "device",
        "memory_limit",
        "threads",
    ];

    /// Checks that a run which wrote the checkpoint configuration `began` can be resumed with this experiment: with another seed, batch
    /// size or task it would be a different run. The parts of the model that are determined by the data, and the data themselves, are
    /// compared elsewhere.
    ///
    /// What [`MAY_CHANGE`](Self::MAY_CHANGE) lists may change, and so may the location of the data.
    ///
    /// # Errors
    /// With a sentence that names the first key that must stay as it was.
    pub fn expect_continues(&self, began: &CheckpointConfig) -> Result<()> {
        let to_json = |experiment: &Self| serde_json::to_value(experiment).map_err(|error| Error::Config(error.to_string()));
        let (own, default) = (to_json(self)?, to_json(&Self::default())?);
        let model = serde_json::to_value(&began.model).map_err(|error| Error::Config(error.to_string()))?;
        let (sections, single) = (&began.sections, serde_json::Value::from(1));
        for (section, free, began) in [
            ("model", &SHAPED[..], Some(&model)),
            ("data", &PLACES, sections.get("data")),
            ("train", &Self::MAY_CHANGE, sections.get("train")),
        ] {
            let (Some(keys), Some(began)) = (own[section].as_object(), began) else { continue };
            for (key, found) in keys.iter().filter(|(key, _)| !free.contains(&key.as_str())) {
                // A key newer than the run had its default, except that every row was a step before there was a choice.
                let before = || if key == "rows_per_step" && found != &default[section][key] { &single } else { &default[section][key] };
                let expected = began.get(key).unwrap_or_else(before);
                if found != expected {
                    return Err(Error::MustStay(format!(
                        "{section}.{key} must stay {expected}, as the run began with it, found {found}; leave that setting as it was (what may \
                         change on resume: {})",
                        Self::MAY_CHANGE.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::ModelConfig;

    use super::super::experiment::keys::known_keys;
    use super::*;

    fn set(setting: &str) -> Result<Experiment> {
        Experiment::parse("", &[setting.to_owned()])
    }

    #[test]
    fn a_run_goes_on_with_all_that_decides_its_randomness_and_its_data() {
        let began = |experiment: &Experiment| {
            let mut config = CheckpointConfig::new(ModelConfig::default());
            config.sections.insert("data".to_owned(), serde_json::to_value(&experiment.data).unwrap());
            config.sections.insert("train".to_owned(), serde_json::to_value(&experiment.train).unwrap());
            config
        };
        let run = began(&Experiment::default());
        let known = known_keys().unwrap();
        for key in Experiment::MAY_CHANGE {
            assert!(known["train"].get(key).is_some(), "{key}");
        }
        for setting in ["max_iterations=7", "lr=0.5", "betas=0.9,0.99", "threads=2", "path=elsewhere", "eval_iterations=1", "clip_norm=0.5"]
        {
            set(setting).unwrap().expect_continues(&run).unwrap();
        }
        for (setting, expected) in [
            ("seed=8", "train.seed must stay 0, as the run began with it, found 8; leave"),
            ("batch_size=8", "train.batch_size must stay 64"),
            ("betas=0.8,0.99", "train.betas must stay [0.9,0.99]"),
            ("train_fraction=0.5", "data.train_fraction must stay 0.9"),
            ("task=selective-copying", "data.task must stay \"text\""),
            ("target=a", "data.target must stay []"),
            ("d_model=32", "model.d_model must stay 128, as the run began with it, found 32; leave"),
            ("mixer=gru", "model.mixer must stay \"min-gru\""),
        ] {
            let refused = set(setting).unwrap().expect_continues(&run).unwrap_err().to_string();
            assert!(refused.starts_with(expected) && refused.contains("max_iterations, lr"), "{refused}");
        }
        // A run older than a key began with its default; a run without stored settings is accepted.
        let mut old = run.clone();
        old.sections["train"].as_object_mut().unwrap().remove("seed");
        set("seed=0").unwrap().expect_continues(&old).unwrap();
        set("seed=8").unwrap().expect_continues(&old).unwrap_err();
        set("seed=8").unwrap().expect_continues(&CheckpointConfig::new(ModelConfig::default())).unwrap();
    }
}
