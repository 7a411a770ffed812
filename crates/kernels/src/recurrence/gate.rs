//! a and b of one step, in accurate forms.

use crate::simd::{TRACE, mul_add, neg};
use pulp::Simd;

/// The map h ↦ a h + b of one step.
pub trait Gate<S: Simd>: Copy {
    /// Number of vectors needed for [`Gate::decay`]: the first ones of [`Gate::vectors`]. The whole gate takes one more.
    const DECAY: usize = 1;
    /// A product of many a, or a gradient shrunk by many a, counts as 0 once it is below this: no a can make it grow again.
    const TRACE: f32 = TRACE;

    /// a h + b.
    fn step(self, simd: S, h: S::f32s) -> S::f32s;

    /// a h.
    fn decay(self, simd: S, h: S::f32s) -> S::f32s;

    /// 1 − a.
    fn loss(self, simd: S) -> S::f32s;

    /// The gate as vectors to store; those after the last are 0.
    fn vectors(self, simd: S) -> [S::f32s; MOST];

    /// The gate from stored vectors. If only those of the decay were stored, only the decay may be used.
    fn of_vectors(simd: S, vectors: [S::f32s; MOST]) -> Self;
}

/// Most vectors that a gate is kept as.
pub const MOST: usize = 3;

/// a and b themselves.
#[derive(Clone, Copy)]
pub struct Pair<S: Simd> {
    pub a: S::f32s,
    pub b: S::f32s,
}

impl<S: Simd> Gate<S> for Pair<S> {
    // An a above 1 can make such a number grow again, so only subnormal ones count as 0.
    const TRACE: f32 = f32::MIN_POSITIVE;

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

    #[inline(always)]
    fn vectors(self, simd: S) -> [S::f32s; MOST] {
        [self.a, self.b, simd.splat_f32s(0.0)]
    }

    #[inline(always)]
    fn of_vectors(_simd: S, [a, b, _]: [S::f32s; MOST]) -> Self {
        Self { a, b }
    }
}

/// A coefficient in 0..=1 stored as the smaller of a and 1 − a.
///
/// Rounding a to f32 close to 1 would lose what a slow gate forgets per step, and the error would add up over 1 / (1 − a) steps.
#[derive(Clone, Copy)]
pub struct Leak<S: Simd> {
    /// 1 − a where a is the larger one, −a where it is not.
    signed: S::f32s,
    /// Where a is the larger one.
    keeps: S::m32s,
}

impl<S: Simd> Leak<S> {
    /// From min(a, 1 − a), and whether a is the larger of the two.
    #[inline(always)]
    pub fn new(simd: S, small: S::f32s, keeps: S::m32s) -> Self {
        Self { signed: simd.select_f32s(keeps, small, neg(simd, small)), keeps }
    }

    /// From a and 1 − a, each accurate if it is the smaller one.
    #[inline(always)]
    pub fn of(simd: S, kept: S::f32s, lost: S::f32s) -> Self {
        let keeps = simd.less_than_f32s(lost, simd.splat_f32s(0.5));
        Self::new(simd, simd.select_f32s(keeps, lost, kept), keeps)
    }

    /// a h.
    #[inline(always)]
    pub fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        let base = simd.select_f32s(self.keeps, h, simd.splat_f32s(0.0));
        mul_add(simd, neg(simd, self.signed), h, base)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        simd.select_f32s(self.keeps, self.signed, simd.add_f32s(simd.splat_f32s(1.0), self.signed))
    }

    /// One vector, above 0 where a is the larger one: if nothing at all is lost, it is the smallest normal number.
    #[inline(always)]
    fn vector(self, simd: S) -> S::f32s {
        simd.select_f32s(self.keeps, simd.max_f32s(self.signed, simd.splat_f32s(f32::MIN_POSITIVE)), self.signed)
    }

    #[inline(always)]
    fn of_vector(simd: S, signed: S::f32s) -> Self {
        Self { signed, keeps: simd.greater_than_f32s(signed, simd.splat_f32s(0.0)) }
    }
}

/// a h + (1 − a) candidate: always between the two, despite rounding.
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

    #[inline(always)]
    fn vectors(self, simd: S) -> [S::f32s; MOST] {
        [self.leak.vector(simd), self.candidate, simd.splat_f32s(0.0)]
    }

    #[inline(always)]
    fn of_vectors(simd: S, [leak, candidate, _]: [S::f32s; MOST]) -> Self {
        Self { leak: Leak::of_vector(simd, leak), candidate }
    }
}

/// a h + value, rounded once if a is close to 1.
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
        simd.add_f32s(mul_add(simd, neg(simd, signed), h, self.value), base)
    }

    #[inline(always)]
    fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        self.leak.decay(simd, h)
    }

    #[inline(always)]
    fn loss(self, simd: S) -> S::f32s {
        self.leak.loss(simd)
    }

    #[inline(always)]
    fn vectors(self, simd: S) -> [S::f32s; MOST] {
        [self.leak.vector(simd), self.value, simd.splat_f32s(0.0)]
    }

    #[inline(always)]
    fn of_vectors(simd: S, [leak, value, _]: [S::f32s; MOST]) -> Self {
        Self { leak: Leak::of_vector(simd, leak), value }
    }
}

/// [`Sum`] with a coefficient that may be negative: `sum` has its size, `sign` is 1 or −1.
#[derive(Clone, Copy)]
pub struct SignedSum<S: Simd> {
    pub sum: Sum<S>,
    pub sign: S::f32s,
}

impl<S: Simd> Gate<S> for SignedSum<S> {
    const DECAY: usize = 2;

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

    #[inline(always)]
    fn vectors(self, simd: S) -> [S::f32s; MOST] {
        [self.sum.leak.vector(simd), self.sign, self.sum.value]
    }

    #[inline(always)]
    fn of_vectors(simd: S, [leak, sign, value]: [S::f32s; MOST]) -> Self {
        Self { sum: Sum { leak: Leak::of_vector(simd, leak), value }, sign }
    }
}
