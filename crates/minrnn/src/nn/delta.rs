//! An associative memory updated by the delta rule, beyond the paper (fast weights: Schlag et al. 2021, arXiv:2102.11174; DeltaNet: Yang et
//! al. 2024, arXiv:2406.06484).
//!
//! ```text
//! q_t, k_t, v_t = W x_t + b, each H heads of n = E / H          β_t = σ(W_β x_t + b_β), one per head
//! k̂_t = k_t / √(‖k_t‖² + 1e-6)
//! S_t = S_{t−1} + β_t (v_t − S_{t−1} k̂_t) k̂_tᵀ
//! y_t = W_o [S_t q_t of every head] + b_o
//! ```
//! where: S is the memory of a head (n × n, initially empty); q query, k key, v value; β the share of the error at the key that is
//! corrected.
//!
//! A minGRU of the same width E stores E numbers and cannot choose where; this memory stores E · n, addressed by keys, and a new value for
//! an old key replaces the old value. The benefit is measured by
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/recall
//! ```

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::delta::CHUNK;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::apply;
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, StepCodes};

/// Associative memories with their projections.
#[derive(Module, Debug)]
pub struct Delta {
    /// D → 3E + H, rows q, k, v and β.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    #[module(skip)]
    n_heads: usize,
}

/// The state of a [`Delta`].
#[derive(Debug, Clone)]
pub struct DeltaState {
    /// Sᵀ of every head, `[B, H, n, n]`: row j is the value for coordinate j of a key.
    pub memory: Tensor<4>,
}

impl State for DeltaState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { memory: f.tensor("memory", self.memory, other.memory) }
    }
}

impl Delta {
    /// The heads described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e, n_heads) = (config.d_model, config.d_inner(), config.n_heads);
        Self { in_proj: init.linear(d, 3 * e + n_heads), out_proj: init.linear(e, d), n_heads }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e, h, w] = [config.d_model, config.d_inner(), config.n_heads, config.head_inner()].map(|x| x as u128);
        list.biased(d, 3 * e + h, true);
        let chunk = CHUNK as u128;
        let works = list.threads() * (list.length().div_ceil(chunk) + chunk) * w * w;
        list.op(Op { keeps: &[3 * e + h], reads: 3 * e + h, gives: e, works, ..Op::default() });
        list.biased(e, d, true);
    }
}

impl Mixer for Delta {
    type State = DeltaState;

    fn init_state(&self, batch_size: usize) -> DeltaState {
        let weight = self.out_proj.weight.val();
        let n = weight.dims()[0] / self.n_heads;
        DeltaState { memory: Tensor::zeros([batch_size, self.n_heads, n, n], &weight.device()) }
    }

    fn forward(&self, x: Tensor<3>, state: DeltaState, steps: &StepCodes) -> (Tensor<3>, DeltaState) {
        let (y, memory) = ops::delta(apply(&self.in_proj, x), state.memory, steps);
        (apply(&self.out_proj, y), DeltaState { memory })
    }
}
