//! The labels of an axis, at round numbers.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// An axis with labels at given places.
pub(crate) struct Ticked {
    pub range: Range<f64>,
    pub ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Step sizes that divide a power of ten evenly.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// Round numbers between `low` and `high`, at most `most` of them and about as many.
pub(crate) fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    let range = high - low;
    if !(range.is_finite() && range > 0.0) || most == 0 {
        return Vec::new();
    }
    let power = 10f64.powf((range / most as f64).log10().floor());
    let step = STEPS.iter().map(|step| step * power).find(|step| range / step <= most as f64).unwrap_or(10.0 * power);
    // Integer multiples, so that rounding errors do not add up.
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|n| n as f64 * step).take(2 * most).collect()
}

/// The exponents of powers of two between 2^low and 2^high, at most `most` of them.
pub(crate) fn powers_of_two(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.ceil() as i64, high.floor() as i64);
    let every = ((last - first + 1).max(1) as usize).div_ceil(most.max(1));
    (first..=last).step_by(every).map(|power| power as f64).collect()
}

/// The base-10 logarithms of 1, 2, 5 times powers of ten between 10^low and 10^high; of the powers alone if these are many.
pub(crate) fn decades(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high - low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let of_power = |power: i64| factors.iter().map(move |factor| power as f64 + factor.log10());
    (low.floor() as i64..=high.floor() as i64).flat_map(of_power).filter(|&at| (low..=high).contains(&at)).collect()
}

/// `value` without meaningless digits.
pub(crate) fn label(value: f64) -> String {
    let text = format!("{:.6}", if value.abs() < 1e-9 { 0.0 } else { value });
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        values.iter().map(|&value| label(value)).collect()
    }

    #[test]
    fn labels_are_round_numbers() {
        assert_eq!(labels(&linear(0.0, 1.0, 6)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&linear(-0.03, 0.31, 8)), ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]);
        assert_eq!(labels(&linear(0.0, 4096.0, 8)), ["0", "1000", "2000", "3000", "4000"]);
        assert_eq!(labels(&linear(1.49, 1.66, 6)), ["1.5", "1.55", "1.6", "1.65"]);
        assert!(linear(1.0, 1.0, 5).is_empty() && linear(f64::NAN, 1.0, 5).is_empty());
    }

    #[test]
    fn logarithmic_axes_are_labelled_at_powers() {
        assert_eq!(powers_of_two(5.85, 12.15, 8), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(powers_of_two(0.0, 12.0, 7).len(), 7);
        let values: Vec<f64> = decades(0.9, 2.1).iter().map(|at| 10f64.powf(*at).round()).collect();
        assert_eq!(values, [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(decades(-0.5, 4.5), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }
}
