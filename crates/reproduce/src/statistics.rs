//! Mean and deviation over seeds.

/// The mean of several values and how far they scatter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Σ x / n.
    pub mean: f64,
    /// The sample's standard deviation, √(Σ (x − mean)² / (n − 1)); none of a single value.
    pub deviation: Option<f64>,
    /// How many there are.
    pub n: usize,
}

impl Summary {
    /// Of `values`; none where there is no value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()), n })
    }

    /// `mean ± deviation` with that many decimals.
    pub fn text(&self, decimals: usize) -> String {
        match self.deviation {
            Some(deviation) => format!("{:.decimals$} ± {deviation:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        // 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, deviation √13.
        let summary = Summary::of(&[2.0, 4.0, 9.0]).unwrap();
        assert_eq!((summary.mean, summary.n), (5.0, 3));
        assert!((summary.deviation.unwrap() - 13f64.sqrt()).abs() < 1e-12);
        assert_eq!(summary.text(2), "5.00 ± 3.61");
    }

    #[test]
    fn one_value_has_no_deviation_and_none_no_mean() {
        let one = Summary::of(&[1.5]).unwrap();
        assert_eq!((one.mean, one.deviation, one.text(1).as_str()), (1.5, None, "1.5"));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0, 3.0]).unwrap().deviation, Some(0.0));
    }
}
