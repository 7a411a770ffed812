//! S4D: a diagonal state space for each channel, mixed by a gated linear layer (Gu et al. 2022, arXiv:2206.11893).
//!
//! ```text
//! x_t = e^{ΔA} ⊙ x_{t−1} + (e^{ΔA} − 1) / A · u_t      y = 2 Re C x + D u
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: u the layer's input, one channel; x its N/2 complex states; A diagonal, Re A < 0; Δ the channel's step.
//!
//! y is the convolution of u with K_l = 2 Re Σ C (e^{ΔA} − 1)/A e^{ΔAl}; for the state sizes in use the recurrence costs no more than
//! Fourier transforms, and carries its state.

/// An S4D layer. [`new`](super::S4::new) makes one if the configuration's mixer is `s4d`.
pub type S4d = super::S4;
