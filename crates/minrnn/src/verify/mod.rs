//! Our cells against tensors computed elsewhere: forward in parallel, forward step by step, and backward.
//!
//! A case is a safetensors file about one cell, made anywhere. Its metadata name the format (`case` = `"1"`), the `cell` and its
//! settings; its tensors are inputs, parameters, `loss_weight` and what is expected: `expect.h` and, for the loss
//! Σ loss_weight ⊙ h, `expect.grad.<name>`. Whatever `expect.*` is there is compared.
//!
//! | cell | settings | inputs and parameters | expected |
//! |---|---|---|---|
//! | `min_gru` | `candidate`: `positive` or `identity` | `x` `[B, T, d]`, `h0` `[B, e]`, `linear_z`, `linear_h`: each `.weight` `[e, d]`, `.bias` `[e]` | `h` `[B, T, e]`, `grad.*` |
//! | `min_lstm` | `candidate`; `normalize_gates`: `true` or `false` | the same with `linear_f`, `linear_i`, `linear_h` | the same |
//! | `gru` | | `x`, `h0`, `weight_ih_l0` `[3e, d]`, `weight_hh_l0` `[3e, e]`, `bias_ih_l0`, `bias_hh_l0` `[3e]`; PyTorch's r, z, n | the same |
//! | `lstm` | | the same with 4e rows, PyTorch's i, f, g, o, and `c0` `[B, e]` | the same and `c_last` `[B, e]` |
//! | `mamba` | | `u`, `delta`, `z` `[B, T, d]`, `A` `[d, N]`, `B`, `C` `[B, T, N]`, `D`, `delta_bias` `[d]`; the step size is softplus(delta + delta_bias) | `y` `[B, T, d]`, weighed by the loss in the place of h; `grad.*` |
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
mod check;
mod compare;
mod layer;
mod xlstm;

pub use case::{Case, Sizes};
pub use compare::{Comparison, Direction, Tolerance};
