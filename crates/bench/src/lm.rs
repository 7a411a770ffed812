//! One training step of the language model: forward, loss, backward, clip, AdamW.

use burn::tensor::Device;
use minrnn::nn::Mode;
use minrnn::ops::{StepCodes, with_precision};
use minrnn::train::{MicroBatch, Optimizer, TrainConfig, differentiate};

use crate::case::{Case, Defaults};
use crate::language_model::{build, flop, inputs, parameters, random_tokens};
use crate::timing::Plan;
use crate::{Measured, Result};

pub(crate) const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 64, seq_len: &[256], iterations: 5 };
/// Activations kept for the backward pass, a lower bound, in widths of the model per layer.
const WIDTHS_KEPT: u128 = 3 * 12;

pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let device = device.clone().autodiff();
    let widths = if case.checkpoint_blocks { 3 + WIDTHS_KEPT / 3 } else { WIDTHS_KEPT };
    let mut model = build(case, widths * case.d_model as u128, &device)?;
    let parameters = parameters(&model);
    let precision = case.training_precision()?;
    let config = TrainConfig { clip_norm: 0.25, ..Default::default() };
    let mut optimizer = Optimizer::new(&config);
    let mut iteration = 0;
    let mut failure = None;
    let times = plan.time_on(&device, || {
        let tokens = random_tokens(case, iteration);
        let targets: Vec<i32> = tokens.chunks(case.seq_len + 1).flat_map(|row| &row[1..]).copied().collect();
        let mode = Mode::Train { dropout_key: iteration };
        let inputs = inputs(case, &tokens, &device);
        let batch = MicroBatch { inputs: inputs.into(), targets: targets.into(), mask: None, steps: StepCodes::dense() };
        let found = with_precision(precision, || differentiate(&model, batch, None, mode, case.checkpoint_blocks));
        match optimizer.update(model.clone(), found.gradients, 1.0, config.lr, iteration) {
            Ok((updated, _)) => model = updated,
            Err(error) => failure = Some(error),
        }
        iteration += 1;
    })?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    Ok(Measured { times, flop: flop(case, true), parameters: Some(parameters) })
}
