//! The residual block:
//!
//! ```text
//! x ← x + PW(DW(x))            when `conv` is on; no norm before it
//! x ← x + Mixer(norm(x))       the mixer inside its wiring, if there is one
//! x ← x + FF(norm(x))          if there is a feed-forward part
//! ```

use crate::channel_mix::ChannelMix;
use crate::conv::Conv;
use crate::feed_forward::FeedForward;
use crate::layer::Layer;
use crate::norm::Norm;
use crate::pass::{Memory, Pass, Sessions};
use crate::past::PastShape;
use crate::source::{Source, join};
use crate::wiring::Wiring;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, FeedForwardKind, Result};

/// Convolution, mixer and feed-forward part with their norms and residual connections.
#[derive(Debug)]
pub(crate) struct Block {
    d_model: usize,
    conv: Option<Conv>,
    mixer_norm: Norm,
    wiring: Option<Wiring>,
    mixer: Layer,
    feed_forward: Option<(Norm, Part)>,
    /// The index of its list of past tokens among a session's lists, if it keeps one.
    past: Option<(usize, PastShape)>,
}

#[derive(Debug)]
enum Part {
    Pointwise(FeedForward),
    ChannelMix(ChannelMix),
}

impl Part {
    fn read(config: &CheckedConfig, kind: FeedForwardKind, source: &mut dyn Source, name: &str) -> Result<Self> {
        match kind {
            FeedForwardKind::None => unreachable!("a block without a feed-forward part does not ask for one"),
            FeedForwardKind::ChannelMix => ChannelMix::read(config, source, name).map(Self::ChannelMix),
            FeedForwardKind::Mlp | FeedForwardKind::Gated | FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu => {
                FeedForward::read(config, kind, source, name).map(Self::Pointwise)
            }
        }
    }
}

impl Block {
    /// Block `layer`; `pasts` are those of the whole model.
    pub(crate) fn read(config: &CheckedConfig, layer: usize, pasts: &[PastShape], source: &mut dyn Source, name: &str) -> Result<Self> {
        let conv = if config.conv { Some(Conv::read(config, source, &join(name, "conv"))?) } else { None };
        let mixer_norm = Norm::read(config, source, &join(name, "mixer_norm"))?;
        let wiring = Wiring::read(config, source, &join(name, "wiring"))?;
        let mixer = Layer::read(&config.inside_wiring(), layer, source, &join(name, "mixer"))?;
        let feed_forward = match config.ff_at(layer) {
            FeedForwardKind::None => None,
            kind => Some((Norm::read(config, source, &join(name, "ff_norm"))?, Part::read(config, kind, source, &join(name, "ff"))?)),
        };
        let past = pasts.iter().position(|past| past.block == layer).map(|at| (at, pasts[at]));
        Ok(Self { d_model: config.d_model, conv, mixer_norm, wiring, mixer, feed_forward, past })
    }

    /// Writes what a session keeps before its first token.
    pub(crate) fn init_memory(&self, memory: &mut [f32]) {
        memory.fill(0.0);
        let [conv, wiring] = self.windows();
        self.mixer.init_memory(&mut memory[conv + wiring..][..self.mixer.state_len()]);
    }

    /// Numbers that the convolution and the wiring keep for a session, before the mixer's.
    fn windows(&self) -> [usize; 2] {
        [self.conv.as_ref().map_or(0, |_| Conv::state_len(self.d_model)), self.wiring.as_ref().map_or(0, Wiring::state_len)]
    }

    /// Takes `x` `[N, D]` through the block, whose numbers begin at `first` in every session's row.
    pub(crate) fn forward(&self, pass: &Pass<'_>, state: Sessions<'_>, first: usize, x: &mut [f32], buffers: &mut Buffers) {
        let d = x.len() / pass.rows;
        let [window, wired] = self.windows();
        if let Some(conv) = &self.conv {
            conv.forward(pass, Memory::new(state, first, window), x, buffers);
        }
        self.mixer_norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
        let memory = Memory::new(state, first + window + wired, self.mixer.state_len()).with_past(self.past);
        match &self.wiring {
            None => self.mixer.add_to(pass, memory, buffers, x),
            Some(wiring) => {
                let inner = |buffers: &mut Buffers, y: &mut [f32]| self.mixer.add_to(pass, memory, buffers, y);
                wiring.forward(pass, Memory::new(state, first + window, wired), buffers, x, inner);
            }
        }
        if let Some((norm, feed_forward)) = &self.feed_forward {
            norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
            match feed_forward {
                Part::Pointwise(part) => part.forward(pass, x, buffers),
                Part::ChannelMix(part) => {
                    let first = first + window + wired + self.mixer.state_len();
                    part.forward(pass, Memory::new(state, first, d), x, buffers);
                }
            }
        }
    }
}
