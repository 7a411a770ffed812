//! Counts of steps that stand among the f32s of a state.
//!
//! Up to 2²⁴ a count is the f32 of its value. An f32 does not tell larger ones apart, so from there on a count is the f32 that follows that of the
//! count before: the bits count on. The last one, of [`LAST`] steps, is the largest finite f32; behind it a count goes back half of its way
//! ([`next`]), so that how far two steps are apart is wrong across that one step only.

/// The first count that is not its own value.
const FIRST: f32 = 16_777_216.0;

/// The largest count that there is, about 889 million.
pub const LAST: u32 = FIRST as u32 + (f32::MAX.to_bits() - FIRST.to_bits());

/// The count of one step more.
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

/// The count whose f32 is `kept`; 0 of what is the f32 of none, as in a damaged state.
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
