//! The gate with a skip at the end of an mLSTM block.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::skip_gate as kernel;

use super::flex::{dims, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::shapes::expect_shape;

/// (y + skip ⊙ c) ⊙ SiLU(z) (the mLSTM block of Beck et al. 2024, arXiv:2405.04517, §2.4).
///
/// # Shapes
/// * `y`, `c`, `z` `[B, T, D]`, `skip` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn skip_gate(y: Tensor<3>, c: Tensor<3>, skip: Tensor<1>, z: Tensor<3>) -> Tensor<3> {
    expect_shape("skip_gate", "c", &c, y.dims());
    expect_shape("skip_gate", "z", &z, y.dims());
    expect_shape("skip_gate", "skip", &skip, [y.dims()[2]]);
    if is_on_cpu(&y.device()) {
        return output(run(SkipGate, vec![input(y), input(c), input(z), input(skip)]).pop());
    }
    composed_skip_gate(y, c, skip, z)
}

pub(super) fn composed_skip_gate(y: Tensor<3>, c: Tensor<3>, skip: Tensor<1>, z: Tensor<3>) -> Tensor<3> {
    (y + c * skip.unsqueeze()) * activation::silu(z)
}

/// Inputs: y, c, z, skip.
#[derive(Debug)]
struct SkipGate;

impl FusedOp for SkipGate {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1, 2, 3], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [batch, seq_len, _] = dims(&inputs[0]);
        let [y, c, z, skip] = [0, 1, 2, 3].map(|i: usize| slice(&inputs[i]));
        outputs([shape(&inputs[0])], |[out]| kernel::forward(batch * seq_len, kernel::Inputs { y, c, skip, z }, out))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = [0, 1, 2, 3].map(|i: usize| inputs[i].as_ref().expect("kept"));
        let [batch, seq_len, _] = dims(kept[0]);
        let [y, c, z, skip] = kept.map(slice);
        let d_out = slice(d_outputs[0].as_ref().expect("the only output"));
        outputs(kept.map(shape), |[d_y, d_c, d_z, d_skip]| {
            let d = kernel::Gradients { d_y, d_c, d_skip, d_z };
            kernel::backward(batch * seq_len, kernel::Inputs { y, c, skip, z }, d_out, d);
        })
    }
}
