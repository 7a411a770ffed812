//! Mamba's selective scan (S6) with everything around it that is done channel by channel: step size, discretisation, recurrence, skip and
//! output gate, forward and backward.
//!
//! ```text
//! Δ = softplus(δ + bias)           ā = exp(Δ A)                     per channel c and state n
//! h_t = ā_t h_{t−1} + Δ_t u_t B_t  v_t = Σ_n C_t h_t + D u_t        y_t = v_t · SiLU(z_t), or v_t without a gate
//! ```
//!
//! where: u is the input, δ the pre-activation of the step size Δ, z the gate (all `[B, T, D]`); A `[D, N]` is negative; B, C `[B, T, N]`
//! depend on the step and are shared by all channels; D `[D]` is the skip; h the state `[B, D, N]`. Backward, starting from the gradient of
//! the last state, with v̄ = ∂y SiLU(z) and G_t = v̄_t C_t + ā_{t+1} G_{t+1}:
//!
//! ```text
//! w = ā_t h_{t−1} G_t    ∂C_t = Σ_c v̄_t h_t    ∂B_t = Σ_c G_t Δ_t u_t    ∂A = Σ_t Δ_t w
//! s = Σ_n G_t B_t        ∂Δ_t = Σ_n A w + u_t s    ∂u_t = Δ_t s + D v̄_t    ∂D = Σ_t v̄_t u_t    ∂z_t = ∂y_t v_t SiLU'(z_t)
//! ```
//!
//! Departures from running one channel after another:
//!
//! 1. A vector holds channels, so that the sum over n needs no sum within a vector; sums over channels (∂B, ∂C) accumulate whole vectors
//!    and add up their lanes once per step.
//! 2. Time is split into chunks of [`CHUNK`] steps. Within one, a vector of channels runs a group of states at a time through all steps:
//!    states, A and their gradients stay in registers.
//! 3. `[B, T, D, N]` is never stored: forward stores the state before each chunk, backward reruns the chunk from it and then goes through
//!    it from its end, with ā and ā h of one group in the nearest cache.
//! 4. Rows of the batch are split over the threads, and channels too if there are few rows.

mod backward;
mod forward;
mod grid;
mod lanes;

use crate::out::Out;
use crate::segments::{RESET, Segments};
use crate::shape::{Shape, elements, expect_len};
use alloc::vec::Vec;

pub use backward::backward;
pub use forward::forward;

/// Number of steps between two states that are stored for the backward pass.
pub const CHUNK: usize = 64;
/// States that go through a chunk together.
const GROUP: usize = 4;

/// The tensors of a scan over a batch of B sequences of T steps, D channels and N states per channel, each row-major.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// u `[B, T, D]`.
    pub u: &'a [T],
    /// δ `[B, T, D]`, the step size before its bias and softplus.
    pub delta: &'a [T],
    /// Bias of δ `[D]`.
    pub delta_bias: &'a [T],
    /// A `[D, N]`.
    pub a: &'a [T],
    /// B then C of every step `[B, T, 2N]`.
    pub bc: &'a [T],
    /// D `[D]`, the skip.
    pub skip: &'a [T],
    /// z `[B, T, D]`; `None` leaves the output as it is.
    pub z: Option<&'a [T]>,
    /// The carried state `[B, D, N]`; `None` is 0.
    pub h0: Option<&'a [T]>,
    /// Which steps are real and where the state is reset to 0.
    pub segments: Segments<'a>,
}

/// The outputs of [`forward`].
#[derive(Debug)]
pub struct Outputs<'a> {
    /// y `[B, T, D]`, 0 at padding.
    pub y: Out<'a>,
    /// The state at each row's end `[B, D, N]`.
    pub h_last: Out<'a>,
    /// What [`backward`] starts from, [`boundaries_len`] numbers.
    pub boundaries: Out<'a>,
}

/// Gradients that [`backward`] writes, each of the shape of its input.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of u.
    pub d_u: Out<'a>,
    /// Of δ.
    pub d_delta: Out<'a>,
    /// Of its bias.
    pub d_delta_bias: Out<'a>,
    /// Of A.
    pub d_a: Out<'a>,
    /// Of B and C.
    pub d_bc: Out<'a>,
    /// Of D.
    pub d_skip: Out<'a>,
    /// Of z; present if the scan has a gate.
    pub d_z: Option<Out<'a>>,
    /// Of the carried state, whether or not there is one.
    pub d_h0: Out<'a>,
}

/// Size of the states before every chunk, `[B, chunks, N, D]`.
///
/// # Panics
/// When that is more than memory can hold.
pub fn boundaries_len(shape: Shape, d_state: usize) -> usize {
    elements([shape.batch, shape.seq_len.div_ceil(CHUNK), d_state, shape.width])
}

impl<T> Inputs<'_, T> {
    /// Checks every length.
    ///
    /// # Panics
    /// When one does not fit.
    pub(crate) fn expect_fit(&self, shape: Shape, d_state: usize) {
        expect_len("u", self.u, shape.elements());
        expect_len("delta", self.delta, shape.elements());
        expect_len("delta_bias", self.delta_bias, shape.width);
        expect_len("a", self.a, elements([shape.width, d_state]));
        expect_len("bc", self.bc, elements([shape.batch, shape.seq_len, 2, d_state]));
        expect_len("skip", self.skip, shape.width);
        if let Some(z) = self.z {
            expect_len("z", z, shape.elements());
        }
        if let Some(h0) = self.h0 {
            expect_len("h0", h0, elements([shape.states(), d_state]));
        }
        self.segments.expect_fits(shape.batch, shape.seq_len);
    }
}

/// The arguments both directions share, prepared.
struct Scan<'a> {
    shape: Shape,
    /// N.
    d_state: usize,
    inputs: &'a Inputs<'a>,
    /// A as `[N, D]`.
    a: Vec<f32>,
}

impl<'a> Scan<'a> {
    fn new(shape: Shape, d_state: usize, inputs: &'a Inputs<'a>) -> Self {
        Self { shape, d_state, inputs, a: crate::matmul::transposed(inputs.a, shape.width, d_state) }
    }

    /// Real steps of row `b`.
    fn length(&self, b: usize) -> usize {
        self.inputs.segments.length(b, self.shape.seq_len)
    }

    /// Whether the state is reset to 0 before step `t` of row `b`.
    #[inline(always)]
    fn is_reset(&self, b: usize, t: usize) -> bool {
        self.inputs.segments.codes().is_some_and(|codes| codes[b * self.shape.seq_len + t] == RESET)
    }

    /// Step `t` of row `b` of a sequence tensor `[B, T, D]`.
    #[inline(always)]
    fn step<'b>(&self, tensor: &'b [f32], b: usize, t: usize) -> &'b [f32] {
        &tensor[(b * self.shape.seq_len + t) * self.shape.width..][..self.shape.width]
    }

    /// B and C of `G` states from state `n` on, at step `t` of row `b`.
    #[inline(always)]
    fn input_and_output<const G: usize>(&self, b: usize, t: usize, n: usize) -> (&'a [f32], &'a [f32]) {
        let (bc, d_state) = (self.inputs.bc, self.d_state);
        let row = &bc[(b * self.shape.seq_len + t) * 2 * d_state..][..2 * d_state];
        (&row[n..n + G], &row[d_state + n..][..G])
    }

    /// Where the state before chunk `chunk` of row `b` begins for state `n` and channel `c`.
    fn boundary(&self, b: usize, chunk: usize, n: usize, c: usize) -> usize {
        ((b * self.shape.seq_len.div_ceil(CHUNK) + chunk) * self.d_state + n) * self.shape.width + c
    }
}
