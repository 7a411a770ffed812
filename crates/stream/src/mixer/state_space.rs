//! The state spaces of S4, S4D and H3, discrete:
//!
//! ```text
//! x ← a ⊙ x − g (f · x) + b u      y = c · x + skip u      v · x = 2 Re Σ_n v_n x_n
//! ```
//!
//! with g and f in S4 alone; a, b, g and f follow once from Δ, A, B, P ([`Continuous`]). A session keeps the real parts of x, then the imaginary ones, each `[N/2, D]`.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::simd::{self, Simd, WithSimd, mul_add, neg};
use minrnn_kernels::state_space::{A, B, C, Continuous, F, G};

use crate::Result;
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};

/// State spaces of D channels.
#[derive(Debug, Clone)]
pub(super) struct StateSpace {
    /// `[P, N/2, D]`: real and imaginary parts of a, b, c and, with a rank-one part, g, f.
    parameters: Vec<f32>,
    /// `[D]`.
    skip: Vec<f32>,
    /// N/2.
    half: usize,
    rank_one: bool,
}

impl StateSpace {
    /// `channels` state spaces, each the parameters of `copies` neighbours.
    pub(super) fn read(
        source: &mut dyn Source,
        name: &str,
        [channels, copies]: [usize; 2],
        d_state: usize,
        rank_one: bool,
    ) -> Result<Self> {
        let half = d_state / 2;
        let mut vector = |part: &str, shape: &[usize]| source.vector(&join(name, part), shape);
        let log_dt = vector("log_dt", &[channels])?;
        let (log_a_real, a_imag) = (vector("log_a_real", &[channels, half])?, vector("a_imag", &[channels, half])?);
        let c = vector("c", &[channels, half, 2])?;
        let skip = vector("skip", &[channels])?;
        let low_rank = match rank_one {
            true => Some([vector("p", &[channels, half, 2])?, vector("b", &[channels, half, 2])?]),
            false => None,
        };
        let low_rank = low_rank.as_ref().map(|[p, b]| [&p[..], b]);
        let parameters = Continuous { log_dt: &log_dt, log_a_real: &log_a_real, a_imag: &a_imag, c: &c, low_rank }.discrete(copies);
        let skip = skip.into_iter().flat_map(|skip| core::iter::repeat_n(skip, copies)).collect();
        Ok(Self { parameters, skip, half, rank_one })
    }

    /// D.
    pub(super) fn width(&self) -> usize {
        self.skip.len()
    }

    /// Numbers kept for a session.
    pub(super) fn state_len(&self) -> usize {
        2 * self.half * self.width()
    }

    /// The channels `range` of one token of a session: y of u, both as wide as the range. What is kept begins at `first` of the memory.
    ///
    /// # Safety
    /// Nobody else may be at these channels of the session.
    pub(super) unsafe fn step(
        &self,
        pass: &Pass<'_>,
        (memory, first): (Memory<'_>, usize),
        session: usize,
        range: Range<usize>,
        u: &[f32],
        y: &mut [f32],
    ) {
        pass.level.run(Step { space: self, memory, first, session, range, u, y });
    }
}

struct Step<'a> {
    space: &'a StateSpace,
    memory: Memory<'a>,
    first: usize,
    session: usize,
    range: Range<usize>,
    u: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (half, width, len) = (self.space.half, self.space.width(), self.range.len());
        let parameter = |plane: usize, n: usize, at: usize| {
            let row = (plane * half + n) * width + self.range.start;
            simd::load(simd, &self.space.parameters[row..row + len], at)
        };
        let part = |row: usize| {
            let row = self.first + row * width;
            // SAFETY: the caller's promise; one part is in use at a time.
            unsafe { self.memory.part(self.session, row + self.range.start, row + self.range.end) }
        };
        for at in (0..len).step_by(S::F32_LANES) {
            let u = simd::load(simd, self.u, at);
            let zero = simd.splat_f32s(0.0);
            let mut feedback = zero;
            if self.space.rank_one {
                for n in 0..half {
                    feedback = mul_add(simd, parameter(F, n, at), simd::load(simd, part(n), at), feedback);
                    let im = simd::load(simd, part(half + n), at);
                    feedback = mul_add(simd, neg(simd, parameter(F + 1, n, at)), im, feedback);
                }
                feedback = neg(simd, simd.add_f32s(feedback, feedback));
            }
            let mut sum = zero;
            for n in 0..half {
                let (re, im) = (simd::load(simd, part(n), at), simd::load(simd, part(half + n), at));
                let (a_re, a_im) = (parameter(A, n, at), parameter(A + 1, n, at));
                let mut next_re = mul_add(simd, a_re, re, simd.mul_f32s(parameter(B, n, at), u));
                let mut next_im = mul_add(simd, a_re, im, simd.mul_f32s(parameter(B + 1, n, at), u));
                next_re = mul_add(simd, neg(simd, a_im), im, next_re);
                next_im = mul_add(simd, a_im, re, next_im);
                if self.space.rank_one {
                    next_re = mul_add(simd, parameter(G, n, at), feedback, next_re);
                    next_im = mul_add(simd, parameter(G + 1, n, at), feedback, next_im);
                }
                simd::put(simd, part(n), at, next_re);
                simd::put(simd, part(half + n), at, next_im);
                sum = mul_add(simd, parameter(C, n, at), next_re, sum);
                sum = mul_add(simd, neg(simd, parameter(C + 1, n, at)), next_im, sum);
            }
            let skip = simd::load(simd, &self.space.skip[self.range.clone()], at);
            simd::put(simd, self.y, at, mul_add(simd, skip, u, simd.add_f32s(sum, sum)));
        }
    }
}
