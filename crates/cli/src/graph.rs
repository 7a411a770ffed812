//! One step of a trained model as a graph of ONNX.

use std::path::{Path, PathBuf};

use minrnn::deployed::Deployed;
use minrnn::output::{expect_harmless, expect_replaceable};
use minrnn::transfer::Source;
use minrnn::{Error, Result};
use minrnn_model::write_atomic;
use minrnn_onnx::{Attached, begins_as_graph, step_graph};

/// A graph that was written.
pub struct WrittenGraph {
    /// The checkpoint or packed file it was made from.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: usize,
    /// Bytes of a session's state.
    pub session_bytes: u128,
}

/// Writes one step of the model of `run` to the file `output`; `run` is a run directory (its best checkpoint is taken), a checkpoint, or a packed model
/// with f32 weights.
///
/// # Errors
/// When the model cannot be read, when its state grows with every step, or when `output` cannot be written or something would be lost there.
pub fn write_graph(run: &Path, output: &Path) -> Result<WrittenGraph> {
    expect_harmless(output, [run])?;
    expect_replaceable(output, "a step that was exported", begins_as_graph)?;
    let deployed = Deployed::load(run)?;
    let Source { path, mut weights, .. } = Source::read(run)?;
    let policy = deployed.policy.as_ref().map(serde_json::to_value).transpose();
    let policy = policy.map_err(|error| Error::Config(format!("the policy of the graph cannot be written: {error}")))?;
    let attached = Attached { tokenizer: deployed.tokenizer.as_ref(), task: deployed.table.as_ref(), policy: policy.as_ref() };
    // The runtime recognises a policy by its tensors if its configuration does not say so.
    let bytes = step_graph(deployed.model.config(), &mut weights, attached)?;
    write_atomic(output, &bytes)?;
    Ok(WrittenGraph { path, bytes: bytes.len(), session_bytes: deployed.model.session_bytes(0) })
}
