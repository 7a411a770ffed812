//! The most likely class, given a score for each.

/// The index of the largest of `scores`, the first if several are equal; 0 if there are none. A NaN is neither larger nor smaller than any
/// other.
pub fn likeliest<T: PartialOrd>(scores: &[T]) -> usize {
    (0..scores.len()).reduce(|best, at| if scores[at] > scores[best] { at } else { best }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_scores_is_the_likeliest() {
        assert_eq!(likeliest(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(likeliest(&[0.5, 0.5]), 0);
        assert_eq!(likeliest(&[-0.0, 0.0]), 0);
        assert_eq!(likeliest(&[f32::NEG_INFINITY, f32::NEG_INFINITY, -1.0]), 2);
        assert_eq!(likeliest::<f64>(&[]), 0);
    }
}
