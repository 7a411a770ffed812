//! A mixer with its projection from hidden values back to the model's width.

use alloc::boxed::Box;

use crate::highway::Highway;
use crate::linear::Linear;
use crate::mixer::{self, Mixer, Output};
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A whole time-mixing layer.
#[derive(Debug)]
pub(crate) struct Layer {
    mixer: Box<dyn Mixer>,
    /// From hidden values to outputs, unless they are the outputs.
    out_proj: Option<Linear>,
    highway: Option<Highway>,
    state_len: usize,
}

impl Layer {
    /// The mixer of block `layer`, whose width is `config.d_model`.
    pub(crate) fn read(config: &CheckedConfig, layer: usize, source: &mut dyn Source, name: &str) -> Result<Self> {
        let mixer = mixer::read(config, layer, source, name)?;
        let highway = Highway::read(config, config.mixer_at(layer), source, name)?;
        let out_name = join(name, "out_proj");
        let outputs = config.d_model * if mixer.output() == Output::Gated { 2 } else { 1 };
        let out_proj = match (mixer.output(), mixer.out_bias()) {
            (Output::Hidden, _) => None,
            (_, true) => Some(source.linear(&out_name, outputs, mixer.width())?),
            (_, false) => Some(source.linear_without_bias(&out_name, outputs, mixer.width())?),
        };
        Ok(Self { mixer, out_proj, highway, state_len: config.mixer_at(layer).spec().state_len(config) })
    }

    /// Numbers kept for a session.
    pub(crate) fn state_len(&self) -> usize {
        self.state_len
    }

    /// Writes what a session keeps before its first token.
    pub(crate) fn init_memory(&self, memory: &mut [f32]) {
        self.mixer.init_memory(memory);
    }

    /// Adds the layer's output for `buffers.normed` to `y`, both `[N, D]`.
    pub(crate) fn add_to(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers, y: &mut [f32]) {
        self.mixer.forward(pass, memory, buffers);
        match (&self.out_proj, &self.highway) {
            (Some(out_proj), Some(highway)) => highway.add_to(pass, out_proj, buffers, y),
            (Some(out_proj), None) => {
                let scratch = room(&mut buffers.product, pass.rows * out_proj.weight.outputs());
                match self.mixer.output() {
                    Output::Gated => out_proj.add_gated_to(pass, pass.rows, &buffers.hidden, scratch, y),
                    Output::Hidden | Output::Projected => out_proj.add_to(pass, pass.rows, &buffers.hidden, scratch, y),
                }
            }
            (None, _) => y.iter_mut().zip(&buffers.hidden).for_each(|(y, hidden)| *y += hidden),
        }
    }
}
