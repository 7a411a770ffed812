//! Means, medians, deviations and confidence intervals over repetitions such as seeds or sequences.

/// 0.975 quantiles of Student's t with 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
    2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same for the normal distribution.
const Z_975: f64 = 1.959_964;

/// The 0.975 quantile of Student's t. Beyond the table from the first two terms of its expansion around the normal distribution's.
fn t_975(degrees: usize) -> f64 {
    let (z, n) = (Z_975, degrees as f64);
    let expanded = || z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    T_975.get(degrees.wrapping_sub(1)).copied().unwrap_or_else(expanded)
}

/// The probability that |Student's t| with that many degrees of freedom, 1 or more, is at least `t`: one minus the finite sum for integer degrees of
/// freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4), exact up to the rounding of a number near 1.
fn two_sided(t: f64, degrees: usize) -> f64 {
    let n = degrees as f64;
    let angle = (t.abs() / n.sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    // cosᵏ times 2·4…(k − 1) / 1·3…k if the degrees are odd, and 1·3…(k − 1) / 2·4…k if they are even, for k below them in steps of two.
    let (mut term, mut sum) = (if is_odd { cos } else { 1.0 }, 0.0);
    let mut k = usize::from(is_odd);
    while k + 2 <= degrees {
        sum += term;
        term *= cos * cos * (k + 1) as f64 / (k + 2) as f64;
        k += 2;
    }
    let inside = if is_odd { (angle + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// Which of several hypotheses are rejected, such that the probability of rejecting any true one is at most `level`, whatever the
/// dependence between the tests (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
/// 1979): the smallest of the m `p_values` is rejected if it is at most level / m, the next if it is at most level / (m − 1), and so on up
/// to the first that is not.
pub fn holm(p_values: &[f64], level: f64) -> Vec<bool> {
    let m = p_values.len();
    let mut by_size: Vec<usize> = (0..m).collect();
    // NaN comes last, whatever its sign.
    let size = |at: usize| if p_values[at].is_nan() { f64::INFINITY } else { p_values[at] };
    by_size.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
    let mut is_refused = vec![false; m];
    for (rank, &at) in by_size.iter().enumerate() {
        // Also false for NaN.
        is_refused[at] = p_values[at] <= level / (m - rank) as f64;
        if !is_refused[at] {
            break;
        }
    }
    is_refused
}

/// Bounds of the 95 % confidence interval of a share, from `right` of `n` cases (Wilson 1927): both are between 0 and 1.
///
/// # Panics
/// When `right` is above `n`.
pub fn interval_of_share(right: u64, n: u64) -> [f64; 2] {
    assert!(right <= n, "{right} of {n} is no share; count what is right among what was seen");
    if n == 0 {
        return [0.0, 1.0];
    }
    let (share, n, z) = (right as f64 / n as f64, n as f64, Z_975);
    let center = share + z * z / (2.0 * n);
    let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [center - reach, center + reach].map(|bound| (bound / (1.0 + z * z / n)).clamp(0.0, 1.0))
}

/// The probability that among `a + b` fair coin flips the split is at least as uneven as `a` to `b`: the exact two-sided sign test. For two
/// classifiers, `a` and `b` count the cases that only one of them gets right (McNemar 1947).
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

/// The median of `values`, the mean of the middle two if their number is even; `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(0.5 * low + 0.5 * high)
}

/// The mean of several values and their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Σ x / n.
    pub mean: f64,
    /// The sample standard deviation, √(Σ (x − mean)² / (n − 1)); `None` for a single value.
    pub deviation: Option<f64>,
    /// Number of values.
    pub n: usize,
}

impl Summary {
    /// The summary of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        // Rounding of the mean must not count as scatter.
        let are_alike = values.iter().all(|value| *value == values[0]);
        let mean = if are_alike { values[0] } else { values.iter().sum::<f64>() / n as f64 };
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()), n })
    }

    /// Half the width of the 95 % confidence interval of the mean, by Student's t with n − 1 degrees of freedom: t s / √n. `None` for a
    /// single value.
    pub fn reach(&self) -> Option<f64> {
        Some(t_975(self.n - 1) * self.deviation? / (self.n as f64).sqrt())
    }

    /// Bounds of that interval; `None` for a single value.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.reach().map(|reach| [self.mean - reach, self.mean + reach])
    }

    /// The same for the difference between the means of `self` and `other`, √(s₁² / n₁ + s₂² / n₂) with the smaller of the two degrees of
    /// freedom, which makes it too wide rather than too narrow.
    pub fn reach_of_difference(&self, other: &Self) -> Option<f64> {
        let squared = |summary: &Self| Some(summary.deviation?.powi(2) / summary.n as f64);
        Some(t_975(self.n.min(other.n) - 1) * (squared(self)? + squared(other)?).sqrt())
    }

    /// The probability that the means of `self` and `other` differ at least as much as they do if they are truly equal, with the same error
    /// and degrees of freedom: 1 if they are equal, `None` if either summarises a single value. Also `None` if they differ and neither has
    /// any spread: the test measures a difference by the spread, and a few identical values do not make it certain.
    pub fn p_value_of_difference(&self, other: &Self) -> Option<f64> {
        let squared = |summary: &Self| Some(summary.deviation?.powi(2) / summary.n as f64);
        let (difference, error) = (self.mean - other.mean, (squared(self)? + squared(other)?).sqrt());
        if difference == 0.0 {
            return Some(1.0);
        }
        (error != 0.0).then(|| two_sided(difference / error, self.n.min(other.n) - 1))
    }

    /// `mean ± reach` with the given number of decimals.
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
    fn the_median_is_in_the_middle_or_between_the_two_there() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median([]), None);
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
    #[should_panic(expected = "5 of 3 is no share")]
    fn more_than_all_is_no_share() {
        interval_of_share(5, 3);
    }

    #[test]
    fn the_sign_test_counts_coins() {
        // None or all of six coins: 2 / 64. At most two or at least eight of ten: 2 (1 + 10 + 45) / 1024.
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

    #[test]
    fn the_tails_of_students_t_are_those_of_its_quantiles() {
        // The table has three decimals.
        for (at, &quantile) in T_975.iter().enumerate() {
            assert!((two_sided(quantile, at + 1) - 0.05).abs() < 1e-4, "{} degrees: {}", at + 1, two_sided(quantile, at + 1));
        }
        // Published: 0.995 quantiles of 63.657 with one degree of freedom, 9.925 with two, 5.841 with three and 4.032 with five.
        for (degrees, quantile) in [(1, 63.657), (2, 9.925), (3, 5.841), (5, 4.032)] {
            assert!((two_sided(quantile, degrees) - 0.01).abs() < 1e-5, "{degrees} degrees");
        }
        assert_eq!(two_sided(0.0, 3), 1.0);
        assert!((1..9).all(|degrees| two_sided(f64::INFINITY, degrees) < 1e-15));
        assert_eq!(two_sided(-2.0, 4), two_sided(2.0, 4));
    }

    #[test]
    fn equal_means_differ_by_chance_and_of_others_without_scatter_nothing_is_known() {
        let of = |values: &[f64]| Summary::of(values).unwrap();
        let p_value = |a: &[f64], b: &[f64]| of(a).p_value_of_difference(&of(b));
        assert_eq!(p_value(&[1.0, 3.0], &[0.0, 4.0]), Some(1.0));
        assert_eq!(p_value(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!([p_value(&[1.0, 1.0], &[2.0, 2.0]), p_value(&[0.1; 3], &[0.3; 3])], [None; 2]);
        // Scatter in one of them is enough.
        assert!(p_value(&[1.0, 1.0, 1.0], &[2.0, 2.1, 1.9]).is_some_and(|p_value| p_value > 0.0 && p_value < 0.01));
        assert_eq!(p_value(&[1.0], &[2.0, 3.0]), None);
        // At the end of its 95 % interval.
        let (a, b) = (of(&[1.0, 3.0]), of(&[0.0, 4.0]));
        let moved = Summary { mean: b.mean + a.reach_of_difference(&b).unwrap(), ..b };
        assert!((a.p_value_of_difference(&moved).unwrap() - 0.05).abs() < 1e-5);
    }

    #[test]
    fn of_several_tests_each_is_held_to_what_those_before_it_leave() {
        // 0.05 / 4, / 3, / 2: the third is above 0.025, so the fourth is not tested.
        assert_eq!(holm(&[0.03, 0.01, 0.04, 0.016], 0.05), [false, true, false, true]);
        assert_eq!(holm(&[0.02, 0.04], 0.05), [true, true]);
        assert_eq!(holm(&[0.03, 0.04, f64::NAN], 0.05), [false; 3]);
        assert_eq!(holm(&[0.001, -f64::NAN, 0.002], 0.05), [true, false, true]);
        assert!(holm(&[], 0.05).is_empty());
    }
}
