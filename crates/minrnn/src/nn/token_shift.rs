//! The token shift of RWKV-4: each channel is a mixture of its own and the previous step's input (Peng et al. 2023, arXiv:2305.13048).
//!
//! ```text
//! Mix(μ)_t = μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}
//! ```
//!
//! It is a causal convolution with the taps 1 − μ and μ, so resets, padding and the carried input are those of the convolution.

use burn::tensor::{Device, Tensor};

use super::conv::Window;
use crate::ops::{StepCodes, causal_conv};

/// The state of a mixture before the first step: a previous input of 0.
pub(super) fn init_window(batch_size: usize, d_model: usize, device: &Device) -> Window {
    Window { window: Tensor::zeros([batch_size, 1, d_model], device) }
}

/// A mixture of `x` for each of `shares`, and the input to carry.
///
/// # Shapes
/// * `x` `[B, T, D]`, each of `shares` (μ) `[D]` → each `[B, T, D]`
pub(super) fn mixtures<const N: usize>(
    x: &Tensor<3>,
    shares: [Tensor<1>; N],
    previous: &Window,
    steps: &StepCodes,
) -> ([Tensor<3>; N], Window) {
    let d = x.dims()[2];
    let mut next = previous.clone();
    let mixtures = shares.map(|share| {
        let now = share.reshape([d, 1, 1]);
        let taps = Tensor::cat(vec![-now.clone() + 1.0, now], 2);
        let (mixed, window) = causal_conv(x.clone(), taps, Tensor::zeros([d], &x.device()), Some(previous.window.clone()), steps);
        next = Window { window };
        mixed
    });
    (mixtures, next)
}
