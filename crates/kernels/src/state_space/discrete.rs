//! Discretises a state space in continuous time, x' = A x + B u, sampled at steps of Δ: once, in f64. For the equations see the library's
//! layer of the same name.

use super::{RANK_ONE, SIMPLE};
use crate::shape::{elements, expect_len};
use alloc::vec;
use alloc::vec::Vec;

/// First of the two planes of a, real and imaginary part, among the parameters of a step.
pub const A: usize = 0;
/// Of b.
pub const B: usize = 2;
/// Of c.
pub const C: usize = 4;
/// Of g.
pub const G: usize = 6;
/// Of f.
pub const F: usize = 8;

/// State spaces of some channels in continuous time, as in files; complex numbers are pairs.
#[derive(Debug, Clone, Copy)]
pub struct Continuous<'a> {
    /// ln Δ `[channels]`.
    pub log_dt: &'a [f32],
    /// ln(−Re A) `[channels, N]`.
    pub log_a_real: &'a [f32],
    /// Im A `[channels, N]`.
    pub a_imag: &'a [f32],
    /// c `[channels, N, 2]`.
    pub c: &'a [f32],
    /// P and B of A = Λ − P P*, each `[channels, N, 2]`, discretised by the bilinear rule; without them A is the diagonal Λ, B is 1, and the
    /// input is held.
    pub low_rank: Option<[&'a [f32]; 2]>,
}

impl Continuous<'_> {
    /// The parameters of a step `[P, N, D]` in planes of real and imaginary parts: a, b, c and, with a rank-one part, g and f. Each channel
    /// is repeated for `copies` neighbours, D in total.
    ///
    /// # Panics
    /// When the lengths do not fit each other, or the parameters are more than memory can hold.
    pub fn discrete(&self, copies: usize) -> Vec<f32> {
        let (channels, planes) = (self.log_dt.len(), if self.low_rank.is_some() { RANK_ONE } else { SIMPLE });
        let half = self.states();
        let width = elements([channels, copies]);
        let mut parameters = vec![0.0; elements([planes, half, width])];
        for channel in 0..channels {
            let number = |parts: &[f32], n: usize| [0, 1].map(|part| f64::from(parts[(channel * half + n) * 2 + part]));
            let numbers = |parts: &[f32]| (0..half).map(|n| number(parts, n)).collect::<Vec<_>>();
            let dt = libm::exp(f64::from(self.log_dt[channel]));
            let a_of = |at: usize| [-libm::exp(f64::from(self.log_a_real[at])), f64::from(self.a_imag[at])];
            let a: Vec<Complex> = (channel * half..(channel + 1) * half).map(a_of).collect();
            let discrete = match self.low_rank {
                None => diagonal(&a, dt),
                Some([p, b]) => bilinear(&a, &numbers(p), &numbers(b), dt),
            };
            let mut set = |plane: usize, n: usize, value: Complex| {
                for (part, value) in value.into_iter().enumerate() {
                    let at = ((plane + part) * half + n) * width + channel * copies;
                    parameters[at..at + copies].fill(value as f32);
                }
            };
            for n in 0..half {
                set(C, n, number(self.c, n));
                for (plane, numbers) in [A, B, G, F].into_iter().zip(&discrete) {
                    set(plane, n, numbers[n]);
                }
            }
        }
        parameters
    }

    /// N, after checking all lengths.
    fn states(&self) -> usize {
        let (channels, all) = (self.log_dt.len(), self.a_imag.len());
        assert!(all.is_multiple_of(channels), "a_imag: expected as many numbers for each of {channels} channels of log_dt, found {all}");
        expect_len("log_a_real", self.log_a_real, all);
        expect_len("c", self.c, elements([all, 2]));
        if let Some([p, b]) = self.low_rank {
            expect_len("p", p, elements([all, 2]));
            expect_len("b", b, elements([all, 2]));
        }
        all / channels.max(1)
    }
}

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
