//! Vector instructions chosen at run time, and the functions every kernel needs on them.
//!
//! A kernel is a [`WithSimd`] value; [`Level::run`] compiles its body once per instruction set and picks one when called, so no
//! `target-cpu` flag is needed. Choose the level once per kernel call ([`Level::current`]), not once per row.
//!
//! Accuracy of the functions below, against f64: at most 2 units in the last place for [`exp`] on [−87, 88], 3 for [`sigmoid`] from −87 on, and an
//! absolute 2e-7 for [`tanh`]. Below −87 [`exp`] is 0. NaN stays NaN.

mod elementary;
mod level;
mod memory;
mod named;
mod products;

pub(crate) use elementary::{TRACE, ln_of_normal, near_zero_tanh, without_traces};
pub use elementary::{abs, exp, exp_neg, exp_neg_abs, ln, neg, sigmoid, sigmoid_pair, softplus, sqrt, sqrt_f64, tanh};
pub use level::Level;
pub(crate) use memory::{add_to, load_some, plus, store_some, stream, stream_fence};
pub use memory::{load, prefetch, prefetch_far, put, store};
pub use products::mul_add;
pub(crate) use products::{dot_pairs, signed_to_f32};
pub use pulp::{Simd, WithSimd};
