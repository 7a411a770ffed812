//! The trained model that a training starts from, of which the run keeps a copy.

use std::fs::File;
use std::path::{Path, PathBuf};

use minrnn_model::{
    CONFIG_FILE, CheckpointConfig, CheckpointFiles, MAX_TASK_BYTES, ModelConfig, TableTask, WEIGHTS_FILE, create_directories,
    read_checkpoint,
};

use super::run_dir::{DATA_FOLDER, find_checkpoint};
use super::train_config::TrainConfig;
use crate::checkpoint::{TASK_FILE, TOKENIZER_FILE};
use crate::counted::counted;
use crate::data::Tokenizer;
use crate::model::AnyModel;
use crate::new_directory::make_directory;
use crate::{Error, Result, parameters};

const FOLDER: &str = "start";
/// Keys in which a model may differ from the one it starts from: those determined by the data, and those that no weight depends on.
const MAY_DIFFER: [&str; 5] = ["vocab_size", "input_width", "n_outputs", "dropout", "dropout_sites"];

/// A trained model, and how it sees its data.
#[derive(Debug)]
pub(super) struct Start {
    files: CheckpointFiles,
    config: CheckpointConfig,
}

impl Start {
    /// Copies the model that `train` starts from, if any, into the run in the directory `run`, unless it is already there.
    ///
    /// # Errors
    /// When the checkpoint cannot be read or is damaged, or the run cannot be written.
    pub fn keep(train: &TrainConfig, run: &Path) -> Result<()> {
        let (Some(from), folder) = (&train.from, folder(run)) else { return Ok(()) };
        if folder.is_dir() {
            return Ok(());
        }
        let source = find_checkpoint(from)?;
        // Damage is reported before anything is copied.
        read_checkpoint(&source)?;
        let files = CheckpointFiles::open(&source)?;
        files.tokenizer()?;
        files.find(TASK_FILE, MAX_TASK_BYTES)?;
        let io = |error| Error::io("copy the model to start from to", &folder, error);
        create_directories(run.join(DATA_FOLDER)).map_err(io)?;
        make_directory(&folder, |unfinished| {
            for name in [CONFIG_FILE, WEIGHTS_FILE, TASK_FILE, TOKENIZER_FILE] {
                if source.join(name).exists() {
                    copy(&source.join(name), &unfinished.join(name)).map_err(io)?;
                }
            }
            Ok(CheckpointFiles::seal(unfinished)?)
        })
    }

    /// The model that `train` starts from: the copy in the run's directory `run`, or the original if there is no copy yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(train: &TrainConfig, run: &Path) -> Result<Option<Self>> {
        let Some(from) = &train.from else { return Ok(None) };
        let kept = folder(run);
        let files = CheckpointFiles::open(if kept.is_dir() { kept } else { find_checkpoint(from)? })?;
        let config = files.config()?;
        Ok(Some(Self { files, config }))
    }

    /// Its vocabulary, if it reads text.
    pub fn tokenizer(&self) -> Result<Option<Tokenizer>> {
        Ok(self.files.tokenizer()?.map(|(tokenizer, _)| tokenizer))
    }

    /// Its task on tables, if it has one.
    pub fn table_task(&self) -> Result<Option<TableTask>> {
        Ok(self.files.table_task(&self.config.model)?.map(|(task, _)| task))
    }

    /// `model`, the untrained one of `config`, with the stored weights; the head stays untrained if the `task` on tables predicts something else.
    ///
    /// # Errors
    /// When the stored model is not the one that `config` asks for.
    pub fn weights_into(&self, model: AnyModel, config: &ModelConfig, task: Option<&TableTask>) -> Result<AnyModel> {
        self.expect_same_model(config)?;
        let keeps_head = self.config.model.outputs() == config.outputs() && self.predicts_the_same(task)?;
        let mut weights = self.files.weights(WEIGHTS_FILE)?;
        let mut problem = None;
        let model = parameters::replace(model, |place, shape| {
            if !keeps_head && place.name.starts_with("head.") {
                return None;
            }
            weights.take(&place.name, shape).map_err(|error| problem.get_or_insert(error)).ok()
        });
        problem.map_or(Ok(model), |error| Err(error.into()))
    }

    fn predicts_the_same(&self, own: Option<&TableTask>) -> Result<bool> {
        Ok(match (self.table_task()?, own) {
            (Some(TableTask::Classify(task)), Some(TableTask::Classify(own))) => task.classes == own.classes,
            (Some(TableTask::Regress(task)), Some(TableTask::Regress(own))) => task.target == own.target,
            (Some(TableTask::Forecast(task)), Some(TableTask::Forecast(own))) => {
                task.quantiles == own.quantiles && task.value_names() == own.value_names()
            }
            (None, None) => true,
            _ => false,
        })
    }

    fn expect_same_model(&self, config: &ModelConfig) -> Result<()> {
        let refused = |problem: String| Err(Error::Config(format!("the model that train.from names {problem}")));
        let keys = |model: &ModelConfig| serde_json::to_value(model).map_err(|error| Error::Config(error.to_string()));
        let (own, asked) = (keys(&self.config.model)?, keys(config)?);
        for (key, found) in own.as_object().into_iter().flatten().filter(|(key, _)| !MAY_DIFFER.contains(&key.as_str())) {
            if asked.get(key) != Some(found) {
                let other = asked.get(key).unwrap_or(&serde_json::Value::Null);
                return refused(format!("has {key} = {found}, and this one {other}; take its settings of [model]"));
            }
        }
        let (own, asked) = (&self.config.model, config);
        if own.input_width != asked.input_width {
            let [own, asked] = [own.input_width, asked.input_width];
            return refused(match (own, asked) {
                (0, _) => format!(
                    "reads tokens, such as those of a text, and these data have {} a step; start from a model of numbers, or train a new one",
                    counted(asked, "number")
                ),
                (_, 0) => format!(
                    "reads {} a step, and these data are tokens, such as those of a text; start from a model of tokens, or train a new one",
                    counted(own, "number")
                ),
                _ => format!(
                    "reads {} a step, and these data have {asked}; take its columns, its calendar and known_ahead, its missing and its rows_per_step",
                    counted(own, "number")
                ),
            });
        }
        if own.vocab_size != asked.vocab_size {
            return refused(format!("knows {} tokens, and these data have {}", own.vocab_size, asked.vocab_size));
        }
        Ok(())
    }
}

/// Copies the contents of a file, so that they survive a power failure.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    std::io::copy(&mut from, &mut to)?;
    to.sync_all()
}

fn folder(run: &Path) -> PathBuf {
    run.join(DATA_FOLDER).join(FOLDER)
}
