//! What a model would be: an experiment by its name or file, or a configuration without its weights.

use std::path::Path;

use minrnn::Error;
use minrnn::interchange::Settings;
use minrnn::train::{Experiment, Vocabulary};
use minrnn_stream::{CheckpointConfig, ModelConfig};

use super::{cost, section, settings};

/// The model of the experiment of that name, or in the file of that name, with `set` on top.
pub fn experiment(name: &str, set: &[String]) -> anyhow::Result<String> {
    let experiment = Experiment::load(name, set)?;
    let Vocabulary { size, source } = Vocabulary::of(&experiment)?;
    let mut text = format!("experiment {name}, not trained\n");
    if !experiment.description.is_empty() {
        text += &format!("  {}\n", super::shown(&experiment.description));
    }
    let config = ModelConfig { vocab_size: size, ..experiment.model };
    Ok(text + &model(&config, Some(&source))?)
}

/// The model of the configuration in the file `path`, with `set` on top.
pub fn configuration(path: &Path, set: &[String]) -> anyhow::Result<String> {
    let stored = CheckpointConfig::read_file(path).map_err(Error::from)?;
    let config = Settings::parse(set)?.over(&stored.model)?;
    Ok(format!("configuration {}\n", path.display()) + &model(&config, None)?)
}

fn model(config: &ModelConfig, vocabulary: Option<&str>) -> anyhow::Result<String> {
    config.validate().map_err(Error::from)?;
    let source = vocabulary.map(|source| ("vocabulary".to_owned(), format!("{} tokens ({source})", config.vocab_size)));
    Ok(section("model", &settings(config)?) + &cost::sections(config, source.into_iter().collect())?)
}
