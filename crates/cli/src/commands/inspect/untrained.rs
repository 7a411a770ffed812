//! What a model would be: an experiment by its name or file, or a configuration without its weights.

use std::path::Path;

use minrnn::Error;
use minrnn::subject::{Training, stored_config, untrained};
use minrnn::train::{Experiment, ResolvedModel};
use minrnn_model::ModelConfig;

use crate::printable::printable;

use super::{cost, memory, section, settings};

/// The model of the experiment of that name, or in the file of that name, with `set` on top.
pub fn experiment(name: &str, set: &[String]) -> anyhow::Result<String> {
    let experiment = Experiment::load(name, set)?;
    let ResolvedModel { model: config, source, longest } = untrained(name, &experiment)?;
    let mut text = format!("experiment {name}, not trained\n");
    if !experiment.description.is_empty() {
        text += &format!("  {}\n", printable(&experiment.described()));
    }
    Ok(text + &model(&config, Some(&source))? + &memory::sections(&config, Some(&Training { experiment, longest }), None)?)
}

/// The model of the configuration in the file `path`, with `set` on top.
pub fn configuration(path: &Path, set: &[String]) -> anyhow::Result<String> {
    let config = stored_config(path, set)?;
    Ok(format!("configuration {}\n", path.display()) + &model(&config, None)? + &memory::sections(&config, None, None)?)
}

fn model(config: &ModelConfig, source: Option<&str>) -> anyhow::Result<String> {
    config.validate().map_err(Error::from)?;
    let (what, size) = match config.input_width {
        0 => ("vocabulary", format!("{} tokens", config.vocab_size)),
        width => ("input", format!("{width} numbers a step")),
    };
    let source = source.map(|source| (what.to_owned(), format!("{size} ({source})")));
    Ok(section("model", &settings(config)?) + &cost::sections(config, source.into_iter().collect())?)
}
