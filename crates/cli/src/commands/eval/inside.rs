//! The files of what a model has inside while it reads the data that it is scored on.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::data::expect_lasting;
use minrnn::data::table::read_series;
use minrnn::deployed::{Deployed, InsideFiles, InsideInputs};
use minrnn_model::ModelConfig;

use super::{Args, tokens};
use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::inside::write;
use crate::say::say;
use crate::{input, interrupt};

/// The files of what the model has inside, and the data that it reads for them.
pub struct Inside {
    files: InsideFiles,
    data: PathBuf,
}

/// The files wanted of what the model has inside, checked as far as possible before anything is read; none if there are none.
pub fn wanted_inside(args: &Args, config: &ModelConfig) -> anyhow::Result<Option<Inside>> {
    let Some(data) = args.data.as_deref().filter(|_| args.inside.is_any()) else { return Ok(None) };
    let data = input::path(data);
    // It is read twice, for the scores and for the files.
    expect_lasting(&data)?;
    let inputs: Vec<&Path> = [data.as_path(), args.run.as_path()].into_iter().chain(args.against.as_deref()).collect();
    let files = args.inside.files(config, &inputs)?;
    Ok(Some(Inside { files, data }))
}

impl Inside {
    /// Writes the files of what `deployed` has inside while it reads the data; `tokens` are those of its text, if known.
    ///
    /// Existing files are replaced, so this comes once the scores are out and nothing more can be refused.
    pub fn write(self, deployed: &Deployed, tokens: Option<&[u32]>, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
        let Self { files, data } = self;
        let is_written = match (&deployed.table, &deployed.tokenizer, tokens) {
            (Some(task), ..) => {
                let reads = task.clone();
                let series = interrupt::unless_stopped(stop, move || read_series(&reads, &data)).transpose()?;
                series.map(|series| write(deployed, InsideInputs::Table(task, &series), &files, stop)).transpose()?
            }
            (None, _, Some(tokens)) => Some(write(deployed, InsideInputs::Text(tokens), &files, stop)?),
            (None, Some(tokenizer), None) => {
                let tokens = tokens::read(&data, tokenizer, stop)?;
                tokens.map(|tokens| write(deployed, InsideInputs::Text(&tokens), &files, stop)).transpose()?
            }
            (None, None, None) => {
                let sentence = "it reads neither a table nor text; leave --logits, --hidden and --embeddings out";
                return Err(WrongInput(format!("'{}': {sentence}", deployed.path.display())).into());
            }
        };
        if is_written == Some(true) {
            return Ok(ExitCode::SUCCESS);
        }
        say("stopped before --logits, --hidden and --embeddings were written");
        Ok(ExitCode::from(FAILED))
    }
}
