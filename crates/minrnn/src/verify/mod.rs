//! Our cells against tensors computed elsewhere: forward in parallel, forward step by step, and backward.
//!
//! A case is a safetensors file about one cell, made anywhere. Its metadata give the format (`case` = `"1"`), the `cell` and its settings;
//! its tensors are inputs, parameters, `loss_weight` and the expected results: `expect.h` and, for the loss Σ loss_weight ⊙ h,
//! `expect.grad.<name>`. Every `expect.*` in the file is compared.
//!
//! | cell | settings | inputs and parameters | expected |
//! |---|---|---|---|
//! | `min_gru` | `candidate`: `positive` or `identity` | `x` `[B, T, d]`, `h0` `[B, e]`, `linear_z`, `linear_h`: each `.weight` `[e, d]`, `.bias` `[e]` | `h` `[B, T, e]`, `grad.*` |
//! | `min_lstm` | `candidate`; `normalize_gates`: `true` or `false` | the same with `linear_f`, `linear_i`, `linear_h` | the same |
//! | `gru` | | `x`, `h0`, `weight_ih_l0` `[3e, d]`, `weight_hh_l0` `[3e, e]`, `bias_ih_l0`, `bias_hh_l0` `[3e]`; PyTorch's r, z, n | the same |
//! | `lstm` | | the same with 4e rows, PyTorch's i, f, g, o, and `c0` `[B, e]` | the same and `c_last` `[B, e]` |
//! | `gilr` | | `x`, `h0`, `linear_g` (forget gate), `linear_i` (impulse, through tanh): each `.weight` `[e, d]`, `.bias` `[e]` | as `min_gru` |
//! | `rg_lru` | | `x` `[B, T, d]`, `recurrent_param` `[d]`, `input_gate_weight`, `recurrent_gate_weight` `[NH, DH, DH]`, `input_gate_bias`, `recurrent_gate_bias` `[NH, DH]`; RecurrentGemma's names, rows of the matrices are inputs | `h` `[B, T, d]`, `grad.*` |
//! | `mamba` | | `u`, `delta`, `z` `[B, T, d]`, `A` `[d, N]`, `B`, `C` `[B, T, N]`, `D`, `delta_bias` `[d]`; the step size is softplus(delta + delta_bias) | `y` `[B, T, d]`, weighted by the loss in place of h; `grad.*` |
//! | `slstm` | | `x` `[B, T, 4H]`, parts i, f, z, o; `R` `[NH, 4 hd, hd]`, rows i, f, z, o; `b` `[4H]`; sigmoid forget gate | `h` `[B, T, H]`, `grad.*` |
//! | `mlstm` | | `q`, `k`, `v` `[B, NH, T, DH]`, `igate`, `fgate` `[B, NH, T]`; k is scaled by 1/√DH | `h` `[B, NH, T, DH]`, `grad.*` |
//! | `linear_attention` | | `q`, `k`, `v` `[B, NH, T, DH]`; features elu + 1, divided by their sum + 1e−6 | `y` `[B, NH, T, DH]`, `grad.*` |
//! | `retention` | | `q`, `k` `[B, NH, T, DK]`, DK even, `v` `[B, NH, T, DV]`; heads decay by 1 − 2^(−5−h), k is scaled by 1/√DK, q and k are rotated by their position from 0 | `y` `[B, NH, T, DV]`, before norm and gate; `grad.*` |
//! | `aaren` | | `query` `[NH, DH]`, `k`, `v` `[B, NH, T, DH]`; scores are divided by √DH | `y` `[B, NH, T, DH]`, `grad.*` |
//! | `delta` | | `q`, `k`, `v` `[B, NH, T, DH]`, `beta` `[B, NH, T]`, before its sigmoid; k is divided by √(‖k‖² + 1e−6) | `y` `[B, NH, T, DH]`, `grad.*` |
//! | `wkv` | | `r`, `k`, `v` `[B, T, d]`, `decay`, `bonus` `[d]`; the past decays by e^(−e^decay) per step | `y` `[B, T, d]`, under the gate σ(r); `grad.*` |
//! | `s4d` | | `u` `[B, T, d]`, `log_dt`, `D` `[d]`, `log_a_real`, `a_imag` `[d, N]`, `C` `[d, N, 2]`, for A = −e^log_a_real + i·a_imag and B = 1 by zero-order hold | `y` `[B, T, d]`, 2 Re C x + D u; `grad.*` |
//!
//! Cells without `h0` start from an empty state.
//!
//! ```no_run
//! use minrnn::verify::{Case, Tolerance};
//!
//! # fn main() -> minrnn::Result<()> {
//! let case = Case::read("case.safetensors")?;
//! for comparison in case.check(Tolerance::default(), &burn::tensor::Device::flex()) {
//!     assert!(comparison.pass, "{comparison:?}");
//! }
//! # Ok(())
//! # }
//! ```

mod case;
mod cell;
mod cells;
mod check;
mod compare;

pub use case::Case;
pub use cell::Sizes;
pub use compare::{Comparison, Direction, Tolerance};
