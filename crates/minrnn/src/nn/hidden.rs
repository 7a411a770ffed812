//! The state of cells whose memory is one vector, with an optionally learned initial state.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig, InitialState};

use super::init::Initializer;
use super::state::{State, StateZip};
use crate::ops;

/// The hidden state h of minGRU, minLSTM and GRU.
#[derive(Debug, Clone)]
pub struct Hidden {
    /// h `[B, E]`.
    pub h: Tensor<2>,
}

impl State for Hidden {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { h: f.tensor("h", self.h, other.h) }
    }
}

/// θ `[E]`, standard normal, when the initial state is learned.
pub(super) fn learned_state(config: &CheckedConfig, init: &mut Initializer) -> Option<Param<Tensor<1>>> {
    (config.initial_state == InitialState::Learned).then(|| init.normal([config.d_inner()], 1.0))
}

/// The state a reset restores, which follows from θ by [`Candidate::of_state`]; `None` is zero.
pub(super) fn initial_vector(theta: Option<&Param<Tensor<1>>>, candidate: Candidate) -> Option<Tensor<1>> {
    let theta = theta?.val();
    Some(if candidate.of_state() == Candidate::Positive { ops::positive(theta) } else { theta })
}

/// [`initial_vector`] for each of `batch_size` sequences: what a cell of E channels, which `out_proj` (E → D) follows, begins with.
pub(super) fn first_hidden(theta: Option<&Param<Tensor<1>>>, candidate: Candidate, out_proj: &Linear, batch_size: usize) -> Hidden {
    let [d_inner, _] = out_proj.weight.dims();
    let h = match initial_vector(theta, candidate) {
        // Burn's expand refuses a size of 0.
        Some(init) if batch_size > 0 => init.unsqueeze::<2>().expand([batch_size, d_inner]),
        _ => Tensor::zeros([batch_size, d_inner], &out_proj.weight.val().device()),
    };
    Hidden { h }
}
