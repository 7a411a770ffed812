//! A cell's part of the linear recurrence: how its inputs determine a_t and b_t, and how gradients flow back through that.

use super::gate::Gate;
use crate::shape::Shape;
use pulp::Simd;

/// The part of a recurrence h_t = a_t h_{t−1} + b_t that differs between cells. There are `N` inputs per step and channel: the parts of a
/// row of pre-activations, and at most one more.
///
/// Everything is computed per vector of channels, without further memory.
pub trait Formulas<const N: usize>: Copy + Send + Sync {
    /// How many parts a row of pre-activations has: the first inputs.
    const PARTS: usize;
    /// Whether the pre-activations take a bias.
    const BIASED: bool = true;
    /// Whether the last input is one number per channel, so that its gradient is a sum over all steps.
    const SHARED: bool = false;
    /// Whether a step's gate takes longer to compute than to store: a chunk of time that is passed twice then computes it only the first
    /// time.
    const KEPT: bool = true;
    /// The gate computed from the inputs of one step.
    type Gate<S: Simd>: Gate<S>;

    /// The gate of inputs `x`.
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; N]) -> Self::Gate<S>;

    /// The slopes ∂h_t/∂x of the inputs `x`, with `before` = h_{t−1}, and their gate, of which only the decay is used.
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; N], before: S::f32s) -> ([S::f32s; N], Self::Gate<S>);

    /// h in the form in which [`Formulas::advance`] carries it.
    #[inline(always)]
    fn enter<S: Simd>(self, _simd: S, h: S::f32s) -> S::f32s {
        h
    }

    /// One step on the carried form.
    #[inline(always)]
    fn advance<S: Simd>(self, simd: S, x: [S::f32s; N], carried: S::f32s) -> S::f32s {
        self.gate(simd, x).step(simd, carried)
    }

    /// h from the carried form.
    #[inline(always)]
    fn leave<S: Simd>(self, _simd: S, carried: S::f32s) -> S::f32s {
        carried
    }

    /// [`Formulas::PARTS`] of a value.
    fn parts(self) -> usize {
        Self::PARTS
    }

    /// Length of the input that is not part of the pre-activations.
    fn extra_len(self, shape: Shape) -> usize {
        match N > Self::PARTS {
            false => 0,
            true if Self::SHARED => shape.width,
            true => shape.elements(),
        }
    }
}
