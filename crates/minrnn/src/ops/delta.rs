//! The associative memory with the delta rule as a fused recurrence over precomputed queries, keys and values.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::delta::{self as kernel, Sizes};

use super::flex::{InputList, dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::norm::over_root;
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// S_t = S_{t−1} + β_t (v_t − S_{t−1} k̂_t) k̂_tᵀ and y_t = S_t q_t for every head, with k̂ = k / √(‖k‖² + 1e-6) and β = σ(b); beyond the
/// paper. A reset empties the memory.
///
/// # Shapes
/// * `x` `[B, T, 3E + H]`, rows q, k, v (each H heads of n) and b; `memory` `[B, H, n, n]`, with row j of a head the value for coordinate j
///   of a key → y `[B, T, E]` and the memory after `[B, H, n, n]`
///
/// # Panics
/// When shapes do not fit.
pub fn delta(x: Tensor<3>, memory: Tensor<4>, steps: &StepCodes) -> (Tensor<3>, Tensor<4>) {
    let ([batch, seq_len, _], [_, heads, head_width, _]) = (x.dims(), memory.dims());
    expect_shape("delta", "memory", &memory, [batch, heads, head_width, head_width]);
    expect_shape("delta", "x", &x, [batch, seq_len, 3 * heads * head_width + heads]);
    if !is_on_cpu(&x.device()) {
        return composed(x, memory, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(x);
    inputs.add(memory);
    let mut outputs = run(Op { heads, head_width, steps: steps.clone() }, inputs.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(x: Tensor<3>, mut memory: Tensor<4>, steps: &StepCodes) -> (Tensor<3>, Tensor<4>) {
    let [batch, seq_len, _] = x.dims();
    let [_, heads, n, _] = memory.dims();
    let (e, device) = (heads * n, x.device());
    let (reset, padding) = (steps.reset_mask(&device), steps.padding_mask(&device));
    let at = |mask: &Option<Tensor<3>>, t: usize| mask.clone().map(|mask| mask.narrow(1, t, 1).reshape([batch, 1, 1, 1]));
    let mut outputs = Vec::new();
    for t in 0..seq_len {
        let row = x.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
        let part = |i: usize, shape: [usize; 4]| row.clone().narrow(1, i * e, e).reshape(shape);
        let (q, k, v) = (part(0, [batch, heads, n, 1]), part(1, [batch, heads, n, 1]), part(2, [batch, heads, 1, n]));
        let beta = activation::sigmoid(row.clone().narrow(1, 3 * e, heads)).reshape([batch, heads, 1, 1]);
        let squares = (k.clone() * k.clone()).sum_dim(2);
        let k = over_root(k, squares, f64::from(kernel::EPS));
        if let Some(reset) = at(&reset, t) {
            memory = memory * (-reset + 1.0);
        }
        let recalled = (memory.clone() * k.clone()).sum_dim(2);
        let corrected = memory.clone() + k * (beta * (v - recalled));
        let mut y = (corrected.clone() * q).sum_dim(2).reshape([batch, 1, e]);
        memory = match at(&padding, t) {
            None => corrected,
            Some(padding) => {
                y = y * (-padding.clone().reshape([batch, 1, 1]) + 1.0);
                corrected.clone() + padding * (memory - corrected)
            }
        };
        outputs.push(y);
    }
    let y = if outputs.is_empty() { Tensor::zeros([batch, 0, e], &device) } else { Tensor::cat(outputs, 1) };
    (y, memory)
}

/// Inputs x and memory.
#[derive(Debug)]
struct Op {
    heads: usize,
    head_width: usize,
    steps: StepCodes,
}

impl Op {
    fn sizes(&self, x: &FlexTensor) -> Sizes {
        let [batch, seq_len, _] = dims(x);
        Sizes { batch, seq_len, heads: self.heads, head_width: self.head_width }
    }

    fn inputs<'a>(&'a self, x: &'a FlexTensor, memory: &'a FlexTensor) -> kernel::Inputs<'a> {
        kernel::Inputs { x: slice(x), memory: Some(slice(memory)), segments: self.steps.kernel() }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = self.sizes(&inputs[0]);
        outputs([[sizes.batch, sizes.seq_len, sizes.width()].into(), shape(&inputs[1])], |[y, memory]| {
            kernel::forward(sizes, self.inputs(&inputs[0], &inputs[1]), y, memory);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, memory] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let [d_y, d_after] = [0, 1].map(|i| optional(d_outputs[i].as_ref()));
        outputs([x, memory].map(shape), |[d_x, d_memory]| {
            kernel::backward(self.sizes(x), self.inputs(x, memory), d_y, d_after, d_x, d_memory);
        })
    }
}
