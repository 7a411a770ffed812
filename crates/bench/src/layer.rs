//! One recurrent layer: in-projection, recurrence, loss = Σ w ⊙ h, backward to x, h0 and all weights; no down-projection. Mixers that are
//! more than a cell are run whole, as in blocks.

use std::hint::black_box;

use burn::tensor::{Device, Tensor};
use minrnn::ops::{self, Gates, GruForm, Start, StepCodes};
use minrnn::rng::{self, Purpose};
use minrnn_model::{MixerKind, ModelConfig};

use crate::case::{Case, Defaults, expect_room};
use crate::random::uniform;
use crate::timing::Plan;
use crate::{Measured, Result, mixer};

pub(crate) const DEFAULTS: Defaults =
    Defaults { d_model: 64, d_hidden: 128, batch_size: 64, seq_len: &[64, 256, 512, 1024, 4096], iterations: 10 };

/// The tensors of a layer, all of them leaves of the graph but `loss_weight`.
struct Layer {
    mixer: MixerKind,
    x: Tensor<3>,
    h0: Tensor<2>,
    /// The LSTM's.
    c0: Option<Tensor<2>>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    /// The recurrent side of GRU and LSTM.
    recurrent: Option<(Tensor<2>, Tensor<1>)>,
    loss_weight: Tensor<3>,
}

pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let Some(parts) = projections(case.mixer) else { return mixer::measure(case, plan, device) };
    let parts = parts as u128;
    expect_room(case.tokens() * (2 * case.d_model as u128 + (2 * parts + 3) * case.d_hidden as u128), device)?;
    let layer = Layer::new(case, parts as usize, device);
    let precision = case.training_precision()?;
    let times = plan.time_on(device, || ops::with_precision(precision, || layer.iteration()))?;
    let inputs = case.d_model + if layer.recurrent.is_some() { case.d_hidden } else { 0 };
    let flop = 6.0 * case.tokens() as f64 * parts as f64 * case.d_hidden as f64 * inputs as f64;
    Ok(Measured { times, flop: Some(flop), parameters: None })
}

/// The number of input-side products of the cells that are measured alone, without a down-projection.
fn projections(mixer: MixerKind) -> Option<usize> {
    match mixer {
        MixerKind::MinGru | MixerKind::Gilr => Some(2),
        MixerKind::MinLstm | MixerKind::Gru => Some(3),
        MixerKind::Lstm => Some(4),
        _ => None,
    }
}

impl Layer {
    fn new(case: &Case, parts: usize, device: &Device) -> Self {
        let Case { mixer, d_model: d, d_hidden: e, batch_size: b, seq_len: t, .. } = *case;
        let device = device.clone().autodiff();
        let mut rng = rng::stream(0, Purpose::Bench, 0);
        let bound = (d as f32).sqrt().recip();
        let recurrent_bound = (e as f32).sqrt().recip();
        let classic = matches!(mixer, MixerKind::Gru | MixerKind::Lstm);
        Self {
            mixer,
            x: uniform([b, t, d], 1.7, &mut rng, &device).require_grad(),
            h0: uniform([b, e], 1.0, &mut rng, &device).abs().detach().require_grad(),
            c0: (mixer == MixerKind::Lstm).then(|| uniform([b, e], 1.0, &mut rng, &device).require_grad()),
            weight: uniform([d, parts * e], bound, &mut rng, &device).require_grad(),
            bias: uniform([parts * e], bound, &mut rng, &device).require_grad(),
            recurrent: classic.then(|| {
                let weight = uniform([parts * e, e], recurrent_bound, &mut rng, &device).require_grad();
                (weight, uniform([parts * e], recurrent_bound, &mut rng, &device).require_grad())
            }),
            loss_weight: uniform([b, t, e], 1.0, &mut rng, &device),
        }
    }

    fn iteration(&self) {
        let loss = (self.forward() * self.loss_weight.clone()).sum();
        let gradients = loss.backward();
        black_box((self.x.grad(&gradients), self.h0.grad(&gradients), self.weight.grad(&gradients), self.bias.grad(&gradients)));
        black_box(self.c0.as_ref().map(|c0| c0.grad(&gradients)));
        black_box(self.recurrent.as_ref().map(|(weight, bias)| (weight.grad(&gradients), bias.grad(&gradients))));
    }

    /// h of every step.
    fn forward(&self) -> Tensor<3> {
        let [b, t, d] = self.x.dims();
        let [_, outputs] = self.weight.dims();
        let preact = ops::matmul(self.x.clone().reshape([b * t, d]), self.weight.clone()).reshape([b, t, outputs]);
        let bias = Some(self.bias.clone());
        let start = Start { h0: Some(self.h0.clone()), init: None };
        let steps = StepCodes::dense();
        let recurrent = self.recurrent.clone();
        let candidate = self.mixer.spec().candidate(&ModelConfig::default());
        match (self.mixer, recurrent) {
            (MixerKind::MinLstm, _) => ops::min_lstm(preact, bias, candidate, Gates::Normalized, start, &steps).0,
            (MixerKind::Gru, Some((weight, recurrent_bias))) => {
                ops::gru(GruForm::Torch, preact, bias, weight, Some(recurrent_bias), start, &steps).0
            }
            (MixerKind::Lstm, Some((weight, recurrent_bias))) => {
                let cell = Start { h0: self.c0.clone(), init: None };
                ops::lstm(preact, bias, weight, Some(recurrent_bias), start, cell, &steps).0
            }
            _ => ops::min_gru(preact, bias, candidate, start, &steps).0,
        }
    }
}
