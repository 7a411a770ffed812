//! What is read from a file or a directory: the model, and what its inputs and outputs mean.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use minrnn::data::table::CategoryNames;
use minrnn::deployed::Deployed;
use minrnn::generate::ModelIdentity;
use minrnn_model::{TableTask, Tokenizer};
use minrnn_stream::{AlignedBytes, ModelKind};
use pyo3::prelude::*;

use crate::failure::{Failure, Mistake, Result, apart};
use crate::rows::{Columns, names_of};

/// A model, shared by all of its sessions.
pub(crate) struct Loaded {
    deployed: Deployed,
    /// The path that it was read from; none if it came as bytes.
    pub source: Option<PathBuf>,
    identity: OnceLock<ModelIdentity>,
    names: OnceLock<Vec<Option<CategoryNames>>>,
}

impl Deref for Loaded {
    type Target = Deployed;

    fn deref(&self) -> &Deployed {
        &self.deployed
    }
}

impl Loaded {
    /// The model at `path`: a packed file, a checkpoint, or a run, of which the best checkpoint is read.
    pub fn read(path: &Path) -> Result<Self> {
        let deployed = Deployed::load(path)?;
        // Still valid after a change of the working directory.
        let source = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { deployed, source: Some(source), identity: OnceLock::new(), names: OnceLock::new() })
    }

    /// The columns that are read from tables for `task`, which is the model's.
    pub fn columns_of<'a>(&'a self, task: &'a TableTask) -> Columns<'a> {
        Columns::new(task, self.names.get_or_init(|| names_of(task)))
    }

    /// The packed model with these bytes.
    pub fn of_bytes(bytes: AlignedBytes) -> Result<Self> {
        Ok(Self { deployed: Deployed::from_bytes(bytes)?, source: None, identity: OnceLock::new(), names: OnceLock::new() })
    }

    /// The identity that saved sessions must match, the same as in the command line's.
    pub fn identity(&self) -> Result<&str> {
        if let Some(identity) = self.identity.get() {
            return Ok(identity.as_str());
        }
        let identity = self.deployed.identity()?;
        Ok(self.identity.get_or_init(|| identity).as_str())
    }

    /// The tokenizer, if the model reads text.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        let none = || Failure::new(Mistake::Kind, "the model has no tokenizer: it does not read text");
        self.tokenizer.as_ref().ok_or_else(none)
    }

    /// The tokens of `text`; other threads of Python run meanwhile.
    pub fn encode(&self, py: Python<'_>, text: &str) -> Result<Vec<u32>> {
        let tokenizer = self.tokenizer()?;
        Ok(apart(py, || tokenizer.encode(text))??)
    }

    /// What the model is for.
    pub fn kind(&self) -> ModelKind {
        ModelKind::of(&self.model, self.table.as_ref(), self.tokenizer.is_some())
    }
}
