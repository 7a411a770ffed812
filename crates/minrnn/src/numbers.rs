//! Readable numbers: without long rows of zeros or meaningless digits.

use std::fmt;

/// Significant digits of a number shown to people.
const DIGITS: usize = 5;

/// 2^53, above which different integers may be the same 64-bit float.
pub(crate) const INEXACT: f64 = 9_007_199_254_740_992.0;

/// `x` with five significant digits, such as `14.701`, `0.013370`, `7.6000e-13`; integers below 10¹⁵ keep all their digits.
pub fn significant(x: f64) -> String {
    if x != 0.0 && !(1e-6..1e15).contains(&x.abs()) {
        return format!("{x:.*e}", DIGITS - 1);
    }
    let before_point = if x == 0.0 { 1.0 } else { x.abs().log10().floor() + 1.0 };
    let decimals = (DIGITS as f64 - before_point).max(0.0) as usize;
    format!("{x:.decimals$}")
}

/// A number in the shortest form that reads back the same, with a power of ten if its magnitude is below 10⁻⁶ or it has more than 16 digits
/// before the point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shortest(pub f64);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(x) = self;
        match x.abs() {
            size if size == 0.0 || !size.is_finite() || (1e-6..1e16).contains(&size) => write!(f, "{x}"),
            _ => write!(f, "{x:e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn five_digits_are_told_of_numbers_of_any_size() {
        for (x, told) in [
            (0.0, "0.0000"),
            (14.701, "14.701"),
            (-0.25, "-0.25000"),
            (123_456.7, "123457"),
            (1.234_56e-6, "0.0000012346"),
            (7.6e-13, "7.6000e-13"),
            (-1e-7, "-1.0000e-7"),
            (3e14, "300000000000000"),
            (1e15, "1.0000e15"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(significant(x), told);
        }
    }

    #[test]
    fn numbers_of_many_zeros_have_a_power_of_ten() {
        for (x, told) in [
            (0.0, "0"),
            (12.5, "12.5"),
            (0.000001, "0.000001"),
            (3.7477857679475376e-30, "3.7477857679475376e-30"),
            (-9.5e-7, "-9.5e-7"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (7.862_511_760_187_04e29, "7.86251176018704e29"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(Shortest(x).to_string(), told);
        }
    }

    proptest! {
        #[test]
        fn what_is_told_is_read_again(x in any::<f64>().prop_filter("a number", |x| x.is_finite())) {
            prop_assert_eq!(Shortest(x).to_string().parse::<f64>(), Ok(x));
            // The largest numbers may be rounded to infinity.
            let read: f64 = significant(x).parse().unwrap();
            prop_assert!(x.abs() > 1e308 || (read - x).abs() <= 1e-4 * x.abs());
        }
    }
}
