//! Random tensors.

use burn::tensor::{Device, Tensor, TensorData};
use minrnn::rng::ChaCha8Rng;
use rand::Rng;

/// Uniform in ±`bound`.
pub(crate) fn uniform<const N: usize>(shape: [usize; N], bound: f32, rng: &mut ChaCha8Rng, device: &Device) -> Tensor<N> {
    let unit = |rng: &mut ChaCha8Rng| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0;
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| bound * unit(rng)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
