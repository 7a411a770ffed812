//! What the linear recurrences share: their initial states, the calls of kernels, and their composed form.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::recurrence::{self as kernel, Cell, Gradients, Inputs, Upstream};
use minrnn_kernels::{Shape, Start as KernelStart};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, output, run};
#[cfg(feature = "gpu")]
use super::gpu::{op::GpuOp, recurrence::cells::Cell as GpuCell};
use super::shapes::{expect_parts, expect_shape_if_any};
use super::steps::StepCodes;

/// The initial states of a recurrence.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The carried state `[B, E]`; absent means zero.
    pub h0: Option<Tensor<2>>,
    /// The state a reset restores `[E]`; absent means zero.
    pub init: Option<Tensor<1>>,
}

impl Start {
    /// Starts from the carried state `h0` `[B, E]`; resets restore zero.
    pub fn carried(h0: Tensor<2>) -> Self {
        Self { h0: Some(h0), init: None }
    }

    /// Refuses states for the operation `op` that do not have `batch` rows of `e` channels.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub(super) fn expect_fits(&self, op: &str, [batch, e]: [usize; 2]) {
        expect_shape_if_any(op, "h0", self.h0.as_ref(), [batch, e]);
        expect_shape_if_any(op, "init", self.init.as_ref(), [e]);
    }
}

/// E of the cell `op`, whose pre-activations have `parts` parts.
///
/// # Panics
/// When `preact` `[B, T, parts·E]`, `bias` `[parts·E]` and `start` do not fit.
#[track_caller]
pub(super) fn expect_cell(op: &str, parts: usize, preact: &Tensor<3>, bias: Option<&Tensor<1>>, start: &Start) -> usize {
    let [batch, _, width] = preact.dims();
    let e = expect_parts(op, "preact", width, parts);
    expect_shape_if_any(op, "bias", bias, [width]);
    start.expect_fits(op, [batch, e]);
    e
}

/// No input besides the pre-activations.
pub(super) const NO_EXTRA: Option<Tensor<1>> = None;

/// The states `[B, T, E]` and the last one `[B, E]` of a cell with kernels.
///
/// # Shapes
/// * `preact` `[B, T, parts·E]`, `bias` `[parts·E]`; `extra` `[B, T, E]` or `[E]`, for cells that read one
pub(super) fn fused<const D: usize>(
    cell: Cell,
    preact: Tensor<3>,
    extra: Option<Tensor<D>>,
    bias: Option<Tensor<1>>,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let mut list = InputList::default();
    list.add(preact);
    let extra = list.add_optional(extra);
    let bias = list.add_optional(bias);
    let h0 = list.add_optional(start.h0);
    let init = list.add_optional(start.init);
    let op = Op { cell, steps: steps.clone(), extra, bias, h0, init };
    let mut outputs = run(op, list.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// A recurrence: input 0 is the pre-activations, the others are at the positions given by the fields.
#[derive(Debug)]
pub(super) struct Op {
    pub(super) cell: Cell,
    pub(super) steps: StepCodes,
    pub(super) extra: Option<usize>,
    pub(super) bias: Option<usize>,
    pub(super) h0: Option<usize>,
    pub(super) init: Option<usize>,
}

impl Op {
    fn shape(&self, preact: &FlexTensor) -> Shape {
        let [batch, seq_len, width] = dims(preact);
        Shape { batch, seq_len, width: width / self.cell.parts() }
    }

    fn inputs<'a>(&self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> Inputs<'a> {
        Inputs {
            preact: slice(input(0).expect("kept")),
            bias: self.bias.and_then(|i| optional(input(i))),
            extra: self.extra.map_or(&[], |i| slice(input(i).expect("kept"))),
        }
    }

    fn start<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> KernelStart<'a> {
        KernelStart {
            h0: self.h0.and_then(|i| optional(input(i))),
            init: self.init.and_then(|i| optional(input(i))),
            segments: self.steps.kernel(),
        }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        let optional = [self.extra, self.bias, self.h0, self.init].into_iter().flatten();
        Keeps { inputs: std::iter::once(0).chain(optional).collect(), outputs: vec![0] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        GpuCell::of(self.cell).map(|_| self as &dyn GpuOp)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let shape = self.shape(&inputs[0]);
        let input = |i: usize| Some(&inputs[i]);
        let mut h = Output::new([shape.batch, shape.seq_len, shape.width]);
        let mut h_last = Output::new([shape.batch, shape.width]);
        kernel::forward(shape, self.cell, self.inputs(input), self.start(input), h.out(), h_last.out());
        // SAFETY: the kernel writes both outputs completely.
        unsafe { vec![h.finish(), h_last.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let preact = kept(0).expect("kept");
        let shape = self.shape(preact);
        let upstream = Upstream {
            h: slice(outputs[0].as_ref().expect("kept")),
            d_h: optional(d_outputs[0].as_ref()),
            d_h_last: optional(d_outputs[1].as_ref()),
        };
        let mut d_preact = Output::like(preact);
        let [mut d_extra, mut d_bias] = [self.extra, self.bias].map(|i| i.and_then(kept).map(Output::like));
        let mut d_h0 = Output::new([shape.batch, shape.width]);
        let mut d_init = Output::new([shape.width]);
        let gradients = Gradients {
            d_preact: d_preact.out(),
            d_bias: d_bias.as_mut().map(Output::out),
            d_extra: d_extra.as_mut().map(Output::out).unwrap_or_default(),
            d_h0: d_h0.out(),
            d_init: d_init.out(),
        };
        kernel::backward(shape, self.cell, self.inputs(kept), self.start(kept), upstream, gradients);
        let all = [Some(d_preact), d_extra, d_bias, self.h0.map(|_| d_h0), self.init.map(|_| d_init)];
        // SAFETY: the kernel writes every gradient completely.
        all.into_iter().flatten().map(|d| unsafe { d.finish() }).collect()
    }
}

/// h_t = a_t ⊙ h_{t−1} + b_t by tensor operations (Hillis–Steele, log₂ T rounds), for devices without kernels and for tests.
///
/// # Shapes
/// * `coeffs`, `values` `[B, T, E]` → `[B, T, E]` and the last state `[B, E]`
pub(super) fn composed(coeffs: Tensor<3>, values: Tensor<3>, start: Start, steps: &StepCodes) -> (Tensor<3>, Tensor<2>) {
    let [batch, seq_len, width] = coeffs.dims();
    let device = coeffs.device();
    let h0 = start.h0.unwrap_or_else(|| Tensor::zeros([batch, width], &device));
    if seq_len == 0 {
        return (coeffs, h0);
    }
    let (mut a, mut b) = (coeffs, values);
    if let Some(reset) = steps.reset_mask(&device) {
        if let Some(init) = start.init {
            b = b + reset.clone() * a.clone() * init.reshape([1, 1, width]);
        }
        a = a * (-reset + 1.0);
    }
    let padding = steps.padding_mask(&device);
    if let Some(padding) = padding.clone() {
        let real = -padding.clone() + 1.0;
        a = a * real.clone() + padding;
        b = b * real;
    }
    let from_h0 = a.clone().narrow(1, 0, 1) * h0.unsqueeze_dim(1);
    let first = b.clone().narrow(1, 0, 1) + from_h0;
    let mut h = if seq_len == 1 { first } else { Tensor::cat(vec![first, b.narrow(1, 1, seq_len - 1)], 1) };
    let mut reach = 1;
    while reach < seq_len {
        let shifted = |x: &Tensor<3>, fill: Tensor<3>| Tensor::cat(vec![fill, x.clone().narrow(1, 0, seq_len - reach)], 1);
        let earlier_h = shifted(&h, Tensor::zeros([batch, reach, width], &device));
        let earlier_a = shifted(&a, Tensor::ones([batch, reach, width], &device));
        h = a.clone() * earlier_h + h;
        a = a * earlier_a;
        reach *= 2;
    }
    let h_last = h.clone().narrow(1, seq_len - 1, 1).squeeze_dim(1);
    if let Some(padding) = padding {
        h = h * (-padding + 1.0);
    }
    (h, h_last)
}
