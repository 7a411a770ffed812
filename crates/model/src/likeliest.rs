//! Which one a model says, where it gives a number for each.

/// Where the largest of `scores` stands, the first of those that are equal; 0 where there are none. A NaN is larger than no other, and no
/// other larger than it.
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
