//! Splits the last dimension in two.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::split as kernel;

use super::flex::{dims, optional, outputs, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};

/// The first `at` columns of `x` and the others.
///
/// # Shapes
/// * `x` `[N, M]` → `[N, at]` and `[N, M − at]`
///
/// # Panics
/// When `x` has fewer columns.
pub fn split(x: Tensor<2>, at: usize) -> (Tensor<2>, Tensor<2>) {
    let [_, width] = x.dims();
    assert!(at <= width, "split: expected a place among the {width} columns, found {at}");
    if !is_on_cpu(&x.device()) {
        return composed(x, at);
    }
    let widths = [at, x.dims()[1] - at];
    let mut outputs = run(Split { widths }, vec![input(x)]).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

pub(super) fn composed(x: Tensor<2>, at: usize) -> (Tensor<2>, Tensor<2>) {
    let [_, width] = x.dims();
    (x.clone().narrow(1, 0, at), x.narrow(1, at, width - at))
}

#[derive(Debug)]
struct Split {
    widths: [usize; 2],
}

impl FusedOp for Split {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, _] = dims(&inputs[0]);
        outputs(self.widths.map(|width| [rows, width].into()), |[left, right]| {
            kernel::split(rows, self.widths, slice(&inputs[0]), left, right);
        })
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [rows, _] = dims(d_outputs.iter().flatten().next().expect("a part has a gradient"));
        let [d_left, d_right] = [0, 1].map(|i| optional(d_outputs[i].as_ref()));
        outputs([[rows, self.widths.iter().sum()].into()], |[d_x]| kernel::join(rows, self.widths, d_left, d_right, d_x))
    }
}
