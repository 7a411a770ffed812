//! A directory for what a test trains, and the weights in it afterwards.
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minrnn_model::Weights;

/// A directory that is removed at the end of the test.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A directory with a text in it, `text.txt`.
    pub fn with_text() -> Self {
        let scratch = Self::new();
        let text: String = (0..400u64).map(|i| ["to be ", "or not ", "to be\n"][(i * i * 7 + i / 3) as usize % 3]).collect();
        std::fs::write(scratch.path("text.txt"), text).unwrap();
        scratch
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Every tensor of a file by its name.
pub fn tensors(path: &Path) -> BTreeMap<String, Vec<f32>> {
    let mut weights = Weights::read(path).unwrap();
    let names: Vec<String> = weights.names().map(ToString::to_string).collect();
    names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap().into_data())).collect()
}

/// The weights of a checkpoint by their names.
pub fn weights(checkpoint: &Path) -> BTreeMap<String, Vec<f32>> {
    tensors(&checkpoint.join("model.safetensors"))
}
