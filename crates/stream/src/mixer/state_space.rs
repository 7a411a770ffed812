//! The state spaces of S4, S4D and H3, discrete:
//!
//! ```text
//! x ← a ⊙ x − g (f · x) + b u      y = c · x + skip u      v · x = 2 Re Σ_n v_n x_n
//! ```
//!
//! with g and f in S4 alone. How a, b, g and f follow from Δ, A, B, P is told in the library's layer of the same name; here it is done
//! once, in f64. A session keeps the real parts of x, then the imaginary ones, each `[N/2, D]`.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::simd::{self, Simd, WithSimd, mul_add};

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

const A: usize = 0;
const B: usize = 2;
const C: usize = 4;
const G: usize = 6;
const F: usize = 8;

type Complex = [f64; 2];

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn scaled([a, b]: Complex, factor: f64) -> Complex {
    [a * factor, b * factor]
}

fn over([a, b]: Complex, [c, d]: Complex) -> Complex {
    scaled(times([a, b], [c, -d]), 1.0 / (c * c + d * d))
}

/// 2 Re Σ_n of the products.
fn dot(x: &[Complex], y: &[Complex]) -> f64 {
    2.0 * x.iter().zip(y).map(|(&x, &y)| times(x, y)[0]).sum::<f64>()
}

/// e^z − 1.
fn exp_minus_one([x, y]: Complex) -> Complex {
    let (grown, sine) = (libm::expm1(x), libm::sin(y / 2.0));
    [grown * libm::cos(y) - 2.0 * sine * sine, (grown + 1.0) * libm::sin(y)]
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
        let width = channels * copies;
        let mut parameters = vec![0.0; if rank_one { 10 } else { 6 } * half * width];
        for channel in 0..channels {
            let number = |parts: &[f32], n: usize| [0, 1].map(|part| f64::from(parts[(channel * half + n) * 2 + part]));
            let dt = libm::exp(f64::from(log_dt[channel]));
            let a: Vec<Complex> =
                (0..half).map(|n| [-libm::exp(f64::from(log_a_real[channel * half + n])), f64::from(a_imag[channel * half + n])]).collect();
            let discrete = match &low_rank {
                None => diagonal(&a, dt),
                Some(parts) => {
                    let [p, b] = [0, 1].map(|i| (0..half).map(|n| number(&parts[i], n)).collect::<Vec<_>>());
                    bilinear(&a, &p, &b, dt)
                }
            };
            let mut set = |plane: usize, n: usize, value: Complex| {
                for (part, value) in value.into_iter().enumerate() {
                    let at = ((plane + part) * half + n) * width + channel * copies;
                    parameters[at..at + copies].fill(value as f32);
                }
            };
            for n in 0..half {
                set(C, n, number(&c, n));
                for (plane, numbers) in [A, B, G, F].into_iter().zip(&discrete) {
                    set(plane, n, numbers[n]);
                }
            }
        }
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

/// ā and b̄ of the zero-order hold.
fn diagonal(a: &[Complex], dt: f64) -> Vec<Vec<Complex>> {
    let grown: Vec<Complex> = a.iter().map(|&a| exp_minus_one(scaled(a, dt))).collect();
    let b = grown.iter().zip(a).map(|(&grown, &a)| over(grown, a)).collect();
    vec![grown.iter().map(|&[re, im]| [1.0 + re, im]).collect(), b]
}

/// a, b, g and f of the bilinear rule for A = Λ − P P*.
fn bilinear(lambda: &[Complex], p: &[Complex], b: &[Complex], dt: f64) -> Vec<Vec<Complex>> {
    let half: Vec<Complex> = lambda.iter().map(|&lambda| scaled(lambda, dt / 2.0)).collect();
    let e: Vec<Complex> = half.iter().map(|&[re, im]| over([1.0, 0.0], [1.0 - re, -im])).collect();
    let a: Vec<Complex> = e.iter().zip(&half).map(|(&e, &[re, im])| times(e, [1.0 + re, im])).collect();
    let g: Vec<Complex> = e.iter().zip(p).map(|(&e, &p)| scaled(times(e, p), dt / 2.0)).collect();
    let conjugate: Vec<Complex> = p.iter().map(|&[re, im]| [re, -im]).collect();
    let kappa = 1.0 + dot(&conjugate, &g);
    let g: Vec<Complex> = g.into_iter().map(|g| scaled(g, 1.0 / kappa)).collect();
    let b: Vec<Complex> = e.iter().zip(b).map(|(&e, &b)| scaled(times(e, b), dt)).collect();
    let through = dot(&conjugate, &b);
    let b = b.iter().zip(&g).map(|(b, g)| [b[0] - g[0] * through, b[1] - g[1] * through]).collect();
    let f = conjugate.iter().zip(&a).map(|(&p, &[re, im])| times(p, [1.0 + re, im])).collect();
    vec![a, b, g, f]
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
                    feedback = mul_add(simd, simd.neg_f32s(parameter(F + 1, n, at)), im, feedback);
                }
                feedback = simd.neg_f32s(simd.add_f32s(feedback, feedback));
            }
            let mut sum = zero;
            for n in 0..half {
                let (re, im) = (simd::load(simd, part(n), at), simd::load(simd, part(half + n), at));
                let (a_re, a_im) = (parameter(A, n, at), parameter(A + 1, n, at));
                let mut next_re = mul_add(simd, a_re, re, simd.mul_f32s(parameter(B, n, at), u));
                let mut next_im = mul_add(simd, a_re, im, simd.mul_f32s(parameter(B + 1, n, at), u));
                next_re = mul_add(simd, simd.neg_f32s(a_im), im, next_re);
                next_im = mul_add(simd, a_im, re, next_im);
                if self.space.rank_one {
                    next_re = mul_add(simd, parameter(G, n, at), feedback, next_re);
                    next_im = mul_add(simd, parameter(G + 1, n, at), feedback, next_im);
                }
                simd::put(simd, part(n), at, next_re);
                simd::put(simd, part(half + n), at, next_im);
                sum = mul_add(simd, parameter(C, n, at), next_re, sum);
                sum = mul_add(simd, simd.neg_f32s(parameter(C + 1, n, at)), next_im, sum);
            }
            let skip = simd::load(simd, &self.space.skip[self.range.clone()], at);
            simd::put(simd, self.y, at, mul_add(simd, skip, u, simd.add_f32s(sum, sum)));
        }
    }
}
