//! The cost of a model, from its configuration alone: trainable numbers, numbers to carry, multiply-adds.
//!
//! **Multiply-adds.** One is counted for every product or quotient of two numbers in the equations at the top of a mixer's file in the
//! library (`nn/`), for one token, forward; it counts as 2 FLOPs. Not counted are plain sums, activations, exponentials, norms and
//! attention's softmax: a few for each channel, where a matrix has D. A backward pass costs about twice the forward pass, so training costs
//! about three times as much. Work on weights alone that a call does once, such as computing Hyena's filter, is not counted either.
//!
//! Sums saturate at the largest number.
//!
//! **State.** The numbers that the library's `init_state` allocates for one sequence, 4 bytes each. Their count is constant, except for
//! what is kept of past tokens ([`KvCache`]), which grows with the tokens read.

use alloc::vec::Vec;
use core::ops::Add;

use super::{CONV_TAPS, CheckedConfig};
use crate::MixerKind;

/// The cost of a model, or of a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Cost {
    /// Trainable parameters.
    pub parameters: u128,
    /// Multiply-adds for a token in products with weight matrices.
    pub matmul_macs: u128,
    /// Multiply-adds for a token in recurrences, convolutions and gates.
    pub elementwise_macs: u128,
    /// Numbers carried for a sequence, however many tokens it has read.
    pub state: u128,
    /// What is kept of past tokens, for each kind of mixer; empty for recurrences.
    pub past: Vec<KvCache>,
}

/// What mixers of one kind keep of past tokens, and the cost of using them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KvCache {
    /// The kind of mixer.
    pub mixer: MixerKind,
    /// Numbers kept for each token.
    pub len_per_token: u128,
    /// Multiply-adds for each token that is seen.
    pub macs_per_token: u128,
    /// Maximum number of tokens kept.
    pub capacity: usize,
    /// Maximum number of tokens seen, including the current one.
    pub window: usize,
    /// Whether room is allocated as tokens come, rather than for all of them at the start.
    pub grows: bool,
}

impl KvCache {
    /// Numbers kept for a sequence of `tokens` tokens.
    pub fn carried(&self, tokens: usize) -> u128 {
        // A cache that grows begins with room for one token.
        let tokens = if self.grows { tokens.clamp(1, self.capacity.max(1)) } else { self.capacity };
        self.len_per_token.saturating_mul(tokens as u128)
    }
}

impl Cost {
    /// Numbers carried for a sequence of `tokens` tokens: the state and what is kept of the tokens.
    pub fn carried(&self, tokens: usize) -> u128 {
        self.past.iter().fold(self.state, |sum, past| sum.saturating_add(past.carried(tokens)))
    }

    /// Floating point operations, forward, for the last of `tokens` tokens: 2 for each multiply-add.
    pub fn flops(&self, tokens: usize) -> u128 {
        let past = self.past.iter().map(|past| past.macs_per_token.saturating_mul(tokens.min(past.window) as u128));
        past.fold(self.matmul_macs.saturating_add(self.elementwise_macs), u128::saturating_add).saturating_mul(2)
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
        Self::conv(width, CONV_TAPS as u128)
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
