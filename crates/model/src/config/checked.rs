//! A checked configuration and the sizes derived from it.

use core::ops::Deref;

use super::ModelConfig;
use crate::{FeedForwardKind, Result, WiringKind};

/// A valid configuration: every width is known and every combination of keys makes sense. It dereferences to [`ModelConfig`].
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedConfig {
    config: ModelConfig,
    d_inner: usize,
    d_ff: usize,
    mlstm_inner: usize,
}

/// The sizes that costs are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// `d_model`.
    pub d: u128,
    /// [`CheckedConfig::d_inner`].
    pub e: u128,
    /// `d_state`.
    pub n: u128,
    /// `n_heads`.
    pub heads: u128,
}

impl Deref for CheckedConfig {
    type Target = ModelConfig;

    fn deref(&self) -> &ModelConfig {
        &self.config
    }
}

impl ModelConfig {
    /// Checks every key and every combination of keys, and computes the sizes.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    pub fn checked(&self) -> Result<CheckedConfig> {
        let checked = self.sized()?;
        self.validate_sized(&checked)?;
        Ok(checked)
    }

    /// The configuration with its sizes; other keys may be wrong.
    pub(super) fn sized(&self) -> Result<CheckedConfig> {
        let d_ff = if self.ff == FeedForwardKind::None { 0 } else { self.d_ff()? };
        Ok(CheckedConfig { config: self.clone(), d_inner: self.d_inner()?, d_ff, mlstm_inner: self.mlstm_inner()? })
    }
}

impl CheckedConfig {
    /// Width of a policy's observation: a step's row without return, previous action and time. 0 for other models.
    pub fn observation_width(&self) -> usize {
        if self.decision { self.input_width - self.n_outputs - 2 } else { 0 }
    }

    /// The recurrent width E = `expansion · d_model`.
    pub fn d_inner(&self) -> usize {
        self.d_inner
    }

    /// The hidden width of the feed-forward part, 0 if there is none: `ff_mult · d_model`; for `ge-glu` and `swi-glu` rounded up to a
    /// multiple of 64.
    pub fn d_ff(&self) -> usize {
        self.d_ff
    }

    /// The inner width of mLSTM's block: `expansion · d_model` rounded up to a multiple of 64.
    pub fn mlstm_inner(&self) -> usize {
        self.mlstm_inner
    }

    /// The configuration as the mixers see it: `d_model` is the width inside the wiring.
    pub fn inside_wiring(&self) -> Self {
        match self.wiring {
            WiringKind::None | WiringKind::H3 => self.clone(),
            WiringKind::Mamba => {
                let config = ModelConfig { d_model: self.d_inner, expansion: 1.0, dt_rank: self.step_rank(), ..self.config.clone() };
                Self { config, d_inner: self.d_inner, d_ff: self.d_ff, mlstm_inner: self.mlstm_inner }
            }
        }
    }

    /// Channels per head, for mixers whose heads share the inner width E.
    pub fn head_inner(&self) -> usize {
        self.d_inner / self.n_heads
    }

    /// Channels of a head's query and value in retention.
    pub fn retention_heads(&self) -> [usize; 2] {
        [self.d_model / self.n_heads, self.d_inner / self.n_heads]
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let [d, e, n, heads] = [self.d_model, self.d_inner, self.d_state, self.n_heads].map(|size| size as u128);
        Sizes { d, e, n, heads }
    }
}
