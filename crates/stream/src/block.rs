//! The residual block:
//!
//! ```text
//! x ← x + PW(DW(x))            when `conv` is on; no norm before it
//! x ← x + Mixer(norm(x))
//! x ← x + FF(norm(x))          when there is a feed-forward part
//! ```

use alloc::boxed::Box;

use crate::conv::Conv;
use crate::feed_forward::FeedForward;
use crate::highway::Highway;
use crate::linear::{Linear, Shared};
use crate::mixer::{self, Mixer};
use crate::norm::Norm;
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{FeedForwardKind, ModelConfig, Result};

/// Convolution, mixer and feed-forward part with their norms and residual connections.
#[derive(Debug)]
pub(crate) struct Block {
    conv: Option<Conv>,
    mixer_norm: Norm,
    mixer: Box<dyn Mixer>,
    out_proj: Linear,
    highway: Option<Highway>,
    feed_forward: Option<(Norm, FeedForward)>,
}

impl Block {
    pub(crate) fn read(config: &ModelConfig, layer: usize, source: &mut dyn Source, name: &str) -> Result<Self> {
        let conv = if config.conv { Some(Conv::read(config, source, &join(name, "conv"))?) } else { None };
        let mixer_norm = Norm::read(config, source, &join(name, "mixer_norm"))?;
        let mixer_name = join(name, "mixer");
        let mixer = mixer::read(config, layer, source, &mixer_name)?;
        let highway = Highway::read(config, config.mixer_at(layer), source, &mixer_name)?;
        let out_name = join(&mixer_name, "out_proj");
        let out_proj = match mixer.out_bias() {
            true => source.linear(&out_name, config.d_model, mixer.width())?,
            false => source.linear_without_bias(&out_name, config.d_model, mixer.width())?,
        };
        let feed_forward = match config.ff {
            FeedForwardKind::None => None,
            _ => {
                let norm = Norm::read(config, source, &join(name, "ff_norm"))?;
                Some((norm, FeedForward::read(config, source, &join(name, "ff"))?))
            }
        };
        Ok(Self { conv, mixer_norm, mixer, out_proj, highway, feed_forward })
    }

    /// Writes what a session keeps before its first token.
    pub(crate) fn init_memory(&self, memory: &mut [f32]) {
        let (window, hidden) = memory.split_at_mut(memory.len() - self.mixer.memory());
        window.fill(0.0);
        self.mixer.init_memory(hidden);
    }

    /// `x` `[N, D]` through the block. `state` holds a row for each session, in which the block's numbers begin at `first`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, state: Shared<'_>, first: usize, x: &mut [f32], buffers: &mut Buffers) {
        let d = x.len() / pass.rows;
        let window = if self.conv.is_some() { Conv::memory(d) } else { 0 };
        if let Some(conv) = &self.conv {
            conv.forward(pass, Memory::new(state, first, window), x, buffers);
        }
        self.mixer_norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
        self.mixer.forward(pass, Memory::new(state, first + window, self.mixer.memory()), buffers);
        match &self.highway {
            Some(highway) => highway.add_to(pass, &self.out_proj, buffers, x),
            None => {
                let scratch = room(&mut buffers.product, pass.rows * d);
                self.out_proj.add_to(pass, pass.rows, &buffers.hidden, scratch, x);
            }
        }
        if let Some((norm, feed_forward)) = &self.feed_forward {
            norm.forward(pass, pass.rows, x, room(&mut buffers.normed, pass.rows * d));
            feed_forward.forward(pass, x, buffers);
        }
    }
}
