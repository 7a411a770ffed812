//! sLSTM, xLSTM's scalar memory, with the wiring of its block (Beck et al. 2024, arXiv:2405.04517, §2.2, §2.4).
//!
//! ```text
//! c̄ = SiLU(conv4(x))                        ĩ, f̃ = W_i c̄, W_f c̄      z̃, õ = W_z x, W_o x, each + R h + b
//! m⁺ = max(ln f + m, ĩ)                      i* = e^(ĩ − m⁺)            f* = e^(ln f + m − m⁺)
//! c⁺ = f* ⊙ c + i* ⊙ tanh z̃                  n⁺ = f* ⊙ n + i*           h⁺ = σ(õ) ⊙ c⁺ / n⁺
//! y = (1 + w) ⊙ norm(h⁺)                     over the channels of each head
//! ```
//! where: x input (D); h hidden state, c cell state, n normaliser, m stabiliser (D each); W and R mix only the channels of a head; f is
//! σ(f̃) or e^f̃. Without the convolution c̄ is x.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use minrnn_kernels::layer_norm::EPS;
use minrnn_model::{CheckedConfig, ForgetGate, RecurrentInit};

use super::conv::{Depthwise, Window};
use super::init::{Initializer, xlstm_deviation};
use super::layer::expect_layer;
use super::mixer::Mixer;
use super::state::{State, StateZip, expect_rows};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, EMPTY_M, SLstmMemory, StepCodes, block_diagonal, head_norm};

/// A block-diagonal map without bias.
#[derive(Module, Debug)]
pub struct Headwise {
    /// `[G, O, I]`: outputs and inputs of each block.
    pub weight: Param<Tensor<3>>,
}

/// The gain of a head-wise norm.
#[derive(Module, Debug)]
pub struct HeadNorm {
    /// w `[D]`; the gain is 1 + w.
    pub weight: Param<Tensor<1>>,
}

/// An sLSTM.
#[derive(Module, Debug)]
pub struct SLstm {
    /// The convolution before the input and forget gates.
    pub conv1d: Option<Depthwise>,
    /// W_i.
    pub igate: Headwise,
    /// W_f.
    pub fgate: Headwise,
    /// W_z.
    pub zgate: Headwise,
    /// W_o.
    pub ogate: Headwise,
    /// R `[NH, 4H, H]`, rows i, f, z, o of each head.
    pub recurrent: Headwise,
    /// b `[4D]`, parts i, f, z, o.
    pub bias: Param<Tensor<1>>,
    /// Norm of each head.
    pub group_norm: HeadNorm,
    #[module(skip)]
    forget_gate: ForgetGate,
}

/// The state of an [`SLstm`].
#[derive(Debug, Clone)]
pub struct SLstmState {
    /// The convolution's window.
    pub conv: Option<Window>,
    /// h, c, n and m.
    pub memory: SLstmMemory,
}

impl State for SLstmState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let conv = State::zip(self.conv, other.conv, f);
        let (a, b) = (self.memory, other.memory);
        let memory =
            SLstmMemory { h: f.tensor("h", a.h, b.h), c: f.tensor("c", a.c, b.c), n: f.tensor("n", a.n, b.n), m: f.tensor("m", a.m, b.m) };
        Self { conv, memory }
    }
}

impl SLstm {
    /// The cell of block `layer`, counted from 0, initialised like xLSTM's.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
        expect_layer(config, layer);
        let (d, heads) = (config.d_model, config.n_heads);
        let head = d / heads;
        let deviation = xlstm_deviation(d);
        let conv1d = config.slstm_conv.then(|| Depthwise::new(d, init));
        let [igate, fgate, zgate, ogate] = [(); 4].map(|()| Headwise { weight: init.normal([heads, head, head], deviation) });
        let recurrent = match config.slstm_recurrent_init {
            RecurrentInit::Zeros => init.constant([heads, 4 * head, head], 0.0),
            RecurrentInit::Uniform => init.uniform([heads, 4 * head, head], d),
            RecurrentInit::Normal => init.normal([heads, 4 * head, head], deviation),
        };
        // The power law: from 5 down to −7 over the channels of a head, later in deeper blocks.
        let depth = layer as f32 / (config.n_layers - 1).max(1) as f32;
        let along = |channel: usize| channel as f32 / (head - 1).max(1) as f32;
        let mut bias = vec![0.0; 4 * d];
        for (channel, bias) in bias[d..2 * d].iter_mut().enumerate() {
            *bias = 5.0 - 12.0 * along(channel % head).powf(0.3 + 1.3 * depth);
        }
        Self {
            conv1d,
            igate,
            fgate,
            zgate,
            ogate,
            recurrent: Headwise { weight: recurrent },
            bias: init.values([4 * d], bias),
            group_norm: HeadNorm { weight: init.constant([d], 0.0) },
            forget_gate: config.slstm_forget_gate,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let d = config.d_model as u128;
        if config.slstm_conv {
            list.aside += d;
            Depthwise::silu_activations(d, list);
            list.aside -= d;
        }
        list.op(Op { keeps: &[d], reads: 2 * d, gives: 4 * d, aside: d, ..Op::default() });
        list.op(Op { reads: 4 * d, gives: 4 * d, ..Op::default() });
        list.op(Op { keeps: &[4 * d, d, d, d, d], reads: 4 * d, gives: 4 * d, ..Op::default() });
        list.op(Op { reads: d, gives: d, ..Op::default() });
    }
}

impl Mixer for SLstm {
    type State = SLstmState;

    fn init_state(&self, batch_size: usize) -> SLstmState {
        let weight = self.group_norm.weight.val();
        let shape = [batch_size, weight.dims()[0]];
        let zeros = || Tensor::zeros(shape, &weight.device());
        let memory = SLstmMemory { h: zeros(), c: zeros(), n: zeros(), m: Tensor::full(shape, EMPTY_M, &weight.device()) };
        SLstmState { conv: self.conv1d.as_ref().map(|conv| conv.init_state(batch_size)), memory }
    }

    fn forward(&self, x: Tensor<3>, state: SLstmState, steps: &StepCodes) -> (Tensor<3>, SLstmState) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let (gated, conv) = match (&self.conv1d, state.conv) {
            (Some(conv), Some(window)) => {
                let (gated, window) = conv.forward_silu(x.clone(), window, steps);
                (gated, Some(window))
            }
            (None, None) => (x.clone(), None),
            _ => panic!("the state belongs to another sLSTM"),
        };
        let map = |x: &Tensor<3>, map: &Headwise| block_diagonal(x.clone(), map.weight.val());
        let parts = [map(&gated, &self.igate), map(&gated, &self.fgate), map(&x, &self.zgate), map(&x, &self.ogate)];
        let preact = Tensor::cat(parts.to_vec(), 2);
        let recurrent = self.recurrent.weight.val();
        let heads = recurrent.dims()[0];
        let (h, memory) = ops::s_lstm(preact, recurrent, Some(self.bias.val()), self.forget_gate, state.memory, steps);
        (head_norm(h, self.group_norm.weight.val(), heads, EPS), SLstmState { conv, memory })
    }
}
