//! minLSTM: h_t = f' h_{t−1} + i' h̃_t with f = σ(p), i = σ(q), h̃ = candidate(v) (Feng et al. 2024, §3.2).
//!
//! Backward, with G_t = ∂L/∂h_t + f'_{t+1} G_{t+1}. Normalised: s = G (h_{t−1} − h̃) f' i', dp = s (1 − f), dq = −s (1 − i).
//! Unnormalised: dp = G h_{t−1} f (1 − f), dq = G h̃ i (1 − i). Both: dv = G i' h̃'(v).

use super::super::candidate::Activation;
use super::super::formulas::Formulas;
use super::super::gate::{Leak, Mixture, Sum};
use crate::simd::{exp_neg_abs, neg};
use pulp::Simd;

/// σ(x) as numerator / divisor, with numerator e^x below 0 and 1 above, divisor 1 + e^−|x|.
#[derive(Clone, Copy)]
struct Fraction<S: Simd> {
    numerator: S::f32s,
    /// Numerator of 1 − σ(x).
    rest: S::f32s,
    divisor: S::f32s,
}

impl<S: Simd> Fraction<S> {
    #[inline(always)]
    fn sigmoid(simd: S, x: S::f32s) -> Self {
        let one = simd.splat_f32s(1.0);
        let e = exp_neg_abs(simd, x);
        let above = simd.greater_than_or_equal_f32s(x, simd.splat_f32s(0.0));
        Self { numerator: simd.select_f32s(above, one, e), rest: simd.select_f32s(above, e, one), divisor: simd.add_f32s(one, e) }
    }
}

/// f' = f / (f + i), i' = i / (f + i); inputs v, p and q.
#[derive(Clone, Copy)]
pub struct Normalized<A>(pub A);

/// What both passes need of one normalised step before the division.
struct Shares<S: Simd> {
    forget: Fraction<S>,
    input: Fraction<S>,
    /// f' : i' = keep : take.
    keep: S::f32s,
    take: S::f32s,
    total: S::f32s,
}

impl<S: Simd> Shares<S> {
    /// f' = keep / (keep + take), where keep and take are the gates' numerators, each times the other's divisor.
    ///
    /// Two gates far below 0 would give 0 / 0. There σ(x) = e^x to f32's last bit, so only p − q counts and both are moved up together.
    #[inline(always)]
    fn new(simd: S, p: S::f32s, q: S::f32s) -> Self {
        const FAR: f32 = 20.0;
        let beyond = simd.add_f32s(simd.max_f32s(p, q), simd.splat_f32s(FAR));
        let shift = simd.min_f32s(beyond, simd.splat_f32s(0.0));
        let forget = Fraction::sigmoid(simd, simd.sub_f32s(p, shift));
        let input = Fraction::sigmoid(simd, simd.sub_f32s(q, shift));
        let keep = simd.mul_f32s(forget.numerator, input.divisor);
        let take = simd.mul_f32s(input.numerator, forget.divisor);
        Self { forget, input, keep, take, total: simd.add_f32s(keep, take) }
    }

    #[inline(always)]
    fn leak(&self, simd: S, per_total: S::f32s) -> Leak<S> {
        let small = simd.mul_f32s(simd.min_f32s(self.keep, self.take), per_total);
        Leak::new(simd, small, simd.greater_than_f32s(self.keep, self.take))
    }
}

impl<A: Activation> Formulas<3> for Normalized<A> {
    const PARTS: usize = 3;
    type Gate<S: Simd> = Mixture<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, [v, p, q]: [S::f32s; 3]) -> Mixture<S> {
        let shares = Shares::new(simd, p, q);
        let (e, divisor) = self.0.divisor(simd, v);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), simd.mul_f32s(shares.total, divisor));
        let candidate = self.0.value(simd, v, e, simd.mul_f32s(inverse, shares.total));
        Mixture { leak: shares.leak(simd, simd.mul_f32s(inverse, divisor)), candidate }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, [v, p, q]: [S::f32s; 3], before: S::f32s) -> ([S::f32s; 3], Mixture<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let shares = Shares::new(simd, p, q);
        let (e, candidate_divisor) = self.0.divisor(simd, v);
        // One division for the four divisors.
        let divisors = mul(shares.forget.divisor, shares.input.divisor);
        let others = mul(shares.total, candidate_divisor);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), mul(divisors, others));
        let (per_divisors, per_others) = (mul(inverse, others), mul(inverse, divisors));
        let per_total = mul(per_others, candidate_divisor);
        let candidate_inverse = mul(per_others, shares.total);

        let candidate = self.0.value(simd, v, e, candidate_inverse);
        let slope = self.0.slope(simd, v, candidate, e, candidate_inverse);
        let (keep, take) = (mul(shares.keep, per_total), mul(shares.take, per_total));
        let s = mul(simd.sub_f32s(before, candidate), mul(keep, take));
        let of_p = mul(s, mul(shares.forget.rest, mul(per_divisors, shares.input.divisor)));
        let of_q = neg(simd, mul(s, mul(shares.input.rest, mul(per_divisors, shares.forget.divisor))));
        ([mul(take, slope), of_p, of_q], Mixture { leak: shares.leak(simd, per_total), candidate })
    }
}

/// f and i as they are; inputs v, p and q.
#[derive(Clone, Copy)]
pub struct Unnormalized<A>(pub A);

/// Everything that both passes need of one step with unnormalised gates.
struct Parts<S: Simd> {
    leak: Leak<S>,
    candidate: S::f32s,
    slope: S::f32s,
    input: S::f32s,
    /// f (1 − f) and i (1 − i).
    gate_slopes: [S::f32s; 2],
}

impl<A: Activation> Unnormalized<A> {
    #[inline(always)]
    fn parts<S: Simd>(self, simd: S, [v, p, q]: [S::f32s; 3]) -> Parts<S> {
        let mul = |x, y| simd.mul_f32s(x, y);
        let (forget, input) = (Fraction::sigmoid(simd, p), Fraction::sigmoid(simd, q));
        let (e, candidate_divisor) = self.0.divisor(simd, v);
        // One division for the three divisors.
        let gates = mul(forget.divisor, input.divisor);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), mul(gates, candidate_divisor));
        let per_gates = mul(inverse, candidate_divisor);
        let (per_forget, per_input) = (mul(per_gates, input.divisor), mul(per_gates, forget.divisor));
        let candidate_inverse = mul(inverse, gates);
        let candidate = self.0.value(simd, v, e, candidate_inverse);
        let (f, not_f) = (mul(forget.numerator, per_forget), mul(forget.rest, per_forget));
        let (i, not_i) = (mul(input.numerator, per_input), mul(input.rest, per_input));
        Parts {
            leak: Leak::new(simd, simd.min_f32s(f, not_f), simd.greater_than_f32s(f, not_f)),
            candidate,
            slope: self.0.slope(simd, v, candidate, e, candidate_inverse),
            input: i,
            gate_slopes: [mul(f, not_f), mul(i, not_i)],
        }
    }
}

impl<A: Activation> Formulas<3> for Unnormalized<A> {
    const PARTS: usize = 3;
    type Gate<S: Simd> = Sum<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> Sum<S> {
        let parts = self.parts(simd, x);
        Sum { leak: parts.leak, value: simd.mul_f32s(parts.input, parts.candidate) }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 3], before: S::f32s) -> ([S::f32s; 3], Sum<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let parts = self.parts(simd, x);
        let slopes = [mul(parts.input, parts.slope), mul(before, parts.gate_slopes[0]), mul(parts.candidate, parts.gate_slopes[1])];
        (slopes, Sum { leak: parts.leak, value: mul(parts.input, parts.candidate) })
    }
}
