//! Linear state spaces with one input and one output for each channel: a complex diagonal, optionally minus a rank-one part.
//!
//! ```text
//! x_t = a ⊙ x_{t−1} − g (f · x_{t−1}) + b u_t         y_t = c · x_t + skip u_t         v · x = 2 Re Σ_n v_n x_n
//! ```
//!
//! where: x is half of a state whose other half is its conjugate, N complex numbers for each channel; u and y are real. S4D is this without
//! g and f; S4 discretised by the bilinear rule is this with them. Impulse responses need no kernel of their own: K_l = c · x_l for u = 1,
//! 0, 0, …
//!
//! Backward, with γ = ∂L/∂Re x + i ∂L/∂Im x and v̄ the conjugate of v:
//!
//! ```text
//! γ ← γ + 2 ȳ c̄       dc += 2 ȳ x̄_t      du = skip ȳ + Re Σ b̄ γ     db += u γ     da += x̄_{t−1} γ
//! s = f · x_{t−1}     ds = −Re Σ ḡ γ     dg −= s γ                  df += 2 ds x̄_{t−1}
//! γ ← ā γ + 2 ds f̄
//! ```
//!
//! A reset sets x to 0. Departures from the loop over single numbers: a vector holds one state of as many channels as it has lanes, so that
//! sums over n need no horizontal step; without g and f two states at a time go through a block of steps, in registers; with them the
//! states stay in the nearest cache; backward stores states only at the borders of blocks of steps and recomputes those in between, so
//! nothing of size `[B, T, N, D]` exists.

mod discrete;
mod steps;
mod walk;

use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::rows;
use crate::segments::Segments;
use crate::shape::{Shape, elements, expect_len};
use crate::simd::Level;
use alloc::vec;
pub use discrete::{A, B, C, Continuous, F, G};
use steps::{Backward, Forward};
pub use walk::{Sequence, walk};

/// Planes of the parameters without a rank-one part: real and imaginary parts of a, b and c.
pub const SIMPLE: usize = 6;
/// Planes of the parameters with a rank-one part: those of [`SIMPLE`], then those of g and f.
pub const RANK_ONE: usize = 10;

/// Channels of one task.
const CHANNELS: usize = 16;
/// Rows of one task, whose gradients of the parameters are summed in f32.
const ROWS: usize = 8;

/// The sizes of a channel's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// N, complex states of a channel.
    pub states: usize,
    /// P: [`SIMPLE`] or [`RANK_ONE`].
    pub planes: usize,
}

/// The inputs of both directions.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[B, T, D]`.
    pub shape: Shape,
    /// N and P.
    pub form: Form,
    /// `[B, T, D]`.
    pub u: &'a [f32],
    /// `[P, N, D]`: real parts, then imaginary parts, of a, b, c and, with a rank-one part, g, f.
    pub parameters: &'a [f32],
    /// `[D]`.
    pub skip: &'a [f32],
    /// The carried state `[B, 2N, D]`, real parts, then imaginary parts; `None` is 0.
    pub x0: Option<&'a [f32]>,
    /// Which steps are real and where the state is reset.
    pub segments: Segments<'a>,
}

impl Inputs<'_> {
    /// Elements of a state of all rows.
    fn states(&self) -> usize {
        elements([self.shape.batch, 2, self.form.states, self.shape.width])
    }

    fn check(&self) {
        let Form { states, planes } = self.form;
        assert!(planes == SIMPLE || planes == RANK_ONE, "planes: expected {SIMPLE} or {RANK_ONE}, found {planes}");
        expect_len("u", self.u, self.shape.elements());
        expect_len("parameters", self.parameters, elements([planes, states, self.shape.width]));
        expect_len("skip", self.skip, self.shape.width);
        self.x0.inspect(|x0| expect_len("x0", x0, self.states()));
        self.segments.expect_fits(self.shape.batch, self.shape.seq_len);
    }

    /// Tasks along the rows and along the channels.
    fn grid(&self) -> [usize; 2] {
        [self.shape.batch.div_ceil(ROWS), self.shape.width.div_ceil(CHANNELS)]
    }

    /// Rows and channels of a task.
    fn task(&self, i: usize) -> [core::ops::Range<usize>; 2] {
        let [_, across] = self.grid();
        let cut = |i: usize, size: usize, end: usize| i * size..((i + 1) * size).min(end);
        [cut(i / across, ROWS, self.shape.batch), cut(i % across, CHANNELS, self.shape.width)]
    }
}

/// Outputs of every step and the last state.
///
/// # Shapes
/// `y` `[B, T, D]`, `x_last` `[B, 2N, D]`. At padding y is 0 and the state is unchanged.
///
/// # Panics
/// When a length does not fit.
pub fn forward(inputs: Inputs<'_>, y: Out, x_last: Out) {
    inputs.check();
    y.expect_len("y", inputs.shape.elements());
    x_last.expect_len("x_last", inputs.states());
    let inputs = Inputs { shape: inputs.shape.with_rows_of(y.len() + x_last.len()), ..inputs };
    let [down, across] = inputs.grid();
    let (level, y, x_last) = (Level::current(), SharedOut::new(y), SharedOut::new(x_last));
    grid::for_each(down * across, |i| {
        let [rows, channels] = inputs.task(i);
        match inputs.form.planes {
            SIMPLE => level.run(Forward::<SIMPLE> { inputs, rows, channels, y, x_last }),
            _ => level.run(Forward::<RANK_ONE> { inputs, rows, channels, y, x_last }),
        }
    });
}

/// Gradients of everything, given those of `y` and `x_last` (`None` is 0).
///
/// # Shapes
/// `d_u` `[B, T, D]`, `d_parameters` `[P, N, D]`, `d_skip` `[D]`, `d_x0` `[B, 2N, D]`
///
/// # Panics
/// When a length does not fit.
pub fn backward(inputs: Inputs<'_>, d_y: Option<&[f32]>, d_x_last: Option<&[f32]>, d_u: Out, d_parameters: Out, d_skip: Out, d_x0: Out) {
    inputs.check();
    d_y.inspect(|d| expect_len("d_y", d, inputs.shape.elements()));
    d_x_last.inspect(|d| expect_len("d_x_last", d, inputs.states()));
    d_u.expect_len("d_u", inputs.shape.elements());
    d_parameters.expect_len("d_parameters", inputs.parameters.len());
    d_skip.expect_len("d_skip", inputs.shape.width);
    d_x0.expect_len("d_x0", inputs.states());
    let inputs = Inputs { shape: inputs.shape.with_rows_of(d_u.len() + d_x0.len()), ..inputs };
    let [down, across] = inputs.grid();
    // Sums of the rows of a task: of all channels, parameters then skip.
    let sums = inputs.parameters.len() + inputs.shape.width;
    let mut partial = vec![0.0; down * sums];
    {
        let (level, partial) = (Level::current(), SharedOut::new(&mut partial));
        let (d_u, d_x0) = (SharedOut::new(d_u), SharedOut::new(d_x0));
        grid::for_each(down * across, |i| {
            let [rows, channels] = inputs.task(i);
            let first_sum = i / across * sums;
            match inputs.form.planes {
                SIMPLE => level.run(Backward::<SIMPLE> { inputs, rows, channels, d_y, d_x_last, d_u, d_x0, partial, first_sum }),
                _ => level.run(Backward::<RANK_ONE> { inputs, rows, channels, d_y, d_x_last, d_u, d_x0, partial, first_sum }),
            }
        });
    }
    rows::combine(&partial, sums, 0, d_parameters);
    rows::combine(&partial, sums, inputs.parameters.len(), d_skip);
}
