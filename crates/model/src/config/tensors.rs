//! The tensors of a whole model, in order.

use alloc::format;
use alloc::vec::Vec;

use super::{CONV_TAPS, CheckedConfig, POLICY_TIMES};
use crate::spec::{TensorSpec, Tensors};
use crate::{FeedForwardKind, NormKind, Positions, WiringKind};

impl CheckedConfig {
    /// Every tensor of the model by name and shape, as in its checkpoints.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let mut tensors = Tensors::default();
        self.embedding_tensors(&mut tensors);
        for layer in 0..self.n_layers {
            tensors.part(&format!("backbone.blocks.{layer}"), |tensors| self.block_tensors(layer, tensors));
        }
        self.norm_tensors("backbone.final_norm", &mut tensors);
        self.head_tensors(&mut tensors);
        tensors.into_list()
    }

    pub(super) fn embedding_tensors(&self, tensors: &mut Tensors) {
        if self.decision {
            // The numbers of a row: return, observation, action and time.
            for (part, width) in [("to_go", 1), ("observation", self.observation_width()), ("action", self.n_outputs)] {
                tensors.linear(part, width, self.d_model, true);
            }
            tensors.parameter("times.weight", &[POLICY_TIMES, self.d_model]);
            tensors.part("norm", |tensors| ["weight", "bias"].iter().for_each(|name| tensors.parameter(name, &[self.d_model])));
        } else if self.input_width > 0 {
            tensors.linear("input", self.input_width, self.d_model, true);
        } else {
            tensors.parameter("embedding.weight", &[self.vocab_size, self.d_model]);
        }
        if self.positions == Positions::Learned {
            tensors.parameter("positions.weight", &[self.max_seq_len, self.d_model]);
        }
    }

    pub(super) fn head_tensors(&self, tensors: &mut Tensors) {
        let d = self.d_model;
        if self.pair_head {
            tensors.linear("pair_head.linear", 4 * d, d, true);
        }
        if !self.tie_embeddings {
            tensors.linear("head", d, self.outputs(), self.n_outputs > 0);
        }
    }

    pub(super) fn block_tensors(&self, layer: usize, tensors: &mut Tensors) {
        let d = self.d_model;
        if self.conv {
            tensors.part("conv", |tensors| {
                tensors.depthwise("depthwise", d, CONV_TAPS);
                tensors.linear("pointwise", d, d, true);
            });
        }
        self.norm_tensors("mixer_norm", tensors);
        let inside = self.inside_wiring();
        if self.wiring != WiringKind::None {
            tensors.part("wiring", |tensors| self.wiring_tensors(inside.d_model, tensors));
        }
        tensors.part("mixer", |tensors| self.mixer_at(layer).spec().tensors(&inside, layer, tensors));
        let kind = self.ff_at(layer);
        if kind != FeedForwardKind::None {
            self.norm_tensors("ff_norm", tensors);
            tensors.part("ff", |tensors| self.feed_forward_tensors(kind, tensors));
        }
    }

    fn wiring_tensors(&self, inner: usize, tensors: &mut Tensors) {
        let d = self.d_model;
        match self.wiring {
            WiringKind::None => {}
            WiringKind::Mamba => {
                tensors.linear("in_proj", d, 2 * inner, false);
                tensors.conv1d(inner);
                tensors.linear("out_proj", inner, d, false);
            }
            WiringKind::H3 => {
                tensors.linear("in_proj", d, 3 * inner, true);
                tensors.shift(inner, self.d_state);
                tensors.linear("out_proj", inner, d, true);
            }
        }
    }

    fn feed_forward_tensors(&self, kind: FeedForwardKind, tensors: &mut Tensors) {
        let (d, m) = (self.d_model, self.d_ff());
        match kind {
            FeedForwardKind::None => {}
            FeedForwardKind::Mlp | FeedForwardKind::Gated => {
                let halves = if kind == FeedForwardKind::Gated { 2 } else { 1 };
                tensors.linear("up", d, halves * m, self.bias);
                tensors.linear("down", m, d, self.bias);
                if kind == FeedForwardKind::Gated {
                    tensors.parameter("scale", &[m]);
                }
            }
            FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu => {
                tensors.linear("up", d, 2 * m, false);
                tensors.linear("down", m, d, false);
            }
            FeedForwardKind::ChannelMix => {
                tensors.linear("key", d, m, false);
                tensors.linear("receptance", d, d, false);
                tensors.linear("value", m, d, false);
                tensors.parameter("mix_key", &[d]);
                tensors.parameter("mix_receptance", &[d]);
            }
        }
    }

    pub(super) fn norm_tensors(&self, name: &str, tensors: &mut Tensors) {
        let d = [self.d_model];
        tensors.part(name, |tensors| match self.norm {
            NormKind::Rms => tensors.parameter("gamma", &d),
            NormKind::Layer => {
                tensors.parameter("weight", &d);
                if self.bias {
                    tensors.parameter("bias", &d);
                }
            }
            NormKind::Batch => {
                tensors.parameter("weight", &d);
                tensors.parameter("bias", &d);
                tensors.buffer("running_mean", &d);
                tensors.buffer("running_var", &d);
            }
        });
    }
}
