//! What several processes must have in common to train one model, and what cannot be distributed among them.

use minrnn_kernels::matmul::bf16::has_tiles;
use minrnn_kernels::simd::Level;
use minrnn_model::{NormKind, hex};
use sha2::{Digest, Sha256};

use super::experiment::Experiment;
use super::group::{Group, Trait};
use crate::checkpoint::named_values;
use crate::data::{BatchSource, Carry, EvaluationSet};
use crate::model::AnyModel;
use crate::ops::Precision;
use crate::{Error, Result};

/// Refuses what cannot be distributed among the processes of `group`.
pub(super) fn expect_shareable(group: &Group, experiment: &Experiment, source: &dyn BatchSource) -> Result<()> {
    let (size, accumulation) = (group.size(), experiment.train.accumulation);
    let problem = if group.is_alone() {
        return Ok(());
    } else if !accumulation.is_multiple_of(size) {
        format!("accumulation must be a multiple of the number of processes, which share it out: found {accumulation} for {size}")
    } else if source.carry() == Carry::ToNextBatch {
        "sampling = stream carries a state from one micro-step to the next, so that they cannot be shared out; train with one process, or set \
         sampling = lanes, which gives each micro-step places of its own"
            .to_owned()
    } else if experiment.model.norm == NormKind::Batch {
        "norm = batch keeps means of every batch in the order in which they come, so that they cannot be shared out; train with one process, or set \
         norm to another"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Config(problem))
}

/// Everything that the bits of a training depend on.
pub(super) fn traits(experiment: &Experiment, source: &mut dyn BatchSource, model: &AnyModel) -> Result<Vec<Trait>> {
    let first_batch = digest(format!("{:?}", source.batch(0, 0)?).as_bytes());
    let level = Level::current();
    let bf16 = match experiment.train.precision {
        Precision::Bf16 if has_tiles() => " with products in bf16 in AMX's tiles",
        Precision::Bf16 if level.multiplies_bf16() => " with products in bf16",
        _ => "",
    };
    Ok(vec![
        version_trait(),
        Trait::new("instructions", format!("{}{bf16}", level.name()), "set MINRNN_SIMD to what all processors have"),
        Trait::new("threads", rayon::current_num_threads(), "set train.threads, so that all have the same number"),
        Trait::new("an experiment with the digest", digest(experiment.to_toml()?.as_bytes()), SAME_PROGRAM),
        Trait::new("a first batch with the digest", first_batch, SAME_DATA),
        weights_trait(model),
    ])
}

/// Checks that the processes would score the same model on the same data with the same program. Their instruction sets and thread counts
/// may differ, since they only affect how sums are rounded.
///
/// # Errors
/// When something differs, or a first batch cannot be read.
pub fn expect_same_scores<'a>(
    group: &Group,
    model: &AnyModel,
    sets: impl IntoIterator<Item = &'a mut Box<dyn EvaluationSet>>,
) -> Result<()> {
    if group.is_alone() {
        return Ok(());
    }
    let of_set = |set: &mut Box<dyn EvaluationSet>| -> Result<Trait> {
        let first = if set.n_batches() == 0 { String::new() } else { format!("{:?}", set.batch(0)?) };
        let set = format!("{} batches, the first with the digest {}", set.n_batches(), digest(first.as_bytes()));
        Ok(Trait::new("a set to score of", set, SAME_COMMAND))
    };
    let own = sets.into_iter().map(of_set).collect::<Result<Vec<Trait>>>().map(|sets| {
        let weights = Trait { remedy: SAME_COMMAND.to_owned(), ..weights_trait(model) };
        let head = [version_trait(), weights, Trait::new("a number of sets to score of", sets.len(), SAME_COMMAND)];
        head.into_iter().chain(sets).collect()
    });
    group.expect_alike(group.agree(own)?)
}

const SAME_PROGRAM: &str = "start the same program everywhere";
const SAME_DATA: &str = "let all read the same data";
const SAME_COMMAND: &str = "start the same command everywhere, on the same files";

fn version_trait() -> Trait {
    Trait::new("version", env!("CARGO_PKG_VERSION"), SAME_PROGRAM)
}

/// The current weights.
pub(super) fn weights_trait(model: &AnyModel) -> Trait {
    let values = named_values(model).into_iter().flat_map(|(_, _, values)| values);
    let crc = values.fold(0, |crc, value| crc32c::crc32c_append(crc, &value.to_le_bytes()));
    let remedy = "a machine computes or transfers incorrectly; continue from the last checkpoint on others";
    Trait::new("weights with the checksum", format!("{crc:08x}"), remedy)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}
