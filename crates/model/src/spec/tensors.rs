//! The tensors of a model by name and shape, as in files (a `Linear` weight is [out, in]).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::config::CONV_TAPS;

/// The role of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trainable; a token is multiplied by the whole tensor.
    Weight,
    /// Trainable; anything else: biases, gains, filters, lookup tables.
    Parameter,
    /// Not trainable: running statistics.
    Buffer,
}

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its path, such as `backbone.blocks.0.mixer.in_proj.weight`.
    pub name: String,
    /// Size of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// Its role.
    pub role: Role,
}

impl TensorSpec {
    /// Its number of elements.
    pub fn elements(&self) -> u128 {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size as u128))
    }
}

/// A list of tensors, built part by part.
#[derive(Debug, Default)]
pub struct Tensors {
    list: Vec<TensorSpec>,
    prefix: String,
}

impl Tensors {
    /// The tensors listed.
    pub fn into_list(self) -> Vec<TensorSpec> {
        self.list
    }

    /// Lists the tensors added by `list` under the part `name`.
    pub fn part(&mut self, name: &str, list: impl FnOnce(&mut Self)) {
        let outer = self.prefix.len();
        self.prefix += name;
        self.prefix.push('.');
        list(self);
        self.prefix.truncate(outer);
    }

    fn add(&mut self, name: &str, shape: Vec<usize>, role: Role) {
        self.list.push(TensorSpec { name: format!("{}{name}", self.prefix), shape, role });
    }

    /// A weight that a token is multiplied by.
    pub fn weight(&mut self, name: &str, shape: &[usize]) {
        self.add(name, shape.to_vec(), Role::Weight);
    }

    /// Another trainable tensor.
    pub fn parameter(&mut self, name: &str, shape: &[usize]) {
        self.add(name, shape.to_vec(), Role::Parameter);
    }

    /// A tensor that is not trained.
    pub fn buffer(&mut self, name: &str, shape: &[usize]) {
        self.add(name, shape.to_vec(), Role::Buffer);
    }

    /// A linear layer: `name.weight` `[outputs, inputs]` and `name.bias` `[outputs]`.
    pub fn linear(&mut self, name: &str, inputs: usize, outputs: usize, bias: bool) {
        self.weight(&format!("{name}.weight"), &[outputs, inputs]);
        if bias {
            self.parameter(&format!("{name}.bias"), &[outputs]);
        }
    }

    /// A depthwise convolution of `taps` taps with biases.
    pub fn depthwise(&mut self, name: &str, width: usize, taps: usize) {
        self.parameter(&format!("{name}.weight"), &[width, 1, taps]);
        self.parameter(&format!("{name}.bias"), &[width]);
    }

    /// The short convolution of blocks, Mamba and xLSTM.
    pub fn conv1d(&mut self, width: usize) {
        self.depthwise("conv1d", width, CONV_TAPS);
    }

    /// A diagonal state space of `channels` channels with `n` numbers each, two for each complex state; with a rank-one part for S4.
    pub fn state_space(&mut self, channels: usize, n: usize, rank_one: bool) {
        let half = n / 2;
        self.part("ssm", |tensors| {
            tensors.parameter("log_dt", &[channels]);
            tensors.parameter("log_a_real", &[channels, half]);
            tensors.parameter("a_imag", &[channels, half]);
            tensors.parameter("c", &[channels, half, 2]);
            tensors.parameter("skip", &[channels]);
            for part in if rank_one { ["p", "b"].as_slice() } else { &[] } {
                tensors.parameter(part, &[channels, half, 2]);
            }
        });
    }

    /// H3's shift: a filter of `n` taps for each channel, and a skip.
    pub fn shift(&mut self, width: usize, n: usize) {
        self.parameter("shift_ssm.taps", &[width, 1, n]);
        self.parameter("shift_ssm.skip", &[width]);
    }
}

impl core::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let sizes: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        write!(f, "{} [{}]", self.name, sizes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_and_elements_never_wrap() {
        let mut tensors = Tensors::default();
        tensors.part("a", |tensors| tensors.part("b", |tensors| tensors.linear("c", 2, 3, true)));
        tensors.buffer("d", &[usize::MAX; 3]);
        let list = tensors.into_list();
        assert_eq!(list[0].to_string(), "a.b.c.weight [3, 2]");
        assert_eq!(list[1], TensorSpec { name: "a.b.c.bias".into(), shape: alloc::vec![3], role: Role::Parameter });
        assert_eq!((list[0].elements(), list[2].elements()), (6, u128::MAX));
    }
}
