//! One training step of the language model: forward, loss, backward, clip, AdamW.

use burn::tensor::Device;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::{Precision, StepCodes, with_precision};
use minrnn::train::{MicroBatch, Optimizer, TrainConfig, differentiate};

use crate::case::{Case, Defaults};
use crate::language_model::{build, inputs, parameters, random_tokens, update_flop};
use crate::timing::Plan;
use crate::{Measured, Result};

pub(crate) const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 64, seq_len: &[256], iterations: 5 };
/// Lower bound for the activations kept for the backward pass, in model widths per layer.
const WIDTHS_KEPT: u128 = 3 * 12;

pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let mut training = Training::new(case, device)?;
    let device = training.device.clone();
    let times = plan.time_on(&device, || training.step())?;
    let parameters = training.end()?;
    Ok(Measured { times, flop: update_flop(case), parameters: Some(parameters) })
}

/// A training that goes on step by step.
pub(crate) struct Training<'a> {
    case: &'a Case,
    pub device: Device,
    model: SequenceModel,
    config: TrainConfig,
    optimizer: Optimizer,
    precision: Precision,
    iteration: u64,
    failure: Option<minrnn::Error>,
}

impl<'a> Training<'a> {
    pub fn new(case: &'a Case, device: &Device) -> Result<Self> {
        let device = device.clone().autodiff();
        let model = build(case, widths_kept(case) * case.d_model as u128, &device)?;
        let config = TrainConfig { clip_norm: 0.25, ..Default::default() };
        let (optimizer, precision) = (Optimizer::new(&config), case.training_precision()?);
        Ok(Self { case, device, model, config, optimizer, precision, iteration: 0, failure: None })
    }

    /// Forward, loss, backward, clip, AdamW.
    pub fn step(&mut self) {
        let Self { case, device, model, .. } = self;
        let tokens = random_tokens(case, self.iteration);
        let targets: Vec<i32> = tokens.chunks(case.seq_len + 1).flat_map(|row| &row[1..]).copied().collect();
        let mode = Mode::Train { dropout_key: self.iteration };
        let inputs = inputs(case, &tokens, device);
        let batch = MicroBatch { inputs: inputs.into(), targets: targets.into(), mask: None, steps: StepCodes::dense() };
        let found = with_precision(self.precision, || differentiate(model, batch, None, mode, case.checkpoint_blocks));
        match self.optimizer.update(model.clone(), found.gradients, 1.0, self.config.lr, self.iteration) {
            Ok((updated, _)) => *model = updated,
            Err(error) => self.failure = Some(error),
        }
        self.iteration += 1;
    }

    /// Number of parameters.
    ///
    /// # Errors
    /// The last of the steps that failed.
    pub fn end(self) -> Result<usize> {
        self.failure.map_or(Ok(()), Err)?;
        Ok(parameters(&self.model))
    }
}

/// Fewest bytes that a step moves: each kept activation is written and then read by the backward pass, and so is its gradient.
pub(crate) fn least_bytes(case: &Case) -> u128 {
    4 * 4 * widths_kept(case) * case.d_model as u128 * case.tokens()
}

fn widths_kept(case: &Case) -> u128 {
    if case.checkpoint_blocks { 3 + WIDTHS_KEPT / 3 } else { WIDTHS_KEPT }
}
