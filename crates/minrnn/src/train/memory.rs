//! How much memory a training will need, from its experiment alone.
//!
//! The peak is reached at one of four moments:
//!
//! * **differentiating** a batch: parameters, moments, states, what the blocks keep for the backward pass, and the gradients so far. During
//!   the backward pass activations are freed and gradients added, so every block is considered;
//! * **evaluating** a batch: parameters, moments, states, and the tensors of one operation;
//! * **updating**: parameters before and after, moments, and gradients;
//! * **saving**: parameters and moments, with copies of the moments as they are written.
//!
//! `docs/memory.md` compares these estimates with measurements.

use minrnn_model::{CheckedConfig, ModelConfig};

use super::data_config::DataConfig;
use super::experiment::Experiment;
use super::train_config::Keep;
use super::untrained::ResolvedModel;
use crate::Result;
use crate::device::DeviceChoice;
use crate::memory::{Estimate, F32, Long, NOTHING, NewPart, PROGRAM, Sizes, gaps, inference};
use crate::model::Pass;

/// A step of a batch as made and as fed to the model: a token as 4 and as 8 bytes, its target twice as 4, its weight twice as 4.
const BYTES_OF_STEP: u128 = 28;

/// The memory needed to train `experiment`, as far as known before its data are read.
///
/// # Errors
/// When the experiment is not valid.
pub fn training_memory(experiment: &Experiment) -> Result<Estimate> {
    experiment.validate()?;
    training_memory_of(experiment, &ResolvedModel::assumed(experiment)?, None)
}

/// The same with `model`, which is the experiment's model with the shape determined by its data, and with sequences of at most `longest`
/// steps, if the data determine it.
///
/// # Errors
/// When the model is not valid.
pub fn training_memory_of(experiment: &Experiment, model: &ModelConfig, longest: Option<usize>) -> Result<Estimate> {
    estimate(experiment, &model.checked()?, longest)
}

/// The memory needed to evaluate the model of `experiment`, on batches as large as in training, with sequences of at most `longest` steps,
/// if the data determine it.
///
/// # Errors
/// When the model is not valid.
pub fn evaluation_memory(experiment: &Experiment, longest: Option<usize>) -> Result<Estimate> {
    let [_, sizes] = sizes(experiment, longest);
    inference("evaluation", &experiment.model, sizes)
}

fn estimate(experiment: &Experiment, model: &CheckedConfig, longest: Option<usize>) -> Result<Estimate> {
    let (train, data) = (&experiment.train, &experiment.data);
    let [training, evaluation] = sizes(experiment, longest);
    let parameters = model.cost().parameters;
    let batch = training.steps() * (BYTES_OF_STEP + 8 * (model.input_width as u128));
    // A text is read from its file on demand.
    let data_set = (data.task.spec().held)(data);
    let on_processor = train.device == DeviceChoice::default();
    let fixed = [
        ("parameters", F32 * parameters, WIDTH),
        ("moments", 2 * F32 * parameters, WIDTH),
        ("averages", if train.keep == Keep::Average { F32 * parameters } else { 0 }, WIDTH),
        ("data", data_set, DATA),
        ("batch", batch, BATCH),
        ("program", PROGRAM, NOTHING),
    ];
    let saving = saving(model, parameters)?;
    let moments = if on_processor {
        vec![differentiating(experiment, model, training)?, evaluating(model, evaluation)?, updating(model, parameters)?, saving]
    } else {
        // Tensors on a GPU are not in this memory.
        vec![saving]
    };
    let most = moments.into_iter().max_by_key(|moment| bytes(&moment.parts) + moment.gaps);
    let Moment { parts, gaps } = most.unwrap_or_default();
    Ok(Estimate::new("training", fixed.into_iter().chain(parts)).with_gaps(gaps))
}

/// What is held at one moment, beyond what is held all the time.
#[derive(Default)]
struct Moment {
    parts: Vec<NewPart>,
    /// Unused memory held by the allocator.
    gaps: u128,
}

impl Moment {
    /// With no tensors longer than a piece of the allocator, or too few to matter.
    fn of(parts: Vec<NewPart>) -> Self {
        Self { gaps: gaps(bytes(&parts), 0, Long::default()), parts }
    }
}

fn bytes(parts: &[NewPart]) -> u128 {
    parts.iter().map(|part| part.1).sum()
}

const BATCH: &[&str] = &["lower train.batch_size (train.accumulation makes up for it)"];
const KEPT: &[&str] = &["lower train.batch_size (train.accumulation makes up for it)", "set train.checkpoint_blocks = true"];
const WIDTH: &[&str] = &["lower model.d_model or model.n_layers"];
const STATES: &[&str] =
    &["lower train.batch_size (train.accumulation makes up for it)", "lower model.d_state, model.expansion or model.max_seq_len"];
const DATA: &[&str] = &["use fewer rows or columns"];

/// Loss and gradients of a batch.
fn differentiating(experiment: &Experiment, model: &CheckedConfig, sizes: Sizes) -> Result<Moment> {
    let Pass { embedding, blocks, head, states, forward } = Pass::of(model, sizes);
    let stream = sizes.steps() * model.d_model as u128;
    let checkpoints = experiment.train.checkpoint_blocks;
    // From the first to the last: what they keep, what they hold at their peak, and how many parameters they have.
    let mut parts = vec![(embedding, model.embedding_cost().parameters)];
    for (layer, block) in blocks.iter().enumerate() {
        parts.push((*block, model.block_cost(layer).parameters));
    }
    parts.push((head, model.head_cost().parameters));
    let mut below: u128 = parts.iter().map(|(tape, _)| if checkpoints { stream } else { tape.kept }).sum();
    let mut long = parts.iter().fold(Long::default(), |long, (tape, _)| long + tape.long);
    let (mut gradients, mut most, mut long_of_most) = (0, (0, 0, 0), long);
    for (i, (tape, trained)) in parts.iter().enumerate().rev() {
        below -= if checkpoints { stream } else { tape.kept };
        gradients += trained;
        // A block that is run again begins from a known gradient of its output.
        let again = if checkpoints && i > 0 { 2 * stream } else { 0 };
        if below + gradients + tape.backward + again > most.0 + most.1 + most.2 {
            most = (below + tape.kept, gradients, tape.backward - tape.kept + again);
            long_of_most = if checkpoints { Long::default() } else { long + tape.passing };
        }
        long.left -= tape.long.left;
    }
    let (kept, gradients, passing) = most;
    // Sums of 1, 2, 4 … micro-steps wait for another of the same size.
    let accumulated = u128::from(experiment.train.accumulation.max(1).ilog2()) * model.cost().parameters;
    let kept_remedy = if checkpoints { BATCH } else { KEPT };
    let logits = F32 * sizes.scored * model.outputs() as u128;
    let parts = vec![
        ("activations", F32 * kept, kept_remedy),
        ("passing tensors", F32 * passing.max(if checkpoints { forward } else { 0 }), BATCH),
        ("states", F32 * states, STATES),
        ("gradients", F32 * (gradients + accumulated), WIDTH),
    ];
    Ok(Moment { gaps: gaps(bytes(&parts), logits, long_of_most), parts })
}

/// A pass without gradients, and its logits as they are scored.
fn evaluating(model: &CheckedConfig, sizes: Sizes) -> Result<Moment> {
    let Pass { states, forward, .. } = Pass::of(model, sizes);
    let logits = sizes.scored * model.outputs() as u128;
    Ok(Moment::of(vec![("activations", F32 * (forward + logits), BATCH), ("states", F32 * states, STATES)]))
}

/// New parameters beside the old ones, the gradients of parameters not yet updated, and for the current parameter old and new moments.
fn updating(model: &CheckedConfig, parameters: u128) -> Result<Moment> {
    Ok(Moment::of(vec![("gradients and new parameters", F32 * (parameters + 3 * largest_tensor(model)), WIDTH)]))
}

/// The moments as collected, and again as the bytes of the file; for one tensor, a buffer that grows while it is collected.
fn saving(model: &CheckedConfig, parameters: u128) -> Result<Moment> {
    Ok(Moment::of(vec![("copies to save", F32 * (4 * parameters + 2 * largest_tensor(model)), WIDTH)]))
}

/// An upper bound on the parameters of one tensor: all parameters of a part of the model.
fn largest_tensor(model: &CheckedConfig) -> u128 {
    let d = model.d_model as u128;
    let mut widths = vec![model.d_inner() as u128 * 3, model.vocab_size as u128, model.outputs() as u128, model.input_width as u128];
    if model.ff != minrnn_model::FeedForwardKind::None {
        widths.push(2 * model.d_ff() as u128);
    }
    widths.into_iter().max().unwrap_or(0) * d
}

/// A batch of training and one of evaluation.
fn sizes(experiment: &Experiment, longest: Option<usize>) -> [Sizes; 2] {
    let (train, data) = (&experiment.train, &experiment.data);
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if train.threads == 0 { cores() } else { train.threads };
    (data.task.spec().steps)(data, train, longest).map(|seq_len| Sizes {
        batch_size: train.assumed_batch_size(),
        seq_len,
        scored: scored(data, train.assumed_batch_size(), seq_len),
        threads,
    })
}

/// Steps of a batch for which the head computes predictions: those with a weight if they are at most half, otherwise all.
fn scored(data: &DataConfig, batch_size: usize, seq_len: usize) -> u128 {
    let of_each = (data.task.spec().scored)(data, seq_len);
    let of_each = if 2 * of_each as u128 > seq_len as u128 { seq_len } else { of_each };
    batch_size as u128 * of_each as u128
}

#[cfg(test)]
mod tests {
    use minrnn_model::{FeedForwardKind, MixerKind, NormKind, Pooling};
    use proptest::prelude::*;

    use super::*;
    use crate::memory::{Room, Source};
    use crate::train::Task;

    /// A small text experiment around `mixer`.
    fn experiment(mixer: MixerKind) -> Experiment {
        let mut experiment = Experiment::default();
        let model = &mut experiment.model;
        (model.mixer, model.vocab_size, model.d_model, model.d_state, model.max_seq_len) = (mixer, 65, 64, 8, 4096);
        (experiment.train.batch_size, experiment.train.seq_len, experiment.train.threads) = (4, 64, 2);
        experiment
    }

    fn bytes(experiment: &Experiment) -> u128 {
        training_memory(experiment).unwrap().total()
    }

    proptest! {
        #[test]
        fn a_larger_training_is_never_told_to_need_less(
            mixer in prop::sample::select(MixerKind::ALL),
            (conv, checkpoint_blocks, accumulation) in (any::<bool>(), any::<bool>(), 1usize..3),
            ff in prop::sample::select(vec![FeedForwardKind::None, FeedForwardKind::Mlp, FeedForwardKind::SwiGlu, FeedForwardKind::ChannelMix]),
            (norm, pooling) in prop::sample::select(vec![(NormKind::Rms, Pooling::Last), (NormKind::Layer, Pooling::Mean)]),
        ) {
            let mut smaller = experiment(mixer);
            (smaller.model.conv, smaller.model.ff, smaller.model.norm, smaller.model.pooling) = (conv, ff, norm, pooling);
            (smaller.train.checkpoint_blocks, smaller.train.accumulation) = (checkpoint_blocks, accumulation);
            let least = bytes(&smaller);
            let grown: [fn(&mut Experiment); 6] = [
                |e| e.train.batch_size *= 3,
                |e| e.train.seq_len *= 3,
                |e| e.model.d_model *= 2,
                |e| e.model.n_layers += 3,
                |e| e.model.vocab_size *= 100,
                |e| e.train.accumulation += 1,
            ];
            for (i, grow) in grown.iter().enumerate() {
                let mut larger = smaller.clone();
                grow(&mut larger);
                prop_assert!(bytes(&larger) >= least, "{i}: {} {least}", bytes(&larger));
            }
            let mut checkpointed = smaller.clone();
            (checkpointed.train.checkpoint_blocks, checkpointed.model.n_layers) = (true, 8);
            let mut kept = checkpointed.clone();
            kept.train.checkpoint_blocks = false;
            prop_assert!(bytes(&checkpointed) <= bytes(&kept));
        }
    }

    #[test]
    fn the_largest_settings_do_not_wrap() {
        for &mixer in MixerKind::ALL {
            let mut largest = experiment(mixer);
            (largest.model.n_layers, largest.train.batch_size, largest.train.seq_len) = (1024, 1 << 20, 64);
            // A layer keeps at least its input.
            assert!(bytes(&largest) > 4 * 1024 * (1 << 26) * 64, "{mixer}");
        }
        let mut copying = experiment(MixerKind::MinGru);
        copying.data.task = Task::SelectiveCopying;
        (copying.data.copying.length, copying.data.copying.n_tokens, copying.train.batch_size) = (1 << 24, 1 << 24, 1 << 20);
        (copying.model.d_model, copying.model.n_layers, copying.model.vocab_size) = (1 << 11, 64, 0);
        let told = bytes(&copying);
        assert!(told > 1 << 64 && crate::memory::rounded(told) == "more than 16 EiB", "{told}");
    }

    #[test]
    fn a_refusal_names_the_largest_parts_and_what_to_lower() {
        let mut large = experiment(MixerKind::MinGru);
        (large.train.batch_size, large.train.seq_len) = (1 << 16, 1 << 10);
        let room = Room { bytes: 1 << 33, source: Source::Machine };
        let refused = training_memory(&large).unwrap().expect_within(&room).unwrap_err();
        assert!(refused.is_wrong_input());
        let sentence = refused.to_string();
        for part in [
            "training needs about ",
            " of memory (activations ",
            "the machine has 8.00 GiB available; lower train.batch_size",
            "checkpoint_blocks",
        ] {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
        training_memory(&experiment(MixerKind::MinGru)).unwrap().expect_within(&room).unwrap();
    }

    #[test]
    fn a_gpu_keeps_activations_out_of_this_memory() {
        let here = experiment(MixerKind::MinGru);
        let mut there = here.clone();
        (there.train.device, there.train.batch_size) = ("vulkan".parse().unwrap(), 1 << 10);
        assert!(
            bytes(&there) < bytes(&Experiment { train: crate::train::TrainConfig { batch_size: 1 << 10, ..here.train.clone() }, ..here })
        );
    }
}
