//! How the numbers of a series become a model's inputs, and back.

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::Normalization;
use super::normalization::MAX_DEVIATIONS;

/// Maximum number of steps that a level or a lag looks back.
pub const MAX_REACH: usize = 1 << 16;

/// What the numbers of a series are read relative to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Mean and standard deviation of the training part, the same for every series.
    #[default]
    Standard,
    /// The current level of the series itself: with z = f(x),
    ///
    /// ```text
    /// level[t] = mean of z[t − S + 1] … z[t]        unit[t] = 1, or the mean of |z| there where f is the identity
    /// seen     = (z − level[t]) / (unit[t] · deviation)
    /// ```
    ///
    /// where S = `span`, or fewer steps if the series has just begun; the deviation is that of such numbers in training. Missing numbers
    /// are ignored; if all S are missing, the level is that at the last known one, computed from the last [`FILLED`] steps.
    Level {
        /// f of each column that is read.
        transforms: Vec<Transform>,
        /// S.
        span: usize,
        /// The model also reads the numbers of steps t − j, for each j in this list, relative to the same level; the first number of the
        /// series if there is none.
        lags: Vec<usize>,
    },
}

/// A transform applied to a number first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transform {
    /// x.
    #[default]
    Identity,
    /// ln x: changes count in proportion.
    Log {
        /// The value that replaces 0, above 0.
        floor: f64,
    },
    /// ln(1 + x).
    Log1p,
}

/// How a missing number, NaN in a row, is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// It is refused.
    #[default]
    Error,
    /// The model reads the last known number if it is at most [`FILLED`] steps old, otherwise the mean or the level.
    ForwardFill,
    /// As `ForwardFill`, and another input for each column is 1 where its number is missing and 0 otherwise.
    Mask,
}

/// Number of steps after which the last known number no longer replaces a missing one.
pub const FILLED: usize = 64;

impl Missing {
    /// Whether a missing number is an error.
    pub fn is_error(&self) -> bool {
        *self == Self::Error
    }

    /// Number of inputs that tell what is missing in a column.
    pub(super) fn inputs_per_column(self) -> usize {
        usize::from(self == Self::Mask)
    }
}

/// The scale of a column's numbers at one step: x ↦ (f(x) − center) / unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// f.
    pub transform: Transform,
    /// The value that maps to 0, after f.
    pub center: f64,
    /// The distance from it that maps to 1, above 0.
    pub unit: f64,
}

impl Transform {
    /// Whether f(x) is defined; true for NaN, a missing value.
    pub fn reads(self, x: f64) -> bool {
        self == Self::Identity || x.is_nan() || x >= 0.0
    }

    /// f(x), or f(0) if it [is undefined](Self::reads); NaN, a missing value, stays NaN.
    #[inline]
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::Identity => x,
            // A missing value is not below anything.
            Self::Log { floor } => libm::log(if x <= 0.0 { floor } else { x }),
            Self::Log1p => libm::log1p(if x < 0.0 { 0.0 } else { x }),
        }
    }

    /// The number whose f is `z`.
    #[inline]
    pub fn restore(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Log { .. } => libm::exp(z),
            Self::Log1p => libm::expm1(z),
        }
    }

    fn is_usable(self) -> bool {
        !matches!(self, Self::Log { floor } if !(floor > 0.0 && floor.is_finite()))
    }
}

impl Scaling {
    /// Whether numbers are not relative to anything in their own series.
    pub fn is_standard(&self) -> bool {
        *self == Self::Standard
    }

    /// The transform of `column`, among those that are read.
    ///
    /// # Panics
    /// When numbers are relative to a level and there is no such column.
    pub fn transform(&self, column: usize) -> Transform {
        match self {
            Self::Standard => Transform::Identity,
            Self::Level { transforms, .. } => transforms[column],
        }
    }

    /// Number of rows up to a step, including its own, that determine what is read there.
    pub fn reach(&self) -> usize {
        match self {
            Self::Standard => 1,
            Self::Level { span, lags, .. } => lags.iter().map(|lag| lag.saturating_add(1)).fold((*span).max(1), usize::max),
        }
    }

    /// Numbers of a column that are read at a step.
    pub fn inputs_per_column(&self) -> usize {
        1 + self.lags().len()
    }

    /// The lags that are read besides the present step.
    pub fn lags(&self) -> &[usize] {
        match self {
            Self::Standard => &[],
            Self::Level { lags, .. } => lags,
        }
    }

    /// Whether every setting is in range, for rows of `width` columns.
    pub fn is_usable(&self, width: usize) -> bool {
        match self {
            Self::Standard => true,
            Self::Level { transforms, span, lags } => {
                let near = |steps: &usize| (1..MAX_REACH).contains(steps);
                transforms.iter().all(|transform| transform.is_usable())
                    && transforms.len() == width
                    && near(span)
                    && lags.iter().all(near)
                    && lags.len() < MAX_REACH
            }
        }
    }

    /// The scale of `column` after `recent`, rows `[n, width]` with the present one last: relative to the level of its own series, or to
    /// `usual` if [no number is known](Self::knows). `None` with [`Standard`](Self::Standard), which does not look at rows.
    ///
    /// # Panics
    /// When `recent` has no row, or `column` is not below `width`.
    pub fn level(&self, recent: &[f64], width: usize, column: usize, usual: f64) -> Option<Scale> {
        let Self::Level { transforms, span, .. } = self else { return None };
        let (transform, rows) = (transforms[column], recent.len() / width);
        let first = rows.saturating_sub(*span);
        assert!(first < rows, "a level needs a row");
        let of = |steps: Range<usize>| {
            let (mut sum, mut size, mut n) = (0.0, 0.0, 0.0);
            for row in recent[steps.start * width..steps.end * width].chunks_exact(width) {
                if row[column].is_nan() {
                    continue;
                }
                let z = transform.apply(row[column]);
                sum += z;
                size += z.abs();
                n += 1.0;
            }
            let unit = if transform == Transform::Identity && size > 0.0 { size / n } else { 1.0 };
            (n > 0.0).then(|| Scale { transform, center: sum / n, unit })
        };
        let of_last_known = || {
            // Rows before these are not always kept.
            let oldest = rows.saturating_sub(FILLED);
            let last = (oldest..first).rev().find(|&t| !recent[t * width + column].is_nan())?;
            of((last + 1).saturating_sub(*span).max(oldest)..last + 1)
        };
        let level = of(first..rows).or_else(of_last_known);
        Some(level.unwrap_or_else(|| Scale { transform, center: transform.apply(usual), unit: 1.0 }))
    }

    /// Number of last rows that must contain a known number for it to replace a missing one.
    pub fn looks_back(&self) -> usize {
        match self {
            Self::Standard => FILLED,
            Self::Level { span, .. } => FILLED.max(*span),
        }
    }

    /// Whether any number of `column` that determines its scale after `recent`, rows `[n, width]`, is known.
    pub fn knows(&self, recent: &[f64], width: usize, column: usize) -> bool {
        recent.chunks_exact(width).rev().take(self.looks_back()).any(|row| !row[column].is_nan())
    }
}

impl Scale {
    /// `x` as the model sees it, at most [`MAX_DEVIATIONS`] away from 0.
    #[inline]
    pub fn apply(&self, x: f64) -> f32 {
        ((self.transform.apply(x) - self.center) / self.unit).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS) as f32
    }

    /// The number that the model sees as `x`.
    #[inline]
    pub fn restore(&self, x: f32) -> f64 {
        self.transform.restore(f64::from(x) * self.unit + self.center)
    }
}
/// How the model sees the numbers of `column` of the rows `recent`, which is column `at` of `normalization`; `usual` are the columns of the table.
pub(super) fn scale(
    scaling: &Scaling,
    normalization: &Normalization,
    [at, column]: [usize; 2],
    recent: &[f64],
    width: usize,
    usual: &Normalization,
) -> Scale {
    let (mean, deviation) = (normalization.mean[at], normalization.deviation[at]);
    match scaling.level(recent, width, column, usual.mean[column]) {
        None => Scale { transform: Transform::Identity, center: mean, unit: deviation },
        Some(level) => Scale { center: level.center + mean * level.unit, unit: level.unit * deviation, ..level },
    }
}
