//! Error messages for arguments whose shapes do not fit.
//!
//! Kernels only check numbers of elements; the same number in another layout would silently give wrong results.

use burn::tensor::Tensor;

/// Refuses the argument `name` of the operation `op` if it does not have the shape `expected`.
///
/// # Panics
/// When it does not have it.
#[track_caller]
pub(super) fn expect_shape<const D: usize>(op: &str, name: &str, tensor: &Tensor<D>, expected: [usize; D]) {
    let found = tensor.dims();
    assert!(found == expected, "{op}: expected {name} of shape {expected:?}, found {found:?}; its documentation says how the shapes fit");
}

/// The same for an argument that may be absent.
#[track_caller]
pub(super) fn expect_shape_if_any<const D: usize>(op: &str, name: &str, tensor: Option<&Tensor<D>>, expected: [usize; D]) {
    if let Some(tensor) = tensor {
        expect_shape(op, name, tensor, expected);
    }
}

/// `width` / `parts`, where the channels of the argument `name` are `parts` of one width.
///
/// # Panics
/// When `parts` does not divide `width`.
#[track_caller]
pub(super) fn expect_parts(op: &str, name: &str, width: usize, parts: usize) -> usize {
    assert!(
        parts > 0 && width.is_multiple_of(parts),
        "{op}: expected {name} of equal parts, {parts} of them, found {width} channels; change one of the two"
    );
    width / parts
}

/// Refuses a number of `name` other than the operation `op` expects.
///
/// # Panics
/// When the numbers differ.
#[track_caller]
pub(crate) fn expect_count(op: &str, name: &str, found: usize, expected: usize) {
    assert!(found == expected, "{op}: expected {expected} {name}, found {found}; its documentation says how the shapes fit");
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};
    use minrnn_kernels::Candidate;

    use super::super::{Start, StepCodes, block_diagonal, causal_conv, layer_norm, linear_scan, matmul, min_gru, rotary, split};

    fn zeros<const D: usize>(shape: [usize; D]) -> Tensor<D> {
        Tensor::zeros(shape, &Device::flex())
    }

    /// The message with which `work` panics.
    fn refusal<T>(work: impl FnOnce() -> T) -> String {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).err().expect("a panic");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn as_many_numbers_in_another_layout_are_refused() {
        let scan = |values, start| linear_scan(zeros([2, 5, 4]), zeros(values), start, &StepCodes::dense());
        let from = |h0| Start::carried(zeros(h0));
        scan([2, 5, 4], from([2, 4]));
        for values in [[5, 2, 4], [4, 5, 2]] {
            let said = refusal(|| scan(values, Start::default()));
            assert!(said.starts_with("linear_scan: expected values of shape [2, 5, 4]"), "{said}");
        }
        for h0 in [[4, 2], [1, 8]] {
            let said = refusal(|| scan([2, 5, 4], from(h0)));
            assert!(said.contains("h0 of shape [2, 4], found") && said.contains(&format!("{h0:?}")), "{said}");
        }
        let conv = |weight| causal_conv(zeros([2, 5, 4]), zeros(weight), zeros([4]), None, &StepCodes::dense());
        conv([4, 1, 3]);
        let said = refusal(|| conv([2, 2, 3]));
        assert!(said.contains("causal_conv: expected weight of shape [4, 1, 3], found [2, 2, 3]"), "{said}");
        assert!(refusal(|| matmul(zeros([2, 6]), zeros([4, 6]))).contains("matmul: expected weight of shape [6, 6]"));
        assert!(refusal(|| block_diagonal(zeros([2, 5, 4]), zeros([3, 2, 2]))).contains("x of shape [2, 5, 6]"));
    }

    #[test]
    fn widths_that_have_no_equal_parts_are_refused() {
        let cell = |width| min_gru(zeros([2, 5, width]), None, Candidate::Identity, Start::default(), &StepCodes::dense());
        cell(8);
        assert!(refusal(|| cell(7)).contains("min_gru: expected preact of equal parts, 2 of them, found 7 channels"));
        assert!(refusal(|| layer_norm(zeros([2, 5, 4]), zeros([4]), zeros([3]), 1e-5)).contains("beta of shape [4], found [3]"));
        assert!(refusal(|| split(zeros([3, 4]), 9)).contains("split"));
        assert!(refusal(|| rotary(zeros([1, 2, 8]), vec![0].into(), 4, 8)).contains("expected 2 places, found 1"));
    }
}
