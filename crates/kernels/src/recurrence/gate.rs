//! a and b of one step, in the forms that keep them exact.

use crate::simd::mul_add;
use pulp::Simd;

/// The map h ↦ a h + b of one step.
pub trait Gate<S: Simd>: Copy {
    /// a h + b.
    fn step(self, simd: S, h: S::f32s) -> S::f32s;

    /// a h.
    fn decay(self, simd: S, h: S::f32s) -> S::f32s;

    /// 1 − a.
    fn loss(self, simd: S) -> S::f32s;
}

/// a and b themselves.
#[derive(Clone, Copy)]
pub struct Pair<S: Simd> {
    pub a: S::f32s,
    pub b: S::f32s,
}

impl<S: Simd> Gate<S> for Pair<S> {
    #[inline(always)]
    fn step(self, simd: S, h: S::f32s) -> S::f32s {
        mul_add(simd, self.a, h, self.b)
    }

    #[inline(always)]
    fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        simd.mul_f32s(self.a, h)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        simd.sub_f32s(simd.splat_f32s(1.0), self.a)
    }
}

/// A coefficient in 0..=1 kept as the smaller one of a and 1 − a.
///
/// Rounding a to f32 next to 1 would lose what a slow gate forgets per step, and the loss would add up over 1 / (1 − a) steps.
#[derive(Clone, Copy)]
pub struct Leak<S: Simd> {
    /// 1 − a where a is the larger one, −a where it is not.
    signed: S::f32s,
    /// Where a is the larger one.
    keeps: S::m32s,
}

impl<S: Simd> Leak<S> {
    /// From min(a, 1 − a), and where a is the larger of the two.
    #[inline(always)]
    pub fn new(simd: S, small: S::f32s, keeps: S::m32s) -> Self {
        Self { signed: simd.select_f32s(keeps, small, simd.neg_f32s(small)), keeps }
    }

    /// From a and 1 − a, each exact where it is the smaller one.
    #[inline(always)]
    pub fn of(simd: S, kept: S::f32s, lost: S::f32s) -> Self {
        let keeps = simd.less_than_f32s(lost, simd.splat_f32s(0.5));
        Self::new(simd, simd.select_f32s(keeps, lost, kept), keeps)
    }

    /// a h.
    #[inline(always)]
    pub fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        let base = simd.select_f32s(self.keeps, h, simd.splat_f32s(0.0));
        mul_add(simd, simd.neg_f32s(self.signed), h, base)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        simd.select_f32s(self.keeps, self.signed, simd.add_f32s(simd.splat_f32s(1.0), self.signed))
    }
}

/// a h + (1 − a) candidate: between the two, however it is rounded.
#[derive(Clone, Copy)]
pub struct Mixture<S: Simd> {
    pub leak: Leak<S>,
    pub candidate: S::f32s,
}

impl<S: Simd> Gate<S> for Mixture<S> {
    #[inline(always)]
    fn step(self, simd: S, h: S::f32s) -> S::f32s {
        let Leak { signed, keeps } = self.leak;
        mul_add(simd, signed, simd.sub_f32s(self.candidate, h), simd.select_f32s(keeps, h, self.candidate))
    }

    #[inline(always)]
    fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        self.leak.decay(simd, h)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        self.leak.loss(simd)
    }
}

/// a h + value, rounded once where a is close to 1.
#[derive(Clone, Copy)]
pub struct Sum<S: Simd> {
    pub leak: Leak<S>,
    pub value: S::f32s,
}

impl<S: Simd> Gate<S> for Sum<S> {
    #[inline(always)]
    fn step(self, simd: S, h: S::f32s) -> S::f32s {
        let Leak { signed, keeps } = self.leak;
        let base = simd.select_f32s(keeps, h, simd.splat_f32s(0.0));
        simd.add_f32s(mul_add(simd, simd.neg_f32s(signed), h, self.value), base)
    }

    #[inline(always)]
    fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        self.leak.decay(simd, h)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        self.leak.loss(simd)
    }
}

/// [`Sum`] with a coefficient that may be negative: `sum` has its size, `sign` is 1 or −1.
#[derive(Clone, Copy)]
pub struct SignedSum<S: Simd> {
    pub sum: Sum<S>,
    pub sign: S::f32s,
}

impl<S: Simd> Gate<S> for SignedSum<S> {
    #[inline(always)]
    fn step(self, simd: S, h: S::f32s) -> S::f32s {
        self.sum.step(simd, simd.mul_f32s(self.sign, h))
    }

    #[inline(always)]
    fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        self.sum.decay(simd, simd.mul_f32s(self.sign, h))
    }

    /// 1 + |a| where a is negative.
    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        let loss = self.sum.loss(simd);
        let negative = simd.less_than_f32s(self.sign, simd.splat_f32s(0.0));
        simd.select_f32s(negative, simd.sub_f32s(simd.splat_f32s(2.0), loss), loss)
    }
}
