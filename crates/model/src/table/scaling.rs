//! How the numbers of a series become those that a model reads, and back.

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::Normalization;
use super::normalization::MAX_DEVIATIONS;

/// Most steps that a level or a lag looks back.
pub const MAX_REACH: usize = 1 << 16;

/// What the numbers of a series are seen relative to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Mean and deviation of the part that is trained on, the same for every series.
    #[default]
    Standard,
    /// The level of the series itself, as it stands at each step: with z = f(x),
    ///
    /// ```text
    /// level[t] = mean of z[t − S + 1] … z[t]        unit[t] = 1, or the mean of |z| there where f is the identity
    /// seen     = (z − level[t]) / (unit[t] · deviation)
    /// ```
    ///
    /// where: S = `span`, and fewer steps where the series has just begun; the deviation is that of such numbers in training. Numbers that are
    /// missing do not count; where all S are, the level is the one at the last that is known, as far as the last [`FILLED`] steps tell it.
    Level {
        /// f of each column that is read.
        transforms: Vec<Transform>,
        /// S.
        span: usize,
        /// Besides the number of step t the model reads those of steps t − j, for each j of these, relative to the same level; the first
        /// number of the series where there is none.
        lags: Vec<usize>,
    },
}

/// What is taken of a number before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transform {
    /// x.
    #[default]
    Identity,
    /// ln x: changes count in proportion.
    Log {
        /// What 0 is taken for, above 0.
        floor: f64,
    },
    /// ln(1 + x).
    Log1p,
}

/// What is done with a number that is missing, which is NaN in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// It is refused.
    #[default]
    Error,
    /// The model reads the last one that is known, if it is at most [`FILLED`] steps old, and else the mean or the level.
    ForwardFill,
    /// The same, and another input for each column says that it is missing: 1, where it is 0 otherwise.
    Mask,
}

/// Steps after which a number that is missing is no longer taken to be the last that was known.
pub const FILLED: usize = 64;

impl Missing {
    /// Whether a number must be there.
    pub fn is_error(&self) -> bool {
        *self == Self::Error
    }

    /// Inputs that tell what is missing in a column.
    pub(super) fn inputs_per_column(self) -> usize {
        usize::from(self == Self::Mask)
    }
}

/// How the numbers of one column are seen at one step: x ↦ (f(x) − center) / unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// f.
    pub transform: Transform,
    /// What is seen as 0, after f.
    pub center: f64,
    /// What is seen as 1 beyond it, above 0.
    pub unit: f64,
}

impl Transform {
    /// Whether there is an f(x); a missing value, NaN, has a missing one.
    pub fn reads(self, x: f64) -> bool {
        self == Self::Identity || x.is_nan() || x >= 0.0
    }

    /// f(x), or f(0) of what [has none](Self::reads); of a missing value, NaN, a missing one.
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
    /// Whether numbers are seen relative to nothing of their own series.
    pub fn is_standard(&self) -> bool {
        *self == Self::Standard
    }

    /// What is taken of the numbers of `column`, of those that are read.
    ///
    /// # Panics
    /// When numbers are relative to a level and there is no such column.
    pub fn transform(&self, column: usize) -> Transform {
        match self {
            Self::Standard => Transform::Identity,
            Self::Level { transforms, .. } => transforms[column],
        }
    }

    /// How many rows up to a step decide what is read there, that of the step itself included.
    pub fn reach(&self) -> usize {
        match self {
            Self::Standard => 1,
            Self::Level { span, lags, .. } => lags.iter().map(|lag| lag.saturating_add(1)).fold((*span).max(1), usize::max),
        }
    }

    /// How many numbers of a column are read at a step.
    pub fn inputs_per_column(&self) -> usize {
        1 + self.lags().len()
    }

    /// The steps back that are read besides the present one.
    pub fn lags(&self) -> &[usize] {
        match self {
            Self::Standard => &[],
            Self::Level { lags, .. } => lags,
        }
    }

    /// Whether every setting lies within its bounds, for rows of `width` columns.
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

    /// How the numbers of `column` are seen after `recent`, rows `[n, width]` of which the last is the present one: relative to the level of
    /// their own series, or to `usual` where [none is known](Self::knows). `None` with [`Standard`](Self::Standard), which looks at no row.
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

    /// The last rows among which a number must be known for one that is missing to be told by it.
    pub fn looks_back(&self) -> usize {
        match self {
            Self::Standard => FILLED,
            Self::Level { span, .. } => FILLED.max(*span),
        }
    }

    /// Whether one of the numbers of `column` is known that decide how it is seen after `recent`, rows `[n, width]`.
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
/// How the numbers of `column` of the rows `recent` are seen, those of column `at` of `normalization`; `usual` are the columns of the table.
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
