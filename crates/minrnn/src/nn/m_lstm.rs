//! mLSTM, xLSTM's matrix memory, with the whole wiring of its block (Beck et al. 2024, arXiv:2405.04517, §2.3, §2.4).
//!
//! ```text
//! [u, ζ] = W_in x        c̄ = SiLU(conv4(u))        q, k = W_q c̄, W_k c̄        v = W_v u        ĩ, f̃ = W [q, k, v] + b
//! m⁺ = max(ln f + m, ĩ)  i* = e^(ĩ − m⁺)            f* = e^(ln f + m − m⁺)     f = σ(f̃)
//! C⁺ = f* C + i* k vᵀ/√e                            n⁺ = f* n + i* k/√e        h = C⁺ᵀ q / (max(|n⁺·q|, e^−m⁺) + 1e−6)
//! y = W_out ((norm(h) + s ⊙ c̄) ⊙ SiLU(ζ))
//! ```
//! where: x input (D); u, ζ of the inner width E; C matrix memory, n normaliser, m stabiliser of each head of width e = E / NH; W_q, W_k,
//! W_v in blocks of 4 channels; norm over the channels of each head, with a gain; s learned skip.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::layer_norm::EPS;
use minrnn_kernels::m_lstm::CHUNK;
use minrnn_model::{CheckedConfig, MLSTM_BLOCK};

use super::conv::{Depthwise, Window};
use super::init::{Initializer, xlstm_deviation, xlstm_output_deviation};
use super::linear::{matmul, matmul_sequences};
use super::mixer::Mixer;
use super::s_lstm::{HeadNorm, Headwise};
use super::state::{State, StateZip, expect_rows};
use crate::memory::activations::{Activations, Op};
use crate::ops::{EMPTY_M, MLstmMemory, StepCodes, block_diagonal, head_norm, m_lstm, skip_gate};

/// An mLSTM with its projections.
#[derive(Module, Debug)]
pub struct MLstm {
    /// D → 2E without bias, rows u then ζ.
    pub in_proj: Linear,
    /// The convolution before queries and keys.
    pub conv1d: Depthwise,
    /// W_q.
    pub q_proj: Headwise,
    /// W_k.
    pub k_proj: Headwise,
    /// W_v.
    pub v_proj: Headwise,
    /// [q, k, v] → NH.
    pub igate: Linear,
    /// [q, k, v] → NH.
    pub fgate: Linear,
    /// Norm of each head.
    pub outnorm: HeadNorm,
    /// s `[E]`.
    pub learnable_skip: Param<Tensor<1>>,
    /// E → D without bias.
    pub out_proj: Linear,
}

/// The state of an [`MLstm`].
#[derive(Debug, Clone)]
pub struct MLstmState {
    /// The convolution's window.
    pub conv: Window,
    /// C, n and m.
    pub memory: MLstmMemory,
}

impl State for MLstmState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let conv = self.conv.zip(other.conv, f);
        let (a, b) = (self.memory, other.memory);
        Self { conv, memory: MLstmMemory { c: f.tensor("c", a.c, b.c), n: f.tensor("n", a.n, b.n), m: f.tensor("m", a.m, b.m) } }
    }
}

impl MLstm {
    /// The cell described by `config`, initialised like xLSTM's: gates whose initial values depend only on their biases, with those of the
    /// forget gates spread from 3 to 6 over the heads.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e, heads) = (config.d_model, config.mlstm_inner(), config.n_heads);
        let deviation = xlstm_deviation(d);
        let in_proj = Linear { weight: init.normal([d, 2 * e], deviation), bias: None };
        let conv1d = Depthwise::new(e, init);
        let blocks = [e / MLSTM_BLOCK, MLSTM_BLOCK, MLSTM_BLOCK];
        let [q_proj, k_proj, v_proj] = [(); 3].map(|()| Headwise { weight: init.normal(blocks, deviation) });
        let step = 3.0 / (heads - 1).max(1) as f32;
        let forget_bias = (0..heads).map(|head| 3.0 + step * head as f32).collect();
        Self {
            in_proj,
            conv1d,
            q_proj,
            k_proj,
            v_proj,
            igate: Linear { weight: init.constant([3 * e, heads], 0.0), bias: Some(init.normal([heads], 0.1)) },
            fgate: Linear { weight: init.constant([3 * e, heads], 0.0), bias: Some(init.values([heads], forget_bias)) },
            outnorm: HeadNorm { weight: init.constant([e], 0.0) },
            learnable_skip: init.constant([e], 1.0),
            out_proj: Linear { weight: init.normal([e, d], xlstm_output_deviation(d, config.n_layers)), bias: None },
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e, h] = [config.d_model, config.mlstm_inner(), config.n_heads].map(|x| x as u128);
        let w = e / h;
        list.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
        // u and ζ are views of both, which stay whole; operations work on copies of them.
        list.op(Op { keeps: &[2 * e], reads: e, gives: e, aside: 2 * e, ..Op::default() });
        list.op(Op { keeps: &[e], reads: e, gives: e, aside: 2 * e, ..Op::default() });
        list.op(Op { keeps: &[e], reads: 2 * e, gives: 3 * e, aside: 2 * e, ..Op::default() });
        list.op(Op { keeps: &[e; 3], reads: 3 * e, gives: 2 * h, aside: 3 * e, ..Op::default() });
        let works = list.threads().min(list.batch() * h) * list.length().div_ceil(CHUNK as u128) * w * w;
        list.op(Op { keeps: &[2 * h, e], reads: 3 * e + 2 * h, gives: e, aside: 2 * e, works });
        list.op(Op { reads: e, gives: e, aside: 2 * e, ..Op::default() });
        list.op(Op { keeps: &[e], reads: 3 * e, gives: e, ..Op::default() });
        list.biased(e, d, false);
    }

    fn heads(&self) -> usize {
        self.igate.weight.dims()[1]
    }

    /// Pre-activations `[B, T, 2NH]` of the input gates, then of the forget gates: one matmul each with q, k and v, so that they need not
    /// be concatenated.
    fn gates(&self, qkv: [Tensor<3>; 3]) -> Tensor<3> {
        let [_, _, e] = qkv[0].dims();
        let weight = Tensor::cat(vec![self.igate.weight.val(), self.fgate.weight.val()], 1);
        let biases = [&self.igate, &self.fgate].map(|gate| gate.bias.as_ref().expect("gates have a bias").val());
        let products = qkv.into_iter().enumerate().map(|(i, x)| matmul_sequences(x, weight.clone().narrow(0, i * e, e)));
        let sum = products.reduce(|sum, product| sum + product).expect("three products");
        sum + Tensor::cat(biases.to_vec(), 0).unsqueeze()
    }
}

impl Mixer for MLstm {
    type State = MLstmState;

    fn init_state(&self, batch_size: usize) -> MLstmState {
        let weight = self.learnable_skip.val();
        let (heads, device) = (self.heads(), weight.device());
        let e = weight.dims()[0] / heads;
        let memory = MLstmMemory {
            c: Tensor::zeros([batch_size, heads, e, e], &device),
            n: Tensor::zeros([batch_size, heads, e], &device),
            m: Tensor::full([batch_size, heads], EMPTY_M, &device),
        };
        MLstmState { conv: self.conv1d.init_state(batch_size), memory }
    }

    fn forward(&self, x: Tensor<3>, state: MLstmState, steps: &StepCodes) -> (Tensor<3>, MLstmState) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let up = matmul(&self.in_proj, x);
        let e = up.dims()[2] / 2;
        let (u, z) = (up.clone().narrow(2, 0, e), up.narrow(2, e, e));
        let (c, conv) = self.conv1d.forward_silu(u.clone(), state.conv, steps);
        let (q, k) = (block_diagonal(c.clone(), self.q_proj.weight.val()), block_diagonal(c.clone(), self.k_proj.weight.val()));
        let v = block_diagonal(u, self.v_proj.weight.val());
        let gates = self.gates([q.clone(), k.clone(), v.clone()]);
        let (h, memory) = m_lstm(q, k, v, gates, state.memory, steps);
        let y = head_norm(h, self.outnorm.weight.val(), self.heads(), EPS);
        let y = skip_gate(y, c, self.learnable_skip.val(), z);
        (matmul(&self.out_proj, y), MLstmState { conv, memory })
    }
}
