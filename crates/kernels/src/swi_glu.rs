//! SwiGLU (Shazeer, "GLU variants improve transformer", 2020): y = value ⊙ SiLU(gate), rows of x being [value | gate].
//!
//! ```text
//! SiLU(u) = u σ(u)      SiLU'(u) = σ(u) (1 + u (1 − σ(u)))
//! d_value = d_y SiLU(gate)      d_gate = d_y value SiLU'(gate)
//! ```

use crate::gated_gelu::{Gradients, Halves, Inputs, gate, gate_backward};
use crate::out::Out;
use crate::silu::Silu;

/// y = value ⊙ SiLU(gate).
///
/// # Shapes
/// - `x`: `[rows, 2 · width]`, rows are [value | gate]
/// - `y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, x: &[f32], y: Out) {
    gate(Silu, rows, width, inputs(x), y);
}

/// The gradient of [`forward`] with respect to `x`.
///
/// # Shapes
/// - `x`, `d_x`: `[rows, 2 · width]`
/// - `d_y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, x: &[f32], d_y: &[f32], d_x: Out) {
    gate_backward(Silu, rows, width, inputs(x), d_y, Gradients { d_x, d_bias: None, d_scale: None });
}

fn inputs(x: &[f32]) -> Inputs<'_> {
    Inputs { halves: Halves::ValueGate, x, bias: None, scale: None }
}
