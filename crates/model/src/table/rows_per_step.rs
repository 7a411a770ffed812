//! Steps of several rows.

use minrnn_kernels::simd::sqrt_f64;
use serde::{Deserialize, Serialize};

use super::{Category, FILLED, MAX_DEVIATIONS, Normalization};

/// Most rows that a step may have.
pub const MAX_ROWS_PER_STEP: usize = 1 << 16;

/// How many rows of a sequence a model reads as one step, and on which scale.
///
/// Rows are counted from a sequence's first; its last step may have fewer. Of a column of numbers, the model reads three of the step:
///
/// ```text
/// mean        μ = Σ x / n                       of the n numbers that are known
/// deviation   σ = √(Σ (x − μ)² / n)
/// change      δ = √(Σ (x − x before)² / m)      over the m pairs of successive rows whose numbers are known; 0 if there is none
/// ```
///
/// Of a column of names, it reads the share of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsPerStep {
    /// How many, from 2 on.
    pub n: usize,
    /// Mean and standard deviation of μ, σ and δ of each column over the steps that were trained on, `[columns, 3]`; those of columns of
    /// names are not used.
    pub normalization: Normalization,
}

impl RowsPerStep {
    /// Numbers that a model reads of a column of numbers.
    pub const INPUTS: usize = 3;

    /// Mean, deviation and change of the known numbers of `column` in `rows` `[n, width]`, of one step; `None` if none is known.
    pub fn summary(rows: &[f64], width: usize, column: usize) -> Option<[f64; Self::INPUTS]> {
        let all = column_of(rows, width, column);
        let known = all.clone().filter(|x| !x.is_nan());
        let first = known.clone().next()?;
        let (mut n, mut is_constant) = (0.0, true);
        for x in known.clone() {
            n += 1.0;
            is_constant &= x == first;
        }
        // Rounding errors of a constant are not a deviation.
        if is_constant {
            return Some([first, 0.0, 0.0]);
        }
        let mean: f64 = known.clone().map(|x| x / n).sum();
        let variance: f64 = known.map(|x| (x - mean) * (x - mean) / n).sum();
        let (mut m, mut squares, mut before) = (0.0f64, 0.0, f64::NAN);
        for x in all {
            let change = x - before;
            if !change.is_nan() {
                m += 1.0;
                squares += change * change;
            }
            before = x;
        }
        Some([mean, sqrt_f64(variance), sqrt_f64(squares / m.max(1.0))])
    }

    /// Whether everything is in range, for rows of `width` columns.
    pub(super) fn is_usable(&self, width: usize) -> bool {
        let Self { n, normalization } = self;
        (2..=MAX_ROWS_PER_STEP).contains(n) && normalization.is_usable() && normalization.width() == Self::INPUTS * width
    }

    /// The rows before a step in which a number is looked up if none is known in the step itself, as whole steps.
    pub(super) fn looked_up(n: usize) -> usize {
        FILLED.next_multiple_of(n)
    }

    /// Writes what the model reads of `column` at the last step of `recent`, rows `[n, width]` that begin with the first of a step: its
    /// numbers, and the share of rows whose number is missing.
    pub(super) fn show(
        &self,
        (column, category): (usize, Option<&Category>),
        recent: &[f64],
        width: usize,
        numbers: &mut [f32],
        is_missing: &mut [f32],
    ) {
        let first = (recent.len() / width - 1) / self.n * self.n;
        let (before, step) = recent.split_at(first * width);
        let n = step.len() / width;
        let n_known = column_of(step, width, column).filter(|x| !x.is_nan()).count();
        // If none is known, the last one before stands for all of them.
        let stand_in = || column_of(before, width, column).rev().take(FILLED).find(|x| !x.is_nan());
        let stand_in = if n_known == 0 { stand_in() } else { None };
        if category.is_some() {
            numbers.fill(0.0);
            for x in column_of(step, width, column).chain(stand_in) {
                // Neither a gap nor a name that training never saw is among the names.
                if let Some(count) = numbers.get_mut(x as usize).filter(|_| x >= 0.0) {
                    *count += 1.0;
                }
            }
            numbers.iter_mut().for_each(|count| *count /= n_known.max(1) as f32);
        } else {
            let found = Self::summary(step, width, column).or(stand_in.map(|x| [x, 0.0, 0.0]));
            // Steps that were trained on may differ far less than the rows that are accepted.
            let limit = MAX_DEVIATIONS as f32;
            for (at, x) in numbers.iter_mut().enumerate() {
                *x = found.map_or(0.0, |found| self.normalization.apply(Self::INPUTS * column + at, found[at]).clamp(-limit, limit));
            }
        }
        is_missing.fill((n - n_known) as f32 / n as f32);
    }
}

/// The numbers of `column` in `rows` `[n, width]`.
fn column_of(rows: &[f64], width: usize, column: usize) -> impl DoubleEndedIterator<Item = f64> + Clone {
    rows.chunks_exact(width).map(move |row| row[column])
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::{Classifier, History, Layout, Missing, TableTask};
    use super::*;

    fn scale<const N: usize>(mean: [f64; N], deviation: [f64; N]) -> Normalization {
        Normalization { mean: mean.to_vec(), deviation: deviation.to_vec() }
    }

    /// Reads a column of numbers and one of two names, `n` rows at a time.
    fn task(n: usize, missing: Missing) -> TableTask {
        let usual = scale([1.0, 0.0], [0.5, 1.0]);
        TableTask::Classify(Classifier {
            columns: vec!["x".into(), "site".into()],
            group: "machine".into(),
            target: "state".into(),
            time: None,
            classes: vec!["good".into(), "worn".into()],
            normalization: usual,
            missing,
            layout: Layout::Long,
            categories: vec![Category { column: 1, values: vec!["north".into(), "south".into()] }],
            rows_per_step: Some(RowsPerStep { n, normalization: scale([2.0, 0.5, 1.0, 0.0, 0.0, 0.0], [4.0, 0.25, 2.0, 1.0, 1.0, 1.0]) }),
        })
    }

    #[test]
    fn a_step_is_a_mean_a_deviation_a_change_and_the_shares_of_names_and_gaps() {
        let (task, gap) = (task(4, Missing::Mask), f64::NAN);
        let mut inputs = [0.0; 7];
        task.show(&[1.0, 0.0, gap, 0.0, 3.0, -1.0, gap, 1.0], &mut inputs);
        // Of 1 and 3 the mean is 2 and the deviation 1, and no rows with both follow one another.
        assert_eq!(inputs, [0.0, 2.0, -0.5, 0.5, 0.5, 0.25, 0.0]);
        // 3, -1, 5, 1: changes of 4, 6 and 4.
        task.show(&[3.0, 0.0, -1.0, 0.0, 5.0, 0.0, 1.0, 0.0], &mut inputs);
        let (deviation, change) = (sqrt_f64(5.0), sqrt_f64(68.0 / 3.0));
        assert_eq!(inputs, [0.0, ((deviation - 0.5) / 0.25) as f32, ((change - 1.0) / 2.0) as f32, 0.0, 1.0, 0.0, 0.0]);
        // Nothing is known in a step: its rows are as the last ones before it.
        task.show(&[1.0, 0.0, gap, 0.0, 3.0, -1.0, 6.0, 1.0, gap, gap], &mut inputs);
        assert_eq!(inputs, [1.0, -2.0, -0.5, 1.0, 0.0, 1.0, 1.0]);
        // Nothing has been known at all.
        task.show(&[gap, gap], &mut inputs);
        assert_eq!(inputs, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_constant_has_no_deviation_from_rounding() {
        for (x, n) in [(0.1, 3), (71.0, 8), (1e-300, 7), (-3.3e200, 6)] {
            assert_eq!(RowsPerStep::summary(&vec![x; n], 1, 0), Some([x, 0.0, 0.0]));
        }
        assert_eq!(RowsPerStep::summary(&[f64::NAN; 4], 2, 1), None);
    }

    #[test]
    fn steps_are_written_only_where_rows_are_none_and_checked() {
        let TableTask::Classify(several) = task(4, Missing::Error) else { unreachable!() };
        let single = TableTask::Classify(Classifier { rows_per_step: None, ..several.clone() });
        let json = serde_json::to_string(&single).unwrap();
        assert!(!json.contains("rows_per_step"), "{json}");
        assert_eq!((single.n_inputs(), single.reach(), single.steps(9)), (3, 1, 9));
        let json = serde_json::to_string(&TableTask::Classify(several.clone())).unwrap();
        let read = TableTask::from_bytes(json.as_bytes(), 5, 2).unwrap();
        assert_eq!((read.n_inputs(), read.reach(), read.steps(9), read.looks_back()), (5, 4, 3, true));
        for (from, to) in [
            ("\"n\":4", "\"n\":1"),
            ("\"n\":4", "\"n\":0"),
            ("\"n\":4", "\"n\":65537"),
            ("[4.0,0.25,", "[4.0,0.0,"),
            ("[4.0,0.25,", "[4.0,"),
            ("[2.0,0.5,", "[2.0,0.5,0.5,"),
            ("\"n\":4", "\"m\":4"),
        ] {
            assert!(json.contains(from), "{json}");
            assert!(TableTask::from_bytes(json.replace(from, to).as_bytes(), 5, 2).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn a_number_far_from_all_means_stays_within_the_limit() {
        let TableTask::Classify(mut several) = task(2, Missing::Error) else { unreachable!() };
        several.rows_per_step = Some(RowsPerStep { n: 2, normalization: scale([0.0; 6], [1e-30; 6]) });
        let mut inputs = [0.0; 5];
        TableTask::Classify(several).show(&[-3e5, 0.0, -2e5, 0.0], &mut inputs);
        assert_eq!(inputs, [-1e6, 1e6, 1e6, 1.0, 0.0]);
    }

    /// What is read of the step that ends with the last of `rows`, by definition.
    fn by_hand(rows: &[[f64; 2]], n: usize, masks: bool) -> Vec<f32> {
        let first = (rows.len() - 1) / n * n;
        let mut seen = Vec::new();
        for column in 0..2 {
            let all: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            let mut known: Vec<f64> = all[first..].iter().copied().filter(|x| !x.is_nan()).collect();
            let gaps = (rows.len() - first - known.len()) as f32 / (rows.len() - first) as f32;
            if known.is_empty() {
                let before = &all[first.saturating_sub(FILLED)..first];
                known.extend(before.iter().rev().find(|x| !x.is_nan()));
            }
            let size = known.len().max(1) as f64;
            if column == 1 {
                seen.extend([0.0, 1.0].map(|name| known.iter().filter(|&&x| x == name).count() as f32 / size as f32));
            } else if known.is_empty() {
                seen.extend([0.0; 3]);
            } else {
                let changes: Vec<f64> = all[first..].windows(2).map(|pair| pair[1] - pair[0]).filter(|change| !change.is_nan()).collect();
                let change = sqrt_f64(changes.iter().map(|change| change * change).sum::<f64>() / changes.len().max(1) as f64);
                let mean = known.iter().sum::<f64>() / size;
                let deviation = sqrt_f64(known.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / size);
                seen.extend([((mean - 2.0) / 4.0) as f32, ((deviation - 0.5) / 0.25) as f32, ((change - 1.0) / 2.0) as f32]);
            }
            seen.extend(masks.then_some(gaps));
        }
        seen
    }

    proptest! {
        #[test]
        fn every_history_shows_the_step_up_to_its_last_row(
            rows in prop::collection::vec((prop::option::weighted(0.4, -3.0..9.0f64), prop::option::weighted(0.4, -1..2i32)), 1..400),
            n in prop_oneof![2..12usize, 60..90usize], masks: bool,
        ) {
            let task = task(n, if masks { Missing::Mask } else { Missing::ForwardFill });
            let gap = f64::NAN;
            let rows: Vec<[f64; 2]> = rows.into_iter().map(|(x, name)| [x.unwrap_or(gap), name.map_or(gap, f64::from)]).collect();
            let all = rows.concat();
            let new = || History::of_steps(2, task.reach(), n);
            let mut history = new();
            for (t, row) in rows.iter().enumerate() {
                history.push(&[7.0, 0.0]);
                history.pop();
                history.push(row);
                prop_assert_eq!(history.pending(), (t + 1) % n);
                prop_assert!(history.rows().len() <= 2 * task.reach());
                let whole = task.rows_of_step(t / n, t + 1);
                let [mut from_history, mut from_rows] = [vec![0.0; task.n_inputs()], vec![0.0; task.n_inputs()]];
                task.show(history.rows(), &mut from_history);
                task.show(&all[2 * whole.start..2 * whole.end], &mut from_rows);
                prop_assert_eq!(&from_history, &from_rows);
                for (found, expected) in from_rows.iter().zip(by_hand(&rows[..=t], n, masks)) {
                    prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
                }
                let again = new().after(history.rows()).unwrap();
                prop_assert_eq!((again.pending(), again.rows().len()), (history.pending(), history.rows().len()));
            }
        }
    }
}
