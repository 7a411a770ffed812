//! The recurrent side of GRU and LSTM.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::init::Initializer;

/// U and its bias: the contribution of the previous hidden state to the gates' pre-activations.
#[derive(Module, Debug)]
pub struct Recurrent {
    /// `[gates · E, E]`, PyTorch's layout.
    pub weight: Param<Tensor<2>>,
    /// `[gates · E]`, if the cell has recurrent biases.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Recurrent {
    /// For `gates` gates of width `d_inner`, uniform in ±1/√`d_inner`.
    pub fn new(gates: usize, d_inner: usize, with_bias: bool, init: &mut Initializer) -> Self {
        let weight = init.uniform([gates * d_inner, d_inner], d_inner);
        Self { weight, bias: with_bias.then(|| init.uniform([gates * d_inner], d_inner)) }
    }

    pub(super) fn bias(&self) -> Option<Tensor<1>> {
        self.bias.as_ref().map(Param::val)
    }
}
