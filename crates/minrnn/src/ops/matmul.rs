//! Matrix products of layers.
//!
//! The CPU backend's own matmuls fill every result with zeros and copy it before computing, on one thread: 5 % of a training step.

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Tensor};
use minrnn_kernels::matmul::{self as kernel, Matrix};

use super::flex::{dims, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::precision::{self, Precision};
use super::shapes::expect_shape;

/// x W.
///
/// # Shapes
/// * `x` `[N, D]`, `weight` `[D, M]` → `[N, M]`, in the format of `x`
///
/// # Panics
/// When shapes do not fit.
pub fn matmul(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let ([_, d], [_, m]) = (x.dims(), weight.dims());
    expect_shape("matmul", "weight", &weight, [d, m]);
    if has_product(&x) {
        return output(run(Product { weight: Side::Straight, precision: precision::current() }, vec![input(x), input(weight)]).pop());
    }
    x.matmul(weight)
}

/// x Wᵀ.
///
/// # Shapes
/// * `x` `[N, D]`, `weight` `[M, D]` → `[N, M]`, in the format of `x`
///
/// # Panics
/// When shapes do not fit.
pub fn matmul_transposed(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let ([_, d], [m, _]) = (x.dims(), weight.dims());
    expect_shape("matmul_transposed", "weight", &weight, [m, d]);
    if has_product(&x) {
        return output(run(Product { weight: Side::Transposed, precision: precision::current() }, vec![input(x), input(weight)]).pop());
    }
    x.matmul(weight.transpose())
}

/// Whether a matmul goes through [`Product`]: on the CPU, and elsewhere if it does not involve f32 alone.
fn has_product(x: &Tensor<2>) -> bool {
    let f32_alone = precision::current() == Precision::F32 && x.dtype() == DType::F32;
    is_on_cpu(&x.device()) || !f32_alone && has_kernels(x)
}

/// How the weight enters the product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Straight,
    Transposed,
}

#[derive(Debug)]
pub(super) struct Product {
    pub weight: Side,
    pub precision: Precision,
}

/// A row-major matrix.
pub(super) fn matrix(tensor: &FlexTensor) -> Matrix<'_> {
    let [_, width] = dims(tensor);
    Matrix::new(slice(tensor), width)
}

impl FusedOp for Product {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [x, weight] = [&inputs[0], &inputs[1]];
        let [rows, depth] = dims(x);
        let ([inner, columns], right) = match (self.weight, dims(weight)) {
            (Side::Straight, sizes) => (sizes, matrix(weight)),
            (Side::Transposed, [m, d]) => ([d, m], matrix(weight).transpose()),
        };
        assert_eq!(depth, inner, "a product of rows of {depth} needs a matrix of {depth} rows, found {inner}");
        outputs([[rows, columns].into()], |[y]| kernel::matmul(self.precision, [rows, depth, columns], matrix(x), right, None, y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, weight] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, depth] = dims(x);
        let [_, columns] = dims(d_y);
        let shapes = [x, weight].map(shape);
        let (x, weight, d_y, precision) = (matrix(x), matrix(weight), matrix(d_y), self.precision);
        outputs(shapes, |[d_x, d_weight]| match self.weight {
            Side::Straight => kernel::both(
                || kernel::matmul(precision, [rows, columns, depth], d_y, weight.transpose(), None, d_x),
                || kernel::matmul(precision, [depth, rows, columns], x.transpose(), d_y, None, d_weight),
            ),
            Side::Transposed => kernel::both(
                || kernel::matmul(precision, [rows, columns, depth], d_y, weight, None, d_x),
                || kernel::matmul(precision, [columns, rows, depth], d_y.transpose(), x, None, d_weight),
            ),
        })
    }
}
