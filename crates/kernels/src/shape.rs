//! What all recurrence kernels share: sizes, and the choices between formulas.

use crate::choices;
use crate::sigmoid::positive;

/// Sizes of a batch of sequences `[B, T, E]`, row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// `B`, number of sequences.
    pub batch: usize,
    /// `T`, steps per sequence.
    pub seq_len: usize,
    /// `E`, channels of the state.
    pub width: usize,
}

impl Shape {
    /// `B · T · E`, elements of a sequence tensor.
    ///
    /// # Panics
    /// As [`elements`].
    #[track_caller]
    pub fn elements(&self) -> usize {
        elements([self.batch, self.seq_len, self.width])
    }

    /// `B · E`, elements of a state.
    ///
    /// # Panics
    /// As [`elements`].
    #[track_caller]
    pub fn states(&self) -> usize {
        elements([self.batch, self.width])
    }

    /// `B · T`, steps of all rows.
    ///
    /// # Panics
    /// As [`elements`].
    #[track_caller]
    pub fn steps(&self) -> usize {
        elements([self.batch, self.seq_len])
    }

    /// The same shape, or one without rows if there are no `elements` (in a row, or in all slices together): the slices' lengths then do not
    /// limit `batch`, so neither loops over rows nor memory for each may depend on it.
    pub(crate) fn with_rows_of(self, elements: usize) -> Self {
        Self { batch: if elements == 0 { 0 } else { self.batch }, ..self }
    }
}

/// The product of `sizes`: the number of elements of a tensor with these dimensions.
///
/// Every bound in the kernels follows from slices having this many elements, so it never wraps: apart from sizes of 0, every partial
/// product, and up to eight times it, fits `usize`.
///
/// # Panics
/// When the product of the sizes that are not 0 exceeds the number of f32 that memory can hold.
#[track_caller]
pub fn elements<const N: usize>(sizes: [usize; N]) -> usize {
    const MOST: usize = isize::MAX as usize / size_of::<f32>();
    let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size.max(1)));
    let Some(product) = product.filter(|&product| product <= MOST) else {
        panic!("sizes {sizes:?}: their product is more elements than memory can hold; check the shape")
    };
    if sizes.contains(&0) { 0 } else { product }
}

choices! {
    /// How the candidate state h̃ of minGRU and minLSTM follows from its pre-activation v.
    Candidate, "candidate" {
        /// h̃ = g(v): v + ½ for v ≥ 0, σ(v) below. Continuous and positive (the paper's log version).
        #[default]
        Positive = "positive",
        /// h̃ = v (the paper's vanilla version).
        Identity = "identity",
        /// h̃ = tanh(v) (the paper's intermediate step).
        Tanh = "tanh",
    }
}

impl Candidate {
    /// The map from the parameter θ to a learned initial state: g if every candidate is positive, so that the state is too, otherwise the
    /// identity.
    pub fn of_state(self) -> Self {
        match self {
            Self::Positive => Self::Positive,
            Self::Identity | Self::Tanh => Self::Identity,
        }
    }

    /// One number of a learned initial state: what [`of_state`](Self::of_state) makes of its parameter `theta`, θ.
    pub fn first_state(self, theta: f32) -> f32 {
        if self.of_state() == Self::Positive { positive(theta) } else { theta }
    }
}

/// How the forget and input gates of minLSTM are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gates {
    /// f' = f / (f + i), i' = i / (f + i): the state is a mixture of the candidates.
    #[default]
    Normalized,
    /// f and i as they are: the state may grow with T.
    Unnormalized,
}

/// Asserts that `slice`, called `name` by the caller, has `expected` elements.
///
/// # Panics
/// When it does not.
#[track_caller]
pub fn expect_len<T>(name: &str, slice: &[T], expected: usize) {
    assert!(slice.len() == expected, "{name}: expected {expected} elements, found {}; check it against the shape", slice.len());
}

#[cfg(test)]
mod tests {
    use super::Candidate;

    #[test]
    fn a_first_state_is_what_the_reference_makes_of_its_parameter() {
        for &candidate in Candidate::ALL {
            for theta in [-200.0f32, -3.0, -1e-3, -0.0, 0.0, 0.7, 5.0] {
                let (found, expected) = (candidate.first_state(theta), candidate.of_state().value(f64::from(theta)) as f32);
                assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{candidate} of {theta}: {found} instead of {expected}");
            }
        }
    }
}
