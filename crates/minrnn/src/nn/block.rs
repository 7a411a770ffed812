//! The residual block of the experiments (Feng et al. 2024, arXiv:2410.01201, as in the authors' released code):
//!
//! ```text
//! x ← x + PW(DW4(x))             when `conv` is on; no norm before it
//! x ← x + dropout(Mixer(norm(x)))    the mixer standing inside a wiring when there is one
//! x ← x + dropout(FF(norm(x)))   when there is a feed-forward part
//! ```
//!
//! Between a norm or convolution and the sum at the end of a line, activations may be 16-bit; the residual stream x itself is f32.

use burn::module::Module;
use burn::tensor::{FloatDType, Tensor};
use minrnn_model::{CheckedConfig, DropoutSite, FeedForwardKind};

use super::any_mixer::AnyMixer;
use super::channel_mix::ChannelMix;
use super::conv::{CausalConv, Window};
use super::feed_forward::FeedForward;
use super::init::Initializer;
use super::layer::expect_layer;
use super::linear::{rows, sequences};
use super::mixer::Mixer;
use super::mode::Mode;
use super::norm::Norm;
use super::state::{State, StateZip};
use super::wiring::Wiring;
use crate::memory::activations::{Activations, Sizes};
use crate::memory::tape::Tape;
use crate::ops::{StepCodes, activation_format, bias_dropout_residual};

/// Convolution, mixer and feed-forward part with their norms and residual connections.
#[derive(Module, Debug)]
pub struct Block<M: Module> {
    /// The convolution, if the block has one.
    pub conv: Option<CausalConv>,
    /// Norm before the mixer.
    pub mixer_norm: Norm,
    /// The wiring around the mixer, if any.
    pub wiring: Option<Wiring>,
    /// The time-mixing layer.
    pub mixer: M,
    /// Norm before the feed-forward part.
    pub ff_norm: Option<Norm>,
    /// The feed-forward part, if the block has one.
    pub ff: Option<FeedForwardPart>,
    #[module(skip)]
    mixer_dropout: f64,
    #[module(skip)]
    ff_dropout: f64,
}

/// The feed-forward part of a block.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "a model holds a handful")]
pub enum FeedForwardPart {
    /// Acts on each step alone.
    Pointwise(FeedForward),
    /// Acts on each step and the previous one.
    ChannelMix(ChannelMix),
}

impl FeedForwardPart {
    /// The part described by `config` in block `layer`, counted from 0, if any.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Option<Self> {
        expect_layer(config, layer);
        match config.ff_at(layer) {
            FeedForwardKind::ChannelMix => Some(Self::ChannelMix(ChannelMix::new(config, layer, init))),
            kind => FeedForward::new(config, kind, init).map(Self::Pointwise),
        }
    }

    fn activations(config: &CheckedConfig, layer: usize, list: &mut Activations) {
        match config.ff_at(layer) {
            FeedForwardKind::ChannelMix => ChannelMix::activations(config, list),
            kind => FeedForward::activations(config, kind, list),
        }
    }

    fn takes_bf16(&self) -> bool {
        match self {
            Self::Pointwise(ff) => ff.takes_bf16(),
            Self::ChannelMix(_) => false,
        }
    }
}

/// The state of a [`Block`].
#[derive(Debug, Clone)]
pub struct BlockState<S> {
    /// The convolution's window.
    pub conv: Option<Window>,
    /// The wiring's window.
    pub wiring: Option<Window>,
    /// The mixer's state.
    pub mixer: S,
    /// The previous input of a feed-forward part that sees it.
    pub ff: Option<Window>,
}

impl<S: State> State for BlockState<S> {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        f.enter("conv");
        let conv = State::zip(self.conv, other.conv, f);
        f.exit();
        f.enter("wiring");
        let wiring = State::zip(self.wiring, other.wiring, f);
        f.exit();
        f.enter("mixer");
        let mixer = self.mixer.zip(other.mixer, f);
        f.exit();
        f.enter("ff");
        let ff = State::zip(self.ff, other.ff, f);
        f.exit();
        Self { conv, wiring, mixer, ff }
    }
}

impl Block<AnyMixer> {
    /// What block `layer` keeps for a batch, including its initial and final states.
    pub(crate) fn activations(config: &CheckedConfig, layer: usize, sizes: Sizes) -> Tape {
        let d = config.d_model as u128;
        let mut list = Activations::new(sizes);
        if config.conv {
            CausalConv::activations(config, &mut list);
        }
        // The residual stream is held beside everything up to the sum.
        list.aside = d;
        Norm::activations(config, &mut list);
        Wiring::activations(config, &mut list, |list| AnyMixer::activations(config, layer, list));
        list.aside = 0;
        list.residual(d);
        if config.ff_at(layer) != FeedForwardKind::None {
            list.aside = d;
            Norm::activations(config, &mut list);
            FeedForwardPart::activations(config, layer, &mut list);
            list.aside = 0;
            list.residual(d);
        }
        let cost = config.block_cost(layer);
        let caches: Vec<u128> = cost.past.iter().map(|past| past.carried(sizes.seq_len)).collect();
        list.with_states(cost.carried(0), cost.carried(sizes.seq_len), &caches)
    }
}

impl<M: Mixer> Block<M> {
    /// Block `layer`, counted from 0, as described by `config`, around the mixer made by `mixer`. In a wiring the mixer's width is that of
    /// [`CheckedConfig::inside_wiring`].
    ///
    /// # Errors
    /// Those of `mixer`.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new<E>(
        config: &CheckedConfig,
        layer: usize,
        mixer: impl FnOnce(&mut Initializer) -> Result<M, E>,
        init: &mut Initializer,
    ) -> Result<Self, E> {
        expect_layer(config, layer);
        let at = |site| if config.dropout_sites.contains(&site) { config.dropout } else { 0.0 };
        let conv = config.conv.then(|| CausalConv::new(config.d_model, init));
        let mixer_norm = Norm::for_model(config, init);
        let wiring = Wiring::new(config, init);
        let mixer = mixer(init)?;
        let ff_norm = (config.ff_at(layer) != FeedForwardKind::None).then(|| Norm::for_model(config, init));
        let ff = FeedForwardPart::new(config, layer, init);
        let (mixer_dropout, ff_dropout) = (at(DropoutSite::Mixer), at(DropoutSite::FeedForward));
        Ok(Self { conv, mixer_norm, wiring, mixer, ff_norm, ff, mixer_dropout, ff_dropout })
    }

    /// The initial state.
    pub fn init_state(&self, batch_size: usize) -> BlockState<M::State> {
        let ff = match &self.ff {
            Some(FeedForwardPart::ChannelMix(ff)) => Some(ff.init_state(batch_size)),
            _ => None,
        };
        let conv = self.conv.as_ref().map(|conv| conv.init_state(batch_size));
        let wiring = self.wiring.as_ref().map(|wiring| wiring.init_state(batch_size));
        BlockState { conv, wiring, mixer: self.mixer.init_state(batch_size), ff }
    }

    /// The whole sequence `x` `[B, T, D]` → `[B, T, D]` and the state after it. `site` numbers the block's dropout sites; a block
    /// uses `site` and `site + 1`.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    pub fn forward(
        &self,
        x: Tensor<3>,
        state: BlockState<M::State>,
        steps: &StepCodes,
        mode: Mode,
        site: u64,
    ) -> (Tensor<3>, BlockState<M::State>) {
        let format = activation_format(&x.device());
        let (x, conv) = match (&self.conv, state.conv) {
            (Some(conv), Some(window)) => {
                let (x, window) = conv.forward(x, window, steps, format);
                (x, Some(window))
            }
            (None, None) => (x, None),
            _ => panic!("the state belongs to another block"),
        };
        let [batch, seq_len, _] = x.dims();
        let bf16 = self.wiring.is_none() && self.mixer.takes_bf16();
        let (normed, x) = self.mixer_norm.forward_and_input(x, steps, mode, if bf16 { format } else { FloatDType::F32 });
        let (mixed, wiring, mixer) = match (&self.wiring, state.wiring) {
            (Some(wiring), Some(window)) => {
                let (mixed, (window, mixer)) = wiring.forward(normed, (window, state.mixer), steps, &self.mixer);
                (mixed, Some(window), mixer)
            }
            (None, None) => {
                let (mixed, mixer) = self.mixer.forward(normed, state.mixer, steps);
                (mixed, None, mixer)
            }
            _ => panic!("the state belongs to another block"),
        };
        let dropout = mode.dropout(self.mixer_dropout, site);
        let mut x = sequences(bias_dropout_residual(rows(mixed), None, Some(rows(x)), dropout), batch, seq_len);
        let mut carried = None;
        if let (Some(norm), Some(ff)) = (&self.ff_norm, &self.ff) {
            let dropout = mode.dropout(self.ff_dropout, site + 1);
            let format = if ff.takes_bf16() { format } else { FloatDType::F32 };
            let (normed, residual) = norm.forward_and_input(x, steps, mode, format);
            (x, carried) = match (ff, state.ff) {
                (FeedForwardPart::Pointwise(ff), None) => (ff.forward(normed, residual, dropout), None),
                (FeedForwardPart::ChannelMix(ff), Some(previous)) => {
                    let (x, next) = ff.forward(normed, residual, previous, steps, dropout);
                    (x, Some(next))
                }
                _ => panic!("the state belongs to another block"),
            };
        }
        (x, BlockState { conv, wiring, mixer, ff: carried })
    }

    /// One step `x` `[B, D]` → `[B, D]` in evaluation mode, and the state after it.
    ///
    /// # Panics
    /// When the shapes of input and state do not fit.
    pub fn step(&self, x: Tensor<2>, state: BlockState<M::State>) -> (Tensor<2>, BlockState<M::State>) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense(), Mode::Evaluate, 0);
        (y.squeeze_dim(1), state)
    }
}
