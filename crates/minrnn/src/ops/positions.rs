//! The position of every token, counted from the last reset.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use minrnn_kernels::count;
use minrnn_kernels::segments::{PADDING, RESET};

use super::steps::StepCodes;

/// The positions of the steps of a batch `[B, T]`, and the counter `[B, 1]` of how many steps each row has had since its last reset, as kept
/// by [`count`]; padding leaves it unchanged.
#[derive(Debug, Clone)]
pub(crate) struct StepPositions {
    /// The counters before the first step.
    pub before: Vec<u32>,
    /// The position of every step, 0 at padding.
    pub of: Arc<[u32]>,
    /// The counters after the last step.
    pub counts: Vec<u32>,
    /// The same as part of a state.
    pub after: Tensor<2>,
}

impl StepPositions {
    /// Counts on from `counter` `[B, 1]` by `seq_len` steps.
    pub(crate) fn count(counter: Tensor<2>, seq_len: usize, steps: &StepCodes) -> Self {
        let [batch, _] = counter.dims();
        let values: Vec<f32> = counter.clone().into_data().try_to_vec().expect("states are f32");
        let before: Vec<u32> = values.into_iter().map(count::of).collect();
        let mut of = Vec::with_capacity(batch * seq_len);
        let mut counts = before.clone();
        for (b, place) in counts.iter_mut().enumerate() {
            for t in 0..seq_len {
                match steps.code(b, t) {
                    PADDING => {
                        of.push(0);
                        continue;
                    }
                    RESET => *place = 0,
                    _ => {}
                }
                of.push(*place);
                *place = count::next(*place);
            }
        }
        let after = match batch * seq_len {
            0 => counter,
            _ => {
                // As a sum, so that a gradient reaches a counter that continues.
                let goes_on = |b: usize| (0..seq_len).all(|t| steps.code(b, t) != RESET);
                let carried: Vec<f32> = (0..batch).map(|b| if goes_on(b) { 1.0 } else { 0.0 }).collect();
                let added = |b: usize| count::kept(counts[b]) - carried[b] * count::kept(before[b]);
                let added: Vec<f32> = (0..batch).map(added).collect();
                let column = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [batch, 1]), &counter.device());
                counter.clone() * column(carried) + column(added)
            }
        };
        Self { before, of: of.into(), counts, after }
    }
}
