//! The place of every token, counted from the last reset.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use minrnn_kernels::segments::{PADDING, RESET};

use crate::ops::StepCodes;

/// StepPositions of the steps of a batch `[B, T]`, and the counter `[B, 1]` that says how many steps each row has had since its last reset.
///
/// The counter is an f32 like every part of a state, and so exact up to 2²⁴ steps; padding leaves it as it is.
#[derive(Debug, Clone)]
pub(crate) struct StepPositions {
    /// The counters before the first step.
    pub before: Vec<usize>,
    /// The place of every step, 0 at padding.
    pub of: Arc<[u32]>,
    /// The largest counter after the last step.
    pub furthest: usize,
    /// The counters after the last step.
    pub after: Tensor<2>,
}

impl StepPositions {
    /// Counts `seq_len` steps on from `counter` `[B, 1]`.
    pub(crate) fn count(counter: Tensor<2>, seq_len: usize, steps: &StepCodes) -> Self {
        let [batch, _] = counter.dims();
        let values: Vec<f32> = counter.clone().into_data().try_to_vec().expect("states are f32");
        // A counter that is no number, in a damaged state, becomes 0.
        let before: Vec<usize> = values.into_iter().map(|value| value as usize).collect();
        let mut of = Vec::with_capacity(batch * seq_len);
        let (mut kept, mut added) = (vec![1.0; batch], vec![0.0; batch]);
        let mut furthest = 0;
        for b in 0..batch {
            let mut place = before[b];
            for t in 0..seq_len {
                match steps.code(b, t) {
                    PADDING => {
                        of.push(0);
                        continue;
                    }
                    RESET => (place, kept[b], added[b]) = (0, 0.0, 0.0),
                    _ => {}
                }
                of.push(u32::try_from(place).unwrap_or(u32::MAX));
                place = place.saturating_add(1);
                added[b] += 1.0;
            }
            furthest = furthest.max(place);
        }
        let after = match batch * seq_len {
            0 => counter,
            _ => {
                let column = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [batch, 1]), &counter.device());
                counter.clone() * column(kept) + column(added)
            }
        };
        Self { before, of: of.into(), furthest, after }
    }
}
