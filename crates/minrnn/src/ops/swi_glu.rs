//! SwiGLU.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::swi_glu as kernel;

use super::flex::{dims, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::shapes::expect_parts;

/// value ⊙ SiLU(gate), with [value | gate] = x (SwiGLU of Shazeer 2020, arXiv:2002.05202).
///
/// # Shapes
/// * `x` `[N, 2M]` → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn swi_glu(x: Tensor<2>) -> Tensor<2> {
    expect_parts("swi_glu", "x", x.dims()[1], 2);
    if is_on_cpu(&x.device()) {
        return output(run(Op, vec![input(x)]).pop());
    }
    composed(x)
}

pub(super) fn composed(x: Tensor<2>) -> Tensor<2> {
    let m = x.dims()[1] / 2;
    x.clone().narrow(1, 0, m) * activation::silu(x.narrow(1, m, m))
}

#[derive(Debug)]
struct Op;

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, double] = dims(&inputs[0]);
        outputs([[rows, double / 2].into()], |[y]| kernel::forward(rows, double / 2, slice(&inputs[0]), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let x = inputs[0].as_ref().expect("kept");
        let [rows, double] = dims(x);
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        outputs([shape(x)], |[d_x]| kernel::backward(rows, double / 2, slice(x), d_y, d_x))
    }
}
