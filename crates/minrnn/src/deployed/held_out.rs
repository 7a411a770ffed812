//! The text that a run held out, as far as it takes to know what is usual.

use crate::Result;
use crate::train::{Data, Experiment, run_of};
use minrnn_model::CheckpointFiles;

use super::Deployed;

/// Most tokens.
const ENOUGH: u64 = 1 << 17;

/// The beginning of the part of its text that the run of `deployed` did not learn from; none of a packed model, a checkpoint outside its run, and one
/// whose text is no longer as it was.
///
/// # Errors
/// When the run's tokens cannot be read.
pub fn held_out_text(deployed: &Deployed) -> Result<Option<Vec<u8>>> {
    if deployed.is_packed() {
        return Ok(None);
    }
    let Ok(run) = run_of(&deployed.path) else { return Ok(None) };
    let config = CheckpointFiles::open(&deployed.path)?.config()?;
    let experiment = Experiment::of_checkpoint(&config, &deployed.path)?;
    let Ok(Data::Text { text, tokenizer }) = Data::open(&experiment, &run) else { return Ok(None) };
    let part = text.test();
    let mut tokens = vec![0; part.len().min(ENOUGH) as usize];
    part.read(0, &mut tokens)?;
    let mut bytes = Vec::new();
    tokens.into_iter().try_for_each(|token| tokenizer.append_bytes(token, &mut bytes))?;
    Ok(Some(bytes))
}
