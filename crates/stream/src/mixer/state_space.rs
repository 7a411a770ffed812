//! The discrete state spaces of S4, S4D and H3, as in [`minrnn_kernels::state_space`], with g and f in S4 only; a, b, g and f are computed
//! once from Δ, A, B, P ([`Continuous`]). A session keeps the real parts of x, then the imaginary ones, each `[N/2, D]`.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::simd::{self, Simd, WithSimd};
use minrnn_kernels::state_space::{Continuous, Form, RANK_ONE, SIMPLE, Sequence, walk};

use crate::Result;
use crate::pass::{Memory, Pass, Span};
use crate::shared::Shared;
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
    /// P.
    planes: usize,
}

impl StateSpace {
    /// Reads the parameters of `channels` state spaces, each shared by `copies` neighbouring channels.
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
        Ok(Self { parameters, skip, half, planes: if rank_one { RANK_ONE } else { SIMPLE } })
    }

    /// D.
    pub(super) fn width(&self) -> usize {
        self.skip.len()
    }

    /// Numbers kept for a session.
    pub(super) fn state_len(&self) -> usize {
        2 * self.half * self.width()
    }

    /// Computes the channels `range` of y from those of u for the tokens of `span`. What is kept begins at `first` of the memory.
    ///
    /// # Safety
    /// Nothing else may use these channels of the session, of u and of y.
    pub(super) unsafe fn forward(
        &self,
        pass: &Pass<'_>,
        (memory, first): (Memory<'_>, usize),
        span: Span,
        range: Range<usize>,
        [u, y]: [Shared<'_>; 2],
    ) {
        pass.level.run(Forward { space: self, memory, first, span, range, u, y });
    }
}

struct Forward<'a> {
    space: &'a StateSpace,
    memory: Memory<'a>,
    first: usize,
    span: Span,
    range: Range<usize>,
    u: Shared<'a>,
    y: Shared<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let steps = self.span.first..self.span.first + self.span.len;
        let form = Form { states: self.space.half, planes: self.space.planes };
        for at in (0..self.range.len()).step_by(S::F32_LANES) {
            walk(simd, form, steps.clone(), &mut Lanes { simd, forward: &self, at });
        }
    }
}

/// As many channels as a vector holds, from channel `at` of the range on.
struct Lanes<'a, S> {
    simd: S,
    forward: &'a Forward<'a>,
    at: usize,
}

impl<S: Simd> Lanes<'_, S> {
    /// The channels of the range in row `row` of what is kept.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "a part is put away before the next one is taken")]
    fn kept(&self, row: usize) -> &mut [f32] {
        let Forward { space, memory, first, span, range, .. } = self.forward;
        let row = first + row * space.width();
        // SAFETY: the caller's promise; one part is in use at a time.
        unsafe { memory.part(span.session, row + range.start, row + range.end) }
    }
}

impl<S: Simd> Sequence<S> for Lanes<'_, S> {
    #[inline(always)]
    fn parameter(&self, plane: usize, n: usize) -> S::f32s {
        let Forward { space, range, .. } = self.forward;
        let row = (plane * space.half + n) * space.width();
        simd::load(self.simd, &space.parameters[row + range.start..row + range.end], self.at)
    }

    #[inline(always)]
    fn skip(&self) -> S::f32s {
        simd::load(self.simd, &self.forward.space.skip[self.forward.range.clone()], self.at)
    }

    #[inline(always)]
    fn u(&self, row: usize) -> S::f32s {
        let Forward { u, range, .. } = self.forward;
        // SAFETY: the caller's promise; one part is in use at a time.
        simd::load(self.simd, unsafe { u.part(row, range.clone()) }, self.at)
    }

    #[inline(always)]
    fn set_y(&mut self, row: usize, y: S::f32s) {
        let Forward { y: rows, range, .. } = self.forward;
        // SAFETY: the caller's promise; one part is in use at a time.
        simd::put(self.simd, unsafe { rows.part(row, range.clone()) }, self.at, y);
    }

    #[inline(always)]
    fn x(&self, n: usize) -> [S::f32s; 2] {
        let re = simd::load(self.simd, self.kept(n), self.at);
        [re, simd::load(self.simd, self.kept(self.forward.space.half + n), self.at)]
    }

    #[inline(always)]
    fn set_x(&mut self, n: usize, [re, im]: [S::f32s; 2]) {
        simd::put(self.simd, self.kept(n), self.at, re);
        simd::put(self.simd, self.kept(self.forward.space.half + n), self.at, im);
    }
}
