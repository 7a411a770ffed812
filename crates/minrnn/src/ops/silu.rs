//! SiLU for one or several readers.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::silu as kernel;

use super::flex::{optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};

/// x σ(x) of every element.
///
/// # Shapes
/// * `x` `[B, T, D]` → `[B, T, D]`
pub fn silu(x: Tensor<3>) -> Tensor<3> {
    if is_on_cpu(&x.device()) {
        return output(run(Silu, vec![input(x)]).pop());
    }
    composed(x)
}

/// x σ(x), twice: for two readers, with their gradients summed inside the backward pass.
///
/// # Shapes
/// * `x` `[B, T, D]` → twice `[B, T, D]`
pub fn silu_shared(x: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    if !is_on_cpu(&x.device()) {
        let y = composed(x);
        return (y.clone(), y);
    }
    let mut outputs = run(SiluTwice, vec![input(x)]).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

pub(super) fn composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::sigmoid(x.clone()) * x
}

#[derive(Debug)]
struct Silu;

impl FusedOp for Silu {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        outputs([shape(&inputs[0])], |[y]| kernel::forward(slice(&inputs[0]), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let x = inputs[0].as_ref().expect("kept");
        outputs([shape(x)], |[d_x]| kernel::backward(slice(x), [optional(d_outputs[0].as_ref()), None], d_x))
    }
}

#[derive(Debug)]
struct SiluTwice;

impl FusedOp for SiluTwice {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let y = outputs([shape(&inputs[0])], |[y]| kernel::forward(slice(&inputs[0]), y));
        y.iter().chain(&y).cloned().collect()
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let x = inputs[0].as_ref().expect("kept");
        outputs([shape(x)], |[d_x]| kernel::backward(slice(x), [0, 1].map(|i| optional(d_outputs[i].as_ref())), d_x))
    }
}
