//! The Decision Transformer's wiring around any mixer: a step is three tokens, and the action is read at the observation (Chen et al. 2021,
//! arXiv:2106.01345, §3).
//!
//! ```text
//! tokens   R₁ s₁ a₁ R₂ s₂ a₂ … R_K s_K
//! R → W_R R + e(t)    s → W_s s + e(t)    a → W_a a + e(t)        then LayerNorm, dropout, blocks, final norm
//! â_t = tanh(W y + b), y the features at s_t
//! ```
//!
//! where:
//!
//! * R: the return still to be earned, scaled; s: the observation, normalised; a: the action
//! * t: the number of the step in its episode; e: a table of 1000 vectors; later steps use the last one
//!
//! The model reads the rows of [`StepEncoding`](crate::data::offline_rl::StepEncoding), `[R | s | previous action | t]`. A row therefore
//! stands for the tokens a_{t−1}, R_t, s_t: those that a carried state has not seen yet when the action at t is asked for. At the beginning
//! of a sequence there is no previous action, and its token is left out.

use std::sync::Arc;

use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET};
use minrnn_model::{CheckedConfig, DropoutSite, ModelConfig, NormKind, POLICY_PLACES as TOKENS, POLICY_TIME_SCALE, POLICY_TIMES};

use super::backbone::{Backbone, BackboneState};
use super::inputs::{Inputs, Targets};
use super::scored::Scored;
use crate::Result;
use crate::memory::activations::{Activations, Op, Sizes};
use crate::memory::tape::Tape;
use crate::nn::{AnyMixer, Initializer, Mixer, Mode, Norm, linear};
use crate::ops::{Dropout, StepCodes, bias_dropout_residual, embedding};

/// A policy: maps the returns, observations and actions so far to the next action, in (−1, 1).
#[derive(Module, Debug)]
pub struct Decision<M: Module = AnyMixer> {
    /// 1 → D.
    pub to_go: Linear,
    /// S → D.
    pub observation: Linear,
    /// A → D.
    pub action: Linear,
    /// Time → D.
    pub times: Embedding,
    /// LayerNorm of the embedded tokens.
    pub norm: Norm,
    /// The stack of blocks.
    pub backbone: Backbone<M>,
    /// D → A.
    pub head: Linear,
    #[module(skip)]
    dropout: f64,
}

impl Decision<AnyMixer> {
    /// The model described by `config`, with weights drawn from `seed`: `input_width` numbers in a row, `n_outputs` in an action.
    ///
    /// # Errors
    /// When the configuration is not valid or not that of a policy.
    pub fn new(config: &ModelConfig, seed: u64, device: &Device) -> Result<Self> {
        let checked = ModelConfig { decision: true, ..config.clone() }.checked()?;
        Self::with_mixers(config, seed, device, |layer, init| Ok(AnyMixer::new(&checked, layer, init)))
    }

    /// What the maps of a step, the times and the norm keep for a batch of `sizes` tokens.
    pub(super) fn embedding_activations(config: &CheckedConfig, sizes: Sizes) -> Tape {
        let d = config.d_model as u128;
        let mut list = Activations::new(sizes);
        // Each part makes a third of the tokens, with its time and its bias.
        list.op(Op { keeps: &[d], reads: d, gives: d, aside: 2 * d, ..Op::default() });
        // PyTorch's LayerNorm, composed of Burn's operations.
        list.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        if config.dropout > 0.0 {
            list.op(Op { reads: d, gives: d, ..Op::default() });
        }
        list.tape()
    }

    /// What everything from the last block to the loss keeps for a batch: the final norm, and the actions at the tokens that are read.
    pub(super) fn head_activations(config: &CheckedConfig, sizes: Sizes) -> Tape {
        let (d, action) = (config.d_model as u128, config.n_outputs as u128);
        let mut list = Activations::new(sizes);
        Norm::activations(config, &mut list);
        // tanh keeps its output.
        list.keep(list.scored() * action);
        Scored::activations(&mut list, d, action, true);
        list.tape()
    }
}

impl<M: Mixer> Decision<M> {
    /// As [`new`](Self::new), with mixers made by `mixer`; `config.mixer` is ignored.
    ///
    /// # Errors
    /// When the configuration is not valid or not that of a policy, or `mixer` fails.
    pub fn with_mixers(
        config: &ModelConfig,
        seed: u64,
        device: &Device,
        mixer: impl FnMut(usize, &mut Initializer) -> Result<M>,
    ) -> Result<Self> {
        let config = &ModelConfig { decision: true, ..config.clone() }.checked()?;
        let (action_width, observation_width) = (config.n_outputs, config.observation_width());
        let d = config.d_model;
        let mut init = Initializer::new(seed, device);
        let (to_go, observation, action) = (init.linear(1, d), init.linear(observation_width, d), init.linear(action_width, d));
        let times = Embedding { weight: init.normal([POLICY_TIMES, d], 1.0) };
        let norm = Norm::new(NormKind::Layer, d, &mut init);
        let head = init.linear(d, action_width);
        // The configured initialisation applies to the blocks only, as in the published code.
        let backbone = Backbone::with_mixers(config, &mut init.for_model(config), mixer)?;
        let dropout = if config.dropout_sites.contains(&DropoutSite::Embedding) { config.dropout } else { 0.0 };
        Ok(Self { to_go, observation, action, times, norm, backbone, head, dropout })
    }

    /// Width of a row, S + A + 2.
    pub fn input_width(&self) -> usize {
        let inputs = |linear: &Linear| linear.weight.dims()[0];
        inputs(&self.to_go) + inputs(&self.observation) + inputs(&self.action) + 1
    }

    /// Width of an action, A.
    pub fn action_width(&self) -> usize {
        self.head.weight.dims()[1]
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.head.weight.device()
    }

    /// The action at every step, and the state after the last observation. Without a `state` the rows begin a sequence, and the previous
    /// action in the first row is ignored; otherwise the state replaces all earlier rows.
    ///
    /// # Shapes
    /// * `inputs` `[B, K, S + A + 2]`, K at least 1 → `[B, K, A]`
    ///
    /// # Panics
    /// When the shapes of inputs, state and steps do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<Inputs>,
        state: Option<BackboneState<M::State>>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        let (x, steps) = self.enter(inputs.into(), state.is_some(), steps, mode);
        let state = state.unwrap_or_else(|| self.backbone.init_state(x.dims()[0]));
        let (x, state) = self.backbone.forward(x, state, &steps, mode);
        (self.act(x), state)
    }

    /// The tokens `[B, N, D]` of rows, with their codes; for rows that begin a sequence, without the action before the first.
    ///
    /// # Panics
    /// When the rows do not fit this policy, or there are none.
    pub(crate) fn enter(&self, inputs: Inputs, is_begun: bool, steps: &StepCodes, mode: Mode) -> (Tensor<3>, StepCodes) {
        let Inputs::Values(inputs) = inputs else { panic!("a policy reads values, found tokens") };
        let [batch, n_steps, width] = inputs.dims();
        assert!(n_steps > 0, "a policy needs at least one step");
        assert_eq!(width, self.input_width(), "numbers in a row");
        let left_out = usize::from(!is_begun);
        let x = self.embed(inputs, mode).narrow(1, left_out, TOKENS * n_steps - left_out);
        (x, of_tokens(steps, batch, n_steps, left_out))
    }

    /// The action `[B, K, A]` at every step, from the normalised features `[B, N, D]` of the tokens.
    pub(crate) fn act(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, n_tokens, _] = x.dims();
        let n_steps = n_tokens.div_ceil(TOKENS);
        // The observation is the last token of its step.
        let of_first = n_tokens - TOKENS * (n_steps - 1) - 1;
        let at = (0..batch).flat_map(|b| (0..n_steps).map(move |t| (b * n_tokens + of_first + TOKENS * t) as i64)).collect::<Vec<_>>();
        let at = Tensor::<1, Int>::from_data(TensorData::new(at, [batch * n_steps]), &x.device());
        let x = linear::sequences(linear::rows(x).select(0, at), batch, n_steps);
        linear::apply(&self.head, x).tanh()
    }

    /// The mean squared error of the actions over the scored steps, for windows that start from the initial state.
    ///
    /// # Shapes
    /// * `inputs` `[B, K, S + A + 2]`, `targets` B·K·A numbers, `mask` B·K weights (absent: all 1)
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn loss(
        &self,
        inputs: impl Into<Inputs>,
        targets: impl Into<Targets>,
        mask: Option<Arc<[f32]>>,
        steps: &StepCodes,
        mode: Mode,
    ) -> Tensor<1> {
        let predicted = linear::rows(self.forward(inputs, None, steps, mode).0);
        Scored { predicted, targets: targets.into(), mask }.loss()
    }

    /// The tokens `[B, 3K, D]` of rows `[B, K, S + A + 2]`: action before, return, observation.
    fn embed(&self, inputs: Tensor<3>, mode: Mode) -> Tensor<3> {
        let [batch, n_steps, width] = inputs.dims();
        let (action_width, observation_width) = (self.action_width(), width - self.action_width() - 2);
        let part = |linear: &Linear, start, len| linear::apply(linear, inputs.clone().narrow(2, start, len));
        let to_go = part(&self.to_go, 0, 1);
        let observation = part(&self.observation, 1, observation_width);
        let action = part(&self.action, 1 + observation_width, action_width);

        let times = (inputs.narrow(2, width - 1, 1) * POLICY_TIME_SCALE).round().reshape([batch, n_steps]);
        // A previous action belongs to the time of the row before; in the first row, to one less than that row's time.
        let first = times.clone().narrow(1, 0, 1) - 1.0;
        let before = if n_steps == 1 { first } else { Tensor::cat(vec![first, times.clone().narrow(1, 0, n_steps - 1)], 1) };
        let vectors = |times: Tensor<2>| embedding(times.clamp(0.0, (POLICY_TIMES - 1) as f64).int(), self.times.weight.val());
        let (now, before) = (vectors(times), vectors(before));

        let d = now.dims()[2];
        let x: Tensor<4> = Tensor::stack(vec![action + before, to_go + now.clone(), observation + now], 2);
        let x = self.norm.forward(x.reshape([batch, TOKENS * n_steps, d]), &StepCodes::dense(), mode);
        match mode.dropout(self.dropout, Mode::EMBEDDING_SITE) {
            Dropout::OFF => x,
            dropout => linear::sequences(bias_dropout_residual(linear::rows(x), None, None, dropout), batch, TOKENS * n_steps),
        }
    }
}

/// The codes of tokens from those of steps. A reset acts after the action that belongs to the step before it.
fn of_tokens(steps: &StepCodes, batch: usize, n_steps: usize, left_out: usize) -> StepCodes {
    if steps.is_dense() {
        return StepCodes::dense();
    }
    let of_step = |code| match code {
        RESET => [CONTINUE, RESET, CONTINUE],
        PADDING => [PADDING; TOKENS],
        _ => [CONTINUE; TOKENS],
    };
    let row = |b| (0..n_steps).flat_map(move |t| of_step(steps.code(b, t))).skip(left_out);
    StepCodes::new((0..batch).flat_map(row).collect(), TOKENS * n_steps - left_out)
}

#[cfg(test)]
mod tests {
    use minrnn_model::{Pooling, Positions};

    use super::*;
    use crate::Segments;

    #[test]
    fn resets_act_between_the_action_before_and_the_return() {
        let steps = Segments::from_lengths(vec![3, 2]).with_resets(vec![vec![0, 2], vec![]]).steps(2, 3).unwrap();
        let codes = |steps: &StepCodes, len: usize| (0..2).map(|b| (0..len).map(|t| steps.code(b, t)).collect()).collect::<Vec<Vec<i32>>>();
        let (c, r, p) = (CONTINUE, RESET, PADDING);
        let carried = of_tokens(&steps, 2, 3, 0);
        assert_eq!(codes(&carried, 9), [[c, r, c, c, c, c, c, r, c], [c, c, c, c, c, c, p, p, p]]);
        let anew = of_tokens(&steps, 2, 3, 1);
        assert_eq!(codes(&anew, 8), [[r, c, c, c, c, c, r, c], [c, c, c, c, c, p, p, p]]);
    }

    #[test]
    fn configurations_that_are_no_policy_are_refused() {
        let policy = ModelConfig { input_width: 5, n_outputs: 2, d_model: 8, ..Default::default() };
        let refusal = |config: ModelConfig| Decision::new(&config, 1, &Device::flex()).unwrap_err().to_string();
        Decision::new(&policy, 1, &Device::flex()).unwrap();
        assert!(refusal(ModelConfig { input_width: 4, ..policy.clone() }).contains("at least n_outputs + 3"));
        assert!(refusal(ModelConfig { positions: Positions::Learned, ..policy.clone() }).contains("time table"));
        assert!(refusal(ModelConfig { pooling: Pooling::Mean, ..policy }).contains("pooling = mean"));
    }
}
