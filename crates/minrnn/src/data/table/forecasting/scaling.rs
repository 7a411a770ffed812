//! What the numbers of a series are read relative to, determined by the training part.

use minrnn_kernels::choices;
use minrnn_model::{Category, FILLED, Forecaster, MAX_REACH, Normalization, Scaling, Transform};

use super::super::series::Series;
use super::super::{categories, normalization};
use super::Bounds;
use crate::{Error, Result};

choices! {
    /// The level relative to which the numbers of a series are read ([`Scaling`]).
    ScalingChoice, "scaling" {
        /// The choice that suits the training part: the logarithm where all numbers are above 0, ln(1 + x) where some are 0, and the mean
        /// where some are below; mean and deviation of the table if a target is not among the columns that are read.
        Auto = "auto",
        /// Mean and deviation of the training part of the table.
        #[default]
        Standard = "standard",
        /// The mean of the last season of the series itself.
        Mean = "mean",
        /// The same of logarithms.
        Log = "log",
        /// The same of ln(1 + x).
        Log1p = "log1p",
    }
}

/// Steps averaged for a level if there is no season.
const SPAN: usize = 6;
/// Lags that are read one by one; for longer seasons, those around the season are read as well.
const NEAR_LAGS: usize = 24;
/// Approximate number of values from which deviations are computed.
const SAMPLE: usize = 1 << 20;

/// The columns that are read, and the positions of those that are forecast.
pub(super) struct Columns<'a> {
    pub names: &'a [String],
    /// The columns that hold names.
    pub categories: &'a [Category],
    /// The position of each target in a row.
    pub targets: &'a [usize],
    /// The position of each target among the columns that are read, if all are.
    pub read_targets: Option<&'a [usize]>,
    /// Steps in a season.
    pub season: usize,
    pub horizon: usize,
}

/// How numbers are seen: relative to which level, with means and deviations of inputs and targets.
pub(super) struct Seen {
    pub scaling: Scaling,
    pub normalization: Normalization,
    pub target_normalization: Normalization,
    /// Means and standard deviations of the raw columns that are read, if numbers are relative to a level.
    pub of_table: Option<Normalization>,
}

impl Seen {
    /// The scaling that `forecaster` was trained with.
    pub fn of(forecaster: &Forecaster) -> Self {
        let Forecaster { scaling, normalization, target_normalization, of_table, .. } = forecaster.clone();
        Self { scaling, normalization, target_normalization, of_table }
    }

    /// The scaling for `choice`, fitted on the training parts.
    ///
    /// # Errors
    /// When a requested logarithm does not exist, or numbers are too large.
    pub fn fit(choice: ScalingChoice, series: &[Series], bounds: &[Bounds], columns: &Columns<'_>) -> Result<Self> {
        let width = series.first().map_or(0, |series| series.width);
        let trained = || series.iter().zip(bounds).flat_map(|(series, bounds)| series.rows().take(bounds.training));
        let Some(targets) = columns.read_targets.filter(|_| choice != ScalingChoice::Standard) else {
            if ![ScalingChoice::Auto, ScalingChoice::Standard].contains(&choice) {
                return Err(Error::Config(format!(
                    "scaling = {choice} sees a target relative to what was read of it, but a target is not among the columns that are read; \
                     add it to columns, or use scaling = standard"
                )));
            }
            let mut fitted = normalization::fit(width, trained())?;
            categories::leave(&mut fitted, columns.categories);
            let read: Vec<usize> = (0..columns.names.len()).collect();
            let [normalization, target_normalization] =
                [&read[..], columns.targets].map(|columns| normalization::of_columns(&fitted, columns));
            return Ok(Self { scaling: Scaling::Standard, normalization, target_normalization, of_table: None });
        };
        let mut transforms = Vec::with_capacity(width);
        for (column, name) in columns.names.iter().enumerate() {
            if columns.holds_names(column) {
                transforms.push(Transform::Identity);
                continue;
            }
            let (mut least, mut least_above) = (f64::INFINITY, f64::INFINITY);
            for row in trained().filter(|row| !row[column].is_nan()) {
                least = least.min(row[column]);
                least_above = if row[column] > 0.0 { least_above.min(row[column]) } else { least_above };
            }
            // No logarithm is chosen if later rows have none.
            let of_all = || series.iter().flat_map(Series::rows).map(|row| row[column]).fold(f64::INFINITY, f64::min);
            let log = Transform::Log { floor: if least_above.is_finite() { least_above } else { 1.0 } };
            transforms.push(match choice {
                ScalingChoice::Auto if least > 0.0 && of_all() >= 0.0 => log,
                ScalingChoice::Auto if least == 0.0 && least_above.is_finite() && of_all() >= 0.0 => Transform::Log1p,
                ScalingChoice::Log if least <= 0.0 => return Err(without_logarithm(name, least, "log", "log1p or mean")),
                ScalingChoice::Log => log,
                ScalingChoice::Log1p if least < 0.0 => return Err(without_logarithm(name, least, "log1p", "mean")),
                ScalingChoice::Log1p => Transform::Log1p,
                _ => Transform::Identity,
            });
        }
        let scaling = Scaling::Level { transforms, span: span(columns.season), lags: lags(columns.season) };
        let mut of_table = normalization::fit(width, trained())?;
        categories::leave(&mut of_table, columns.categories);
        let (mut normalization, target_normalization) = deviations(&scaling, &of_table, series, bounds, columns, targets)?;
        categories::leave(&mut normalization, columns.categories);
        let of_table = Some(of_table);
        Ok(Self { scaling, normalization, target_normalization, of_table })
    }
}

impl Columns<'_> {
    fn holds_names(&self, column: usize) -> bool {
        self.categories.iter().any(|category| category.column == column)
    }
}

fn without_logarithm(name: &str, least: f64, choice: &str, others: &str) -> Error {
    Error::Data(format!("the column '{name}' has {least:?}, of which scaling = {choice} has no logarithm; use scaling = {others}"))
}

/// The mean of a whole season is the same wherever it begins.
fn span(season: usize) -> usize {
    if season < 2 { SPAN } else { season.min(MAX_REACH - 1) }
}

fn lags(season: usize) -> Vec<usize> {
    match span(season) {
        near if near <= NEAR_LAGS => (1..=near).collect(),
        far => (1..=NEAR_LAGS / 2).chain(far - 1..=(far + 1).min(MAX_REACH - 1)).collect(),
    }
}

/// One of each `stride` numbers from 0 on, without a rhythm: at every hour of a day, and no more often in the first steps of a series than in
/// others.
fn one_of_each(stride: usize) -> impl Iterator<Item = usize> {
    // The golden ratio as a fraction of 2^64: its multiples are evenly spread.
    let place = move |at: u64| ((u128::from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * stride as u128) >> 64) as usize;
    (0u64..).map(move |at| at as usize * stride + place(at))
}

/// Means of 0, and the deviations of numbers relative to their level: of inputs and of targets.
fn deviations(
    scaling: &Scaling,
    of_table: &Normalization,
    series: &[Series],
    bounds: &[Bounds],
    columns: &Columns<'_>,
    targets: &[usize],
) -> Result<(Normalization, Normalization)> {
    let width = columns.names.len();
    let steps: usize = bounds.iter().map(|bounds| bounds.training).sum();
    let ahead = columns.horizon.div_ceil(16).max(1);
    let stride = (steps / SAMPLE * columns.horizon.div_ceil(ahead)).max(1);
    let (mut read, mut to_come) = (vec![[0.0; 3]; width], vec![[0.0; 3]; targets.len()]);
    // Sums of squared distances from the level and of squared sizes, and the count.
    let add = |sum: &mut [f64; 3], [x, size]: [f64; 2]| {
        if !x.is_nan() {
            *sum = [sum[0] + x * x, sum[1] + size * size, sum[2] + 1.0];
        }
    };
    // As far as a model sees: after a gap the level is that from before it.
    let reach = scaling.reach().max(FILLED);
    let (mut steps, mut before) = (one_of_each(stride).peekable(), 0);
    for (series, bounds) in series.iter().zip(bounds) {
        let end = before + bounds.training;
        while let Some(step) = steps.next_if(|&step| step < end) {
            let t = step - before;
            let recent = &series.values[(t + 1).saturating_sub(reach) * width..(t + 1) * width];
            let relative = |column: usize, x: f64| {
                let level = scaling.level(recent, width, column, of_table.mean[column]).expect("numbers are seen relative to a level");
                let x = level.transform.apply(x);
                [(x - level.center) / level.unit, x / level.unit]
            };
            for (column, sum) in read.iter_mut().enumerate() {
                add(sum, relative(column, series.row(t)[column]));
            }
            for (sum, &column) in to_come.iter_mut().zip(targets) {
                for ahead in (1..=columns.horizon).step_by(ahead).filter(|ahead| t + ahead < bounds.training) {
                    add(sum, relative(column, series.row(t + ahead)[column]));
                }
            }
        }
        before = end;
    }
    let of = |sums: &[[f64; 3]]| {
        // Rounding errors of a constant are not a deviation.
        let is_constant = |sum: f64, sizes: f64| sizes.is_finite() && sum <= 1e-24 * sizes;
        let deviation = |&[sum, sizes, n]: &[f64; 3]| if is_constant(sum, sizes) { 1.0 } else { (sum / n).sqrt() };
        let fitted = Normalization { mean: vec![0.0; sums.len()], deviation: sums.iter().map(deviation).collect() };
        if fitted.is_usable() { Ok(fitted) } else { Err(normalization::too_large()) }
    };
    Ok((of(&read)?, of(&to_come)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::{Clock, Values};

    fn series(values: &[f64]) -> Vec<Series> {
        let (times, to_come) = (Values::default(), Values::default());
        vec![Series {
            name: "a".to_owned(),
            values: values.to_vec().into(),
            width: 1,
            times,
            clock: Clock::Number,
            to_come,
            usual_step: None,
        }]
    }

    fn fit(choice: ScalingChoice, values: &[f64]) -> Result<Seen> {
        let names = ["x".to_owned()];
        let columns = Columns { names: &names, categories: &[], targets: &[0], read_targets: Some(&[0]), season: 3, horizon: 2 };
        Seen::fit(choice, &series(values), &[Bounds { training: values.len(), validation: values.len(), test: values.len() }], &columns)
    }

    fn transform(seen: &Seen) -> Transform {
        match &seen.scaling {
            Scaling::Level { transforms, span: 3, lags } if lags == &[1, 2, 3] => transforms[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_training_part_decides_what_numbers_are_seen_relative_to() {
        assert_eq!(transform(&fit(ScalingChoice::Auto, &[3.0, 2.0, 8.0, 4.0]).unwrap()), Transform::Log { floor: 2.0 });
        assert_eq!(transform(&fit(ScalingChoice::Auto, &[3.0, 0.0, 8.0, 4.0]).unwrap()), Transform::Log1p);
        assert_eq!(transform(&fit(ScalingChoice::Auto, &[3.0, -1.0, 8.0]).unwrap()), Transform::Identity);
        assert_eq!(transform(&fit(ScalingChoice::Auto, &[0.0; 4]).unwrap()), Transform::Identity);
        assert_eq!(transform(&fit(ScalingChoice::Mean, &[3.0, 2.0]).unwrap()), Transform::Identity);
        assert_eq!(fit(ScalingChoice::Standard, &[3.0, 2.0]).unwrap().scaling, Scaling::Standard);
        let refused = fit(ScalingChoice::Log, &[3.0, 0.0]).err().unwrap().to_string();
        assert_eq!(refused, "the column 'x' has 0.0, of which scaling = log has no logarithm; use scaling = log1p or mean");
        assert!(fit(ScalingChoice::Log1p, &[3.0, -1.0]).err().unwrap().to_string().contains("use scaling = mean"));
    }

    #[test]
    fn numbers_of_any_size_have_deviations_of_their_own() {
        let deviations = |values: [f64; 6]| {
            let seen = fit(ScalingChoice::Auto, &values).unwrap();
            [seen.normalization.deviation[0], seen.target_normalization.deviation[0]]
        };
        // With a zero, so that the logarithm of 1 + x is taken.
        let large = deviations([0.0, 3e-3, 1e-3, 2e-3, 5e-3, 1e-3]);
        let tiny = deviations([0.0, 3e-18, 1e-18, 2e-18, 5e-18, 1e-18]);
        assert!(large.iter().zip(tiny).all(|(large, tiny)| (tiny / large / 1e-15 - 1.0).abs() < 0.01), "{large:?} {tiny:?}");
        assert_eq!(deviations([0.0; 6]), [1.0; 2]);
        assert_eq!(deviations([1e-18; 6]), [1.0; 2]);
    }

    #[test]
    fn deviations_are_those_of_numbers_relative_to_their_level() {
        // Logarithms 0, 2, 1; levels 0, 1, 1; read 0, 1, 0; to come 2, 1 after the first step and 0 after the second.
        let e = std::f64::consts::E;
        let seen = fit(ScalingChoice::Auto, &[1.0, e * e, e]).unwrap();
        assert!((seen.normalization.deviation[0] - (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((seen.target_normalization.deviation[0] - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        // A series that never changes.
        assert_eq!(fit(ScalingChoice::Auto, &[5.0; 9]).unwrap().normalization.deviation, [1.0]);
    }

    #[test]
    fn steps_that_are_looked_at_follow_no_season() {
        assert!(one_of_each(1).take(100).eq(0..100));
        for (stride, season) in [(12, 24), (24, 24), (48, 24), (7, 7), (24, 168), (1000, 12)] {
            let steps: Vec<usize> = one_of_each(stride).take(100 * season).collect();
            assert!(steps.iter().enumerate().all(|(at, &step)| step / stride == at));
            for phase in 0..season {
                let n = steps.iter().filter(|&&step| step % season == phase).count();
                assert!((60..150).contains(&n), "{n} of {stride} at {phase} of {season}");
            }
        }
    }

    #[test]
    fn a_long_season_is_read_where_it_matters() {
        assert_eq!((span(0), lags(0).len()), (SPAN, SPAN));
        assert_eq!(lags(168)[10..], [11, 12, 167, 168, 169]);
        assert!(lags(usize::MAX).iter().all(|&lag| lag < MAX_REACH));
    }
}
