//! RG-LRU, the recurrence of Griffin (De et al. 2024, arXiv:2402.19427, §2.4): h_t = a_t h_{t−1} + √(1 − a_t²) i_t x_t with the input gate
//! i = σ(k) and a = e^{−u}, u = c ρ for the recurrence gate ρ = σ(r) and the rate c ≥ 0 of a channel.
//!
//! r = +∞ marks a step that forgets everything: a = 0, and i x enters unscaled.
//!
//! Backward, with G_t = ∂L/∂h_t + a_{t+1} G_{t+1}, β = √(1 − a²) and du = G (a² i x / β − a h_{t−1}): dx = G β i, dk = G β x i (1 − i),
//! dr = du c ρ (1 − ρ), dc = Σ du ρ. In du, 1/β is limited to 2000, as in the released code: the slope of a square root is unbounded.

use super::super::formulas::Formulas;
use super::super::gate::{Leak, Sum};
use crate::simd::{exp_neg, sigmoid_pair};
use crate::softplus::softplus;
use pulp::Simd;

/// The smallest β that gradients are divided by.
pub const LEAST_ROOT: f32 = 5e-4;
/// The sharpness of RG-LRU: the factor 8 in the rate of a channel.
pub const RG_LRU_SHARPNESS: f64 = 8.0;

/// The rate c = 8 softplus(Λ) of a channel of RG-LRU.
pub fn rg_lru_rate(lambda: f32) -> f32 {
    RG_LRU_SHARPNESS as f32 * softplus(lambda)
}

/// Inputs x, r, k and c, the last one a number per channel.
#[derive(Clone, Copy)]
pub struct RgLru;

/// What both passes need of one step.
struct Step<S: Simd> {
    a: S::f32s,
    leak: Leak<S>,
    /// β
    root: S::f32s,
    /// ρ and 1 − ρ.
    rho: [S::f32s; 2],
    /// i and 1 − i.
    input: [S::f32s; 2],
}

impl<S: Simd> Step<S> {
    #[inline(always)]
    fn new(simd: S, [_, r, k, c]: [S::f32s; 4]) -> Self {
        let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
        let rho = sigmoid_pair(simd, r);
        let [e, missing] = exp_neg(simd, simd.mul_f32s(c, rho[0]));
        let forgets = simd.greater_than_or_equal_f32s(r, simd.splat_f32s(f32::INFINITY));
        let (a, missing) = (simd.select_f32s(forgets, zero, e), simd.select_f32s(forgets, one, missing));
        // 1 − a² = (1 − a) (1 + a), exact where a is close to 1.
        let root = simd.sqrt_f32s(simd.mul_f32s(missing, simd.add_f32s(one, a)));
        Self { a, leak: Leak::of(simd, a, missing), root, rho, input: sigmoid_pair(simd, k) }
    }
}

impl Formulas<4> for RgLru {
    const PARTS: usize = 3;
    const SHARED: bool = true;
    type Gate<S: Simd> = Sum<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 4]) -> Sum<S> {
        let step = Step::new(simd, x);
        Sum { leak: step.leak, value: simd.mul_f32s(simd.mul_f32s(step.root, step.input[0]), x[0]) }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 4], before: S::f32s) -> ([S::f32s; 4], Sum<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let step = Step::new(simd, x);
        let [gate, closed] = step.input;
        let of_x = mul(step.root, gate);
        let per_root = simd.div_f32s(step.a, simd.max_f32s(step.root, simd.splat_f32s(LEAST_ROOT)));
        let of_u = mul(step.a, simd.sub_f32s(mul(per_root, mul(gate, x[0])), before));
        let of_c = mul(of_u, step.rho[0]);
        let value = mul(of_x, x[0]);
        ([of_x, mul(mul(of_c, x[3]), step.rho[1]), mul(value, closed), of_c], Sum { leak: step.leak, value })
    }
}
