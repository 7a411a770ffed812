//! A published value as printed in a paper.

/// A text and its numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    /// As printed; empty if nothing was published.
    pub text: String,
    /// The number, if it is one.
    pub value: Option<f64>,
    /// The number after ±.
    pub deviation: Option<f64>,
}

impl Published {
    /// Parses `37.6 ± 2.0`, `0.94`, or words such as `near 1`, which have no value.
    pub fn parse(text: &str) -> Self {
        let (value, deviation) = match text.split_once('±') {
            Some((value, deviation)) => (value, deviation.trim().parse().ok()),
            None => (text, None),
        };
        Self { text: text.trim().to_owned(), value: value.trim().parse().ok(), deviation }
    }

    /// The value and its tolerance: the number after ±, or else half a unit of the last printed digit.
    pub fn with_tolerance(&self) -> Option<(f64, f64)> {
        let printed = self.text.split('±').next().unwrap_or_default().trim();
        let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some((self.value?, self.deviation.unwrap_or(0.5 * 0.1f64.powi(decimals as i32))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_deviations_and_words_are_told_apart() {
        let parts = |text: &str| {
            let Published { value, deviation, .. } = Published::parse(text);
            (value, deviation)
        };
        assert_eq!(parts("37.6 ± 2.0"), (Some(37.6), Some(2.0)));
        assert_eq!(parts(" 0.94 "), (Some(0.94), None));
        assert_eq!(parts("-3.6"), (Some(-3.6), None));
        assert_eq!(parts("near 1"), (None, None));
        assert_eq!(Published::parse(""), Published::default());
        assert_eq!(Published::parse(" near 1 ").text, "near 1");
    }

    #[test]
    fn a_number_is_known_as_well_as_it_is_printed() {
        let tolerance = |text: &str| Published::parse(text).with_tolerance().map(|(_, tolerance)| tolerance);
        assert_eq!(tolerance("37.6 ± 2.0"), Some(2.0));
        assert!((tolerance("0.94").unwrap() - 0.005).abs() < 1e-12 && (tolerance("1.0").unwrap() - 0.05).abs() < 1e-12);
        assert_eq!((tolerance("33"), tolerance("near 1"), tolerance("")), (Some(0.5), None, None));
    }
}
