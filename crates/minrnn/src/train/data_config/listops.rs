//! Long Range Arena: the value of a nested expression.

use std::path::{Path, PathBuf};

use minrnn_model::create_directories;

use super::{DataConfig, Source, TaskSpec, expect_folder, has_key};
use crate::data::ListOps;
use crate::train::run_dir::DATA_FOLDER;
use crate::{Error, Result};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Folder,
    reads: |data, key| has_key(&data.listops, key),
    validate: |data| data.listops.validate(),
    length: |data, _| Ok(("listops_max_length", data.listops.max_length)),
    scored: |_, _| 1,
    io: Some(|_| ListOps::SIGNALS),
    open: Some(|data, _, run| Ok(Box::new(ListOps::open(&data.listops, data.expressions(run)?)?))),
    // Tokens of one byte each, and at first the files' texts.
    held: |data| {
        let task = &data.listops;
        4 * (task.n_train + 2 * task.n_eval) as u128 * (task.max_length / 2) as u128
    },
    ..TaskSpec::MADE
};

impl DataConfig {
    /// Where expressions are read from or written to: the given folder, otherwise one in the run's directory.
    fn expressions(&self, run: &Path) -> Result<PathBuf> {
        if let Some(folder) = &self.path {
            return expect_folder(folder).map(Path::to_owned);
        }
        let folder = run.join(DATA_FOLDER);
        create_directories(&folder).map_err(|source| Error::io("create the data directory", &folder, source))?;
        Ok(folder)
    }
}
