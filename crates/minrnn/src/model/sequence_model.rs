//! Tokens or values in, logits or values out: embedding or linear map, backbone, head.
//!
//! The usual model reads tokens and predicts the next one. It may instead read `input_width` numbers per step, predict `n_outputs` classes
//! or numbers, or both; with pooling its head sees the mean of all steps so far, for labels of whole sequences.
//!
//! With learned positions the embedding adds a vector for the token's position since the last reset; positions beyond `max_seq_len` use the
//! last vector.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn_model::{CheckedConfig, DropoutSite, Initialization, MixerKind, ModelConfig, Pooling, Positions, WiringKind};

use super::backbone::{Backbone, BackboneState};
use super::inputs::{Inputs, Targets};
use super::pair_head::{PairHead, PairMemory};
use super::pooling::RunningMean;
use super::scored::{Scored, where_scored};
use crate::memory::activations::{Activations, Op, Sizes};
use crate::memory::tape::Tape;
use crate::nn::{AnyMixer, AnyState, Initializer, Mixer, Mode, Norm, linear};
use crate::ops::{Dropout, StepCodes, StepPositions, bias_dropout_residual, embedding, expect_count};
use crate::{Error, Result};

/// A sequence model; by default one that predicts the next of V tokens.
#[derive(Module, Debug)]
pub struct SequenceModel<M: Module = AnyMixer> {
    /// V → D, for a model that reads tokens.
    pub embedding: Option<Embedding>,
    /// F → D, for a model that reads values.
    pub input: Option<Linear>,
    /// Position → D, if positions are learned.
    pub positions: Option<Embedding>,
    /// The stack of blocks.
    pub backbone: Backbone<M>,
    /// The comparison with the previous sequence, for a model of pairs.
    pub pair_head: Option<PairHead>,
    /// D → V without bias, or D → `n_outputs`; absent if it shares the embedding's matrix.
    pub head: Option<Linear>,
    #[module(skip)]
    pools: bool,
    #[module(skip)]
    embedding_dropout: f64,
}

/// The state of a [`SequenceModel`] with the library's mixers.
pub type SequenceModelState = BackboneState<AnyState>;

/// Standard deviation of a new embedding (PyTorch's default of 1; 0.02 in Mamba's and nanoGPT's code).
fn embedding_deviation(config: &ModelConfig) -> f32 {
    let is_mamba = match config.wiring {
        WiringKind::None => config.mixer_kinds() == [MixerKind::Mamba],
        WiringKind::Mamba => config.mixer_kinds() == [MixerKind::S6],
        WiringKind::H3 => false,
    };
    if config.init == Initialization::Gpt || is_mamba { 0.02 } else { 1.0 }
}

impl SequenceModel<AnyMixer> {
    /// The model described by `config`, with weights drawn from `seed`.
    ///
    /// # Errors
    /// When the configuration is not valid.
    pub fn new(config: &ModelConfig, seed: u64, device: &Device) -> Result<Self> {
        let checked = config.checked()?;
        Self::with_mixers(config, seed, device, |layer, init| Ok(AnyMixer::new(&checked, layer, init)))
    }

    /// What the embedding or map of values, the positions, and the dropout on both keep for a batch.
    pub(super) fn embedding_activations(config: &CheckedConfig, sizes: Sizes) -> Tape {
        let d = config.d_model as u128;
        let mut list = Activations::new(sizes);
        match config.input_width as u128 {
            0 => list.op(Op { gives: d, ..Op::default() }),
            width => list.biased(width, d, true),
        }
        if config.positions == Positions::Learned {
            list.residual(d);
        }
        if config.dropout > 0.0 {
            list.op(Op { reads: d, gives: d, ..Op::default() });
        }
        list.tape()
    }

    /// What everything from the last block to the loss keeps for a batch: the final norm, pooling, the comparison of pairs, and the head at
    /// scored steps.
    pub(super) fn head_activations(config: &CheckedConfig, sizes: Sizes) -> Tape {
        let (d, v) = (config.d_model as u128, config.outputs() as u128);
        let mut list = Activations::new(sizes);
        Norm::activations(config, &mut list);
        if config.pooling == Pooling::Mean {
            RunningMean::activations(d, &mut list);
        }
        if config.pair_head {
            PairHead::activations(d, &mut list);
        }
        Scored::activations(&mut list, d, v, config.n_outputs > 0);
        list.tape()
    }
}

impl<M: Mixer> SequenceModel<M> {
    /// As [`new`](Self::new), with mixers made by `mixer`; `config.mixer` is ignored.
    ///
    /// # Errors
    /// When the configuration is not valid or `mixer` fails.
    pub fn with_mixers(
        config: &ModelConfig,
        seed: u64,
        device: &Device,
        mixer: impl FnMut(usize, &mut Initializer) -> Result<M>,
    ) -> Result<Self> {
        let config = &config.checked()?;
        if config.decision {
            return Err(Error::Config("decision = true is a policy, whose model is Decision; use decision = false".into()));
        }
        let mut init = Initializer::new(seed, device).for_model(config);
        let dropped = config.dropout_sites.contains(&DropoutSite::Embedding);
        let mut table = |rows| Embedding { weight: init.normal([rows, config.d_model], embedding_deviation(config)) };
        let embedding = (config.input_width == 0).then(|| table(config.vocab_size));
        let positions = (config.positions == Positions::Learned).then(|| table(config.max_seq_len));
        let input = (config.input_width > 0).then(|| init.linear_with_bias(config.input_width, config.d_model, true));
        let backbone = Backbone::with_mixers(config, &mut init, mixer)?;
        let pair_head = config.pair_head.then(|| PairHead::new(config.d_model, &mut init));
        let head = (!config.tie_embeddings).then(|| init.linear_with_bias(config.d_model, config.outputs(), config.n_outputs > 0));
        let embedding_dropout = if dropped { config.dropout } else { 0.0 };
        let pools = config.pooling == Pooling::Mean;
        Ok(Self { embedding, input, positions, backbone, pair_head, head, pools, embedding_dropout })
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.input_weight().device()
    }

    /// V, the number of tokens it reads; 0 when it reads values.
    pub fn vocab_size(&self) -> usize {
        self.embedding.as_ref().map_or(0, |table| table.weight.dims()[0])
    }

    /// F, how many values it reads at every step; 0 when it reads tokens.
    pub(crate) fn input_width(&self) -> usize {
        self.input.as_ref().map_or(0, |input| input.weight.dims()[0])
    }

    /// V, how many classes or numbers it predicts at every step.
    pub(crate) fn n_outputs(&self) -> usize {
        self.head.as_ref().map_or_else(|| self.vocab_size(), |head| head.weight.dims()[1])
    }

    fn input_weight(&self) -> Tensor<2> {
        let weight = self.embedding.as_ref().map(|table| &table.weight).or(self.input.as_ref().map(|input| &input.weight));
        weight.map(Param::val).expect("a model reads tokens or values")
    }

    /// The initial state.
    pub fn init_state(&self, batch_size: usize) -> BackboneState<M::State> {
        let position = self.positions.as_ref().map(|_| Tensor::zeros([batch_size, 1], &self.device()));
        let pooling = self.pools.then(|| RunningMean::init(batch_size, self.d_model(), &self.device()));
        let pair = self.pair_head.as_ref().map(|_| PairMemory::init(batch_size, self.d_model(), &self.device()));
        BackboneState { position, pooling, pair, ..self.backbone.init_state(batch_size) }
    }

    /// D: tables are `[V, D]`, and a linear map's weight is `[F, D]`.
    fn d_model(&self) -> usize {
        self.input_weight().dims()[1]
    }

    /// Logits of the next token, or other predictions, at every position, and the state after the last.
    ///
    /// # Shapes
    /// * `inputs` `[B, T]` tokens or `[B, T, F]` values → `[B, T, V]`
    ///
    /// # Panics
    /// When the shapes of inputs, state and steps do not fit.
    pub fn forward(
        &self,
        inputs: impl Into<Inputs>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        let (x, state) = self.features(inputs.into(), state, steps, mode);
        (self.logits(x), state)
    }

    /// Logits of the next token after each row's last, and the state there, as needed for a prompt.
    ///
    /// # Shapes
    /// * `tokens` `[B, T]` with T ≥ 1, `lengths` the real steps of each row, at least 1 → `[B, V]`
    ///
    /// # Panics
    /// When the shapes of tokens, state and steps do not fit, a length is 0 or more than T, or the lengths are not those of `steps` (all T
    /// if these are dense).
    pub fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        lengths: &[usize],
        state: BackboneState<M::State>,
        steps: &StepCodes,
    ) -> (Tensor<2>, BackboneState<M::State>) {
        let [batch, seq_len] = tokens.dims();
        let found = lengths.len();
        assert!(found == batch, "prefill: expected one length for each of {batch} rows, found {found}");
        for (b, &length) in lengths.iter().enumerate() {
            assert!((1..=seq_len).contains(&length), "prefill: expected a length between 1 and {seq_len} of row {b}, found {length}");
            let real = steps.length(b, seq_len);
            assert!(
                length == real,
                "prefill: expected the length that the steps give row {b}, {real}, found {length}; make both of the same"
            );
        }
        let (x, state) = self.features(tokens.into(), state, steps, Mode::Evaluate);
        let last: Vec<i64> = lengths.iter().enumerate().map(|(b, &n)| (b * seq_len + n - 1) as i64).collect();
        let last = Tensor::<1, Int>::from_data(TensorData::new(last, [batch]), &x.device());
        let x = linear::rows(x).select(0, last).unsqueeze_dim(1);
        (self.logits(x).squeeze_dim(1), state)
    }

    /// Logits of the next token after one token for each row, in evaluation mode, and the state after it.
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

    /// Mean loss over the scored positions, cross-entropy in nats for classes or squared error for values, and the state after the last
    /// step.
    ///
    /// # Shapes
    /// * `inputs` `[B, T]` tokens or `[B, T, F]` values, `targets` B·T numbers below V or B·T·V values, `mask` B·T weights (if absent: all
    ///   1)
    ///
    /// # Panics
    /// When the shapes do not fit, even if few positions are scored, or a scored target is V or more.
    pub fn loss(
        &self,
        inputs: impl Into<Inputs>,
        targets: impl Into<Targets>,
        mask: Option<Arc<[f32]>>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<1>, BackboneState<M::State>) {
        let (scored, state) = self.predict_scored(inputs.into(), targets.into(), mask, state, steps, mode);
        (scored.loss(), state)
    }

    /// The predictions at the scored positions, with their targets, and the state after the last step.
    pub(crate) fn predict_scored(
        &self,
        inputs: Inputs,
        targets: Targets,
        mask: Option<Arc<[f32]>>,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Scored, BackboneState<M::State>) {
        let (features, state) = self.features(inputs, state, steps, mode);
        (self.score(features, targets, mask), state)
    }

    /// The predictions from features `[B, T, D]` at scored positions, with their targets.
    ///
    /// The head is the widest layer of a model with many tokens, and a task may ask for a few answers at the end of a long sequence; if at
    /// most half of the positions are scored, the head computes only these.
    ///
    /// # Panics
    /// When there are not as many targets or weights as positions.
    pub(crate) fn score(&self, features: Tensor<3>, targets: Targets, mask: Option<Arc<[f32]>>) -> Scored {
        let [batch, seq_len, _] = features.dims();
        targets.expect_fits(batch * seq_len, self.n_outputs());
        if let Some(mask) = &mask {
            expect_count("loss", "weights in mask", mask.len(), batch * seq_len);
        }
        let (features, targets, mask) = where_scored(features, targets, mask);
        Scored { predicted: linear::rows(self.logits(features)), targets, mask }
    }

    /// The embedded tokens or mapped values `[B, T, D]`, with dropout while training, and the position of the next one.
    ///
    /// # Panics
    /// When the inputs are not of the kind the model reads, or the state belongs to a model without learned positions and this one has
    /// them.
    pub(crate) fn embed(
        &self,
        inputs: Inputs,
        position: Option<Tensor<2>>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, Option<Tensor<2>>) {
        let ([batch, seq_len], device) = (inputs.dims(), inputs.device());
        let mut x = match (inputs, &self.embedding, &self.input) {
            (Inputs::Tokens(tokens), Some(table), _) => embedding(tokens, table.weight.val()),
            (Inputs::Values(values), _, Some(input)) => linear::apply(input, values),
            (Inputs::Tokens(_), ..) => panic!("the model reads values, found tokens"),
            (Inputs::Values(_), ..) => panic!("the model reads tokens, found values"),
        };
        let mut after = position.clone();
        if let Some(table) = &self.positions {
            let table = table.weight.val();
            let last = table.dims()[0] - 1;
            let places = StepPositions::count(position.expect("the state of a model with learned positions"), seq_len, steps);
            if batch * seq_len > 0 {
                let of: Vec<i64> = places.of.iter().map(|&place| (place as usize).min(last) as i64).collect();
                x = x + embedding(Tensor::from_data(TensorData::new(of, [batch, seq_len]), &device), table);
            }
            after = Some(places.after);
        }
        let x = match mode.dropout(self.embedding_dropout, Mode::EMBEDDING_SITE) {
            Dropout::OFF => x,
            dropout => linear::sequences(bias_dropout_residual(linear::rows(x), None, None, dropout), batch, seq_len),
        };
        (x, after)
    }

    fn features(
        &self,
        inputs: Inputs,
        state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        let (x, position) = self.embed(inputs, state.position.clone(), steps, mode);
        let (x, mut state) = self.backbone.forward(x, BackboneState { position, ..state }, steps, mode);
        let (x, pooling) = self.pool(x, state.pooling.take(), steps);
        let (x, pair) = self.compare(x, state.pair.take(), steps);
        (state.pooling, state.pair) = (pooling, pair);
        (x, state)
    }

    /// The running means of normalised features `[B, T, D]` in a model with pooling, and the state to carry.
    ///
    /// # Panics
    /// When the state belongs to a model without pooling and this one has it.
    pub(crate) fn pool(&self, x: Tensor<3>, state: Option<RunningMean>, steps: &StepCodes) -> (Tensor<3>, Option<RunningMean>) {
        if !self.pools {
            return (x, None);
        }
        let (means, state) = state.expect("the state of a model with pooling").forward(x, steps);
        (means, Some(state))
    }

    /// Features `[B, T, D]` compared with those before the last reset in a model of pairs, and the state to carry.
    ///
    /// # Panics
    /// When the state belongs to a model without a pair head and this one has one.
    pub(crate) fn compare(&self, x: Tensor<3>, state: Option<PairMemory>, steps: &StepCodes) -> (Tensor<3>, Option<PairMemory>) {
        let Some(pair_head) = &self.pair_head else { return (x, None) };
        let (x, state) = pair_head.forward(x, state.expect("the state of a model with a pair head"), steps);
        (x, Some(state))
    }

    /// The predictions `[B, T, V]` from features `[B, T, D]`.
    pub(crate) fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        match &self.head {
            Some(head) if head.bias.is_some() => linear::apply(head, x),
            Some(head) => linear::matmul(head, x),
            None => linear::matmul_sequences_transposed(x, self.input_weight()),
        }
    }
}
