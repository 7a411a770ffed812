//! Matrix products whose inputs have fewer bits, on devices with matrix units for them; sums and results are f32.

use burn::backend::DType;
use burn::tensor::Shape;
use burn_cubecl::kernel::cast;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::permute;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{ElemType, FloatKind};

use super::super::precision::Precision;
use super::super::product::{Product, Side};
use super::GpuOp;

/// Whether matrix units of the device of `like` multiply bf16 and sum in f32.
fn multiplies_bf16(like: &CubeTensor) -> bool {
    let [bf16, f32] = [FloatKind::BF16, FloatKind::F32].map(ElemType::Float);
    let units = &like.client.properties().features.matmul;
    units.cmma.iter().any(|unit| [unit.a_type, unit.b_type, unit.cd_type] == [bf16, bf16, f32])
}

/// The product of two batches of f32 matrices.
pub(super) fn multiplied(a: CubeTensor, b: CubeTensor) -> CubeTensor {
    matmul(a, b, None, MatmulStrategy::default(), DType::F32).expect("shapes of the operation fit")
}

fn transposed(matrix: &CubeTensor) -> CubeTensor {
    permute(matrix.clone(), &[1, 0])
}

impl Product {
    /// `x` as the units take it.
    fn rounded(&self, x: &CubeTensor) -> CubeTensor {
        if self.precision == Precision::Bf16 && multiplies_bf16(x) { cast(x.clone(), DType::BF16) } else { x.clone() }
    }
}

impl GpuOp for Product {
    fn output_shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let ([rows, _], [straight, transposed]) = (inputs[0].dims(), inputs[1].dims());
        let columns = match self.weight {
            Side::Straight => transposed,
            Side::Transposed => straight,
        };
        vec![[rows, columns].into()]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [x, weight] = [0, 1].map(|i: usize| self.rounded(&inputs[i]));
        let weight = match self.weight {
            Side::Straight => weight,
            Side::Transposed => transposed(&weight),
        };
        vec![multiplied(x, weight)]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, weight] = [0, 1].map(|i: usize| self.rounded(inputs[i].as_ref().expect("kept")));
        let d_y = self.rounded(d_outputs[0].as_ref().expect("the only output"));
        match self.weight {
            Side::Straight => vec![multiplied(d_y.clone(), transposed(&weight)), multiplied(transposed(&x), d_y)],
            Side::Transposed => vec![multiplied(d_y.clone(), weight), multiplied(transposed(&d_y), x)],
        }
    }
}
