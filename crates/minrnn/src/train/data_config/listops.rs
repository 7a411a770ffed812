//! Long Range Arena: the value of a nested expression.

use std::path::{Path, PathBuf};

use minrnn_model::create_directories;

use super::{DataConfig, Source, TaskSpec, expect_folder};
use crate::data::{ListOps, ListOpsTask};
use crate::train::run_dir::DATA_FOLDER;
use crate::{Error, Result};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Folder,
    validate: |data| data.listops().validate(),
    length: |data, _| Ok(("listops_max_length", data.listops_max_length)),
    scored: |_, _| 1,
    io: Some(|_| ListOps::SIGNALS),
    open: Some(|data, _, run| Ok(Box::new(ListOps::open(&data.listops(), data.expressions(run)?)?))),
    ..TaskSpec::MADE
};

impl DataConfig {
    /// The expressions that are asked for.
    pub fn listops(&self) -> ListOpsTask {
        ListOpsTask {
            min_length: if self.listops_min_length == 0 { self.listops_max_length / 4 } else { self.listops_min_length },
            max_length: self.listops_max_length,
            max_depth: self.listops_max_depth,
            max_arguments: self.listops_max_arguments,
            n_train: self.listops_train,
            n_eval: self.listops_eval,
            seed: self.listops_seed,
        }
    }

    /// Where expressions are read from or written to: the folder that is given, or else one of the run.
    fn expressions(&self, run: &Path) -> Result<PathBuf> {
        if let Some(folder) = &self.path {
            return expect_folder(folder).map(Path::to_owned);
        }
        let folder = run.join(DATA_FOLDER);
        create_directories(&folder).map_err(|source| Error::io("create the data directory", &folder, source))?;
        Ok(folder)
    }
}
