//! Matrix products with reduced-precision inputs, on devices with matrix units for them; sums are f32.

use burn::backend::DType;
use burn_cubecl::kernel::cast;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::permute;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{ElemType, FloatKind};

use super::super::matmul::{Product, Side};
use super::super::precision::Precision;
use super::op::GpuOp;
use super::tensors::Like;

/// Whether matrix units of the device of `like` multiply bf16 and sum in f32.
fn multiplies_bf16(like: &CubeTensor) -> bool {
    let [bf16, f32] = [FloatKind::BF16, FloatKind::F32].map(ElemType::Float);
    let units = &like.client.properties().features.matmul;
    units.cmma.iter().any(|unit| [unit.a_type, unit.b_type, unit.cd_type] == [bf16, bf16, f32])
}

/// The product of two batches of f32 matrices.
pub(super) fn multiplied(a: CubeTensor, b: CubeTensor) -> CubeTensor {
    multiplied_in(DType::F32, a, b)
}

/// The product of two batches of matrices of one format, in another.
fn multiplied_in(dtype: DType, a: CubeTensor, b: CubeTensor) -> CubeTensor {
    matmul(a, b, None, MatmulStrategy::default(), dtype).expect("shapes of the operation fit")
}

fn transposed(matrix: &CubeTensor) -> CubeTensor {
    permute(matrix.clone(), &[1, 0])
}

impl Product {
    /// The format in which `x` is multiplied: that of activations of 16 bits, and for f32 what the units take.
    fn format(&self, x: &CubeTensor) -> DType {
        if x.dtype == DType::F32 && self.precision == Precision::Bf16 && multiplies_bf16(x) { DType::BF16 } else { x.dtype }
    }
}

impl GpuOp for Product {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let ([rows, _], [straight, transposed]) = (inputs[0].shape.dims(), inputs[1].shape.dims());
        let columns = match self.weight {
            Side::Straight => transposed,
            Side::Transposed => straight,
        };
        vec![inputs[0].reshaped([rows, columns])]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let format = self.format(&inputs[0]);
        let [x, weight] = [0, 1].map(|i: usize| cast(inputs[i].clone(), format));
        let weight = match self.weight {
            Side::Straight => weight,
            Side::Transposed => transposed(&weight),
        };
        vec![multiplied_in(inputs[0].dtype, x, weight)]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, weight] = [0, 1].map(|i: usize| inputs[i].clone().expect("kept"));
        let (format, x_dtype) = (self.format(&x), x.dtype);
        let [x, weight, d_y] = [x, weight, d_outputs[0].clone().expect("the only output")].map(|tensor| cast(tensor, format));
        let (d_x, d_weight) = match self.weight {
            Side::Straight => ((d_y.clone(), transposed(&weight)), (transposed(&x), d_y)),
            Side::Transposed => ((d_y.clone(), weight), (transposed(&d_y), x)),
        };
        vec![multiplied_in(x_dtype, d_x.0, d_x.1), multiplied(d_weight.0, d_weight.1)]
    }
}
