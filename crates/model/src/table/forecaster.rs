//! The next values of every sequence.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::scaling::scale;
use super::{Category, Layout, Missing, Normalization, Scale, Scaling};

/// Most output numbers that are accepted.
const MAX_OUTPUTS: usize = 1 << 24;

/// A forecasting task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecaster {
    /// Columns that are read.
    pub columns: Vec<String>,
    /// The column that names the sequence of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Columns that are forecast.
    pub target: Vec<String>,
    /// The column with the time of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Steps ahead, H.
    pub horizon: usize,
    /// Steps in a season of the naive forecast; 0: the last value.
    pub season: usize,
    /// Means and standard deviations of `columns`.
    pub normalization: Normalization,
    /// Means and standard deviations of `target`.
    pub target_normalization: Normalization,
    /// What numbers are read relative to. With a level, the normalisations are those of numbers relative to it, with mean 0.
    #[serde(default, skip_serializing_if = "Scaling::is_standard")]
    pub scaling: Scaling,
    /// How missing numbers are treated.
    #[serde(default, skip_serializing_if = "Missing::is_error")]
    pub missing: Missing,
    /// The layout of the series in a table that does not have these columns.
    #[serde(default, skip_serializing_if = "Layout::is_long")]
    pub layout: Layout,
    /// Those of `columns` that hold names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Category>,
    /// With a level, means and standard deviations of `columns` as they are in the table: numbers far from them are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_table: Option<Normalization>,
    /// The levels of the predicted quantiles, ascending, including the median; empty: the mean only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f64>,
}

impl Forecaster {
    /// Numbers predicted for every value: Q quantiles, or 1, the mean.
    pub fn n_quantiles(&self) -> usize {
        self.quantiles.len().max(1)
    }

    /// The index among them of the point forecast: the median, or the mean.
    pub fn point(&self) -> usize {
        self.quantiles.iter().position(|&level| level == 0.5).unwrap_or(0)
    }

    /// Names of a forecast's numbers at one step, target by target, each with its index among the `[columns, Q]` numbers of the step. The
    /// point forecast is named like its target; other quantiles have their level appended, and `_quantile` if that is the name of a target.
    pub fn value_names(&self) -> Vec<(String, usize)> {
        let quantile = |target: &str, level: f64| {
            let mut name = format!("{target} q{level}");
            while self.target.contains(&name) {
                name += "_quantile";
            }
            name
        };
        let of_target = |(target, name): (usize, &String)| {
            let first = target * self.n_quantiles();
            let others = self.quantiles.iter().enumerate().filter(|&(at, _)| at != self.point());
            let others = others.map(|(at, &level)| (quantile(name, level), first + at));
            [(name.clone(), first + self.point())].into_iter().chain(others.collect::<Vec<_>>())
        };
        self.target.iter().enumerate().flat_map(of_target).collect()
    }

    /// Whether a forecast of a target after the rows `recent`, `[n, columns]`, is based on at least one known number; otherwise it is at
    /// the level or the mean of the table. True for a target that is not read.
    ///
    /// # Panics
    /// When there is no such target.
    pub fn knows(&self, target: usize, recent: &[f64]) -> bool {
        self.column_of(target).is_none_or(|column| self.scaling.knows(recent, self.columns.len(), column))
    }

    /// The scale of a target's numbers after the rows `recent`, `[n, columns]`.
    ///
    /// # Panics
    /// When there is no such target, or `recent` has no row and numbers are relative to a level; also for a forecaster made by hand that
    /// [is refused](super::TableTask::expect_usable).
    pub fn target_scale(&self, target: usize, recent: &[f64]) -> Scale {
        let column = || self.column_of(target).expect("a level is that of a column that is read");
        let column = if self.scaling.is_standard() { 0 } else { column() };
        let usual = self.of_table.as_ref().unwrap_or(&self.normalization);
        scale(&self.scaling, &self.target_normalization, [target, column], recent, self.columns.len(), usual)
    }

    /// The column that the values of `target` are read from, if they are read.
    pub(super) fn column_of(&self, target: usize) -> Option<usize> {
        self.columns.iter().position(|column| *column == self.target[target])
    }

    pub(super) fn restore(&self, recent: &[f64], outputs: &[f32], numbers: &mut [f64]) {
        let (n_targets, n_quantiles) = (self.target.len(), self.n_quantiles());
        for target in 0..n_targets {
            let scale = self.target_scale(target, recent);
            let of_target = |row: usize| (row * n_targets + target) * n_quantiles;
            for at in (0..self.horizon).map(of_target) {
                let values = &mut numbers[at..at + n_quantiles];
                values.iter_mut().zip(&outputs[at..]).for_each(|(value, &x)| *value = scale.restore(x));
                // Quantiles that cross are put in order (Chernozhukov, Fernández-Val and Galichon 2010, section 2).
                values.sort_unstable_by(f64::total_cmp);
            }
        }
    }

    pub(super) fn fits(&self, n_outputs: usize) -> bool {
        let Self { horizon, target, target_normalization, quantiles, .. } = self;
        let outputs = horizon.checked_mul(target.len()).and_then(|values| values.checked_mul(self.n_quantiles()));
        let holds_names = |name: &String| self.categories.iter().any(|category| self.columns.get(category.column) == Some(name));
        let is_rising = quantiles.windows(2).all(|pair| pair[0] < pair[1]) && quantiles.iter().all(|level| *level > 0.0 && *level < 1.0);
        outputs.filter(|&outputs| outputs > 0 && outputs <= MAX_OUTPUTS) == Some(n_outputs)
            && target_normalization.is_usable()
            && target_normalization.width() == target.len()
            && !target.iter().any(holds_names)
            && (self.scaling.is_standard() || self.of_table.is_some() && target.iter().all(|name| self.columns.contains(name)))
            && (quantiles.is_empty() || is_rising && quantiles.contains(&0.5))
    }
}
