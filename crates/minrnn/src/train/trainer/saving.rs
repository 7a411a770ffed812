//! Writing and reading a checkpoint of everything that training needs to continue.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minrnn_model::{CONFIG_FILE, CheckpointConfig, CheckpointFiles, MAX_TASK_BYTES, WEIGHTS_FILE, write_atomic, write_safetensors};
use serde::de::IgnoredAny;

use super::Trainer;
use crate::checkpoint::{TASK_FILE, TOKENIZER_FILE, load_named, load_weights, named_values, save_weights, state_tensors};
use crate::data::Carry;
use crate::model::AnyModel;
use crate::nn::State;
use crate::train::alike::weights_trait;
use crate::train::average::{Average, LAST_WEIGHTS_PREFIX};
use crate::train::head::with_outputs;
use crate::train::progress::{MAX_PROGRESS_BYTES, PROGRESS_FILE, Progress};
use crate::train::run_dir::TRAINING_FILE;
use crate::train::temperature::with_temperature;
use crate::{Error, Result, RunProblem};

const STATE_PREFIX: &str = "state.";
/// Keys of a task's description that older versions lack; none of them can differ if the rest does not.
const LATER_KEYS: [&str; 1] = ["target_median"];

/// Name, shape and values of a tensor of a carried state.
type Carried = (String, Vec<usize>, Vec<f32>);

impl Trainer {
    /// Writes a checkpoint of everything; the run then continues exactly from here.
    ///
    /// # Errors
    /// When it cannot be written, or other processes have different weights from the first; earlier checkpoints are then untouched.
    pub fn save(&self, is_best: bool) -> Result<PathBuf> {
        if !self.group.is_alone() {
            self.group.expect_alike(vec![weights_trait(&self.model)])?;
        }
        let carried = self.all_carried()?;
        self.group
            .tell(|| self.run.save(self.progress.iteration, is_best, &self.progress.kept(), |directory| self.write(directory, carried)))
    }

    /// The tensors of the states that all processes carry, on the first of them, which writes them.
    fn all_carried(&self) -> Result<Vec<Carried>> {
        let own = self.group.agree(self.own_carried())?;
        if self.group.is_alone() {
            return Ok(own);
        }
        let heads: Vec<(String, Vec<usize>)> = own.iter().map(|(name, shape, _)| (name.clone(), shape.clone())).collect();
        let heads = self.group.agree_all(Ok(heads))?;
        let shapes = |of: &[(String, Vec<usize>)]| -> Vec<Vec<usize>> { of.iter().map(|(_, shape)| shape.clone()).collect() };
        if heads.iter().any(|of| shapes(of) != shapes(&heads[0])) {
            let problem = "the processes carry states of different shapes; start the same program everywhere";
            return self.group.alike(Err(Error::Shape(problem.to_owned())));
        }
        let mut all = Vec::new();
        for (at, (_, shape, values)) in own.into_iter().enumerate() {
            let found = self.group.collect_first(&values).into_iter().zip(&heads);
            all.extend(found.map(|(values, of)| (of[at].0.clone(), shape.clone(), values)));
        }
        Ok(all)
    }

    /// The tensors of the states that this process carries.
    fn own_carried(&self) -> Result<Vec<Carried>> {
        let first = self.group.share(self.experiment.train.accumulation as u64).start;
        let mut own = Vec::new();
        for (state, micro) in self.carried.iter().zip(first..) {
            for (name, data) in state.tensors() {
                let shape = data.shape().to_vec();
                let values = data.try_to_vec::<f32>().map_err(|error| Error::Shape(format!("state '{name}': {error:?}")))?;
                own.push((self.state_prefix(micro) + &name, shape, values));
            }
        }
        Ok(own)
    }

    /// The prefix of the names of the state's tensors that micro-step `micro` continues from.
    fn state_prefix(&self, micro: u64) -> String {
        match self.source.carry() {
            Carry::ToNextUpdate => format!("{STATE_PREFIX}{micro}."),
            Carry::Nowhere | Carry::ToNextBatch => STATE_PREFIX.to_owned(),
        }
    }

    fn write(&self, directory: &Path, carried: Vec<Carried>) -> Result<()> {
        let mut config = CheckpointConfig::new(self.experiment.model.clone());
        let to_json = |error: serde_json::Error| Error::malformed(directory.join(CONFIG_FILE), error.to_string());
        config.sections.insert("description".to_owned(), self.experiment.description.clone().into());
        config.sections.insert("data".to_owned(), serde_json::to_value(&self.experiment.data).map_err(to_json)?);
        config.sections.insert("train".to_owned(), serde_json::to_value(&self.experiment.train).map_err(to_json)?);
        config.write(directory)?;
        let live = self.average.as_ref().map(|_| Average::of_model(&self.model));
        let saved = save_weights(&self.model_to_use(), directory.join(WEIGHTS_FILE));
        // Copies of a model share their running statistics, which are now those of the average, so they are restored.
        drop(live.map(|live| live.of(self.model.clone())));
        saved?;
        if let Some(tokenizer) = self.data.tokenizer() {
            tokenizer.save(directory.join(TOKENIZER_FILE))?;
        }
        if let Some(text) = self.task_text(directory)? {
            write_atomic(directory.join(TASK_FILE), text.as_bytes())?;
        }
        let mut tensors: Vec<(String, Vec<usize>, Cow<'_, [f32]>)> = Vec::new();
        for (name, values) in self.optimizer.moments() {
            tensors.push((name, vec![values.len()], Cow::Owned(values)));
        }
        tensors.extend(carried.into_iter().map(|(name, shape, values)| (name, shape, Cow::Owned(values))));
        if self.average.is_some() {
            let last = named_values(&self.model).into_iter();
            tensors.extend(last.map(|(name, shape, values)| (format!("{LAST_WEIGHTS_PREFIX}{name}"), shape, Cow::Owned(values))));
        }
        write_safetensors(directory.join(TRAINING_FILE), tensors, None)?;
        let mut progress = serde_json::to_vec_pretty(&self.progress).map_err(to_json)?;
        progress.push(b'\n');
        Ok(write_atomic(directory.join(PROGRESS_FILE), &progress)?)
    }

    /// The model to hand out: averaged and calibrated.
    fn model_to_use(&self) -> AnyModel {
        let model = self.average.as_ref().map_or_else(|| self.model.clone(), |average| average.of(self.model.clone()));
        // Nothing is learned after the end of the second round, so training never continues from there.
        let Progress { temperature, spreads, refit, iteration, .. } = &self.progress;
        if refit.is_none() || *iteration < self.end_of_round() {
            return model;
        }
        let model = temperature.iter().fold(model, |model, temperature| with_temperature(model, *temperature));
        spreads.iter().fold(model, |model, spreads| with_outputs(model, |outputs| spreads.apply(outputs)))
    }

    pub(super) fn restore(&mut self, directory: &Path) -> Result<()> {
        let files = CheckpointFiles::open(directory)?;
        let config = files.config()?;
        self.experiment.expect_continues(&config)?;
        if config.model != self.experiment.model {
            let problem = "its model is not the one of the experiment; resume with the settings the run began with";
            return Err(Error::malformed(directory.join(CONFIG_FILE), problem));
        }
        self.expect_same_data(&files)?;
        self.progress = Progress::from_json(&files.text(PROGRESS_FILE, MAX_PROGRESS_BYTES)?, &files.path(PROGRESS_FILE))?;
        self.progress.forget_untrained();
        let n_outputs = self.experiment.model.n_outputs;
        if self.progress.spreads.as_ref().is_some_and(|spreads| !spreads.fits(n_outputs)) {
            let problem = format!("its spreads are not those of {n_outputs} outputs; continue from another checkpoint");
            return Err(Error::malformed(files.path(PROGRESS_FILE), problem));
        }
        // The vocabulary in use is the run's own; the checkpoint's must be readable too, for whoever takes the model from it.
        files.tokenizer()?;
        let mut weights = files.weights(WEIGHTS_FILE)?;
        self.model = load_weights(self.model.clone(), &mut weights)?;
        weights.expect_empty()?;
        let path = files.path(TRAINING_FILE);
        let mut training = files.weights(TRAINING_FILE)?;
        self.average = None;
        if self.progress.averaged > 0 {
            self.average = Some(Average::of_model(&self.model));
            self.model = load_named(self.model.clone(), &mut training, LAST_WEIGHTS_PREFIX)?;
        }
        self.optimizer.restore(&self.model, self.progress.of_round(), |name, len| Ok(training.take(name, &[len])?))?;
        let (accumulation, carry) = (self.experiment.train.accumulation as u64, self.source.carry());
        let own = self.group.share(accumulation);
        // A state carried through the micro-steps is a single one.
        let n_states = if carry == Carry::ToNextUpdate { accumulation } else { 1 };
        let batch_size = self.experiment.train.batch_size;
        let misfit = |error| Error::malformed(&path, format!("{error}; resume with the batch_size the run began with"));
        self.carried.clear();
        for micro in 0..n_states {
            let state = state_tensors(&mut training, &self.state_prefix(micro))?;
            if !state.is_empty() {
                if n_states == 1 || own.contains(&micro) {
                    self.carried.push(self.model.sequence()?.init_state(batch_size).detach().load(&state).map_err(misfit)?);
                }
            } else if carry != Carry::Nowhere && self.progress.of_round() > 0 {
                let problem = "expected the state that is carried from window to window, found none; resume from another checkpoint";
                return Err(Error::malformed(&path, problem));
            }
        }
        training.expect_empty()?;
        Ok(())
    }

    /// What the checkpoint in `directory` says about the task's data.
    fn task_text(&self, directory: &Path) -> Result<Option<String>> {
        self.data.description().map(|description| task_text(&description, directory)).transpose()
    }

    /// Checks that the task's data are those that the checkpoint's run was trained on.
    fn expect_same_data(&self, files: &CheckpointFiles) -> Result<()> {
        let path = files.path(TASK_FILE);
        let Some(mut own) = self.data.description() else {
            return match files.find(TASK_FILE, MAX_TASK_BYTES)? {
                None => Ok(()),
                Some(_) => Err(Error::run(path, RunProblem::OtherData)),
            };
        };
        // A missing file is reported by its name.
        let found = files.bytes(TASK_FILE, MAX_TASK_BYTES)?;
        let keys = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&found).unwrap_or_default();
        if let Some(own) = own.as_object_mut() {
            // Older checkpoints lack some.
            LATER_KEYS.iter().filter(|key| !keys.contains_key(**key)).for_each(|key| _ = own.remove(*key));
        }
        if task_text(&own, path.parent().unwrap_or(&path))?.as_bytes() == found {
            return Ok(());
        }
        Err(Error::run(path, RunProblem::OtherData))
    }
}

fn task_text(description: &serde_json::Value, directory: &Path) -> Result<String> {
    let text = serde_json::to_string_pretty(description);
    Ok(text.map_err(|error| Error::malformed(directory.join(TASK_FILE), error.to_string()))? + "\n")
}
