//! One correspondence between our tensors and another library's.

/// Which tensors are the same, and how their numbers differ. `shape` is that of our tensor.
pub(super) enum Rule {
    /// One tensor on either side.
    Pair { ours: String, theirs: String, shape: Vec<usize>, map: Map },
    /// Our tensor is a constant that the other library takes for granted.
    Fixed { ours: String, shape: Vec<usize>, constant: Constant },
    /// The other library stores our tensor, which another rule covers, a second time; if it does not, nothing is missing.
    Repeat { ours: String, theirs: String, shape: Vec<usize> },
    /// The other library stores a tensor that nothing depends on; it is written full of `value`.
    Unused { theirs: String, shape: Vec<usize>, value: f32 },
}

/// From our numbers to theirs.
pub(super) enum Map {
    /// As they are.
    Same,
    /// As they are, in another shape of as many numbers.
    Reshaped(Vec<usize>),
    /// 1 + ours: theirs is a gain, ours its difference from 1.
    Gain,
    /// ours − 1: theirs is a gain's difference from 1, ours the gain.
    Offset,
    /// Ours as an array of shape `view`, its axes in the order `axes`; written in `shape`.
    Permuted { view: [usize; 3], axes: [usize; 3], shape: Vec<usize> },
    /// Filters `[D, 1, K]`; theirs lack the oldest taps, which are zero.
    LastTaps(usize),
}

/// The value of a tensor that the other library lacks.
#[derive(Clone, Copy)]
pub(super) enum Constant {
    /// All zeros.
    Zeros,
    /// A square matrix with ones on its diagonal.
    Identity,
}

impl Constant {
    pub(super) fn values(self, shape: &[usize]) -> Vec<f32> {
        let mut values = vec![0.0; shape.iter().product()];
        if let Self::Identity = self {
            values.iter_mut().step_by(shape[0] + 1).for_each(|diagonal| *diagonal = 1.0);
        }
        values
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zero",
            Self::Identity => "the identity",
        }
    }
}

impl Map {
    /// The shape of their tensor if ours has `shape`.
    pub(super) fn their_shape(&self, shape: &[usize]) -> Vec<usize> {
        match self {
            Self::Same | Self::Gain | Self::Offset => shape.to_vec(),
            Self::Reshaped(theirs) | Self::Permuted { shape: theirs, .. } => theirs.clone(),
            Self::LastTaps(taps) => vec![shape[0], shape[1], *taps],
        }
    }

    /// Our numbers from theirs.
    pub(super) fn to_ours(&self, values: Vec<f32>, shape: &[usize]) -> Vec<f32> {
        match self {
            Self::Same | Self::Reshaped(_) => values,
            Self::Gain => values.into_iter().map(|gain| gain - 1.0).collect(),
            Self::Offset => values.into_iter().map(|offset| 1.0 + offset).collect(),
            Self::Permuted { view, axes, .. } => {
                let mut back = [0; 3];
                axes.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
                permuted(&values, axes.map(|axis| view[axis]), back)
            }
            Self::LastTaps(taps) => {
                let mut ours = vec![0.0; shape.iter().product()];
                let all = shape[2];
                for (ours, theirs) in ours.chunks_exact_mut(all).zip(values.chunks_exact(*taps)) {
                    ours[all - taps..].copy_from_slice(theirs);
                }
                ours
            }
        }
    }

    /// Their numbers from ours.
    pub(super) fn to_theirs(&self, values: Vec<f32>, shape: &[usize]) -> Vec<f32> {
        match self {
            Self::Same | Self::Reshaped(_) => values,
            Self::Gain => values.into_iter().map(|gamma| 1.0 + gamma).collect(),
            Self::Offset => values.into_iter().map(|gain| gain - 1.0).collect(),
            Self::Permuted { view, axes, .. } => permuted(&values, *view, *axes),
            Self::LastTaps(taps) => values.chunks_exact(shape[2]).flat_map(|filter| &filter[shape[2] - taps..]).copied().collect(),
        }
    }
}

/// The array of shape `sizes` with its axes in the order `axes`.
fn permuted(values: &[f32], sizes: [usize; 3], axes: [usize; 3]) -> Vec<f32> {
    let strides = [sizes[1] * sizes[2], sizes[2], 1];
    let [a, b, c] = axes;
    let mut out = Vec::with_capacity(values.len());
    for i in 0..sizes[a] {
        for j in 0..sizes[b] {
            let start = i * strides[a] + j * strides[b];
            out.extend((0..sizes[c]).map(|k| values[start + k * strides[c]]));
        }
    }
    out
}
