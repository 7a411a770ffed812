//! Elementary functions of f32, from the sign bit to softplus.

#![allow(clippy::excessive_precision, reason = "the digits are those of the polynomials' source")]

use super::products::{lane_by_lane, mul_add};
use pulp::Simd;

/// √x, with the caller's instruction set. libm's uses SSE whatever the caller uses, and while wide registers are in use Intel's CPUs wait
/// hundreds of cycles for each such instruction.
#[cfg_attr(not(feature = "std"), allow(clippy::disallowed_methods, reason = "there are no wide registers without `std`"))]
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrtf(x)
}

/// The same in f64.
#[cfg_attr(not(feature = "std"), allow(clippy::disallowed_methods, reason = "as above"))]
#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrt(x)
}

/// −x: only the sign bit changes. (pulp's own function, like its |x|, may not be inlined, and a call passes vectors through memory.)
#[inline(always)]
pub fn neg<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    if HAS_BITS || S::F32_LANES > 4 { simd.xor_f32s(x, simd.splat_f32s(-0.0)) } else { lane_by_lane(x, x, |x, _| x ^ SIGN) }
}

/// |x|.
#[inline(always)]
pub fn abs<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    if HAS_BITS || S::F32_LANES > 4 {
        simd.and_f32s(x, simd.splat_f32s(f32::from_bits(!SIGN)))
    } else {
        lane_by_lane(x, x, |x, _| x & !SIGN)
    }
}

/// The bit of an f32's sign.
const SIGN: u32 = 1 << 31;

/// Whether vectors of four lanes are native to the target, so that functions of their bits are instructions.
const HAS_BITS: bool = cfg!(any(target_arch = "aarch64", target_arch = "wasm32"));

/// A gradient carried through time that falls below this has vanished and becomes 0: otherwise it would turn into a subnormal number, which many
/// processors multiply a hundred times more slowly (and the smallest of which, times 0.7, is itself), here and in the products that follow.
pub(crate) const TRACE: f32 = 1e-30;

/// `x`, with 0 in place of numbers closer to 0 than `trace`.
#[inline(always)]
pub(crate) fn without_traces<S: Simd>(simd: S, x: S::f32s, trace: f32) -> S::f32s {
    let vanished = simd.less_than_f32s(abs(simd, x), simd.splat_f32s(trace));
    simd.select_f32s(vanished, simd.splat_f32s(0.0), x)
}

/// e^−|x|: at most 1, so sums and products of a few never overflow. NaN stays NaN.
#[inline(always)]
pub fn exp_neg_abs<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    exp(simd, neg(simd, abs(simd, x)))
}

/// e^−u and 1 − e^−u for u ≥ 0, the second from its series where u is small: the difference would have few correct digits.
#[inline(always)]
pub fn exp_neg<S: Simd>(simd: S, u: S::f32s) -> [S::f32s; 2] {
    const NEAR: f32 = 0.5;
    let one = simd.splat_f32s(1.0);
    let e = exp(simd, neg(simd, u));
    let mut series = one;
    for n in [8.0f32, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] {
        series = mul_add(simd, simd.mul_f32s(u, simd.splat_f32s(-1.0 / n)), series, one);
    }
    let near = simd.less_than_f32s(abs(simd, u), simd.splat_f32s(NEAR));
    [e, simd.select_f32s(near, simd.mul_f32s(u, series), simd.sub_f32s(one, e))]
}

/// e^x.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const LOWEST: f32 = -87.0;
    const HIGHEST: f32 = 88.0;
    // 1.5 · 2²³: adding it rounds to the nearest integer and leaves that integer in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    let s = |value: f32| simd.splat_f32s(value);
    let clamped = simd.min_f32s(simd.max_f32s(x, s(LOWEST)), s(HIGHEST));
    let shifted = mul_add(simd, clamped, s(core::f32::consts::LOG2_E), s(ROUND));
    let n = simd.sub_f32s(shifted, s(ROUND));
    // Reduced from x itself, not from its clamped copy: NaN and +∞ then reach the result.
    let r = mul_add(simd, n, s(-0.693_359_375), x);
    let r = mul_add(simd, n, s(2.121_944_4e-4), r);
    let mut p = s(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = mul_add(simd, p, r, s(c));
    }
    let p = simd.add_f32s(mul_add(simd, p, simd.mul_f32s(r, r), r), s(1.0));
    let exponent = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(127u32.wrapping_sub(ROUND.to_bits())));
    let power = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23)));
    simd.select_f32s(simd.less_than_f32s(x, s(LOWEST)), s(0.0), simd.mul_f32s(p, power))
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    simd.div_f32s(one, simd.add_f32s(one, exp(simd, neg(simd, x))))
}

/// σ(x) and 1 − σ(x), both with full relative accuracy on [−87, 87], since gradients have their product as a factor.
#[inline(always)]
pub fn sigmoid_pair<S: Simd>(simd: S, x: S::f32s) -> [S::f32s; 2] {
    let one = simd.splat_f32s(1.0);
    let small = exp_neg_abs(simd, x);
    let larger = simd.div_f32s(one, simd.add_f32s(one, small));
    let smaller = simd.mul_f32s(small, larger);
    let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
    [simd.select_f32s(negative, smaller, larger), simd.select_f32s(negative, larger, smaller)]
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let far = mul_add(simd, s(2.0), sigmoid(simd, simd.mul_f32s(s(2.0), x)), s(-1.0));
    near_zero_tanh(simd, x, far)
}

/// tanh(x) where x is near 0, and `far` where it is not.
#[inline(always)]
pub(crate) fn near_zero_tanh<S: Simd>(simd: S, x: S::f32s, far: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let square = simd.mul_f32s(x, x);
    // Near 0 the difference of two close numbers would lose the relative accuracy.
    let mut p = s(-5.704_988_7e-3);
    for c in [2.063_908_9e-2, -5.373_971_4e-2, 1.333_144_2e-1, -3.333_328_2e-1] {
        p = mul_add(simd, p, square, s(c));
    }
    let near = mul_add(simd, simd.mul_f32s(p, square), x, x);
    simd.select_f32s(simd.less_than_f32s(abs(simd, x), s(0.625)), near, far)
}

/// Natural logarithm: −∞ for 0, NaN for negative numbers.
#[inline(always)]
pub fn ln<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    /// Makes every subnormal number a normal one.
    const SHIFT: i32 = 23;
    let s = |value: f32| simd.splat_f32s(value);
    let tiny = simd.less_than_f32s(x, s(f32::MIN_POSITIVE));
    let normal = simd.select_f32s(tiny, simd.mul_f32s(x, s((1u32 << SHIFT) as f32)), x);
    let result = ln_of_product(simd, normal, simd.select_f32s(tiny, s(SHIFT as f32), s(0.0)));
    let none = simd.select_f32s(simd.equal_f32s(x, s(0.0)), s(f32::NEG_INFINITY), s(f32::NAN));
    let some = simd.select_f32s(simd.greater_than_f32s(x, s(0.0)), result, none);
    // +∞ and NaN are unchanged.
    simd.select_f32s(simd.less_than_f32s(x, s(f32::INFINITY)), some, x)
}

/// The same, only for normal positive numbers and NaN, such as 1 plus a number between 0 and 1.
#[inline(always)]
pub(crate) fn ln_of_normal<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let positive = simd.greater_than_f32s(x, simd.splat_f32s(0.0));
    simd.select_f32s(positive, ln_of_product(simd, x, simd.splat_f32s(0.0)), x)
}

/// The natural logarithm of x · 2^−`shift`, where x is normal and positive and `shift` a whole number.
#[inline(always)]
fn ln_of_product<S: Simd>(simd: S, x: S::f32s, shift: S::f32s) -> S::f32s {
    let s = |value: f32| simd.splat_f32s(value);
    let bits = simd.transmute_u32s_f32s(x);
    // Mantissa in [√½, √2): subtract the bits of √½ before the exponent is cut off.
    let offset = simd.splat_u32s(core::f32::consts::FRAC_1_SQRT_2.to_bits());
    let from_half = simd.sub_u32s(bits, offset);
    let biased = simd.wrapping_dyn_shr_u32s(from_half, simd.splat_u32s(23));
    let mantissa_bits = simd.add_u32s(simd.and_u32s(from_half, simd.splat_u32s(0x007f_ffff)), offset);
    let m = simd.sub_f32s(simd.transmute_f32s_u32s(mantissa_bits), s(1.0));
    // The exponent as f32: sign-extended from 9 bits by a trip through the mantissa of 2²³.
    let e_bits = simd.and_u32s(simd.add_u32s(biased, simd.splat_u32s(256)), simd.splat_u32s(511));
    let e = simd.sub_f32s(simd.transmute_f32s_u32s(simd.or_u32s(e_bits, simd.splat_u32s(0x4b00_0000))), s(8_388_608.0 + 256.0));
    let e = simd.sub_f32s(e, shift);
    let mut p = s(7.037_683_6e-2);
    for c in
        [-1.151_461e-1, 1.167_699_9e-1, -1.242_014_1e-1, 1.424_932_3e-1, -1.666_805_7e-1, 2.000_071_5e-1, -2.499_999_4e-1, 3.333_333_1e-1]
    {
        p = mul_add(simd, p, m, s(c));
    }
    let square = simd.mul_f32s(m, m);
    let mut y = simd.mul_f32s(simd.mul_f32s(p, m), square);
    y = mul_add(simd, e, s(-2.121_944_4e-4), y);
    y = mul_add(simd, s(-0.5), square, y);
    mul_add(simd, e, s(0.693_359_375), simd.add_f32s(m, y))
}

/// softplus(x) = ln(1 + e^x) and its slope σ(x).
#[inline(always)]
pub fn softplus<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    let e = exp_neg_abs(simd, x);
    let sum = simd.add_f32s(one, e);
    // 1 + e has lost the last bits of a small e; the quotient brings them back.
    let rounded = simd.sub_f32s(sum, one);
    let tiny = simd.equal_f32s(rounded, zero);
    let logarithm = simd.mul_f32s(ln_of_normal(simd, sum), simd.div_f32s(e, simd.select_f32s(tiny, one, rounded)));
    let value = simd.add_f32s(simd.max_f32s(x, zero), simd.select_f32s(tiny, e, logarithm));
    let above = simd.greater_than_f32s(x, zero);
    (value, simd.div_f32s(simd.select_f32s(above, one, e), sum))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::simd::{Level, WithSimd, load, store};

    struct Map<'a, F>(&'a [f32], F);

    trait Function {
        fn apply<S: Simd>(&self, simd: S, x: S::f32s) -> S::f32s;
    }

    impl<F: Function> WithSimd for Map<'_, F> {
        type Output = Vec<f32>;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
            let mut out = Vec::with_capacity(self.0.len());
            let spare = &mut out.spare_capacity_mut()[..self.0.len()];
            for at in (0..self.0.len()).step_by(S::F32_LANES) {
                store(simd, spare, at, self.1.apply(simd, load(simd, self.0, at)));
            }
            // SAFETY: every element was stored above.
            unsafe { out.set_len(self.0.len()) };
            out
        }
    }

    macro_rules! function {
        ($name:ident) => {{
            struct F;
            impl Function for F {
                #[inline(always)]
                fn apply<S: Simd>(&self, simd: S, x: S::f32s) -> S::f32s {
                    $name(simd, x)
                }
            }
            F
        }};
    }

    #[inline(always)]
    fn softplus_value<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        softplus(simd, x).0
    }

    #[inline(always)]
    fn softplus_slope<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
        softplus(simd, x).1
    }

    fn grid(from: f32, to: f32) -> Vec<f32> {
        (0..=20_001).map(|i| from + (to - from) * i as f32 / 20_001.0).collect()
    }

    #[test]
    fn functions_match_f64_on_every_level() {
        macro_rules! check_function {
            ($name:ident, $exact:expr, $inputs:expr, $relative:expr, $absolute:expr) => {{
                for level in Level::available() {
                    let inputs = $inputs;
                    for (x, y) in inputs.iter().zip(level.run(Map(&inputs, function!($name)))) {
                        let expected: f64 = ($exact)(f64::from(*x));
                        let error = (f64::from(y) - expected).abs();
                        assert!(
                            error <= $relative * expected.abs() + $absolute,
                            "{} {}({x}) = {y}, expected {expected}",
                            level.name(),
                            stringify!($name)
                        );
                    }
                }
            }};
        }
        check_function!(exp, f64::exp, grid(-87.0, 88.0), 2.4e-7, 0.0);
        check_function!(sigmoid, |x: f64| 1.0 / (1.0 + (-x).exp()), grid(-80.0, 80.0), 4e-7, 0.0);
        check_function!(tanh, f64::tanh, grid(-12.0, 12.0), 3e-7, 1e-9);
        check_function!(softplus_value, |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p(), grid(-80.0, 80.0), 5e-7, 0.0);
        check_function!(softplus_slope, |x: f64| 1.0 / (1.0 + (-x).exp()), grid(-80.0, 80.0), 4e-7, 0.0);
        check_function!(ln, f64::ln, grid(1e-30, 5.0), 2e-7, 1e-7);
        check_function!(ln, f64::ln, grid(1e-6, 1e30), 2e-7, 1e-7);
        check_function!(ln_of_normal, f64::ln, grid(1.0, 2.0), 2e-7, 1e-7);
        let subnormal = (0..23).flat_map(|bit| [1u32 << bit, (1 << bit) | 1, (2 << bit) - 1]).map(f32::from_bits);
        check_function!(ln, f64::ln, subnormal.clone().collect::<Vec<f32>>(), 2e-7, 0.0);
    }

    #[test]
    fn nan_is_passed_on_and_extremes_keep_their_limits() {
        for level in Level::available() {
            let y = level.run(Map(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -200.0, 200.0], function!(exp)));
            assert!(y[0].is_nan() && y[1] == f32::INFINITY && y[2] == 0.0 && y[3] == 0.0 && y[4] > 1e38, "{}: {y:?}", level.name());
            let y = level.run(Map(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -200.0, 200.0], function!(sigmoid)));
            assert!(y[0].is_nan() && y[1] == 1.0 && y[2] == 0.0 && y[3] == 0.0 && y[4] == 1.0, "{}: {y:?}", level.name());
            let y = level.run(Map(&[0.0, -0.0, 1.0, f32::INFINITY], function!(ln)));
            assert_eq!(y, [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, f32::INFINITY], "{}", level.name());
            let edges = [f32::MIN_POSITIVE, f32::MIN_POSITIVE.next_down(), f32::MAX];
            for (x, y) in edges.iter().zip(level.run(Map(&edges, function!(ln)))) {
                assert!((f64::from(y) - f64::from(*x).ln()).abs() < 2e-5, "{}: ln({x}) = {y}", level.name());
            }
            let y = level.run(Map(&[1.0, f32::NAN], function!(ln_of_normal)));
            assert!(y[0] == 0.0 && y[1].is_nan(), "{}: {y:?}", level.name());
        }
    }

    #[test]
    fn the_logarithm_of_nan_and_of_what_is_below_zero_is_nan() {
        for level in Level::available() {
            let y = level.run(Map(&[f32::NAN, -f32::NAN, -f32::from_bits(1), -1.0, f32::MIN, f32::NEG_INFINITY], function!(ln)));
            assert!(y.iter().all(|y| y.is_nan()), "{}: {y:?}", level.name());
        }
    }
}
