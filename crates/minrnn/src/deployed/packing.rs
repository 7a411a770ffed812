//! Packs a trained model into one file for the inference runtime.

use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointFiles, Section, TensorEntry, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::PackedModel;

use super::Deployed;
use crate::checkpoint::policy_of;
use crate::memory::{Size, packing};
use crate::output::{expect_harmless, expect_replaceable};
use crate::train::find_checkpoint;
use crate::{Error, Result};

/// The result of packing.
pub struct Packed {
    /// The checkpoint or packed model it was made from.
    pub from: PathBuf,
    /// The model's mixers, separated by commas.
    pub mixers: String,
    /// The tensors in the file.
    pub tensors: Vec<TensorEntry>,
    /// Bytes of the file.
    pub bytes: u64,
    /// The model as loaded from the file.
    pub deployed: Deployed,
}

/// Writes the model of `run`, a run directory (its best checkpoint) or a checkpoint, to the file `output`, with its matrices stored in
/// `format`; those of a packed model are rounded further.
///
/// # Errors
/// When the model cannot be read or is damaged, when a matrix was already rounded to something that cannot be converted to `format`, when
/// `output` would overwrite something or cannot be written, or when more memory is needed than there is or `memory_limit` allows.
pub fn pack(run: &Path, output: &Path, format: WeightFormat, memory_limit: Option<Size>) -> Result<Packed> {
    expect_harmless(output, [run])?;
    expect_replaceable(output, "a packed model", |start| start.starts_with(&PackedModel::MAGIC))?;
    let (from, tensors) = match run.is_file() {
        true => repacked(run, output, format, memory_limit)?,
        false => packed(run, output, format, memory_limit)?,
    };
    let bytes = std::fs::metadata(output).map_err(|source| Error::io("read", output, source))?.len();
    let deployed = Deployed::load(output)?;
    Ok(Packed { from, mixers: deployed.model.config().mixer_names(), tensors, bytes, deployed })
}

/// Packs the best checkpoint of a run, or a checkpoint; returns its path, and the tensors of the file.
fn packed(run: &Path, output: &Path, format: WeightFormat, memory_limit: Option<Size>) -> Result<(PathBuf, Vec<TensorEntry>)> {
    let checkpoint = find_checkpoint(run)?;
    let weights_bytes = std::fs::metadata(checkpoint.join(WEIGHTS_FILE)).map_or(0, |file| file.len());
    packing(weights_bytes, format).expect_room(memory_limit)?;
    let (config, mut weights) = read_checkpoint(&checkpoint)?;
    // An unreadable vocabulary or task is refused now rather than by the recipient of the file.
    let files = CheckpointFiles::open(&checkpoint)?;
    let tokenizer = files.tokenizer()?.map(|(_, bytes)| bytes);
    let table = files.table_task(&config.model)?.map(|(_, bytes)| bytes);
    let policy = config.model.decision.then(|| policy_of(&files, &config.model)).transpose()?.map(|(_, bytes)| bytes);
    let surprise = files.surprise()?.map(|(_, bytes)| bytes);
    let of_text = [tokenizer.as_deref().map(Section::tokenizer), table.as_deref().map(Section::table)];
    let of_others = [policy.as_deref().map(Section::policy), surprise.as_deref().map(Section::surprise)];
    let sections: Vec<Section<'_>> = of_text.into_iter().chain(of_others).flatten().collect();
    let tensors = PackedModel::write(output, &config.model, &mut weights, format, &sections)?;
    Ok((checkpoint, tensors))
}

/// Packs a packed file again, with its matrices rounded further.
fn repacked(file: &Path, output: &Path, format: WeightFormat, memory_limit: Option<Size>) -> Result<(PathBuf, Vec<TensorEntry>)> {
    // An unreadable vocabulary or task is refused here as well.
    Deployed::load(file)?;
    let file_bytes = std::fs::metadata(file).map_or(0, |file| file.len());
    packing(file_bytes, format).expect_room(memory_limit)?;
    Ok((file.to_owned(), PackedModel::repack(file, output, format)?))
}
