//! A whole mixer in the layer bench: those that are more than one in-projection and a recurrence, with all their projections.

use std::hint::black_box;

use burn::tensor::{Device, Tensor};
use minrnn::checkpoint::{parameter_count, parameter_shapes};
use minrnn::nn::{AnyMixer, Initializer, Mixer};
use minrnn::ops::{self, StepCodes};
use minrnn::rng::{self, Purpose};
use minrnn_model::ModelConfig;

use crate::case::{Case, expect_room};
use crate::random::uniform;
use crate::timing::Plan;
use crate::{Measured, Result};

/// Values kept for the backward pass, in widths E of a token: an upper bound for all mixers.
const WIDTHS_KEPT: u128 = 24;

/// Forward and backward of the mixer, with loss = Σ w ⊙ y.
pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let Case { mixer, d_model: d, d_hidden: e, batch_size: b, seq_len: t, .. } = *case;
    expect_room(case.tokens() * WIDTHS_KEPT * e.max(d) as u128, device)?;
    let expansion = e as f64 / d as f64;
    let config = ModelConfig { mixer, vocab_size: 2, d_model: d, expansion, n_layers: 1, max_seq_len: t, ..Default::default() };
    let config = config.checked().map_err(|error| case.refused(error))?;
    let device = device.clone().autodiff();
    let layer = AnyMixer::new(&config, 0, &mut Initializer::new(0, &device));
    let mut rng = rng::stream(0, Purpose::Bench, 0);
    let x: Tensor<3> = uniform([b, t, d], 1.7, &mut rng, &device).require_grad();
    let loss_weight: Tensor<3> = uniform([b, t, d], 1.0, &mut rng, &device);
    let precision = case.training_precision()?;
    let times = plan.time_on(&device, || {
        ops::with_precision(precision, || {
            let (y, _) = layer.forward(x.clone(), layer.init_state(b), &StepCodes::dense());
            black_box(x.grad(&(y * loss_weight.clone()).sum().backward()));
        });
    })?;
    let matrices = parameter_shapes(&layer).into_iter().filter(|(_, shape)| shape.len() > 1);
    let weights: usize = matrices.map(|(_, shape)| shape.iter().product::<usize>()).sum();
    let flop = 6.0 * case.tokens() as f64 * weights as f64;
    Ok(Measured { times, flop: Some(flop), parameters: Some(parameter_count(&layer)) })
}
