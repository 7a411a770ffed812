//! The residual block:
//!
//! ```text
//! x ← x + PW(DW(x))            when `conv` is on; no norm before it
//! x ← x + Mixer(norm(x))
//! x ← x + FF(norm(x))          when there is a feed-forward part
//! ```

use alloc::boxed::Box;

use crate::channel_mix::ChannelMix;
use crate::conv::Conv;
use crate::feed_forward::FeedForward;
use crate::highway::Highway;
use crate::linear::{Linear, Shared};
use crate::mixer::{self, Mixer, Output};
use crate::norm::Norm;
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{FeedForwardKind, ModelConfig, Result};

/// Convolution, mixer and feed-forward part with their norms and residual connections.
#[derive(Debug)]
pub(crate) struct Block {
    d_model: usize,
    conv: Option<Conv>,
    mixer_norm: Norm,
    mixer: Box<dyn Mixer>,
    /// From the mixer's hidden values back to the residual stream, unless they are added as they are.
    out_proj: Option<Linear>,
    highway: Option<Highway>,
    feed_forward: Option<(Norm, Part)>,
}

#[derive(Debug)]
enum Part {
    Pointwise(FeedForward),
    ChannelMix(ChannelMix),
}

impl Block {
    pub(crate) fn read(config: &ModelConfig, layer: usize, source: &mut dyn Source, name: &str) -> Result<Self> {
        let conv = if config.conv { Some(Conv::read(config, source, &join(name, "conv"))?) } else { None };
        let mixer_norm = Norm::read(config, source, &join(name, "mixer_norm"))?;
        let mixer_name = join(name, "mixer");
        let mixer = mixer::read(config, layer, source, &mixer_name)?;
        let highway = Highway::read(config, config.mixer_at(layer), source, &mixer_name)?;
        let out_name = join(&mixer_name, "out_proj");
        let outputs = config.d_model * if mixer.output() == Output::Gated { 2 } else { 1 };
        let out_proj = match (mixer.has_out_proj(), mixer.out_bias()) {
            (false, _) => None,
            (true, true) => Some(source.linear(&out_name, outputs, mixer.width())?),
            (true, false) => Some(source.linear_without_bias(&out_name, outputs, mixer.width())?),
        };
        let feed_forward = match config.ff_at(layer) {
            FeedForwardKind::None => None,
            _ => {
                let norm = Norm::read(config, source, &join(name, "ff_norm"))?;
                let name = join(name, "ff");
                let part = match config.ff_at(layer) {
                    FeedForwardKind::ChannelMix => Part::ChannelMix(ChannelMix::read(config, source, &name)?),
                    _ => Part::Pointwise(FeedForward::read(config, source, &name)?),
                };
                Some((norm, part))
            }
        };
        Ok(Self { d_model: config.d_model, conv, mixer_norm, mixer, out_proj, highway, feed_forward })
    }

    /// Writes what a session keeps before its first token.
    pub(crate) fn init_memory(&self, memory: &mut [f32]) {
        memory.fill(0.0);
        self.mixer.init_memory(&mut memory[self.window()..][..self.mixer.memory()]);
    }

    /// Numbers that the convolution keeps for a session.
    fn window(&self) -> usize {
        self.conv.as_ref().map_or(0, |_| Conv::memory(self.d_model))
    }

    /// `x` `[N, D]` through the block. `state` holds a row for each session, in which the block's numbers begin at `first`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, state: Shared<'_>, first: usize, x: &mut [f32], buffers: &mut Buffers) {
        let d = x.len() / pass.rows;
        let window = self.window();
        if let Some(conv) = &self.conv {
            conv.forward(pass, Memory::new(state, first, window), x, buffers);
        }
        self.mixer_norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
        self.mixer.forward(pass, Memory::new(state, first + window, self.mixer.memory()), buffers);
        match (&self.out_proj, &self.highway) {
            (Some(out_proj), Some(highway)) => highway.add_to(pass, out_proj, buffers, x),
            (Some(out_proj), None) => {
                let scratch = room(&mut buffers.product, pass.rows * out_proj.weight.outputs());
                match self.mixer.output() {
                    Output::Plain => out_proj.add_to(pass, pass.rows, &buffers.hidden, scratch, x),
                    Output::Gated => out_proj.add_gated_to(pass, pass.rows, &buffers.hidden, scratch, x),
                }
            }
            (None, _) => x.iter_mut().zip(&buffers.hidden).for_each(|(x, hidden)| *x += hidden),
        }
        if let Some((norm, feed_forward)) = &self.feed_forward {
            norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
            match feed_forward {
                Part::Pointwise(part) => part.forward(pass, x, buffers),
                Part::ChannelMix(part) => {
                    let first = first + window + self.mixer.memory();
                    part.forward(pass, Memory::new(state, first, d), x, buffers);
                }
            }
        }
    }
}
