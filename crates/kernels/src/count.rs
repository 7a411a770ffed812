//! Step counts stored as f32 in a state.
//!
//! Up to 2²⁴ a count is the f32 of its value. Larger integers are not distinct in f32, so from there on each count is the next f32 after
//! the previous one: the bits keep counting. The last one, of [`LAST`] steps, is the largest finite f32; after it a count goes back to half
//! of that ([`next`]), so that the distance between two steps is wrong only across that one step.

/// The first count that is not its own value.
const FIRST: f32 = 16_777_216.0;

/// The largest count, about 889 million.
pub const LAST: u32 = FIRST as u32 + (f32::MAX.to_bits() - FIRST.to_bits());

/// The next count.
#[must_use]
pub fn next(count: u32) -> u32 {
    if count < LAST { count + 1 } else { LAST / 2 }
}

/// The f32 of `count`, or of [`LAST`] if it is larger.
#[must_use]
pub fn kept(count: u32) -> f32 {
    match count.min(LAST) {
        small if small <= FIRST as u32 => small as f32,
        large => f32::from_bits(large - FIRST as u32 + FIRST.to_bits()),
    }
}

/// The count stored as `kept`; 0 if it is not a valid count, as in a damaged state.
#[must_use]
pub fn of(kept: f32) -> u32 {
    match kept {
        large if large.is_finite() && large >= FIRST => large.to_bits() - FIRST.to_bits() + FIRST as u32,
        small if small.is_finite() => small as u32,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_count_comes_back(count in 0..=LAST) {
            prop_assert_eq!(of(kept(count)), count);
            prop_assert!(kept(count).is_finite() && (count == LAST || kept(count) < kept(next(count))));
        }

        #[test]
        fn any_number_is_a_count(bits in any::<u32>()) {
            prop_assert!(of(f32::from_bits(bits)) <= LAST);
        }
    }

    #[test]
    fn small_counts_are_their_own_value_and_behind_the_last_one_is_the_middle() {
        for count in [0, 1, 7, (1 << 24) - 1, 1 << 24] {
            assert_eq!(kept(count), count as f32);
            assert_eq!(of(kept(count)), count);
        }
        assert_eq!((kept(LAST), kept(u32::MAX), next(LAST)), (f32::MAX, f32::MAX, LAST / 2));
        assert_eq!([-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(of), [0; 4]);
    }
}
