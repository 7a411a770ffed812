//! What the linear recurrences share: where they start, their composed form, and their way into the kernels.

use std::fmt::Debug;
use std::mem::MaybeUninit;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::{Shape, Start as KernelStart};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, output, run};
use super::steps::StepCodes;

/// What a recurrence starts from.
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
}

/// A linear recurrence with kernels: how its slices go in and come out.
pub(super) trait Recurrence: Debug + Send + Sync + 'static {
    /// The same recurrence on a GPU; none where it has no kernels.
    #[cfg(feature = "gpu")]
    fn cell(&self) -> Option<super::gpu::Cell> {
        None
    }

    /// Width E of the state when the first input is `width` wide.
    fn d_inner(&self, width: usize) -> usize;

    fn forward(&self, shape: Shape, inputs: &[&[f32]], bias: Option<&[f32]>, start: KernelStart<'_>, h: Out<'_>, h_last: Out<'_>);

    fn backward(&self, shape: Shape, inputs: &[&[f32]], bias: Option<&[f32]>, start: KernelStart<'_>, h: &[f32], d: Gradients<'_>);
}

pub(super) type Out<'a> = &'a mut [MaybeUninit<f32>];

/// Gradients of a recurrence: of its outputs, and where to write those of its inputs.
pub(super) struct Gradients<'a> {
    pub h: Option<&'a [f32]>,
    pub h_last: Option<&'a [f32]>,
    pub inputs: Vec<Out<'a>>,
    pub bias: Option<Out<'a>>,
    pub h0: Out<'a>,
    pub init: Out<'a>,
}

/// The states `[B, T, E]` and the last one `[B, E]` of a recurrence over `inputs`, each `[B, T, ·]`.
pub(super) fn fused<R: Recurrence>(
    cell: R,
    inputs: Vec<Tensor<3>>,
    bias: Option<Tensor<1>>,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let sequences = inputs.len();
    let mut list = InputList::default();
    inputs.into_iter().for_each(|input| {
        list.add(input);
    });
    let bias = list.add_optional(bias);
    let h0 = list.add_optional(start.h0);
    let init = list.add_optional(start.init);
    let op = Op { cell, steps: steps.clone(), sequences, bias, h0, init };
    let mut outputs = run(op, list.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

#[derive(Debug)]
pub(super) struct Op<R> {
    pub(super) cell: R,
    pub(super) steps: StepCodes,
    pub(super) sequences: usize,
    pub(super) bias: Option<usize>,
    pub(super) h0: Option<usize>,
    pub(super) init: Option<usize>,
}

impl<R: Recurrence> Op<R> {
    fn shape(&self, first: &FlexTensor) -> Shape {
        let [batch, seq_len, width] = dims(first);
        Shape { batch, seq_len, width: self.cell.d_inner(width) }
    }

    fn start<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> KernelStart<'a> {
        KernelStart {
            h0: self.h0.and_then(|i| optional(input(i))),
            init: self.init.and_then(|i| optional(input(i))),
            segments: self.steps.kernel(),
        }
    }
}

impl<R: Recurrence> FusedOp for Op<R> {
    fn keeps(&self) -> Keeps {
        let optional = [self.bias, self.h0, self.init].into_iter().flatten();
        Keeps { inputs: (0..self.sequences).chain(optional).collect(), outputs: vec![0] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn super::gpu::GpuOp> {
        self.cell.cell().map(|_| self as &dyn super::gpu::GpuOp)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let shape = self.shape(&inputs[0]);
        let mut h = Output::new([shape.batch, shape.seq_len, shape.width]);
        let mut h_last = Output::new([shape.batch, shape.width]);
        let sequences: Vec<&[f32]> = inputs[..self.sequences].iter().map(slice).collect();
        let bias = self.bias.map(|i| slice(&inputs[i]));
        self.cell.forward(shape, &sequences, bias, self.start(|i| Some(&inputs[i])), h.out(), h_last.out());
        // SAFETY: the kernel writes both outputs whole.
        unsafe { vec![h.finish(), h_last.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let first = kept(0).expect("kept");
        let shape = self.shape(first);
        let sequences: Vec<&[f32]> = (0..self.sequences).map(|i| slice(kept(i).expect("kept"))).collect();
        let mut d_inputs: Vec<Output> = (0..self.sequences).map(|i| Output::like(kept(i).expect("kept"))).collect();
        let mut d_bias = self.bias.and_then(kept).map(Output::like);
        let mut d_h0 = Output::new([shape.batch, shape.width]);
        let mut d_init = Output::new([shape.width]);
        let gradients = Gradients {
            h: optional(d_outputs[0].as_ref()),
            h_last: optional(d_outputs[1].as_ref()),
            inputs: d_inputs.iter_mut().map(Output::out).collect(),
            bias: d_bias.as_mut().map(Output::out),
            h0: d_h0.out(),
            init: d_init.out(),
        };
        let bias = self.bias.and_then(|i| optional(kept(i)));
        let h = slice(outputs[0].as_ref().expect("kept"));
        self.cell.backward(shape, &sequences, bias, self.start(kept), h, gradients);
        let optional = [d_bias, self.h0.map(|_| d_h0), self.init.map(|_| d_init)];
        // SAFETY: the kernel writes every gradient whole.
        d_inputs.into_iter().chain(optional.into_iter().flatten()).map(|d| unsafe { d.finish() }).collect()
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
