//! Causal softmax attention, the mixer of Transformers (Vaswani et al. 2017, arXiv:1706.03762), with a cache of keys and values as its
//! state.
//!
//! ```text
//! [q | k | v] = W x + b      y = W_o concat_heads(softmax(q kᵀ / √dₕ) v) + b_o
//! ```
//! where: x input (D); dₕ = D / heads; a token sees the last `window` tokens of its segment, including itself. With rotary positions q and
//! k are rotated by the position of their token since the last reset (so only the distance between two tokens matters).
//!
//! The cache holds at most the last `window` tokens. Without a window it grows up to `max_seq_len` tokens and then drops the oldest: a
//! token never sees further back than this, even within one call. Rows with fewer tokens have zeros before theirs, masked by the counter.
//! There is no dropout on the attention weights.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, Positions};

use super::init::Initializer;
use super::linear::{apply, matmul};
use super::mixer::Mixer;
use super::state::{State, StateZip, expect_rows};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, AttentionPlan, StepCodes, StepPositions};

/// Query rows per tile.
const QUERIES: u128 = 64;

/// Attention with its projections.
#[derive(Module, Debug)]
pub struct Attention {
    /// D → 3D, rows queries, keys, values.
    pub in_proj: Linear,
    /// D → D.
    pub out_proj: Linear,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    window: usize,
    #[module(skip)]
    grows: bool,
    #[module(skip)]
    rotary: bool,
}

/// The state of an [`Attention`].
#[derive(Debug, Clone)]
pub struct AttentionState {
    /// Keys and values of past tokens `[B, P, 2D]`, the latest last.
    pub cache: Tensor<3>,
    /// Tokens since the last reset `[B, 1]`; that many of the last cache entries are valid.
    pub position: Tensor<2>,
}

impl State for AttentionState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let length = self.cache.dims()[1].max(other.cache.dims()[1]);
        let cache = f.growing("cache", lengthened(self.cache, length), lengthened(other.cache, length));
        Self { cache, position: f.tensor("position", self.position, other.position) }
    }
}

/// Zeros before a cache, so that it has `length` steps.
fn lengthened(cache: Tensor<3>, length: usize) -> Tensor<3> {
    let [batch, past, width] = cache.dims();
    let zeros = |steps: usize| Tensor::zeros([batch, steps, width], &cache.device());
    match length - past {
        0 => cache,
        _ if batch == 0 => zeros(length),
        missing => Tensor::cat(vec![zeros(missing), cache], 1),
    }
}

impl Attention {
    /// The projections described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let d = config.d_model;
        Self {
            in_proj: init.linear_with_bias(d, 3 * d, config.bias),
            out_proj: init.residual_linear(d, d, config.bias),
            n_heads: config.n_heads,
            window: config.attention_window(),
            grows: config.window == 0,
            rotary: config.positions == Positions::Rotary,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, h] = [config.d_model, config.n_heads].map(|x| x as u128);
        list.biased(d, 3 * d, config.bias);
        if config.positions == Positions::Rotary {
            list.op(Op { reads: 3 * d, gives: 3 * d, ..Op::default() });
        }
        // Gradients of keys and values from each share of a head's queries.
        let all = (list.batch() * h).max(1);
        let shares = list.threads().div_ceil(all).min(list.length().div_ceil(QUERIES)).max(1);
        let works = shares * 2 * d * (list.steps() + list.batch());
        list.op(Op { keeps: &[3 * d, d, h], reads: 3 * d, gives: d, works, ..Op::default() });
        list.out(d, d, config.bias);
    }

    /// Length of the cache after `seq_len` more steps: what the longest row needs, but at least 1, as tensors handle empty dimensions
    /// badly.
    fn next_length(&self, past: usize, seq_len: usize, furthest: usize) -> usize {
        if self.grows { furthest.min(self.window).min(past + seq_len).max(1) } else { self.window }
    }
}

impl Mixer for Attention {
    type State = AttentionState;

    fn init_state(&self, batch_size: usize) -> AttentionState {
        let weight = self.out_proj.weight.val();
        let length = if self.grows { 1 } else { self.window };
        AttentionState {
            cache: Tensor::zeros([batch_size, length, 2 * weight.dims()[0]], &weight.device()),
            position: Tensor::zeros([batch_size, 1], &weight.device()),
        }
    }

    fn forward(&self, x: Tensor<3>, state: AttentionState, steps: &StepCodes) -> (Tensor<3>, AttentionState) {
        let [batch, seq_len, d] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let past = state.cache.dims()[1];
        let places = StepPositions::count(state.position, seq_len, steps);
        let mut qkv = match self.in_proj.bias {
            Some(_) => apply(&self.in_proj, x),
            None => matmul(&self.in_proj, x),
        };
        if self.rotary {
            qkv = ops::rotary(qkv, places.of, d / self.n_heads, 2 * d);
        }
        let plan = AttentionPlan {
            heads: self.n_heads,
            window: self.window,
            lengths: places.before.iter().map(|&before| (before as usize).min(past)).collect(),
            next: self.next_length(past, seq_len, places.counts.iter().max().map_or(0, |&furthest| furthest as usize)),
        };
        let (y, cache) = ops::attention(qkv, state.cache, plan, steps);
        let y = match self.out_proj.bias {
            Some(_) => apply(&self.out_proj, y),
            None => matmul(&self.out_proj, y),
        };
        (y, AttentionState { cache, position: places.after })
    }
}
