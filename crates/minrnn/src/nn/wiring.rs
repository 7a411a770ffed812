//! The outer wirings of a block, inside which any mixer can be the inner layer (as in Table 2 of Feng et al. 2024, arXiv:2410.01201).
//!
//! ```text
//! mamba:  [u, ζ] = W_in x               y = inner(SiLU(DW4(u)))         out = W_out (y ⊙ SiLU(ζ))
//! h3:     q, k, v = W_in x + b          y = inner(shift(k) ⊙ v)         out = W_out (q ⊙ y) + b_o
//! ```
//! where: x is the block's normalised input (D); u, ζ have width E = `expansion` · D, the inner layer's width; q, k, v have width D; DW4 is
//! a causal depthwise convolution, shift a filter of `d_state` taps as in [`H3`](super::H3).
//!
//! The inner layer is a sequence map. If a mixer has its own channel mixing after its map (`s4`, `s4d`, `s6`, `hyena-filter`), the wiring
//! replaces that mixing, so that the blocks around these maps are those of the literature: `wiring = mamba` with `s6` is
//! [`Mamba`](super::Mamba), `wiring = h3` with `s4d` is H3 with heads of width 1. All other mixers are used whole. A mixer in Mamba's
//! wiring does not expand again: its own `expansion` is 1.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, WiringKind};

use super::conv::{Depthwise, Window};
use super::h3::Shift;
use super::init::Initializer;
use super::linear::{apply, matmul, matmul_rows, rows, sequences};
use super::mixer::Mixer;
use super::state::expect_rows;
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, StepCodes};

/// The layers around an inner one.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "a model holds a handful, all of one variant")]
pub enum Wiring {
    /// Mamba's.
    Mamba(MambaWiring),
    /// H3's.
    H3(H3Wiring),
}

/// Mamba without its selective state spaces.
#[derive(Module, Debug)]
pub struct MambaWiring {
    /// D → 2E without bias, rows u then ζ.
    pub in_proj: Linear,
    /// The convolution over u.
    pub conv1d: Depthwise,
    /// E → D without bias.
    pub out_proj: Linear,
}

/// H3 without its diagonal state spaces.
#[derive(Module, Debug)]
pub struct H3Wiring {
    /// D → 3D, rows query, key, value.
    pub in_proj: Linear,
    /// The shift applied to keys.
    pub shift_ssm: Shift,
    /// D → D.
    pub out_proj: Linear,
}

impl Wiring {
    /// The wiring described by `config`, if any.
    pub fn new(config: &CheckedConfig, init: &mut Initializer) -> Option<Self> {
        let d = config.d_model;
        match config.wiring {
            WiringKind::None => None,
            WiringKind::Mamba => {
                let e = config.d_inner();
                Some(Self::Mamba(MambaWiring {
                    in_proj: init.linear_with_bias(d, 2 * e, false),
                    conv1d: Depthwise::new(e, init),
                    out_proj: Linear { weight: init.uniform([e, d], e * config.n_layers), bias: None },
                }))
            }
            WiringKind::H3 => Some(Self::H3(H3Wiring {
                in_proj: init.linear(d, 3 * d),
                shift_ssm: Shift::new(d, config.d_state, init),
                out_proj: init.linear(d, d),
            })),
        }
    }

    /// What the wiring and `inner` keep; without a wiring, what `inner` keeps.
    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations, inner: impl FnOnce(&mut Activations)) {
        let d = config.d_model as u128;
        match config.wiring {
            WiringKind::None => inner(list),
            WiringKind::Mamba => {
                let e = config.d_inner() as u128;
                list.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
                list.op(Op { reads: 2 * e, gives: 2 * e, ..Op::default() });
                list.aside += e;
                Depthwise::silu_activations(e, list);
                inner(list);
                list.aside -= e;
                // SiLU keeps ζ, the product y and SiLU(ζ).
                list.op(Op { keeps: &[e; 3], reads: 2 * e, gives: e, aside: e, ..Op::default() });
                list.op(Op { keeps: &[e], reads: e, gives: d, ..Op::default() });
            }
            WiringKind::H3 => {
                list.biased(d, 3 * d, true);
                // The views of queries, keys and values keep all three alive.
                list.op(Op { keeps: &[3 * d], reads: d, gives: d, aside: 2 * d, ..Op::default() });
                list.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
                list.aside += 3 * d;
                inner(list);
                list.aside -= 3 * d;
                list.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
                list.biased(d, d, true);
            }
        }
    }

    /// Zeros, as the initial inputs of the convolution or as keys.
    pub fn init_state(&self, batch_size: usize) -> Window {
        match self {
            Self::Mamba(wiring) => wiring.conv1d.init_state(batch_size),
            Self::H3(wiring) => wiring.shift_ssm.init_state(batch_size),
        }
    }

    /// The block's sequence `x` `[B, T, D]` → `[B, T, D]` with `inner` inside, and the states after it.
    ///
    /// # Panics
    /// When the shapes of input, states and steps do not fit.
    pub fn forward<M: Mixer>(
        &self,
        x: Tensor<3>,
        (window, state): (Window, M::State),
        steps: &StepCodes,
        inner: &M,
    ) -> (Tensor<3>, (Window, M::State)) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&window, batch);
            expect_rows(&state, batch);
            return (x, (window, state));
        }
        match self {
            Self::Mamba(wiring) => {
                let [e, _] = wiring.out_proj.weight.dims();
                let (u, z) = ops::split(matmul_rows(rows(x), wiring.in_proj.weight.val()), e);
                let [u, z] = [u, z].map(|x| sequences(x, batch, seq_len));
                let (u, window) = wiring.conv1d.forward_silu(u, window, steps);
                let (y, state) = inner.forward(u, state, steps);
                (matmul(&wiring.out_proj, y * ops::silu(z)), (window, state))
            }
            Self::H3(wiring) => {
                let d = wiring.out_proj.weight.dims()[0];
                let all = apply(&wiring.in_proj, x);
                let [query, key, value] = [0, 1, 2].map(|i| all.clone().narrow(2, i * d, d));
                let (key, window) = wiring.shift_ssm.forward(key, window, steps);
                let (y, state) = inner.forward(key * value, state, steps);
                (apply(&wiring.out_proj, query * y), (window, state))
            }
        }
    }
}
