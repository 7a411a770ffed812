//! Measures in a task's own units, with their confidence, beside those of a baseline.

use super::Spreads;
use super::confusion::Confusion;
use super::example::Example;
use crate::counted::counted;
use crate::data::Batch;
use crate::numbers::significant;
use crate::statistics::{Summary, interval_of_share, sign_test};

/// A model's result, beside a baseline's.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// What is measured.
    pub kind: MeasureKind,
    /// The column it refers to, if columns are distinguished.
    pub target: Option<String>,
    /// The result.
    pub found: f64,
    /// Bounds of the 95 % confidence interval, if there are enough cases.
    pub interval: Option<[f64; 2]>,
    /// Number of cases it is the mean of.
    pub n: u64,
    /// What a case is.
    pub cases: Cases,
    /// The result of a baseline without a model, on the same cases.
    pub baseline: Option<Baseline>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MeasureKind {
    /// The share of cases that are correct.
    Accuracy,
    /// The mean absolute error, in the units of the table.
    AbsoluteError,
    /// The root mean squared error, in the units of the table.
    RootSquaredError,
    /// The symmetric mean absolute percentage error, in per cent.
    SymmetricPercentageError,
    /// The mean absolute error over the mean seasonal difference.
    ScaledError,
    /// The coverage of the interval with this nominal coverage.
    Covers(f64),
    /// The width of that interval, in the units of the table.
    Width(f64),
    /// A loss, by its name.
    Loss(&'static str),
}

impl MeasureKind {
    /// Whether it is a share, 0 to 1.
    fn is_share(self) -> bool {
        matches!(self, Self::Accuracy | Self::Covers(_))
    }
}

/// The cases that a measure is the mean of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cases {
    /// Whole sequences.
    Sequences,
    /// Stretches of this many steps, for sequences too few to compare; the last of a sequence also has the remaining steps.
    Stretches(usize),
    /// Single values.
    Values,
}

/// The result of a baseline, and whether the model is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// What the baseline does.
    pub name: String,
    /// Its result.
    pub found: f64,
    /// The verdict on the difference, case by case.
    pub verdict: Verdict,
}

/// The verdict on a difference at 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The model is better.
    Better,
    /// The baseline is better.
    Worse,
    /// The difference is too small for the number of cases.
    Undecided,
}

impl Verdict {
    /// The verdict in words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Better => "the model is better",
            Self::Worse => "the model is worse",
            Self::Undecided => "too few cases to tell which is better",
        }
    }
}

/// Minimum number of cases for the interval of a mean.
const FEWEST: usize = 5;

impl Measure {
    /// What is measured, and for which column, in words.
    pub fn name(&self) -> String {
        let of_target = self.target.as_ref().map_or_else(String::new, |target| format!(" of {target}"));
        let of_interval = |share: f64, what: &str| format!("{:.0} % interval{of_target}: {what}", 100.0 * share);
        let name = match self.kind {
            MeasureKind::Accuracy => "accuracy",
            MeasureKind::AbsoluteError => "mean absolute error",
            MeasureKind::RootSquaredError => "root mean squared error",
            MeasureKind::SymmetricPercentageError => "symmetric mean absolute percentage error",
            MeasureKind::ScaledError => "mean absolute scaled error",
            MeasureKind::Covers(share) => return of_interval(share, "covers"),
            MeasureKind::Width(share) => return of_interval(share, "width"),
            MeasureKind::Loss(name) => name,
        };
        format!("{name}{of_target}")
    }

    /// `x`, a value of this measure, in words: a share in per cent, otherwise with five significant digits.
    pub fn shown(&self, x: f64) -> String {
        if self.kind.is_share() { format!("{:.2} %", 100.0 * x) } else { significant(x) }
    }

    /// Its interval in words, such as `95 % interval 84.1 to 90.0`, if any.
    pub fn interval_shown(&self) -> Option<String> {
        let bound = |x: f64| if self.kind.is_share() { format!("{:.1}", 100.0 * x) } else { significant(x) };
        self.interval.map(|[low, high]| format!("95 % interval {} to {}", bound(low), bound(high)))
    }

    /// What it is the mean of, in words, such as `n = 12`.
    pub fn n_shown(&self) -> String {
        match self.cases {
            Cases::Sequences => format!("n = {}", self.n),
            _ => format!("n = {}", self.cases_shown()),
        }
    }

    /// Its cases, in words, such as `8 stretches of 24 steps`.
    fn cases_shown(&self) -> String {
        let n = self.n;
        match self.cases {
            Cases::Sequences => counted(n, "sequence"),
            Cases::Stretches(1) => format!("{n} steps"),
            Cases::Stretches(steps) => format!("{} of {steps} steps", counted(n, "stretch")),
            Cases::Values => format!("{n} values"),
        }
    }

    /// Everything in words: the result with its interval and, on a second line, the baseline and which is better, if that is certain.
    pub fn describe(&self) -> String {
        let interval = self.interval_shown().map_or_else(String::new, |interval| interval + ", ");
        let mut told = format!("{} {} ({interval}{})", self.name(), self.shown(self.found), self.n_shown());
        if let Some(Baseline { name, found, verdict }) = &self.baseline {
            told += &format!("\n  beside {name}: {}; {}", self.shown(*found), verdict.describe());
        }
        told
    }

    /// Everything as a JSON object.
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::json!({"measure": self.name(), "value": self.found, "interval": self.interval, "n": self.n});
        if let Some(baseline) = &self.baseline {
            let verdict = match baseline.verdict {
                Verdict::Better => "better",
                Verdict::Worse => "worse",
                Verdict::Undecided => "undecided",
            };
            object["baseline"] = baseline.found.into();
            object["baseline_name"] = baseline.name.clone().into();
            object["verdict"] = verdict.into();
        }
        object
    }

    /// The share of `right` among `n` cases, beside a baseline described by `baseline`: of the cases that only one of the two has right,
    /// the model has `only_model` and the baseline `only_baseline`.
    pub fn of_accuracy([right, n]: [u64; 2], baseline: &str, [only_model, only_baseline]: [u64; 2]) -> Self {
        let share = |right: u64| right as f64 / n.max(1) as f64;
        let verdict = match sign_test(only_model, only_baseline) < 0.05 {
            true if only_model > only_baseline => Verdict::Better,
            true => Verdict::Worse,
            false => Verdict::Undecided,
        };
        Self {
            kind: MeasureKind::Accuracy,
            target: None,
            found: share(right),
            interval: Some(interval_of_share(right, n)),
            n,
            cases: Cases::Sequences,
            baseline: Some(Baseline { name: baseline.to_owned(), found: share(right + only_baseline - only_model), verdict }),
        }
    }

    /// The mean of an error of the column `target` over cases; each of `pairs` holds the model's and the baseline's.
    pub fn of_errors(kind: MeasureKind, target: &str, cases: Cases, pairs: &[[f64; 2]], baseline: &str) -> Self {
        let of = |error: fn(&[f64; 2]) -> f64| Summary::of(&pairs.iter().map(error).collect::<Vec<_>>());
        let (found, other) = (of(|pair| pair[0]), of(|pair| pair[1]));
        let interval = |summary: &Summary| summary.interval().filter(|_| pairs.len() >= FEWEST);
        let difference = of(|pair| pair[0] - pair[1]);
        let verdict = match difference.as_ref().and_then(interval) {
            Some([_, high]) if high < 0.0 => Verdict::Better,
            Some([low, _]) if low > 0.0 => Verdict::Worse,
            _ => Verdict::Undecided,
        };
        Self {
            kind,
            target: Some(target.to_owned()),
            found: found.map_or(0.0, |found| found.mean),
            // Errors are never negative.
            interval: found.as_ref().and_then(interval).map(|bounds| bounds.map(|bound| bound.max(0.0))),
            n: pairs.len() as u64,
            cases,
            baseline: Some(Baseline { name: baseline.to_owned(), found: other.map_or(0.0, |other| other.mean), verdict }),
        }
    }
}

/// Sentences about errors that the forecast `measures` do not have, or not of all cases, saying why: of each column without a percentage error, and of each
/// whose scaled error leaves out cases.
pub fn left_out(measures: &[Measure]) -> Vec<String> {
    let of = |kind: MeasureKind| measures.iter().filter(move |measure| measure.kind == kind);
    // No other task has this error.
    let sentences = of(MeasureKind::RootSquaredError).flat_map(|all| {
        let like = |kind: MeasureKind| of(kind).find(|measure| measure.target == all.target);
        let named = |kind: MeasureKind| Measure { kind, ..all.clone() }.name();
        let kind = MeasureKind::SymmetricPercentageError;
        let percentage = like(kind).is_none().then(|| format!("{} is left out, as a scored value is 0 or less", named(kind)));
        let scaled = named(MeasureKind::ScaledError);
        let divisor = "known values a season apart that differ before what is scored";
        let whose = if all.cases == Cases::Sequences { "which have" } else { "whose sequences have" };
        let scaled = match like(MeasureKind::ScaledError) {
            None => Some(format!("{scaled} is left out, as no sequence has {divisor}")),
            Some(found) if found.n < all.n => {
                Some(format!("{scaled} leaves out {} of {}, {whose} no {divisor}", all.n - found.n, all.cases_shown()))
            }
            Some(_) => None,
        };
        [percentage, scaled].into_iter().flatten()
    });
    sentences.collect()
}

/// Collects a model's predictions on an evaluation set.
pub trait Comparison {
    /// Whether [`add`](Self::add) needs `batch`, which has this `index` in its set, even if nothing in it is scored.
    fn looks_past(&self, _index: u64, _batch: &Batch) -> bool {
        false
    }

    /// Takes the model's outputs `[B, T, n_outputs]` on `batch`, which has this `index` in its set.
    fn add(&mut self, index: u64, batch: &Batch, outputs: &[f32]);

    /// The measures of everything taken.
    fn measures(&self) -> Vec<Measure>;

    /// How surprising each next value was to the model, in nats, if its forecasts can tell.
    fn surprises(&self) -> &[f64] {
        &[]
    }

    /// Called first if [`surprises_when_spread`](Self::surprises_when_spread) will be asked for, with these spreads.
    fn spread_by(&mut self, _: &Spreads) {}

    /// The surprises of a model with its quantiles spread in this way.
    fn surprises_when_spread(&self) -> &[f64] {
        &[]
    }

    /// Called first if [`spreads`](Self::spreads) will be asked for. Returns false if the model predicts nothing that can be spread.
    fn find_spreads(&mut self) -> bool {
        false
    }

    /// The spreads that calibrate the model's quantiles on what was taken, if it predicts quantiles and there was enough.
    fn spreads(&self) -> Option<Spreads> {
        None
    }

    /// The confusion matrix, if classes are predicted.
    fn confusion(&self) -> Option<&Confusion> {
        None
    }

    /// Single sequences, worst first.
    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(measure: &Measure) -> Verdict {
        measure.baseline.as_ref().unwrap().verdict
    }

    #[test]
    fn the_name_says_what_is_measured_and_of_which_column() {
        let of = |kind, target: Option<&str>| {
            let target = target.map(str::to_owned);
            Measure { kind, target, found: 0.25, interval: None, n: 1, cases: Cases::Values, baseline: None }
        };
        for (measure, told) in [
            (of(MeasureKind::Accuracy, None), "accuracy 25.00 % (n = 1 values)"),
            (of(MeasureKind::AbsoluteError, Some("x")), "mean absolute error of x 0.25000 (n = 1 values)"),
            (of(MeasureKind::RootSquaredError, Some("x")), "root mean squared error of x 0.25000 (n = 1 values)"),
            (of(MeasureKind::SymmetricPercentageError, Some("x")), "symmetric mean absolute percentage error of x 0.25000 (n = 1 values)"),
            (of(MeasureKind::ScaledError, Some("x")), "mean absolute scaled error of x 0.25000 (n = 1 values)"),
            (of(MeasureKind::Covers(0.9 - 0.1), Some("x")), "80 % interval of x: covers 25.00 % (n = 1 values)"),
            (of(MeasureKind::Width(0.9 - 0.1), Some("x")), "80 % interval of x: width 0.25000 (n = 1 values)"),
            (of(MeasureKind::Loss("mean squared error"), None), "mean squared error 0.25000 (n = 1 values)"),
        ] {
            assert_eq!(measure.describe(), told);
            assert!(told.starts_with(&measure.name()) && measure.to_json()["measure"] == measure.name());
        }
    }

    #[test]
    fn a_forecast_without_an_error_of_all_its_cases_says_why() {
        let of = |kind, target: &str, cases, n: usize| Measure::of_errors(kind, target, cases, &vec![[1.0, 2.0]; n], "last value");
        let [root, percentage, scaled] = [MeasureKind::RootSquaredError, MeasureKind::SymmetricPercentageError, MeasureKind::ScaledError];
        let (sequences, stretches) = (Cases::Sequences, Cases::Stretches(6));
        let all = |target: &str| [root, percentage, scaled].map(|kind| of(kind, target, sequences, 14));
        assert!(left_out(&all("x")).is_empty());
        let divisor = "known values a season apart that differ before what is scored";
        let told = [
            "symmetric mean absolute percentage error of y is left out, as a scored value is 0 or less".to_owned(),
            format!("mean absolute scaled error of y is left out, as no sequence has {divisor}"),
        ];
        assert_eq!(left_out(&[&all("x")[..], &[of(root, "y", sequences, 14)]].concat()), told);
        for (cases, of_all) in [(sequences, "14 sequences, which have"), (stretches, "14 stretches of 6 steps, whose sequences have")] {
            let measures = [of(root, "x", cases, 14), of(percentage, "x", cases, 14), of(scaled, "x", cases, 11)];
            assert_eq!(left_out(&measures), [format!("mean absolute scaled error of x leaves out 3 of {of_all} no {divisor}")]);
        }
        assert!(left_out(&[of(MeasureKind::AbsoluteError, "x", sequences, 1)]).is_empty());
    }

    #[test]
    fn three_sequences_make_no_model_better() {
        // Three of three right, where a guess has one right.
        let measure = Measure::of_accuracy([3, 3], "always 'a'", [2, 0]);
        assert_eq!((measure.found, verdict(&measure)), (1.0, Verdict::Undecided));
        assert!((measure.baseline.as_ref().unwrap().found - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(verdict(&Measure::of_accuracy([90, 100], "always 'a'", [42, 2])), Verdict::Better);
        assert_eq!(verdict(&Measure::of_accuracy([50, 100], "always 'a'", [2, 42])), Verdict::Worse);
    }

    #[test]
    fn errors_are_compared_case_by_case() {
        // The cases vary widely, but the model's error is always a little smaller.
        let pairs: Vec<[f64; 2]> = (0..20).map(|at| [f64::from(at * at), f64::from(at * at) + 1.0 + 0.1 * f64::from(at % 3)]).collect();
        let of = |pairs: &[[f64; 2]]| Measure::of_errors(MeasureKind::AbsoluteError, "x", Cases::Sequences, pairs, "last value");
        assert_eq!(verdict(&of(&pairs)), Verdict::Better);
        assert_eq!(verdict(&of(&pairs.iter().map(|&[a, b]| [b, a]).collect::<Vec<_>>())), Verdict::Worse);
        let far = of(&[[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [9.0, 1.0]]);
        assert!(far.interval.is_some_and(|[low, high]| low == 0.0 && high > 4.0), "{far:?}");
        let few = of(&pairs[..4]);
        assert_eq!((verdict(&few), few.interval, few.n), (Verdict::Undecided, None, 4));
        assert_eq!((of(&[]).found, of(&[]).n), (0.0, 0));
    }
}
