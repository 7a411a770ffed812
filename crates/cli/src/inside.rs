//! The files of `--logits`, `--hidden` and `--embeddings`: what a model has inside while it reads.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::deployed::{Deployed, InsideFiles, InsideInputs, write_inside};
use minrnn::output::{expect_harmless, expect_writable};
use minrnn_model::ModelConfig;

use crate::say::say;

#[derive(clap::Args)]
pub struct InsideArgs {
    /// Write the model's outputs at every step of --data, before softmax or conversion to units, to this .npy, .csv or .safetensors file
    #[arg(long, value_name = "FILE", requires = "data")]
    logits: Option<PathBuf>,
    /// Write a block's output at every step of --data to such a file
    #[arg(long, value_name = "FILE", requires = "data")]
    hidden: Option<PathBuf>,
    /// The block of --hidden, counted from 1 [default: the last]
    #[arg(
        long, value_name = "BLOCK", allow_negative_numbers = true, requires = "hidden",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    layer: Option<u32>,
    /// Write one vector for each sequence of --data, the head's input at its last step, to such a file
    #[arg(long, value_name = "FILE", requires = "data")]
    embeddings: Option<PathBuf>,
}

impl InsideArgs {
    /// Whether any file is wanted.
    pub fn is_any(&self) -> bool {
        self.logits.is_some() || self.hidden.is_some() || self.embeddings.is_some()
    }

    /// The files, checked as far as possible before anything is read; `inputs` are the files to be read.
    pub fn files(&self, config: &ModelConfig, inputs: &[&Path]) -> anyhow::Result<InsideFiles> {
        let layer = self.layer.map_or(config.n_layers.saturating_sub(1), |layer| layer as usize - 1);
        let hidden = self.hidden.clone().map(|path| (layer, path));
        let files = InsideFiles { logits: self.logits.clone(), hidden, embeddings: self.embeddings.clone() };
        files.expect_fit(config)?;
        files.paths().try_for_each(|path| expect_harmless(path, inputs.iter().copied()))?;
        files.paths().try_for_each(expect_writable)?;
        Ok(files)
    }
}

/// Reads `inputs` with the runtime and writes `files`; false when `stop` was raised before the end.
pub fn write(deployed: &Deployed, inputs: InsideInputs<'_>, files: &InsideFiles, stop: &AtomicBool) -> anyhow::Result<bool> {
    if !write_inside(&deployed.model, inputs, files, stop)? {
        return Ok(false);
    }
    for path in files.paths() {
        say(format_args!("written: {}", path.display()));
    }
    Ok(true)
}
