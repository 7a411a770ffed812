//! Rotary positions of queries and keys.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, TensorData};
use minrnn_kernels::rotary::{self as kernel, BASE, Layout};

use super::flex::{outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::shapes::expect_count;

/// Rotates the heads in the first `turned` channels of every step by its position; the other channels are passed on unchanged.
///
/// # Shapes
/// * `x` `[B, T, M]`, `places` B·T numbers → `[B, T, M]`
///
/// # Panics
/// When there are not B·T positions, or `turned` channels, at most M, are not heads of an even `head_width`.
pub fn rotary(x: Tensor<3>, places: Arc<[u32]>, head_width: usize, turned: usize) -> Tensor<3> {
    let [batch, seq_len, width] = x.dims();
    assert!(
        head_width > 0 && head_width.is_multiple_of(2) && turned.is_multiple_of(head_width) && turned <= width,
        "rotary: expected heads of an even width that divides the {turned} channels to turn, at most {width}, found {head_width}"
    );
    expect_count("rotary", "places", places.len(), batch * seq_len);
    let layout = Layout { head_width, turned, width };
    if is_on_cpu(&x.device()) {
        return output(run(Op { layout, places }, vec![input(x)]).pop());
    }
    composed(x, &places, layout)
}

pub(super) fn composed(x: Tensor<3>, places: &[u32], layout: Layout) -> Tensor<3> {
    let [batch, seq_len, width] = x.dims();
    let Layout { head_width, turned, .. } = layout;
    if batch * seq_len == 0 || turned == 0 {
        return x;
    }
    let half = head_width / 2;
    let angles = places.iter().flat_map(|&place| {
        let frequency = move |i: usize| BASE.powf(-2.0 * i as f64 / head_width as f64);
        (0..half).map(move |i| f64::from(place) * frequency(i))
    });
    let angles: Vec<f64> = angles.collect();
    let table = |map: fn(f64) -> f64| {
        let values: Vec<f32> = angles.iter().map(|&angle| map(angle) as f32).collect();
        Tensor::<4>::from_data(TensorData::new(values, [batch, seq_len, 1, half]), &x.device())
    };
    let (cosines, sines) = (table(f64::cos), table(f64::sin));
    let heads = x.clone().narrow(2, 0, turned).reshape([batch, seq_len, turned / head_width, head_width]);
    let (a, b) = (heads.clone().narrow(3, 0, half), heads.narrow(3, half, half));
    let y_a = a.clone() * cosines.clone() - b.clone() * sines.clone();
    let y_b = b * cosines + a * sines;
    let y = Tensor::cat(vec![y_a, y_b], 3).reshape([batch, seq_len, turned]);
    if turned == width { y } else { Tensor::cat(vec![y, x.narrow(2, turned, width - turned)], 2) }
}

#[derive(Debug)]
struct Op {
    layout: Layout,
    places: Arc<[u32]>,
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        outputs([shape(&inputs[0])], |[y]| kernel::forward(self.layout, slice(&inputs[0]), &self.places, y))
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        outputs([shape(d_y)], |[d_x]| kernel::backward(self.layout, slice(d_y), &self.places, d_x))
    }
}
