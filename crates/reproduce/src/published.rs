//! A published number as a paper prints it.

/// A text, and the numbers in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    /// As printed; empty where nothing was published.
    pub text: String,
    /// The number, if it is one.
    pub value: Option<f64>,
    /// What stands behind ±.
    pub deviation: Option<f64>,
}

impl Published {
    /// Reads `37.6 ± 2.0`, `0.94`, or words such as `near 1`, which have no value.
    pub fn parse(text: &str) -> Self {
        let (value, deviation) = match text.split_once('±') {
            Some((value, deviation)) => (value, deviation.trim().parse().ok()),
            None => (text, None),
        };
        Self { text: text.trim().to_owned(), value: value.trim().parse().ok(), deviation }
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
}
