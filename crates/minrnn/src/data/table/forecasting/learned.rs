//! Which rows of a table a model has learned from, determined from its training table.

use super::super::known_names::KnownNames;
use super::super::series::Series;
use super::Forecasting;

/// Minimum number of rows by which the beginning of a sequence is recognised in another.
const BEGINNING: usize = 8;

impl Forecasting {
    /// How many steps of each of `series`, from its first on, are among those that the model of this task was trained on or selected by: all but
    /// the test part or, for a model that has `learned_all`, all but a test file. Sequences are the same if their names and numbers are.
    pub(super) fn learned_steps(&self, series: &[Series], learned_all: bool) -> Vec<usize> {
        let table = &self.table;
        let known = KnownNames::of_sequences(table.series.iter().map(|series| series.name.as_str()));
        let steps = |series: &Series| {
            let at = known.find(&series.name)?;
            let bounds = &table.bounds[at];
            let end = if learned_all { table.end_of_all(bounds) } else { bounds.validation };
            let width = series.width;
            (width == table.series[at].width).then(|| common_steps(&table.series[at].values[..end * width], &series.values, width))
        };
        series.iter().map(|series| steps(series).unwrap_or(0)).collect()
    }
}

/// How many rows `[_, width]` at the beginning of `found` also occur consecutively in `known`.
fn common_steps(known: &[f64], found: &[f64], width: usize) -> usize {
    let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
    let begins = |known: &[f64]| {
        let n = known.len().min(found.len()).min(BEGINNING * width);
        known[..n].iter().zip(&found[..n]).all(same)
    };
    // A few rows at the end of what is known may match by chance.
    let last = known.len() / width;
    let starts = (0..last).filter(|start| *start == 0 || last - start >= BEGINNING);
    let Some(start) = starts.map(|start| start * width).find(|&start| begins(&known[start..])) else { return 0 };
    let rows = known[start..].chunks_exact(width).zip(found.chunks_exact(width));
    rows.take_while(|(a, b)| a.iter().zip(*b).all(same)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_wherever_they_stood() {
        let known: Vec<f64> = (0..40).map(|x| f64::from(x % 13) + f64::from(x)).collect();
        let later = [&known[..], &[7.0, 8.0]].concat();
        assert_eq!(common_steps(&known, &known, 1), 40);
        assert_eq!(common_steps(&known, &later, 1), 40);
        assert_eq!(common_steps(&known[..30], &later, 2), 15);
        assert_eq!(common_steps(&known, &later[10..], 1), 30);
        // Only 5 steps were learned.
        assert_eq!(common_steps(&known[..5], &later, 1), 5);
        assert_eq!(common_steps(&known, &later[35..], 1), 0);
        assert_eq!(common_steps(&[], &later, 1), 0);
        let with_gap: Vec<f64> = (0..12).map(|at| if at == 1 { f64::NAN } else { f64::from(at) }).collect();
        assert_eq!(common_steps(&with_gap, &[&with_gap[..9], &[99.0]].concat(), 1), 9);
    }
}
