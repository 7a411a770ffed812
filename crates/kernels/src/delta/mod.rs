//! An associative memory updated by the delta rule, beyond the paper (fast weights: Schlag et al. 2021, arXiv:2102.11174): for each head,
//!
//! ```text
//! k̂_t = k_t / √(‖k_t‖² + ε)      β_t = σ(b_t)
//! u_t = β_t (v_t − S_{t−1} k̂_t)   S_t = S_{t−1} + u_t k̂_tᵀ      y_t = S_t q_t
//! ```
//!
//! where: S is the memory (n × n), q query, k key, v value, β the share of the error that is corrected, ε = 1e-6. With β = 1 the value at a
//! key is replaced by v_t; a reset empties the memory. A key whose squares overflow makes the memory NaN: treating it as a key of length 0
//! would silently leave the memory as it is.
//!
//! Backward, with D the gradient on S_t (from later steps, plus d_y q_tᵀ):
//!
//! ```text
//! dq = Sᵀ_t d_y      du = D k̂      dv = β du      dβ = duᵀ (v − S_{t−1} k̂)
//! dk̂ = Dᵀ u − β Sᵀ_{t−1} du        D_{t−1} = D − β du k̂ᵀ      dk = (dk̂ − k̂ (k̂ᵀ dk̂)) / √(‖k‖² + ε)
//! ```
//!
//! The memory is stored transposed, row j being the value for coordinate j of a key, so that both products and the correction run along
//! vectors. Rows of S are independent: a vector of value coordinates goes through a whole step by itself. Each head of a sequence is a
//! task. Its backward pass stores the memory every 16 steps and recomputes the states in between, chunk by chunk.

mod backward;
mod step;

pub use backward::backward;
pub use step::step;

use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::segments::{PADDING, RESET, Segments};
use crate::shape::{elements, expect_len};
use crate::simd::{Level, Simd, WithSimd};
use core::mem::MaybeUninit;
use step::{Input, advance};

/// ε under the root in a key's length.
pub const EPS: f32 = 1e-6;
/// Steps whose states are kept together in the backward pass.
pub const CHUNK: usize = 16;

/// Sizes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// `B`, number of sequences.
    pub batch: usize,
    /// `T`, steps per sequence.
    pub seq_len: usize,
    /// `H`, number of heads.
    pub heads: usize,
    /// `n`, width of a head's queries, keys and values.
    pub head_width: usize,
}

impl Sizes {
    /// `E = H · n`.
    ///
    /// # Panics
    /// When that is more than memory can hold; the other methods do too.
    pub fn width(&self) -> usize {
        elements([self.heads, self.head_width])
    }

    /// Numbers of a step of the input, `3E + H`.
    pub fn inputs(&self) -> usize {
        3 * self.width() + self.heads
    }

    /// Numbers of a sequence's memory, `H · n · n`.
    pub fn memory(&self) -> usize {
        elements([self.heads, self.head_width, self.head_width])
    }

    fn steps(&self) -> usize {
        elements([self.batch, self.seq_len])
    }
}

/// The inputs of every step, and the initial memory.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[B, T, 3E + H]` with rows `[q | k | v | b]`.
    pub x: &'a [f32],
    /// `[B, H, n, n]`, the carried memory, row j of a head being the value for coordinate j of a key; `None` is 0.
    pub memory: Option<&'a [f32]>,
    /// Which steps are real, and before which ones the memory is emptied.
    pub segments: Segments<'a>,
}

impl<'a> Inputs<'a> {
    fn check(&self, sizes: Sizes) {
        expect_len("x", self.x, elements([sizes.steps(), sizes.inputs()]));
        self.memory.inspect(|memory| expect_len("memory", memory, elements([sizes.batch, sizes.memory()])));
        self.segments.expect_fits(sizes.batch, sizes.seq_len);
    }

    fn head(&self, sizes: Sizes, task: usize) -> Head<'a> {
        let (b, head) = (task / sizes.heads, task % sizes.heads);
        let row = sizes.seq_len * sizes.inputs();
        let n = sizes.head_width;
        Head {
            sizes,
            b,
            head,
            x: &self.x[b * row..(b + 1) * row],
            memory: self.memory.map(|memory| &memory[task * n * n..(task + 1) * n * n]),
            codes: self.segments.row(b, sizes.seq_len),
        }
    }
}

/// One head of one sequence.
#[derive(Clone, Copy)]
struct Head<'a> {
    sizes: Sizes,
    b: usize,
    head: usize,
    /// `[T, 3E + H]`
    x: &'a [f32],
    memory: Option<&'a [f32]>,
    codes: Option<&'a [i32]>,
}

impl<'a> Head<'a> {
    /// Real steps.
    fn len(&self) -> usize {
        let padding = self.codes.and_then(|codes| codes.iter().position(|&code| code == PADDING));
        padding.unwrap_or(self.sizes.seq_len)
    }

    fn is_reset(&self, t: usize) -> bool {
        self.codes.is_some_and(|codes| codes[t] == RESET)
    }

    /// Where q, k, v and b of this head begin in a row of the input.
    fn places(&self) -> [usize; 4] {
        let (e, first) = (self.sizes.width(), self.head * self.sizes.head_width);
        [first, e + first, 2 * e + first, 3 * e + self.head]
    }

    #[inline(always)]
    fn input<S: Simd>(&self, simd: S, t: usize) -> Input<'a> {
        let (n, row) = (self.sizes.head_width, &self.x[t * self.sizes.inputs()..][..self.sizes.inputs()]);
        let [q, k, v, b] = self.places();
        Input::new(simd, [&row[q..q + n], &row[k..k + n], &row[v..v + n]], row[b])
    }
}

/// Writes y `[B, T, E]` (0 at padding) and the memory after each sequence `[B, H, n, n]`.
///
/// # Panics
/// When a length does not fit `sizes`.
pub fn forward(sizes: Sizes, inputs: Inputs, y: Out, memory: Out) {
    inputs.check(sizes);
    y.expect_len("y", elements([sizes.steps(), sizes.width()]));
    memory.expect_len("the memory after", elements([sizes.batch, sizes.memory()]));
    if y.is_empty() && memory.is_empty() {
        return;
    }
    let (level, n) = (Level::current(), sizes.head_width);
    let [y, memory] = [y, memory].map(SharedOut::new);
    grid::for_each(sizes.batch * sizes.heads, |task| {
        let head = inputs.head(sizes, task);
        // SAFETY: tasks have heads of their own.
        let after = unsafe { memory.slice(task * n * n, n * n) };
        match head.memory {
            Some(memory) => {
                after.write_copy_of_slice(memory);
            }
            None => after.fill(MaybeUninit::new(0.0)),
        }
        // SAFETY: written just now.
        let memory = unsafe { core::slice::from_raw_parts_mut(after.as_mut_ptr().cast(), n * n) };
        level.run(Forward { head, memory, y });
    });
}

struct Forward<'a> {
    head: Head<'a>,
    memory: &'a mut [f32],
    y: SharedOut,
}

impl Forward<'_> {
    /// Where the output of step `t` goes.
    fn y<'b>(&self, t: usize) -> Slots<'b> {
        let Sizes { seq_len, head_width, .. } = self.head.sizes;
        let at = (self.head.b * seq_len + t) * self.head.sizes.width() + self.head.head * head_width;
        // SAFETY: tasks have heads of their own.
        unsafe { self.y.slice(at, head_width) }
    }
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let len = self.head.len();
        for t in 0..len {
            if self.head.is_reset(t) {
                self.memory.fill(0.0);
            }
            let y = Some(self.y(t));
            advance(simd, &self.head.input(simd, t), self.memory, y);
        }
        for t in len..self.head.sizes.seq_len {
            self.y(t).fill(MaybeUninit::new(0.0));
        }
    }
}
