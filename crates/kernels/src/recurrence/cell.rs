//! What a cell adds to the linear recurrence: how its inputs make a_t and b_t, and how gradients go back through that.

use pulp::Simd;

/// The part of a recurrence h_t = a_t h_{t−1} + b_t that differs between cells. `N` inputs per step and channel.
///
/// Everything is per vector of channels, without memory of its own.
pub trait Cell<const N: usize>: Copy + Send + Sync {
    /// Whether a bias is added to the inputs.
    const BIASED: bool;
    /// Fewest channels worth a task. Rows of less than 256 bytes halve the memory's speed, which matters less the more a cell computes.
    const NARROWEST: usize;
    /// How many of the last inputs are one number per channel: a bias on nothing, so that their gradients are that bias's.
    const SHARED: usize = 0;
    /// What the inputs of one step say: a and b in whatever form keeps them exact.
    type Gate<S: Simd>: Copy;

    /// The gate of inputs `x`.
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; N]) -> Self::Gate<S>;

    /// a h + b.
    fn step<S: Simd>(self, simd: S, gate: Self::Gate<S>, h: S::f32s) -> S::f32s;

    /// a h.
    fn decay<S: Simd>(self, simd: S, gate: Self::Gate<S>, h: S::f32s) -> S::f32s;

    /// 1 − a.
    fn loss<S: Simd>(self, simd: S, gate: Self::Gate<S>) -> S::f32s;

    /// The gradients of the inputs, and a G, where G = `g` is the whole gradient of the step's state and `before` is h_{t−1}.
    fn gradients<S: Simd>(self, simd: S, x: [S::f32s; N], before: S::f32s, g: S::f32s) -> ([S::f32s; N], S::f32s);

    /// h in the form in which [`Cell::advance`] carries it.
    #[inline(always)]
    fn enter<S: Simd>(self, _simd: S, h: S::f32s) -> S::f32s {
        h
    }

    /// One step on the carried form.
    #[inline(always)]
    fn advance<S: Simd>(self, simd: S, x: [S::f32s; N], carried: S::f32s) -> S::f32s {
        self.step(simd, self.gate(simd, x), carried)
    }

    /// h from the carried form.
    #[inline(always)]
    fn leave<S: Simd>(self, _simd: S, carried: S::f32s) -> S::f32s {
        carried
    }
}

/// A mixing factor kept as the smaller one of a and 1 − a.
///
/// Rounding a to f32 next to 1 would lose what a slow gate forgets per step, and the loss would add up over 1 / (1 − a) steps.
pub struct Leak<S: Simd> {
    /// 1 − a where a is the larger one, −a where it is not.
    signed: S::f32s,
    /// Where a is the larger one.
    keeps: S::m32s,
}

impl<S: Simd> Clone for Leak<S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Simd> Copy for Leak<S> {}

impl<S: Simd> Leak<S> {
    /// From min(a, 1 − a), and where a is the larger of the two.
    #[inline(always)]
    pub fn new(simd: S, small: S::f32s, keeps: S::m32s) -> Self {
        Self { signed: simd.select_f32s(keeps, small, simd.neg_f32s(small)), keeps }
    }

    /// a h + (1 − a) other: between the two, however it is rounded.
    #[inline(always)]
    pub fn mix(self, simd: S, h: S::f32s, other: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(self.signed, simd.sub_f32s(other, h), simd.select_f32s(self.keeps, h, other))
    }

    /// a h.
    #[inline(always)]
    pub fn decay(self, simd: S, h: S::f32s) -> S::f32s {
        let base = simd.select_f32s(self.keeps, h, simd.splat_f32s(0.0));
        simd.mul_add_e_f32s(simd.neg_f32s(self.signed), h, base)
    }

    /// a h + value, rounded once where a is close to 1.
    #[inline(always)]
    pub fn decay_and_add(self, simd: S, h: S::f32s, value: S::f32s) -> S::f32s {
        let base = simd.select_f32s(self.keeps, h, simd.splat_f32s(0.0));
        simd.add_f32s(simd.mul_add_e_f32s(simd.neg_f32s(self.signed), h, value), base)
    }

    /// 1 − a.
    #[inline(always)]
    pub fn loss(self, simd: S) -> S::f32s {
        simd.select_f32s(self.keeps, self.signed, simd.add_f32s(simd.splat_f32s(1.0), self.signed))
    }
}
