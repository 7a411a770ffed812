//! Compares a sequence with the previous one, for labels of pairs.
//!
//! ```text
//! a_t = x_{r−1}     r the last step up to t before which the model was reset; 0 if it never was
//! y_t = GELU(W [a_t, x_t, a_t − x_t, a_t ⊙ x_t] + b)
//! ```
//!
//! Two consecutive sequences with a reset between them pass through one model as through two towers with shared weights; y compares the two
//! at the last step, with the mean of each as x.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn_kernels::segments::{PADDING, RESET};

use crate::memory::activations::{Activations, Op};
use crate::nn::{Initializer, State, StateZip, expect_rows, linear};
use crate::ops::{Start, StepCodes, bias_gelu, linear_scan};

/// The comparison, followed by the head.
#[derive(Module, Debug)]
pub struct PairHead {
    /// 4D → D.
    pub linear: Linear,
}

/// The state of a [`PairHead`].
#[derive(Debug, Clone)]
pub struct PairMemory {
    /// x before the last reset `[B, D]`.
    pub previous: Tensor<2>,
    /// x at the last step `[B, D]`.
    pub last: Tensor<2>,
}

impl State for PairMemory {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { previous: f.tensor("previous", self.previous, other.previous), last: f.tensor("last", self.last, other.last) }
    }
}

impl PairMemory {
    /// The initial state.
    pub(super) fn init(batch_size: usize, width: usize, device: &Device) -> Self {
        let zeros = || Tensor::zeros([batch_size, width], device);
        Self { previous: zeros(), last: zeros() }
    }
}

impl PairHead {
    pub(super) fn new(width: usize, init: &mut Initializer) -> Self {
        Self { linear: init.linear_with_bias(4 * width, width, true) }
    }

    pub(super) fn activations(d: u128, list: &mut Activations) {
        // The previous x, its copy at resets, the recurrence over it, and the four features with their products.
        list.op(Op { keeps: &[d; 4], reads: 2 * d, gives: d, aside: 2 * d, ..Op::default() });
        list.op(Op { keeps: &[d, d, 4 * d], reads: 4 * d, gives: d, aside: 4 * d, ..Op::default() });
        list.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
    }

    /// The comparisons of `x` `[B, T, D]`, and the state to carry.
    pub(super) fn forward(&self, x: Tensor<3>, memory: PairMemory, steps: &StepCodes) -> (Tensor<3>, PairMemory) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&memory, batch);
            return (x, memory);
        }
        // Step t of `before` is x at t − 1.
        let before = Tensor::cat(vec![memory.last.unsqueeze_dim(1), x.clone()], 1);
        let last = linear::rows(before.clone()).select(0, last_steps(batch, seq_len, steps, &x.device()));
        let resets: Vec<f32> = codes(batch, seq_len, steps).map(|code| f32::from(u8::from(code == RESET))).collect();
        let resets = Tensor::<3>::from_data(TensorData::new(resets, [batch, seq_len, 1]), &x.device());
        // A recurrence that takes up the value at a reset and keeps it otherwise.
        let keeps = x.ones_like() - resets.clone();
        let taken = before.narrow(1, 0, seq_len) * resets;
        let (a, previous) = linear_scan(keeps, taken, Start::carried(memory.previous), steps);
        let both = Tensor::cat(vec![a.clone(), x.clone(), a.clone() - x.clone(), a * x], 2);
        let preact = linear::matmul_rows(linear::rows(both), self.linear.weight.val());
        let y = linear::sequences(bias_gelu(preact, linear::bias(&self.linear)), batch, seq_len);
        (y, PairMemory { previous, last })
    }
}

fn codes(batch: usize, seq_len: usize, steps: &StepCodes) -> impl Iterator<Item = i32> + '_ {
    (0..batch).flat_map(move |b| (0..seq_len).map(move |t| steps.code(b, t)))
}

/// The index of each row's last real step among rows with one more step, the first of which precedes the batch.
fn last_steps(batch: usize, seq_len: usize, steps: &StepCodes, device: &Device) -> Tensor<1, Int> {
    let length = |b: usize| (0..seq_len).filter(|&t| steps.code(b, t) != PADDING).count();
    let places: Vec<i64> = (0..batch).map(|b| (b * (seq_len + 1) + length(b)) as i64).collect();
    Tensor::from_data(TensorData::new(places, [batch]), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;

    const D: usize = 3;

    fn random(shape: [usize; 3], seed: u64) -> Tensor<3> {
        Initializer::new(seed, &Device::flex()).normal(shape, 1.0).val()
    }

    fn close(a: Tensor<3>, b: Tensor<3>) {
        let differences: Vec<f32> = (a - b).abs().into_data().try_to_vec().unwrap();
        assert!(differences.iter().all(|&difference| difference < 1e-5), "{differences:?}");
    }

    /// The comparison of two vectors `[1, 1, D]`, from the formula.
    fn compared(head: &PairHead, a: Tensor<3>, x: Tensor<3>) -> Tensor<3> {
        let both = Tensor::cat(vec![a.clone(), x.clone(), a.clone() - x.clone(), a * x], 2);
        let preact = both.matmul(head.linear.weight.val().unsqueeze()) + head.linear.bias.as_ref().unwrap().val().unsqueeze();
        burn::tensor::activation::gelu(preact)
    }

    #[test]
    fn the_value_before_the_last_reset_is_compared() {
        let device = Device::flex();
        let head = PairHead::new(D, &mut Initializer::new(1, &device));
        let x = random([2, 6, D], 2);
        let at = |b: usize, t: usize| x.clone().slice([b..b + 1, t..t + 1, 0..D]);
        let segments = Segments::from_lengths(vec![6, 4]).with_resets(vec![vec![2, 5], vec![3]]);
        let (y, memory) = head.forward(x.clone(), PairMemory::init(2, D, &device), &segments.steps(2, 6).unwrap());
        let y_at = |b: usize, t: usize| y.clone().slice([b..b + 1, t..t + 1, 0..D]);
        let nothing = || Tensor::zeros([1, 1, D], &device);
        close(y_at(0, 1), compared(&head, nothing(), at(0, 1)));
        close(y_at(0, 2), compared(&head, at(0, 1), at(0, 2)));
        close(y_at(0, 4), compared(&head, at(0, 1), at(0, 4)));
        close(y_at(0, 5), compared(&head, at(0, 4), at(0, 5)));
        close(y_at(1, 3), compared(&head, at(1, 2), at(1, 3)));
        let row = |values: Tensor<2>, b: usize| values.slice([b..b + 1, 0..D]).unsqueeze_dim(1);
        close(row(memory.last.clone(), 0), at(0, 5));
        close(row(memory.last, 1), at(1, 3));
        close(row(memory.previous, 0), at(0, 4));
    }

    #[test]
    fn cutting_anywhere_and_carrying_the_memory_changes_nothing() {
        let device = Device::flex();
        let head = PairHead::new(D, &mut Initializer::new(1, &device));
        let x = random([2, 7, D], 3);
        let segments = Segments::from_lengths(vec![7, 5]).with_resets(vec![vec![0, 3], vec![2, 4]]);
        let start = || PairMemory { previous: random([1, 2, D], 4).squeeze_dim(0), last: random([1, 2, D], 5).squeeze_dim(0) };
        let (whole, after) = head.forward(x.clone(), start(), &segments.steps(2, 7).unwrap());
        for cut in 1..7 {
            let (first, second) = segments.split(cut);
            let (y1, memory) = head.forward(x.clone().slice([0..2, 0..cut, 0..D]), start(), &first.steps(2, cut).unwrap());
            let (y2, memory) = head.forward(x.clone().slice([0..2, cut..7, 0..D]), memory, &second.steps(2, 7 - cut).unwrap());
            let joined = Tensor::cat(vec![y1, y2], 1);
            close(joined.slice([0..2, 0..5, 0..D]), whole.clone().slice([0..2, 0..5, 0..D]));
            close(memory.last.unsqueeze_dim(1), after.last.clone().unsqueeze_dim(1));
            close(memory.previous.unsqueeze_dim(1), after.previous.clone().unsqueeze_dim(1));
        }
    }
}
