//! Gated linear attention with a constant decay for each head: RetNet's retention (Sun et al. 2023, arXiv:2307.08621, §2) and, without
//! decay, linear attention (Katharopoulos et al. 2020, arXiv:2006.16236).
//!
//! For each head, with queries, keys and values q, k, v and the features φ:
//!
//! ```text
//! S_t = γ S_{t−1} + c φ(k_t) v_tᵀ        o_t = S_tᵀ φ(q_t)
//! ```
//!
//! where: S is the state `[K, V]`; γ the decay; c a constant factor of the keys. φ rotates neighbouring channels with the position, by
//! 10000^{−j/(K/2−1)} per step for pair j ([`Features::Rotary`]), or is elu(x) + 1. A normalised attention has an additional value of 1 at
//! every step, whose output n_t divides the others: y_t = o_t / (n_t + 1e−6).
//!
//! A value that is not finite makes all outputs of its chunk non-finite, including earlier ones.
//!
//! A chunk of C steps that starts with the state S is four products, Q, K, V being its rows and M_ij = γ^{i−j} for j ≤ i, else 0:
//!
//! ```text
//! O = (Q Kᵀ ⊙ M) V + diag(γ^{i+1}) Q S        S⁺ = γ^C S + Kᵀ diag(γ^{C−1−i}) V
//! ```
//!
//! and backward, with A = Q Kᵀ ⊙ M, dA = dO Vᵀ ⊙ M and the gradient D of S⁺:
//!
//! ```text
//! dQ = dA K + diag(γ^{i+1}) dO Sᵀ             dK = dAᵀ Q + diag(γ^{C−1−i}) V Dᵀ
//! dV = Aᵀ dO + diag(γ^{C−1−i}) K D            dS = γ^C D + Qᵀ diag(γ^{i+1}) dO
//! ```
//!
//! Rows and heads are tasks for threads. A reset ends a chunk, so no chunk contains one. The memory needed is that of a chunk, and in the
//! backward pass that of the states between chunks of one head.

mod chunks;
mod features;
mod gradient;
mod head;

use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::segments::Segments;
use crate::shape::{elements, expect_len};
use crate::simd::Level;
use alloc::vec::Vec;
use chunks::{Chunk, chunks};
use core::mem::MaybeUninit;
use features::{Rotation, Rows};
use gradient::Gradient;
use head::Head;

pub use features::{angle, decay};

/// Steps of a chunk.
pub const CHUNK: usize = 64;
/// Added to the divisor of a normalised attention, and to the mean square of a RetNet head.
pub const EPS: f64 = 1e-6;

/// Sizes of queries, keys `[B, T, H·K]` and values `[B, T, H·V]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// B.
    pub batch: usize,
    /// T.
    pub seq_len: usize,
    /// H.
    pub heads: usize,
    /// K, channels of a head's query or key.
    pub key: usize,
    /// V, channels of a head's value.
    pub value: usize,
}

/// φ of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Features {
    /// Neighbouring channels are rotated by the position, starting from [`Start::positions`]; K must be even.
    Rotary,
    /// elu(x) + 1: x + 1 for x > 0, e^x below.
    EluPlusOne,
}

/// The variant of attention.
#[derive(Debug, Clone, Copy)]
pub struct Form<'a> {
    /// φ.
    pub features: Features,
    /// γ of every head `[H]`.
    pub decays: &'a [f64],
    /// c.
    pub key_scale: f64,
    /// Whether outputs are divided by the output for a value of 1.
    pub normalized: bool,
}

/// The initial states of a batch's rows; a reset sets the state and the position to 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried S `[B, H, K, V]`, or `[B, H, K, V + 1]` of a normalised attention; `None` is 0.
    pub state: Option<&'a [T]>,
    /// The position of each row's first step `[B]`, as [`count`](crate::count) keeps it; `None` is 0.
    pub positions: Option<&'a [f32]>,
    /// Which steps are real and where the state is reset.
    pub segments: Segments<'a>,
}

impl Sizes {
    /// Elements of queries or keys.
    ///
    /// # Panics
    /// When that is more than memory can hold; the other methods do too.
    pub fn keys(&self) -> usize {
        elements([self.batch, self.seq_len, self.heads, self.key])
    }

    /// Elements of values.
    pub fn values(&self) -> usize {
        elements([self.batch, self.seq_len, self.heads, self.value])
    }

    /// Columns of a head's state.
    pub fn columns(&self, form: &Form) -> usize {
        self.value.saturating_add(usize::from(form.normalized))
    }

    /// Elements of the state.
    pub fn states(&self, form: &Form) -> usize {
        elements([self.batch, self.heads, self.key, self.columns(form)])
    }
}

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// q `[B, T, H·K]`.
    pub queries: &'a [T],
    /// k `[B, T, H·K]`.
    pub keys: &'a [T],
    /// v `[B, T, H·V]`.
    pub values: &'a [T],
    /// The initial states of the rows.
    pub start: Start<'a, T>,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the queries.
    pub d_queries: Out<'a>,
    /// Of the keys.
    pub d_keys: Out<'a>,
    /// Of the values.
    pub d_values: Out<'a>,
    /// Of the carried state, whether or not there is one.
    pub d_state: Out<'a>,
}

/// Outputs `y` `[B, T, H·V]`, 0 at padding, and the last state, as [`Start::state`].
///
/// # Panics
/// When a length does not fit `sizes`, or K is odd and pairs are rotated.
pub fn forward(sizes: Sizes, form: Form, inputs: Inputs, y: Out, state_last: Out) {
    let start = inputs.start;
    let problem = Problem::new(sizes, form, inputs);
    y.expect_len("y", sizes.values());
    state_last.expect_len("state_last", sizes.states(&form));
    if y.is_empty() && state_last.is_empty() {
        return;
    }
    let [y, state_last] = [y, state_last].map(SharedOut::new);
    grid::for_each(sizes.batch * sizes.heads, |task| {
        let mut head = Head::new(&problem, task);
        for chunk in chunks(sizes.seq_len, start.segments, head.b, head.first_position) {
            head.enter(&chunk);
            head.attend(&chunk);
            head.sums(&chunk);
            for i in 0..chunk.len {
                // SAFETY: every task writes the outputs of one head of one row, and no other does.
                let y = unsafe { y.slice(problem.at(head.b, chunk.first + i, head.h, sizes.value), sizes.value) };
                head.write_output(i, y);
            }
            head.absorb(&chunk);
        }
        for t in start.segments.length(head.b, sizes.seq_len)..sizes.seq_len {
            // SAFETY: every task writes the outputs of one head of one row, and no other does.
            unsafe { y.slice(problem.at(head.b, t, head.h, sizes.value), sizes.value) }.fill(MaybeUninit::new(0.0));
        }
        // SAFETY: a task is a head of a row, whose state no other task writes.
        unsafe { state_last.slice(task * head.state.len(), head.state.len()) }.write_copy_of_slice(&head.state);
    });
}

/// Gradients of everything, given those of `y` and `state_last` (`None` is 0).
///
/// # Panics
/// When a length does not fit `sizes`, or K is odd and pairs are rotated.
pub fn backward(sizes: Sizes, form: Form, inputs: Inputs, d_y: Option<&[f32]>, d_state_last: Option<&[f32]>, gradients: Gradients) {
    let start = inputs.start;
    let problem = Problem::new(sizes, form, inputs);
    d_y.inspect(|d| expect_len("d_y", d, sizes.values()));
    d_state_last.inspect(|d| expect_len("d_state_last", d, sizes.states(&form)));
    gradients.d_queries.expect_len("d_queries", sizes.keys());
    gradients.d_keys.expect_len("d_keys", sizes.keys());
    gradients.d_values.expect_len("d_values", sizes.values());
    gradients.d_state.expect_len("d_state", sizes.states(&form));
    if gradients.d_queries.is_empty() && gradients.d_values.is_empty() && gradients.d_state.is_empty() {
        return;
    }
    let outputs = [gradients.d_queries, gradients.d_keys, gradients.d_values].map(SharedOut::new);
    let d_state = SharedOut::new(gradients.d_state);
    grid::for_each(sizes.batch * sizes.heads, |task| {
        let mut head = Head::new(&problem, task);
        let chunks: Vec<Chunk> = chunks(sizes.seq_len, start.segments, head.b, head.first_position).collect();
        // The state that each chunk begins with.
        let mut before = Vec::with_capacity(chunks.len() * head.state.len());
        for chunk in &chunks {
            head.enter_keys(chunk);
            before.extend_from_slice(&head.state);
            head.absorb(chunk);
        }
        let len = head.state.len();
        let mut gradient = Gradient::new(&head, d_state_last.map(|d| &d[task * len..][..len]));
        for t in start.segments.length(head.b, sizes.seq_len)..sizes.seq_len {
            for (out, width) in outputs.iter().zip([sizes.key, sizes.key, sizes.value]) {
                // SAFETY: every task writes the gradients of one head of one row, and no other does.
                unsafe { out.slice(problem.at(head.b, t, head.h, width), width) }.fill(MaybeUninit::new(0.0));
            }
        }
        for (i, chunk) in chunks.iter().enumerate().rev() {
            head.state.copy_from_slice(&before[i * len..][..len]);
            head.enter(chunk);
            head.attend(chunk);
            if form.normalized {
                head.sums(chunk);
            }
            gradient.step(&mut head, chunk, d_y, &outputs);
        }
        // SAFETY: a task is a head of a row, whose state no other task writes.
        unsafe { d_state.slice(task * len, len) }.write_copy_of_slice(&gradient.state);
    });
}

struct Problem<'a> {
    level: Level,
    sizes: Sizes,
    form: Form<'a>,
    /// Queries, keys, values.
    inputs: [&'a [f32]; 3],
    start: Start<'a>,
    rotation: Rotation,
}

impl<'a> Problem<'a> {
    fn new(sizes: Sizes, form: Form<'a>, inputs: Inputs<'a>) -> Self {
        let Inputs { queries, keys, values, start } = inputs;
        let inputs = [queries, keys, values];
        expect_len("queries", inputs[0], sizes.keys());
        expect_len("keys", inputs[1], sizes.keys());
        expect_len("values", inputs[2], sizes.values());
        expect_len("decays", form.decays, sizes.heads);
        start.state.inspect(|state| expect_len("state", state, sizes.states(&form)));
        start.positions.inspect(|positions| expect_len("positions", positions, sizes.batch));
        start.segments.expect_fits(sizes.batch, sizes.seq_len);
        // Without steps, the lengths of the slices do not limit K.
        let rotation = Rotation::new(form.features, if inputs[0].is_empty() { 0 } else { sizes.key });
        Self { level: Level::current(), sizes, form, inputs, start, rotation }
    }

    /// A chunk's rows of one head in queries or keys.
    fn rows(&self, x: &'a [f32], chunk: &Chunk, b: usize, h: usize) -> Rows<'a> {
        Rows { data: &x[self.at(b, chunk.first, h, self.sizes.key)..], stride: self.sizes.heads * self.sizes.key }
    }

    /// Where step `t` of head `h` begins in a tensor with `width` channels for each head.
    fn at(&self, b: usize, t: usize, h: usize, width: usize) -> usize {
        ((b * self.sizes.seq_len + t) * self.sizes.heads + h) * width
    }
}
