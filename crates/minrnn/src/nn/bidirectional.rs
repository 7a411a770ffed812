//! Two mixers over the same sequence, one of them in reverse; an encoder rather than a mixer, since it carries no state.

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};

use super::linear::{rows, sequences};
use super::mixer::Mixer;
use crate::{Result, Segments};

/// Sums a forward and a reversed pass; the reversal stays within each segment of each row.
#[derive(Module, Debug)]
pub struct Bidirectional<M: Module> {
    /// Reads from the past.
    pub forward: M,
    /// Reads from the future.
    pub backward: M,
}

impl<M: Mixer> Bidirectional<M> {
    /// Both passes over `x` `[B, T, D]` → `[B, T, D]`, each from its initial state.
    ///
    /// # Errors
    /// When `segments` does not fit the batch.
    ///
    /// # Panics
    /// When the width of `x` is not the mixers'.
    pub fn encode(&self, x: Tensor<3>, segments: &Segments) -> Result<Tensor<3>> {
        let [batch, seq_len, _] = x.dims();
        let steps = segments.steps(batch, seq_len)?;
        let order = reversed_order(segments, batch, seq_len);
        let (ahead, _) = self.forward.forward(x.clone(), self.forward.init_state(batch), &steps);
        // With the reversal inside each segment, segments keep their places, so the same resets apply.
        let (back, _) = self.backward.forward(reorder(x, &order), self.backward.init_state(batch), &steps);
        Ok(ahead + reorder(back, &order))
    }
}

/// For each step of the flattened batch, the step that takes its place; its own inverse.
fn reversed_order(segments: &Segments, batch: usize, seq_len: usize) -> Vec<i64> {
    let mut order = Vec::with_capacity(batch * seq_len);
    for b in 0..batch {
        let length = segments.lengths().map_or(seq_len, |lengths| lengths[b]);
        let mut bounds: Vec<usize> = segments.resets().map_or_else(Vec::new, |rows| rows[b].clone());
        bounds.retain(|&t| t < length);
        bounds.extend([0, length]);
        bounds.sort_unstable();
        let start = (b * seq_len) as i64;
        for pair in bounds.windows(2) {
            order.extend((pair[0]..pair[1]).rev().map(|t| start + t as i64));
        }
        order.extend((length..seq_len).map(|t| start + t as i64));
    }
    order
}

fn reorder(x: Tensor<3>, order: &[i64]) -> Tensor<3> {
    if order.is_empty() {
        return x;
    }
    let [batch, seq_len, _] = x.dims();
    let order = Tensor::<1, Int>::from_data(TensorData::new(order.to_vec(), [order.len()]), &x.device());
    sequences(rows(x).select(0, order), batch, seq_len)
}
