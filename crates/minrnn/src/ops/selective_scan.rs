//! The selective scan of Mamba with its step sizes, skip and gate.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::{Shape, selective_scan as kernel};

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::{expect_shape, expect_shape_if_any};
use super::silu;
use super::softplus::softplus;
use super::steps::StepCodes;

/// The tensors of a [`selective_scan`] with N states for each of E channels.
#[derive(Debug, Clone)]
pub struct SelectiveScan {
    /// u `[B, T, E]`.
    pub u: Tensor<3>,
    /// δ `[B, T, E]`, the step size before bias and softplus.
    pub delta: Tensor<3>,
    /// Bias of δ `[E]`.
    pub delta_bias: Tensor<1>,
    /// A `[E, N]`, negative.
    pub a: Tensor<2>,
    /// B, then C `[B, T, 2N]`.
    pub bc: Tensor<3>,
    /// D `[E]`, the skip of u.
    pub skip: Tensor<1>,
    /// z `[B, T, E]`; without it the output has no gate.
    pub z: Option<Tensor<3>>,
    /// The carried state `[B, E, N]`; absent means zero. A reset restores zero.
    pub h0: Option<Tensor<3>>,
}

impl SelectiveScan {
    /// Refuses tensors that do not fit u and A.
    ///
    /// # Panics
    /// When they do not.
    fn expect_fits(&self) {
        let ([batch, seq_len, e], [_, n]) = (self.u.dims(), self.a.dims());
        expect_shape("selective_scan", "delta", &self.delta, [batch, seq_len, e]);
        expect_shape("selective_scan", "delta_bias", &self.delta_bias, [e]);
        expect_shape("selective_scan", "a", &self.a, [e, n]);
        expect_shape("selective_scan", "bc", &self.bc, [batch, seq_len, 2 * n]);
        expect_shape("selective_scan", "skip", &self.skip, [e]);
        expect_shape_if_any("selective_scan", "z", self.z.as_ref(), [batch, seq_len, e]);
        expect_shape_if_any("selective_scan", "h0", self.h0.as_ref(), [batch, e, n]);
    }
}

/// y_t = (Σ_n C_t h_t + D u_t) · SiLU(z_t) with h_t = exp(Δ_t A) h_{t−1} + Δ_t u_t B_t and Δ = softplus(δ + bias) (Gu and Dao 2023,
/// arXiv:2312.00752, §3.2).
///
/// # Shapes
/// * as in [`SelectiveScan`] → y `[B, T, E]` and the last state `[B, E, N]`
///
/// # Panics
/// When shapes do not fit.
pub fn selective_scan(scan: SelectiveScan, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    scan.expect_fits();
    let few_states = is_on_cpu(&scan.u.device()) || scan.a.dims()[1] <= MOST_STATES_ON_GPU;
    if !few_states || !has_kernels(&scan.u) {
        return composed(scan, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(scan.u);
    inputs.add(scan.delta);
    inputs.add(scan.delta_bias);
    inputs.add(scan.a);
    inputs.add(scan.bc);
    inputs.add(scan.skip);
    let op = Op { z: inputs.add_optional(scan.z), h0: inputs.add_optional(scan.h0), steps: steps.clone() };
    // The third output, the states between chunks, is only for the backward pass.
    let mut outputs = run(op, inputs.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(scan: SelectiveScan, steps: &StepCodes) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq_len, width] = scan.u.dims();
    let d_state = scan.a.dims()[1];
    let device = scan.u.device();
    let mut h = scan.h0.unwrap_or_else(|| Tensor::zeros([batch, width, d_state], &device));
    if batch * seq_len == 0 {
        return (scan.u, h);
    }
    let delta = softplus(scan.delta + scan.delta_bias.unsqueeze());
    let (reset, padding) = (steps.reset_mask(&device), steps.padding_mask(&device));
    let at = |mask: &Option<Tensor<3>>, t: usize| mask.clone().map(|mask| mask.narrow(1, t, 1));
    let column = |x: &Tensor<3>, t: usize| x.clone().narrow(1, t, 1).swap_dims(1, 2);
    let mut values = Vec::new();
    for t in 0..seq_len {
        if let Some(reset) = at(&reset, t) {
            h = h * (-reset + 1.0);
        }
        let (delta, u, bc) = (column(&delta, t), column(&scan.u, t), scan.bc.clone().narrow(1, t, 1));
        let decay = (delta.clone() * scan.a.clone().unsqueeze_dim(0)).exp();
        let next = decay * h.clone() + delta * u * bc.clone().narrow(2, 0, d_state);
        h = match at(&padding, t) {
            None => next,
            Some(padding) => next.clone() + padding * (h - next),
        };
        values.push((h.clone() * bc.narrow(2, d_state, d_state)).sum_dim(2).swap_dims(1, 2));
    }
    let mut y = Tensor::cat(values, 1) + scan.u * scan.skip.reshape([1, 1, width]);
    if let Some(z) = scan.z {
        y = y * silu::composed(z);
    }
    if let Some(padding) = padding {
        y = y * (-padding + 1.0);
    }
    (y, h)
}

#[derive(Debug)]
pub(super) struct Op {
    pub z: Option<usize>,
    pub h0: Option<usize>,
    pub steps: StepCodes,
}

/// Largest N of the GPU kernels, which keep B and C of a tile of steps in shared memory.
const MOST_STATES_ON_GPU: usize = 64;

/// Number of inputs that are always there: u, δ, its bias, A, B and C, D.
const REQUIRED: usize = 6;

impl Op {
    /// Sizes and slices, from whichever inputs there are.
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> (Shape, usize, kernel::Inputs<'a>) {
        let required = |i| input(i).expect("kept");
        let [batch, seq_len, width] = dims(required(0));
        let [_, d_state] = dims(required(3));
        let inputs = kernel::Inputs {
            u: slice(required(0)),
            delta: slice(required(1)),
            delta_bias: slice(required(2)),
            a: slice(required(3)),
            bc: slice(required(4)),
            skip: slice(required(5)),
            z: self.z.and_then(|i| optional(input(i))),
            h0: self.h0.and_then(|i| optional(input(i))),
            segments: self.steps.kernel(),
        };
        (Shape { batch, seq_len, width }, d_state, inputs)
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..REQUIRED).chain(self.z).collect(), outputs: vec![2] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (sizes, d_state, kernel_inputs) = self.inputs(|i| Some(&inputs[i]));
        let h_last = [sizes.batch, sizes.width, d_state];
        outputs([shape(&inputs[0]), h_last.into(), [kernel::boundaries_len(sizes, d_state)].into()], |[y, h_last, boundaries]| {
            kernel::forward(sizes, d_state, &kernel_inputs, kernel::Outputs { y, h_last, boundaries });
        })
    }

    fn backward(
        &self,
        inputs: &[Option<FlexTensor>],
        boundaries: &[Option<FlexTensor>],
        d_outputs: &[Option<FlexTensor>],
    ) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let (sizes, d_state, inputs) = self.inputs(kept);
        let boundaries = slice(boundaries[2].as_ref().expect("kept"));
        let [d_y, d_h_last] = [0, 1].map(|i: usize| optional(d_outputs[i].as_ref()));
        let [u, delta, delta_bias, a, bc, skip] = std::array::from_fn::<_, REQUIRED, _>(|i| shape(kept(i).expect("kept")));
        let required = [u, delta, delta_bias, a, bc, skip, [sizes.batch, sizes.width, d_state].into()];
        let d_z = [self.z.and_then(kept).map(shape)];
        let (required, [d_z]) = outputs_with(required, d_z, |[d_u, d_delta, d_delta_bias, d_a, d_bc, d_skip, d_h0], [d_z]| {
            let d = kernel::Gradients { d_u, d_delta, d_delta_bias, d_a, d_bc, d_skip, d_z, d_h0 };
            kernel::backward(sizes, d_state, &inputs, boundaries, d_y, d_h_last, d);
        });
        let [u, delta, delta_bias, a, bc, skip, d_h0] = required;
        [u, delta, delta_bias, a, bc, skip].into_iter().chain(d_z).chain(self.h0.map(|_| d_h0)).collect()
    }
}
