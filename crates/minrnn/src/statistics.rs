//! Means, deviations and confidence, over seeds, sequences and whatever else is repeated.

/// 0.975 quantiles of Student's t with 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
    2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same of the normal distribution.
const Z_975: f64 = 1.959_964;

/// The 0.975 quantile of Student's t. Beyond the table by the first two terms of its expansion around the normal distribution's.
fn t_975(degrees: usize) -> f64 {
    let (z, n) = (Z_975, degrees as f64);
    let expanded = || z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    T_975.get(degrees.wrapping_sub(1)).copied().unwrap_or_else(expanded)
}

/// Bounds of the 95 % confidence interval of a share, of which `right` of `n` were seen (Wilson 1927): both lie between 0 and 1.
pub fn interval_of_share(right: u64, n: u64) -> [f64; 2] {
    if n == 0 {
        return [0.0, 1.0];
    }
    let (share, n, z) = (right as f64 / n as f64, n as f64, Z_975);
    let center = share + z * z / (2.0 * n);
    let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [center - reach, center + reach].map(|bound| (bound / (1.0 + z * z / n)).clamp(0.0, 1.0))
}

/// How likely it is that of `a + b` fair coins the rarer side shows at most min(a, b) times or the more frequent as often: the exact two-sided
/// sign test. Of two classifiers, `a` and `b` count the cases that only one of them gets right (McNemar 1947).
pub fn sign_test(a: u64, b: u64) -> f64 {
    let (n, rarer) = (a + b, a.min(b));
    // ln C(n, k) - n ln 2, from one k to the next.
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log.exp();
    for k in 1..=rarer {
        log += ((n - k + 1) as f64).ln() - (k as f64).ln();
        tail += log.exp();
    }
    (2.0 * tail).min(1.0)
}

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

    /// How far the 95 % confidence interval of the mean reaches to either side, by Student's t with n − 1 degrees of freedom: t s / √n. None of
    /// a single value.
    pub fn reach(&self) -> Option<f64> {
        Some(t_975(self.n - 1) * self.deviation? / (self.n as f64).sqrt())
    }

    /// Bounds of that interval; none of a single value.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.reach().map(|reach| [self.mean - reach, self.mean + reach])
    }

    /// The same of the difference between the means of `self` and `other`, √(s₁² / n₁ + s₂² / n₂) with the fewer degrees of freedom of the
    /// two, which makes it too wide and never too narrow.
    pub fn reach_of_difference(&self, other: &Self) -> Option<f64> {
        let squared = |summary: &Self| Some(summary.deviation?.powi(2) / summary.n as f64);
        Some(t_975(self.n.min(other.n) - 1) * (squared(self)? + squared(other)?).sqrt())
    }

    /// `mean ± reach` with that many decimals.
    pub fn text(&self, decimals: usize) -> String {
        match self.reach() {
            Some(reach) => format!("{:.decimals$} ± {reach:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample_and_the_interval_students() {
        // 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, deviation √13; 4.303 √(13 / 3) = 8.957.
        let summary = Summary::of(&[2.0, 4.0, 9.0]).unwrap();
        assert_eq!((summary.mean, summary.n), (5.0, 3));
        assert!((summary.deviation.unwrap() - 13f64.sqrt()).abs() < 1e-12);
        assert!((summary.reach().unwrap() - 8.957).abs() < 1e-3);
        assert_eq!(summary.text(2), "5.00 ± 8.96");
    }

    #[test]
    fn one_value_has_no_deviation_and_none_no_mean() {
        let one = Summary::of(&[1.5]).unwrap();
        assert_eq!((one.mean, one.deviation, one.reach(), one.text(1).as_str()), (1.5, None, None, "1.5"));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0, 3.0]).unwrap().reach(), Some(0.0));
        assert_eq!(one.reach_of_difference(&Summary::of(&[3.0, 4.0]).unwrap()), None);
    }

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        // Published: 15 of 148 has 0.0624 to 0.1605 (Newcombe 1998, table I).
        let [low, high] = interval_of_share(15, 148);
        assert!((low - 0.0624).abs() < 1e-4 && (high - 0.1605).abs() < 1e-4, "{low} {high}");
        assert_eq!((interval_of_share(0, 20)[0], interval_of_share(20, 20)[1], interval_of_share(0, 0)), (0.0, 1.0, [0.0, 1.0]));
        // Three of three say little.
        assert!(interval_of_share(3, 3)[0] < 0.44);
    }

    #[test]
    fn the_sign_test_counts_coins() {
        // Of six coins none or all: 2 / 64. Of ten at most two or at least eight: 2 (1 + 10 + 45) / 1024.
        assert!((sign_test(6, 0) - 2.0 / 64.0).abs() < 1e-12 && (sign_test(2, 8) - 112.0 / 1024.0).abs() < 1e-12);
        assert_eq!((sign_test(0, 0), sign_test(5, 5), sign_test(3, 3)), (1.0, 1.0, 1.0));
        assert!(sign_test(10_000, 11_000) < 1e-10 && sign_test(100_000, 100_100) > 0.8);
    }

    #[test]
    fn quantiles_beyond_the_table_go_on_where_it_ends() {
        // Published: 2.021 with 40 degrees of freedom, 1.984 with 100.
        assert!((t_975(40) - 2.021).abs() < 1e-3 && (t_975(100) - 1.984).abs() < 1e-3);
        assert!(t_975(31) < t_975(30) && t_975(30) - t_975(31) < 0.005);
    }

    #[test]
    fn the_interval_of_a_difference_takes_both_scatters() {
        // Variances 2 and 8 of two values each: 12.706 √(1 + 4) = 28.41.
        let (a, b) = (Summary::of(&[1.0, 3.0]).unwrap(), Summary::of(&[0.0, 4.0]).unwrap());
        assert!((a.reach_of_difference(&b).unwrap() - 28.411).abs() < 1e-3);
    }
}
