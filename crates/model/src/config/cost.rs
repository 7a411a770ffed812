//! What a model costs, from its configuration alone: numbers to train, numbers to carry, multiply-adds to compute.
//!
//! **Multiply-adds.** Counted is one for every product or quotient of two numbers in the equations at the head of a mixer's file in the library
//! (`nn/`), for one token, forward; it is worth 2 FLOPs. Left out are sums alone, activations, exponentials, norms and attention's softmax:
//! a few for each channel, where a matrix has D. A backward pass costs about twice the forward pass, so training costs about three times
//! as much. What a call makes once of its weights alone, such as Hyena's filter, is left out too.
//!
//! Sums that do not fit stay at the largest number.
//!
//! **State.** Counted are the numbers that the library's `init_state` gives one sequence, each 4 bytes. They stay as many, but for those kept of
//! past tokens ([`KvCache`]), which grow with the tokens read.

use alloc::vec::Vec;
use core::ops::Add;

use super::{CheckedConfig, ModelConfig, TAPS};
use crate::spec::{MixerKind, Role, TensorSpec, Tensors};
use crate::{FeedForwardKind, Pooling, Positions, Result, WiringKind};

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

    /// What follows from tensors alone.
    fn of(tensors: impl FnOnce(&mut Tensors)) -> Self {
        let mut list = Tensors::default();
        tensors(&mut list);
        list.into_list().iter().fold(Self::default(), |cost, tensor| cost + Self::of_tensor(tensor))
    }

    fn of_tensor(tensor: &TensorSpec) -> Self {
        let elements = tensor.elements();
        match tensor.role {
            Role::Weight => Self { parameters: elements, matmul_macs: elements, ..Self::default() },
            Role::Parameter => Self { parameters: elements, ..Self::default() },
            Role::Buffer => Self::default(),
        }
    }

    /// Multiply-adds outside of matrices.
    pub(crate) fn elementwise(macs: u128) -> Self {
        Self { elementwise_macs: macs, ..Self::default() }
    }

    /// Numbers carried.
    pub(crate) fn state(numbers: u128) -> Self {
        Self { state: numbers, ..Self::default() }
    }

    pub(crate) fn cache(cache: KvCache) -> Self {
        Self { past: alloc::vec![cache], ..Self::default() }
    }

    /// A depthwise convolution and its window.
    pub(crate) fn conv(width: u128, taps: u128) -> Self {
        Self::elementwise(width * taps) + Self::state(width * taps.saturating_sub(1))
    }

    /// The short convolution of blocks, Mamba and xLSTM.
    pub(crate) fn short_conv(width: u128) -> Self {
        Self::conv(width, TAPS as u128)
    }

    /// H3's filter over `d_state` steps.
    pub(crate) fn shift(config: &CheckedConfig) -> Self {
        Self::conv(config.sizes().d, config.sizes().n)
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
    /// As [`checked`](Self::checked).
    pub fn cost(&self) -> Result<Cost> {
        Ok(self.checked()?.cost())
    }
}

impl CheckedConfig {
    /// What the whole model costs.
    pub fn cost(&self) -> Cost {
        let ends = self.embedding_cost() + Cost::of(|tensors| self.norm_tensors("backbone.final_norm", tensors)) + self.head_cost();
        (0..self.n_layers).fold(ends, |cost, layer| cost + self.block_cost(layer))
    }

    /// Looking tokens up or mapping values, and places where these are learned; the head is not part of it.
    pub fn embedding_cost(&self) -> Cost {
        let places = if self.positions == Positions::Learned { Cost::state(1) } else { Cost::default() };
        Cost::of(|tensors| self.embedding_tensors(tensors)) + places
    }

    /// From normalised features to what is predicted.
    pub fn head_cost(&self) -> Cost {
        let d = self.sizes().d;
        // A head that shares the embedding's matrix multiplies by it all the same.
        let tied = if self.tie_embeddings { Cost { matmul_macs: d * self.outputs() as u128, ..Cost::default() } } else { Cost::default() };
        // The mean is a sum and a count that are carried, and a division.
        let pooling = if self.pooling == Pooling::Mean { Cost::elementwise(d) + Cost::state(d + 1) } else { Cost::default() };
        // Differences and products of two features; what was and what is are carried.
        let pair = if self.pair_head { Cost::elementwise(d) + Cost::state(2 * d) } else { Cost::default() };
        Cost::of(|tensors| self.head_tensors(tensors)) + tied + pooling + pair
    }

    /// Numbers that the inference runtime keeps for a session in block `layer`.
    pub fn block_state_len(&self, layer: usize) -> usize {
        let (spec, inside) = (self.mixer_at(layer).spec(), self.inside_wiring());
        let around = self.block_cost(layer).state - spec.cell(&inside).state;
        usize::try_from(around).unwrap_or(usize::MAX).saturating_add(spec.state_len(&inside))
    }

    /// What block `layer` keeps of past tokens, if anything.
    pub fn block_past(&self, layer: usize) -> Option<KvCache> {
        self.mixer_at(layer).spec().cell(&self.inside_wiring()).past.first().copied()
    }

    /// Block `layer`: convolution, mixer and feed-forward part with their norms.
    pub fn block_cost(&self, layer: usize) -> Cost {
        let d = self.sizes().d;
        let conv = if self.conv { Cost::short_conv(d) } else { Cost::default() };
        let inside = self.inside_wiring();
        let wiring = match self.wiring {
            WiringKind::None => Cost::default(),
            WiringKind::Mamba => Cost::short_conv(inside.sizes().d) + Cost::elementwise(inside.sizes().d),
            WiringKind::H3 => Cost::shift(self) + Cost::elementwise(2 * d),
        };
        let ff = match (self.ff_at(layer), self.d_ff() as u128) {
            (FeedForwardKind::None | FeedForwardKind::Mlp, _) => Cost::default(),
            (FeedForwardKind::Gated, m) => Cost::elementwise(2 * m),
            (FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu, m) => Cost::elementwise(m),
            // Two token shifts, the square, the gate; the previous input is carried.
            (FeedForwardKind::ChannelMix, m) => Cost::elementwise(4 * d + m + d) + Cost::state(d),
        };
        Cost::of(|tensors| self.block_tensors(layer, tensors)) + conv + wiring + self.mixer_at(layer).spec().cell(&inside) + ff
    }
}
