//! The kernels' names of configured choices.

use crate::ops;
use minrnn_stream::Candidate;

/// The kernels' name of a candidate map.
pub(crate) fn kernel_candidate(candidate: Candidate) -> ops::Candidate {
    match candidate {
        Candidate::Positive => ops::Candidate::Positive,
        Candidate::Identity => ops::Candidate::Identity,
        Candidate::Tanh => ops::Candidate::Tanh,
    }
}
