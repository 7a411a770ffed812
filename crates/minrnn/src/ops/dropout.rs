//! Bias, dropout and residual in one pass; the mask is a function of a key and the element's index and is never stored.

use burn::backend::flex::FlexTensor;
use burn::tensor::{FloatDType, Tensor, TensorData};
use minrnn_kernels::dropout as kernel;

use super::flex::{InputList, dims, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::expect_shape_if_any;

/// Probability and key of a dropout mask; the same key gives the same mask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Probability p that an element is dropped, in [0, 1).
    pub probability: f32,
    /// Determines the mask.
    pub key: u64,
}

impl Dropout {
    /// Nothing is dropped.
    pub const OFF: Self = Self { probability: 0.0, key: 0 };
}

/// residual + mask ⊙ (x + bias) / (1 − p).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]`, `residual` `[N, M]` → `[N, M]`, in the format of `residual`, or of `x` without one
///
/// # Panics
/// When shapes do not fit, or p is not in [0, 1).
pub fn bias_dropout_residual(x: Tensor<2>, bias: Option<Tensor<1>>, residual: Option<Tensor<2>>, dropout: Dropout) -> Tensor<2> {
    let [_, width] = x.dims();
    expect_shape_if_any("bias_dropout_residual", "bias", bias.as_ref(), [width]);
    expect_shape_if_any("bias_dropout_residual", "residual", residual.as_ref(), x.dims());
    if !has_kernels(&x) {
        return composed(x, bias, residual, dropout);
    }
    let format = x.dtype().into();
    let mut inputs = InputList::default();
    inputs.add(x);
    let bias = inputs.add_optional(bias);
    let residual = inputs.add_optional(residual);
    output(run(Op { dropout, bias, residual, format }, inputs.into_vec()).pop())
}

/// The same by tensor operations, with the mask the kernel would use.
pub(super) fn composed(x: Tensor<2>, bias: Option<Tensor<1>>, residual: Option<Tensor<2>>, dropout: Dropout) -> Tensor<2> {
    let [rows, width] = x.dims();
    let mut y = match bias {
        Some(bias) => x + bias.unsqueeze(),
        None => x,
    };
    if dropout.probability > 0.0 {
        let ones = kernel::Inputs { x: &vec![1.0; rows * width], bias: None, residual: None };
        let mask = outputs([[rows, width].into()], |[mask]| {
            kernel::forward(rows, width, ones, dropout.probability, dropout.key, mask);
        });
        y = y.clone() * Tensor::from_data(TensorData::new(slice(&mask[0]).to_vec(), [rows, width]), &y.device());
    }
    match residual {
        Some(residual) => y + residual,
        None => y,
    }
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) dropout: Dropout,
    pub(super) bias: Option<usize>,
    pub(super) residual: Option<usize>,
    /// The format of x.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only GPUs have several"))]
    pub(super) format: FloatDType,
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, width] = dims(&inputs[0]);
        let [bias, residual] = [self.bias, self.residual].map(|i| i.map(|i| slice(&inputs[i])));
        let kernel_inputs = kernel::Inputs { x: slice(&inputs[0]), bias, residual };
        outputs([shape(&inputs[0])], |[y]| kernel::forward(rows, width, kernel_inputs, self.dropout.probability, self.dropout.key, y))
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(d_y);
        let mut d_inputs = Vec::with_capacity(3);
        if self.dropout.probability == 0.0 && self.bias.is_none() {
            d_inputs.push(d_y.clone());
        } else {
            let ([d_x], [d_bias]) = outputs_with([shape(d_y)], [self.bias.map(|_| [width].into())], |[d_x], [d_bias]| {
                kernel::backward(rows, width, slice(d_y), self.dropout.probability, self.dropout.key, d_x, d_bias);
            });
            d_inputs.extend(std::iter::once(d_x).chain(d_bias));
        }
        d_inputs.extend(self.residual.map(|_| d_y.clone()));
        d_inputs
    }
}
