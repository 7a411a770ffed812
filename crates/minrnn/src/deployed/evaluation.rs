//! Scores a deployed model on a fixed list of batches.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::ModelConfig;
use minrnn_stream::{Model, State, Workspace, ambient_threads};
use rayon::prelude::*;

use crate::Result;
use crate::data::table::{CHUNK_LEN, Comparison};
use crate::data::{Batch, EvaluationSet, Sequences};
use crate::memory::{Estimate, Run, running};
use crate::ops::pinball_sum;
use crate::train::{Evaluation, is_right, loss_of};

/// The peak memory that [`evaluate`] needs in addition to the model of `config`, for a table, in batches of `batch_size` sequences, the
/// longest of `longest` steps.
///
/// # Errors
/// When the configuration is not valid.
pub fn evaluate_memory(config: &ModelConfig, batch_size: usize, longest: usize) -> Result<Estimate> {
    let threads = ambient_threads().min(batch_size);
    let steps = batch_size.saturating_mul(longest.min(CHUNK_LEN));
    running("evaluation", config, Run { sessions: batch_size, steps: longest, threads, read: steps, predicted: steps })
}

/// Scores `model` on every batch of `set` and passes all predictions to `comparison`; `None` if `stop` was raised before the end. The
/// threads of the ambient pool read different sequences.
///
/// # Errors
/// When a batch cannot be read, or the model has other inputs.
pub fn evaluate(
    model: &Model,
    set: &mut dyn EvaluationSet,
    mut comparison: Option<&mut (dyn Comparison + 'static)>,
    stop: &AtomicBool,
) -> Result<Option<Evaluation>> {
    let (mut loss, mut right, mut n_scored, mut n_targets) = (0.0, None, 0u64, 0u64);
    let mut carried = Vec::new();
    for index in 0..set.n_batches() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let batch = set.batch(index)?;
        if !set.carries_state() || carried.len() != batch.batch_size {
            carried = (0..batch.batch_size).map(|_| model.init_state(1)).collect::<Result<_, _>>()?;
        }
        let outputs = predicted(model, &batch, &mut carried)?;
        if let Some(comparison) = &mut comparison {
            comparison.add(index, &batch, &outputs);
        }
        for (place, outputs) in outputs.chunks_exact(model.outputs()).enumerate() {
            if batch.mask.as_ref().is_some_and(|mask| mask[place] == 0.0) {
                continue;
            }
            n_scored += 1;
            match &batch.targets {
                Sequences::Tokens(classes) => {
                    let class = classes[place] as usize;
                    loss += loss_of(outputs, class);
                    n_targets += 1;
                    *right.get_or_insert(0u64) += u64::from(is_right(outputs, class));
                }
                Sequences::Values { values, width } => {
                    let expected = &values[place * width..][..*width];
                    for (x, y) in outputs.iter().zip(expected).filter(|(_, y)| !y.is_nan()) {
                        loss += f64::from(x - y).powi(2);
                        n_targets += 1;
                    }
                }
                Sequences::Quantiles { values, width, levels } => {
                    let (sum, n) = pinball_sum(outputs, &values[place * width..][..*width], levels);
                    loss += sum;
                    n_targets += n;
                }
            }
        }
    }
    let accuracy = right.map(|right| right as f64 / n_scored.max(1) as f64);
    Ok(Some(Evaluation { loss: loss / n_targets.max(1) as f64, accuracy, n_scored }))
}

/// The predictions at every step of `batch`, `[B, T, outputs]`, zeros at padding; advances the sessions, one for each row.
fn predicted(model: &Model, batch: &Batch, sessions: &mut [State]) -> Result<Vec<f32>> {
    let of_row = batch.seq_len * model.outputs();
    let mut outputs = vec![0.0; batch.batch_size * of_row];
    if of_row == 0 {
        return Ok(outputs);
    }
    let threads = ambient_threads();
    let workspace = || {
        let mut workspace = Workspace::new();
        workspace.set_threads((threads / batch.batch_size).max(1));
        workspace
    };
    let rows = sessions.par_iter_mut().zip(outputs.par_chunks_exact_mut(of_row)).enumerate();
    let found: Vec<Result<()>> =
        rows.map_init(workspace, |workspace, (row, (state, outputs))| predict_row(model, batch, row, state, outputs, workspace)).collect();
    found.into_iter().collect::<Result<()>>()?;
    Ok(outputs)
}

/// The same for one row, whose predictions are written to `outputs` `[T, outputs]`.
fn predict_row(model: &Model, batch: &Batch, row: usize, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
    let (seq_len, width) = (batch.seq_len, model.outputs());
    let length = batch.segments.lengths().map_or(seq_len, |lengths| lengths[row]);
    let resets = batch.segments.resets().map_or(&[][..], |rows| rows[row].as_slice());
    let mut bounds: Vec<usize> = resets.iter().copied().filter(|&t| t < length).chain([0, length]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    for part in bounds.windows(2) {
        let (start, end) = (part[0], part[1]);
        if resets.contains(&start) {
            model.restart(state, 0)?;
        }
        let places = row * seq_len + start..row * seq_len + end;
        let outputs = &mut outputs[start * width..end * width];
        match &batch.inputs {
            Sequences::Tokens(tokens) => model.forward(&tokens[places], state, outputs, workspace)?,
            Sequences::Values { values, width } | Sequences::Quantiles { values, width, .. } => {
                model.forward_values(&values[places.start * width..places.end * width], state, outputs, workspace)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use minrnn_model::MixerKind;

    use super::*;

    #[test]
    fn the_states_of_all_sequences_count_and_the_model_does_not() {
        for mixer in [MixerKind::Attention, MixerKind::MLstm] {
            let config = ModelConfig {
                mixer,
                vocab_size: 0,
                input_width: 1,
                n_outputs: 1,
                d_model: 256,
                max_seq_len: 4096,
                ..ModelConfig::default()
            };
            let of = |sessions: usize, longest: usize| evaluate_memory(&config, sessions, longest).unwrap().total();
            let cost = config.cost().unwrap();
            let more = of(32, 4096) - of(1, 4096);
            assert!(more > 31 * 4 * cost.carried(4096), "{mixer}: {more}");
            assert!(of(1, 8) < 4 * cost.parameters + crate::memory::PROGRAM + (1 << 20), "{mixer}");
        }
    }
}
