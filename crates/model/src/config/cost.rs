//! What a model costs, from its configuration alone: numbers to train, numbers to carry, products to compute.
//!
//! Letters: D `d_model`, E `d_inner`, H heads of w = E / H channels, N `d_state`, M the feed-forward width, V `vocab_size`.
//!
//! **Products.** Counted is a multiply-add for every product or quotient of two numbers in the equations at the head of a mixer's file
//! in the library (`nn/`), for one token, forward; it is worth 2 FLOPs. Left out are sums alone, activations, exponentials, norms and
//! attention's softmax: a few for each channel, where a matrix has D. A backward pass costs about twice the forward pass, so training
//! costs about three times as much. What a call makes once of its weights alone, such as Hyena's filter, is left out too.
//!
//! Sums that do not fit stay at the largest number.
//!
//! **State.** Counted are the numbers that the library's `init_state` gives one sequence, each 4 bytes. They stay as many, but for
//! those kept of past tokens ([`KvCache`]), which grow with the tokens read.

use alloc::vec::Vec;
use core::ops::Add;

use super::{MAX_D_MODEL, MAX_LAYERS, ModelConfig, within};
use crate::Result;
use crate::choices::{FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, NormKind, Pooling, Positions, WiringKind};

/// Taps of the short convolutions of blocks, Mamba and xLSTM.
const TAPS: u128 = 4;
/// Taps of Hyena's short convolution.
const HYENA_TAPS: u128 = 3;
/// Features of a lag, and the hidden width of the network that makes Hyena's filter of them.
const HYENA_NETWORK: [u128; 2] = [3, 64];
/// Channels of a block of mLSTM's query, key and value maps.
const MLSTM_BLOCK: u128 = 4;

/// What a model, or a part of one, costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cost {
    /// Trainable parameters.
    pub parameters: u128,
    /// Multiply-adds of a token with weight matrices.
    pub matmul_macs: u128,
    /// Multiply-adds of a token in recurrences, convolutions and gates.
    pub elementwise_macs: u128,
    /// Numbers that a sequence carries however many tokens it has read.
    pub state: u128,
    /// What is kept of past tokens, by the kind of mixer; empty for recurrences.
    pub past: Vec<KvCache>,
}

/// What mixers of one kind keep of past tokens, and compute with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvCache {
    /// The mixers.
    pub mixer: MixerKind,
    /// Numbers kept of a token.
    pub len_per_token: u128,
    /// Multiply-adds with a token that is seen.
    pub macs_per_token: u128,
    /// Most tokens that are kept.
    pub capacity: usize,
    /// Most tokens that are seen, the current one included.
    pub window: usize,
    /// Whether room is made as tokens come, and not for all of them from the beginning.
    pub grows: bool,
}

impl KvCache {
    /// Numbers kept of a sequence of `tokens`.
    pub fn carried(&self, tokens: usize) -> u128 {
        // A cache that grows begins with room for one token.
        let tokens = if self.grows { tokens.clamp(1, self.capacity.max(1)) } else { self.capacity };
        self.len_per_token.saturating_mul(tokens as u128)
    }
}

impl Cost {
    /// Numbers that a sequence of `tokens` carries: the state and what is kept of them.
    pub fn carried(&self, tokens: usize) -> u128 {
        self.past.iter().fold(self.state, |sum, past| sum.saturating_add(past.carried(tokens)))
    }

    /// Floating point operations of a token, forward, that is the last of `tokens`: 2 for each multiply-add.
    pub fn flops(&self, tokens: usize) -> u128 {
        let past = self.past.iter().map(|past| past.macs_per_token.saturating_mul(tokens.min(past.window) as u128));
        past.fold(self.matmul_macs.saturating_add(self.elementwise_macs), u128::saturating_add).saturating_mul(2)
    }

    /// A linear layer.
    fn linear(from: u128, to: u128, bias: bool) -> Self {
        let products = from.saturating_mul(to);
        Self { parameters: products.saturating_add(if bias { to } else { 0 }), matmul_macs: products, ..Self::default() }
    }

    /// A block-diagonal map without bias, of `width` channels in blocks of `block`.
    fn headwise(width: u128, block: u128) -> Self {
        Self::linear(width, block, false)
    }

    /// A depthwise convolution with biases and its window.
    fn depthwise(width: u128, taps: u128) -> Self {
        Self { parameters: width * (taps + 1), elementwise_macs: width * taps, state: width * (taps - 1), ..Self::default() }
    }

    /// Trained vectors of `numbers` in all.
    fn vectors(numbers: u128) -> Self {
        Self { parameters: numbers, ..Self::default() }
    }

    /// Multiply-adds outside of matrices.
    fn cell(products: u128) -> Self {
        Self { elementwise_macs: products, ..Self::default() }
    }

    /// Numbers carried.
    fn state(numbers: u128) -> Self {
        Self { state: numbers, ..Self::default() }
    }

    fn past(past: KvCache) -> Self {
        Self { past: alloc::vec![past], ..Self::default() }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        let add = |own: &mut u128, other: u128| *own = own.saturating_add(other);
        add(&mut self.parameters, other.parameters);
        add(&mut self.matmul_macs, other.matmul_macs);
        add(&mut self.elementwise_macs, other.elementwise_macs);
        add(&mut self.state, other.state);
        for past in other.past {
            match self.past.iter_mut().find(|own| own.mixer == past.mixer) {
                Some(own) => {
                    add(&mut own.len_per_token, past.len_per_token);
                    add(&mut own.macs_per_token, past.macs_per_token);
                }
                None => self.past.push(past),
            }
        }
        self
    }
}

impl ModelConfig {
    /// What the whole model costs.
    ///
    /// # Errors
    /// When a width is not whole or beyond the limits, heads do not divide theirs, or there are more blocks than a model can have.
    pub fn cost(&self) -> Result<Cost> {
        within("n_layers", self.n_layers, MAX_LAYERS)?;
        let mut cost = self.embedding_cost() + self.norm_cost() + self.head_cost();
        for layer in 0..self.n_layers {
            cost = cost + self.block_cost(layer)?;
        }
        Ok(cost)
    }

    /// Looking tokens up or mapping values, and places where these are learned; the head is not part of it.
    pub fn embedding_cost(&self) -> Cost {
        let d = self.d_model as u128;
        let places = if self.positions == Positions::Learned {
            Cost::vectors(self.max_seq_len as u128 * d) + Cost::state(1)
        } else {
            Cost::default()
        };
        let values = if self.input_width > 0 { Cost::linear(self.input_width as u128, d, true) } else { Cost::default() };
        Cost::vectors(self.vocab_size as u128 * d) + values + places
    }

    /// From normalised features to what is predicted.
    pub fn head_cost(&self) -> Cost {
        let d = self.d_model as u128;
        let head = Cost::linear(d, self.outputs() as u128, self.n_outputs > 0);
        // The mean is a sum and a count that are carried, and a division.
        let pooling = if self.pooling == Pooling::Mean { Cost::cell(d) + Cost::state(d + 1) } else { Cost::default() };
        // Differences and products of two features; what was and what is are carried.
        let pair = if self.pair_head { Cost::linear(4 * d, d, true) + Cost::cell(d) + Cost::state(2 * d) } else { Cost::default() };
        Cost { parameters: if self.tie_embeddings { 0 } else { head.parameters }, ..head } + pooling + pair
    }

    /// Block `layer`: convolution, mixer and feed-forward part with their norms.
    ///
    /// # Errors
    /// As [`cost`](Self::cost).
    pub fn block_cost(&self, layer: usize) -> Result<Cost> {
        within("d_model", self.d_model, MAX_D_MODEL)?;
        let d = self.d_model as u128;
        let conv = if self.conv { Cost::depthwise(d, TAPS) + Cost::linear(d, d, true) } else { Cost::default() };
        let ff = match self.ff_at(layer) {
            FeedForwardKind::None => Cost::default(),
            kind => self.norm_cost() + self.feed_forward_cost(kind)?,
        };
        let mixer = self.inside_wiring()?.mixer_cost(self.mixer_at(layer))?;
        Ok(conv + self.norm_cost() + self.wiring_cost()? + mixer + ff)
    }

    fn norm_cost(&self) -> Cost {
        let vectors = match self.norm {
            NormKind::Rms => 1,
            NormKind::Layer => 1 + u128::from(self.bias),
            NormKind::Batch => 2,
        };
        Cost::vectors(vectors * self.d_model as u128)
    }

    fn feed_forward_cost(&self, kind: FeedForwardKind) -> Result<Cost> {
        let (d, m, bias) = (self.d_model as u128, self.d_ff()? as u128, self.bias);
        Ok(match kind {
            FeedForwardKind::None => Cost::default(),
            FeedForwardKind::Mlp => Cost::linear(d, m, bias) + Cost::linear(m, d, bias),
            FeedForwardKind::Gated => Cost::linear(d, 2 * m, bias) + Cost::linear(m, d, bias) + Cost::vectors(m) + Cost::cell(2 * m),
            FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu => Cost::linear(d, 2 * m, false) + Cost::linear(m, d, false) + Cost::cell(m),
            FeedForwardKind::ChannelMix => {
                let matrices = Cost::linear(d, m, false) + Cost::linear(d, d, false) + Cost::linear(m, d, false);
                // Two token shifts, the square, the gate; the previous input is carried.
                matrices + Cost::vectors(2 * d) + Cost::cell(4 * d + m + d) + Cost::state(d)
            }
        })
    }

    /// A mixer alone, its projections included.
    /// What is around a mixer.
    fn wiring_cost(&self) -> Result<Cost> {
        let d = self.d_model as u128;
        Ok(match self.wiring {
            WiringKind::None => Cost::default(),
            WiringKind::Mamba => {
                let e = self.d_inner()? as u128;
                Cost::linear(d, 2 * e, false) + Cost::depthwise(e, TAPS) + Cost::cell(e) + Cost::linear(e, d, false)
            }
            WiringKind::H3 => {
                Cost::linear(d, 3 * d, true) + Self::shift_cost(d, self.d_state as u128) + Cost::cell(2 * d) + Cost::linear(d, d, true)
            }
        })
    }

    /// H3's filter of N taps over D channels, and its skip.
    fn shift_cost(d: u128, n: u128) -> Cost {
        Cost::vectors(d * n + d) + Cost::cell(n * d) + Cost::state(n.saturating_sub(1) * d)
    }

    /// GELU and a gated linear layer, where no wiring mixes the channels.
    fn mixing_cost(&self) -> Cost {
        let d = self.d_model as u128;
        if self.has_output_mixing() { Cost::linear(d, 2 * d, true) + Cost::cell(d) } else { Cost::default() }
    }

    /// Selective state spaces of `e` channels.
    fn selective_cost(&self, e: u128) -> Cost {
        let (n, r) = (self.d_state as u128, self.step_rank() as u128);
        let projections = Cost::linear(e, r + 2 * n, false) + Cost::linear(r, e, true);
        // Δ A, its exponential times h, (Δ u) B and C h for each state; Δ u and D u for each channel.
        projections + Cost::vectors(e * n + e) + Cost::cell(4 * e * n + 2 * e) + Cost::state(e * n)
    }

    /// The long filter of `channels` that Hyena makes.
    fn filter_cost(&self, kind: MixerKind, channels: u128) -> Cost {
        let lags = self.max_seq_len;
        let [features, hidden] = HYENA_NETWORK;
        let network = hidden * (features + 1) + 2 * hidden * (hidden + 1) + hidden * channels + hidden;
        let past = KvCache {
            mixer: kind,
            len_per_token: channels,
            macs_per_token: channels,
            capacity: lags.saturating_sub(1),
            window: lags,
            grows: false,
        };
        Cost::vectors(lags as u128 * features + network + channels) + Cost::past(past)
    }

    fn mixer_cost(&self, kind: MixerKind) -> Result<Cost> {
        let (d, e, n, h) = (self.d_model as u128, self.d_inner()? as u128, self.d_state as u128, self.n_heads.max(1) as u128);
        let w = e / h;
        let (cell, linear, state, vectors) = (Cost::cell, Cost::linear, Cost::state, Cost::vectors);
        let learned = |vectors: u128| {
            if self.initial_state == InitialState::Learned { Cost::vectors(vectors * e) } else { Cost::default() }
        };
        let highway = || if self.highway { linear(d, d, true) + cell(2 * d) } else { Cost::default() };
        let out = || linear(e, d, true);
        Ok(match kind {
            MixerKind::MinGru => {
                let floor = if self.forget_floor == ForgetFloor::Learned { vectors(e) + cell(e) } else { Cost::default() };
                linear(d, 2 * e, true) + cell(2 * e) + state(e) + out() + highway() + floor + learned(1)
            }
            MixerKind::MinLstm => linear(d, 3 * e, true) + cell(2 * e) + state(e) + out() + highway() + learned(1),
            MixerKind::Gilr => linear(d, 2 * e, true) + cell(2 * e) + state(e) + out() + learned(1),
            MixerKind::SignedMinGru => linear(d, 3 * e, true) + cell(3 * e) + state(e) + out() + learned(1),
            // The rates; λ Δt, and one more factor of the state.
            MixerKind::DecayMinGru => linear(d, 2 * e, true) + vectors(e) + cell(4 * e) + state(e) + out() + learned(1),
            MixerKind::Gru => {
                let recurrent = linear(e, 3 * e, self.gru_form == GruForm::Torch);
                linear(d, 3 * e, true) + recurrent + cell(3 * e) + state(e) + out() + learned(1)
            }
            MixerKind::Lstm => linear(d, 4 * e, true) + linear(e, 4 * e, true) + cell(3 * e) + state(2 * e) + out() + learned(2),
            MixerKind::Mamba => linear(d, 2 * e, false) + Cost::depthwise(e, TAPS) + self.selective_cost(e) + cell(e) + linear(e, d, false),
            MixerKind::S6 => self.selective_cost(d) + self.mixing_cost(),
            MixerKind::Rwkv4 => {
                let matrices = linear(d, 3 * e, false) + linear(e, d, false);
                // Three token shifts; e^(u + k) v and the quotient, the two sums' updates, the gate.
                matrices + vectors(3 * d + 2 * e) + cell(6 * d + 6 * e) + state(d + 2 * e)
            }
            MixerKind::Aaren => {
                let scores = Cost { matmul_macs: d * h, parameters: d * e + e, ..Cost::default() };
                scores + linear(d, e, false) + linear(e, d, false) + cell(2 * e) + state(e + h)
            }
            MixerKind::LinearAttention => linear(d, 3 * e, false) + linear(e, d, false) + cell(2 * e * w + 2 * e) + state(e * (w + 1)),
            MixerKind::RetNet => {
                let matrices = linear(d, 2 * d, false) + linear(d, 2 * e, false) + linear(e, d, false);
                // Turning q and k, scaling k; decay, outer product and reading of the state; the gate.
                matrices + cell(5 * d + 3 * d * w + e) + state(d * w + 1)
            }
            MixerKind::SLstm => {
                let head = d / h;
                let conv = if self.slstm_conv { Cost::depthwise(d, TAPS) } else { Cost::default() };
                let gates = Cost::headwise(d, 4 * head) + Cost::headwise(d, 4 * head);
                conv + gates + vectors(4 * d + d) + cell(5 * d) + state(4 * d)
            }
            MixerKind::MLstm => self.mlstm_cost()?,
            MixerKind::Attention => {
                let window = self.attention_window();
                let past =
                    KvCache { mixer: kind, len_per_token: 2 * d, macs_per_token: 2 * d, capacity: window, window, grows: self.window == 0 };
                let turning = if self.positions == Positions::Rotary { cell(4 * d) } else { Cost::default() };
                linear(d, 3 * d, self.bias) + linear(d, d, self.bias) + turning + state(1) + Cost::past(past)
            }
            MixerKind::S4 | MixerKind::S4d => {
                // The rank-one part: P and B, and two more products of each state.
                let rank_one = if kind == MixerKind::S4 { vectors(2 * d * n) + cell(2 * d * n) } else { Cost::default() };
                self.diagonal_cost(d, 1) + rank_one + self.mixing_cost()
            }
            MixerKind::H3 => {
                let width = self.head_width.max(1) as u128;
                let inner = Self::shift_cost(d, n) + self.diagonal_cost(d / width, width * width) + cell(2 * d * width);
                linear(d, 3 * d, true) + inner + linear(d, d, true)
            }
            MixerKind::Hyena => {
                let short = Cost::depthwise(3 * d, HYENA_TAPS);
                linear(d, 3 * d, true) + short + self.filter_cost(kind, d) + cell(2 * d) + linear(d, d, true)
            }
            MixerKind::HyenaFilter => self.filter_cost(kind, d) + self.mixing_cost(),
            // Reading the memory under the key, β times the error, its outer product, and reading for the query.
            MixerKind::Delta => linear(d, 3 * e + h, true) + cell(3 * e * w + e) + state(e * w) + out(),
        })
    }

    fn mlstm_cost(&self) -> Result<Cost> {
        let (d, e, h) = (self.d_model as u128, self.mlstm_inner()? as u128, self.n_heads.max(1) as u128);
        let w = e / h;
        let maps = Cost::headwise(e, 3 * MLSTM_BLOCK);
        let projections = Cost::linear(d, 2 * e, false) + maps + Cost::linear(3 * e, 2 * h, true) + Cost::linear(e, d, false);
        // f C, i k vᵀ and Cᵀ q; then i k, k/√e, f n, n q, the quotient, the skip and the gate.
        let memory = Cost::cell(3 * e * w + 7 * e) + Cost::state(e * w + e + h);
        Ok(projections + Cost::depthwise(e, TAPS) + Cost::vectors(2 * e) + memory)
    }

    /// Diagonal state spaces with the parameters of `spaces` channels, each used by `copies` sequences of states.
    fn diagonal_cost(&self, spaces: u128, copies: u128) -> Cost {
        let (n, channels) = (self.d_state as u128, spaces * copies);
        // Of the N/2 complex states: a x (4), b u (2), c x (2); and the skip.
        Cost::vectors(2 * spaces * (n + 1)) + Cost::cell(channels * (4 * n + 1)) + Cost::state(channels * n)
    }
}
