//! Tokens in, logits out: embedding, backbone, head.
//!
//! With learned positions the embedding adds a vector for the place of the token since the last reset; beyond the last of the
//! `max_seq_len` places every token has that of the last one.

use std::sync::Arc;

use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn_stream::{DropoutSite, Initialization, MixerKind, ModelConfig, Positions, WiringKind};

use super::backbone::{Backbone, BackboneState};
use crate::Result;
use crate::nn::places::Places;
use crate::nn::{AnyMixer, AnyState, Initializer, Mixer, Mode, linear};
use crate::ops::{Dropout, StepCodes, bias_dropout_residual, cross_entropy, embedding};

/// The dropout site of the embedding; blocks count theirs from 0.
const EMBEDDING_SITE: u64 = u64::MAX;

/// A language model over a vocabulary of V tokens.
#[derive(Module, Debug)]
pub struct LanguageModel<M: Module = AnyMixer> {
    /// V → D.
    pub embedding: Embedding,
    /// Place → D, when positions are learned.
    pub positions: Option<Embedding>,
    /// The stack of blocks.
    pub backbone: Backbone<M>,
    /// D → V without bias; absent when it shares the embedding's matrix.
    pub head: Option<Linear>,
    #[module(skip)]
    embedding_dropout: f64,
}

/// What a [`LanguageModel`] of the library's mixers carries.
pub type LanguageModelState = BackboneState<AnyState>;

/// Standard deviation of a new embedding (models.md §2.8, §5 and §12).
fn embedding_deviation(config: &ModelConfig) -> f32 {
    let is_mamba = match config.wiring {
        WiringKind::None => config.mixer_kinds() == [MixerKind::Mamba],
        WiringKind::Mamba => config.mixer_kinds() == [MixerKind::S6],
        WiringKind::H3 => false,
    };
    if config.init == Initialization::Gpt || is_mamba { 0.02 } else { 1.0 }
}

impl LanguageModel<AnyMixer> {
    /// The model `config` asks for, with weights drawn from `seed`.
    ///
    /// # Errors
    /// When the configuration is not valid.
    pub fn new(config: &ModelConfig, seed: u64, device: &Device) -> Result<Self> {
        config.validate()?;
        Self::with_mixers(config, seed, device, |layer, init| AnyMixer::from_config(config, layer, init))
    }
}

impl<M: Mixer> LanguageModel<M> {
    /// The same around mixers made by `mixer`; `config.mixer` plays no part.
    ///
    /// # Errors
    /// When the configuration is not valid or `mixer` fails.
    pub fn with_mixers(
        config: &ModelConfig,
        seed: u64,
        device: &Device,
        mixer: impl FnMut(usize, &mut Initializer) -> Result<M>,
    ) -> Result<Self> {
        let mut init = Initializer::new(seed, device).for_model(config);
        let dropped = config.dropout_sites.contains(&DropoutSite::Embedding);
        let mut table = |rows| Embedding { weight: init.normal([rows, config.d_model], embedding_deviation(config)) };
        let embedding = table(config.vocab_size);
        let positions = (config.positions == Positions::Learned).then(|| table(config.max_seq_len));
        let backbone = Backbone::with_mixers(config, &mut init, mixer)?;
        let head = (!config.tie_embeddings).then(|| init.linear_with_bias(config.d_model, config.vocab_size, false));
        Ok(Self { embedding, positions, backbone, head, embedding_dropout: if dropped { config.dropout } else { 0.0 } })
    }

    /// Where the weights live.
    pub fn device(&self) -> Device {
        self.embedding.weight.val().device()
    }

    /// The state before the first token.
    pub fn init_state(&self, batch_size: usize) -> BackboneState<M::State> {
        let position = self.positions.as_ref().map(|_| Tensor::zeros([batch_size, 1], &self.device()));
        BackboneState { position, ..self.backbone.init_state(batch_size) }
    }

    /// Logits of the next token at every position, and the state after the last.
    ///
    /// # Shapes
    /// * `tokens` `[B, T]` → `[B, T, V]`
    ///
    /// # Panics
    /// When the shapes of tokens, state and steps do not fit.
    pub fn forward(
        &self,
        tokens: Tensor<2, Int>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        let (x, state) = self.features(tokens, state, steps, mode);
        (self.logits(x), state)
    }

    /// Logits of the next token after each row's last, and the state there: what a prompt pass needs.
    ///
    /// # Shapes
    /// * `tokens` `[B, T]` with T ≥ 1, `lengths` the real steps of each row, at least 1 → `[B, V]`
    ///
    /// # Panics
    /// When the shapes of tokens, state and steps do not fit.
    pub fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        lengths: &[usize],
        state: BackboneState<M::State>,
        steps: &StepCodes,
    ) -> (Tensor<2>, BackboneState<M::State>) {
        let [batch, seq_len] = tokens.dims();
        let (x, state) = self.features(tokens, state, steps, Mode::Evaluate);
        let last: Vec<i64> = lengths.iter().enumerate().map(|(b, &n)| (b * seq_len + n - 1) as i64).collect();
        let last = Tensor::<1, Int>::from_data(TensorData::new(last, [batch]), &x.device());
        let x = linear::rows(x).select(0, last).unsqueeze_dim(1);
        (self.logits(x).squeeze_dim(1), state)
    }

    /// Logits of the next token after one token of each row, in evaluation, and the state after it.
    ///
    /// # Shapes
    /// * `tokens` `[B]` → `[B, V]`
    ///
    /// # Panics
    /// When the shapes of tokens and state do not fit.
    pub fn step(&self, tokens: Tensor<1, Int>, state: BackboneState<M::State>) -> (Tensor<2>, BackboneState<M::State>) {
        let (logits, state) = self.forward(tokens.unsqueeze_dim(1), state, &StepCodes::dense(), Mode::Evaluate);
        (logits.squeeze_dim(1), state)
    }

    /// Mean cross-entropy in nats over the scored positions, and the state after the last token.
    ///
    /// # Shapes
    /// * `tokens` `[B, T]`, `targets` B·T numbers below V, `mask` B·T weights (absent: all 1)
    ///
    /// # Panics
    /// When the shapes do not fit or a scored target is not below V.
    pub fn loss(
        &self,
        tokens: Tensor<2, Int>,
        targets: Arc<[i32]>,
        mask: Option<Arc<[f32]>>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<1>, BackboneState<M::State>) {
        let (logits, state) = self.forward(tokens, state, steps, mode);
        (cross_entropy(linear::rows(logits), targets, mask), state)
    }

    /// The embedded tokens `[B, T, D]`, with dropout while training, and the place of the next one.
    ///
    /// # Panics
    /// When the state belongs to a model without learned positions and this one has some.
    pub(crate) fn embed(
        &self,
        tokens: Tensor<2, Int>,
        position: Option<Tensor<2>>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, Option<Tensor<2>>) {
        let [batch, seq_len] = tokens.dims();
        let device = tokens.device();
        let mut x = embedding(tokens, self.embedding.weight.val());
        let mut after = position.clone();
        if let Some(table) = &self.positions {
            let table = table.weight.val();
            let last = table.dims()[0] - 1;
            let places = Places::count(position.expect("the state of a model with learned positions"), seq_len, steps);
            if batch * seq_len > 0 {
                let of: Vec<i64> = places.of.iter().map(|&place| (place as usize).min(last) as i64).collect();
                x = x + embedding(Tensor::from_data(TensorData::new(of, [batch, seq_len]), &device), table);
            }
            after = Some(places.after);
        }
        let x = match mode.dropout(self.embedding_dropout, EMBEDDING_SITE) {
            Dropout::OFF => x,
            dropout => linear::sequences(bias_dropout_residual(linear::rows(x), None, None, dropout), batch, seq_len),
        };
        (x, after)
    }

    fn features(
        &self,
        tokens: Tensor<2, Int>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        let (x, position) = self.embed(tokens, state.position, steps, mode);
        self.backbone.forward(x, BackboneState { position, blocks: state.blocks }, steps, mode)
    }

    /// Logits `[B, T, V]` of normalised features `[B, T, D]`.
    pub(crate) fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        match &self.head {
            Some(head) => linear::product(head, x),
            None => linear::transposed_product(x, self.embedding.weight.val()),
        }
    }
}
