//! What a result says about a published one: about a number, and about the order of the rows.

use minrnn::statistics::holm;
use serde::Serialize;

use crate::{Filled, Grid, Metric, Published, Scale, Summary, Work};

/// Whether our value agrees with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The 95 % interval of our mean overlaps the published value, given its precision.
    Agrees,
    /// It does not.
    Differs,
    /// There is only one seed, or the interval is too wide to tell.
    Undecided,
}

impl Verdict {
    /// Its mark in the tables.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::Differs => "✗",
            Self::Undecided => "?",
        }
    }

    fn of(metric: Metric, ours: &Summary, published: &Published) -> Option<Self> {
        let ((value, tolerance), widest) = (published.with_tolerance()?, metric.widest()?);
        // Rounding of binary numbers does not count.
        let meets = |reach: f64| (ours.mean - value).abs() <= reach + tolerance + 1e-9;
        Some(match ours.reach() {
            Some(reach) if 2.0 * reach <= widest + 1e-9 => {
                if meets(reach) {
                    Self::Agrees
                } else {
                    Self::Differs
                }
            }
            _ => Self::Undecided,
        })
    }
}

/// The largest share of tables with truly equal rows in which chance alone breaks the order of a pair.
const BROKEN_BY_CHANCE: f64 = 0.05;

/// Pairs of rows in the same column whose published values differ, by what ours say about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Order {
    /// Ours differ in the same direction, beyond the 95 % interval of their difference. As all pairs must keep the order of a table, their
    /// number needs no correction.
    pub kept: usize,
    /// Ours differ in the other direction, so much that chance breaks a pair in at most 5 % of tables: by [`holm`]'s correction for all
    /// pairs with at least two seeds each, as one pair is enough to break the order of a table.
    pub broken: usize,
    /// Neither, or there is at most one seed, or no seed of either row differs from another, so that the effect of chance is unknown.
    pub undecided: usize,
}

/// What our values say about a pair.
struct Pair {
    /// How likely such a difference is if both are truly equal.
    p_value: f64,
    /// Whether its direction is the published one.
    is_as_published: bool,
    /// Whether it lies beyond its own 95 % interval.
    is_clear: bool,
}

impl Order {
    /// Counts pairs by verdict; one that cannot be judged, such as one without two seeds of both rows, is none.
    fn of(pairs: &[Option<Pair>]) -> Self {
        let known: Vec<&Pair> = pairs.iter().flatten().collect();
        let is_beyond_chance = holm(&known.iter().map(|pair| pair.p_value).collect::<Vec<_>>(), BROKEN_BY_CHANCE);
        let kept = known.iter().filter(|pair| pair.is_as_published && pair.is_clear).count();
        let broken = known.iter().zip(is_beyond_chance).filter(|(pair, is_beyond)| *is_beyond && !pair.is_as_published).count();
        Self { kept, broken, undecided: pairs.len() - kept - broken }
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.kept + self.broken + self.undecided
    }

    /// The verdict on the table as a whole: a single pair breaks the order, and all must keep it.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self { broken: 1.., .. } => "broken",
            Self { undecided: 0, .. } => "kept",
            _ => "undecided",
        }
    }
}

impl Grid<'_> {
    /// Whether our value agrees with the published one; `None` if nothing was published or measured, for measures of speed, and at scale
    /// smoke, whose numbers are meaningless.
    pub fn verdict(&self, metric: Metric, row: usize, column: usize) -> Option<Verdict> {
        if self.scale == Scale::Smoke {
            return None;
        }
        let (ours, published) = (self.summary(metric, row, column)?, self.published(metric, row, column));
        match &self.cells[row][column] {
            // Counted, not sampled: there is no scatter.
            Filled::Counted(_) => {
                let (value, tolerance) = published.with_tolerance()?;
                let agrees = (ours.mean - value).abs() <= tolerance + 1e-9;
                Some(if agrees { Verdict::Agrees } else { Verdict::Differs })
            }
            _ => Verdict::of(metric, &ours, &published),
        }
    }

    /// What the runs say about the order of the published values; `None` if fewer than two rows of a column have one, and at scale smoke.
    pub fn order(&self, metric: Metric) -> Option<Order> {
        if self.scale == Scale::Smoke || self.target.work != Work::Train || metric.widest().is_none() {
            return None;
        }
        let mut pairs = Vec::new();
        for column in 0..self.target.columns.len() {
            let known = |row: usize| Some((row, self.published(metric, row, column).with_tolerance()?));
            let is_run = |row: &usize| matches!(self.cells[*row][column], Filled::Trained(_));
            let rows: Vec<_> = (0..self.target.rows.len()).filter(is_run).filter_map(known).collect();
            for (at, &(a, (value_a, tolerance_a))) in rows.iter().enumerate() {
                for &(b, (value_b, tolerance_b)) in &rows[at + 1..] {
                    if (value_a - value_b).abs() <= tolerance_a + tolerance_b + 1e-9 {
                        continue;
                    }
                    let pair = || {
                        let (ours, others) = (self.summary(metric, a, column)?, self.summary(metric, b, column)?);
                        let difference = ours.mean - others.mean;
                        Some(Pair {
                            p_value: ours.p_value_of_difference(&others)?,
                            is_as_published: (difference > 0.0) == (value_a > value_b),
                            is_clear: difference.abs() > ours.reach_of_difference(&others)?,
                        })
                    };
                    pairs.push(pair());
                }
            }
        }
        (!pairs.is_empty()).then(|| Order::of(&pairs))
    }
}

#[cfg(test)]
mod tests {
    use minrnn::rng::{Purpose, key};

    use super::*;
    use crate::outcome::tests::outcome;
    use crate::{Run, Scale, Target};

    fn verdict(ours: &[f64], published: &str) -> Option<Verdict> {
        Verdict::of(Metric::Accuracy, &Summary::of(ours).unwrap(), &Published::parse(published))
    }

    #[test]
    fn a_number_agrees_differs_or_is_undecided() {
        assert_eq!(verdict(&[0.93, 0.935, 0.94], "0.94"), Some(Verdict::Agrees));
        assert_eq!(verdict(&[0.23, 0.235, 0.24], "0.94"), Some(Verdict::Differs));
        // A mean that agrees and one that is far away, with intervals of 0.1 or more.
        assert_eq!([verdict(&[0.9, 0.94, 0.98], "0.94"), verdict(&[0.2, 0.24], "0.94")], [Some(Verdict::Undecided); 2]);
        assert_eq!((verdict(&[0.94], "0.94"), verdict(&[0.94, 0.94], "near 1")), (Some(Verdict::Undecided), None));
        // To the printed precision: 1.0 may be 0.96, and 37.6 ± 2.0 may be 36.
        assert_eq!(verdict(&[0.96, 0.96], "1.0"), Some(Verdict::Agrees));
        let percent = Verdict::of(Metric::AccuracyPercent, &Summary::of(&[35.9, 36.0, 36.1]).unwrap(), &Published::parse("37.6 ± 2.0"));
        assert_eq!(percent, Some(Verdict::Agrees));
        assert_eq!(Verdict::of(Metric::Milliseconds, &Summary::of(&[1.0, 1.0]).unwrap(), &Published::parse("1")), None);
    }

    /// Rows A, B, C, published 0.9, 0.5, 0.5, with these accuracies of ours.
    fn order(ours: [&[f64]; 3]) -> Order {
        order_of(&[("0.90", ours[0]), ("0.50", ours[1]), ("0.50", ours[2])])
    }

    /// Rows with what was published and these accuracies of ours.
    fn order_of(rows: &[(&str, &[f64])]) -> Order {
        let ours = rows.iter().map(|(_, values)| values);
        let rows: Vec<String> = (0..)
            .zip(rows)
            .map(|(at, (published, _)): (i32, _)| format!("[[rows]]\nlabel = \"{at}\"\npublished.accuracy = [\"{published}\"]\n"))
            .collect();
        let head = "name = \"t\"\ntitle = \"A table\"\nsource = \"A paper\"\nmetrics = [\"accuracy\"]\n[[columns]]\nlabel = \"\"\n";
        let target: Target = toml::from_str(&(head.to_owned() + &rows.concat())).unwrap();
        let runs = |values: &[f64]| values.iter().map(|&value| (1, Run::Done(Box::new(outcome(1, value))))).collect();
        let cells = ours.map(|values| vec![Filled::Trained(runs(values))]).collect();
        let grid = Grid { cells, ..Grid::empty(&target, Scale::Cpu, String::new()) };
        grid.order(Metric::Accuracy).unwrap()
    }

    #[test]
    fn the_order_of_rows_is_kept_broken_or_undecided() {
        let (high, low): (&[f64], &[f64]) = (&[0.9, 0.91, 0.92], &[0.3, 0.31, 0.32]);
        // B and C are published equal: two pairs.
        assert_eq!(order([high, low, low]), Order { kept: 2, broken: 0, undecided: 0 });
        assert_eq!(order([low, high, low]), Order { kept: 0, broken: 1, undecided: 1 });
        assert_eq!(order([high, &[0.3], &[]]), Order { kept: 0, broken: 0, undecided: 2 });
        // Nothing scatters, so no difference counts as beyond chance.
        let (right, wrong): (&[f64], &[f64]) = (&[1.0, 1.0, 1.0], &[0.5, 0.5, 0.5]);
        assert_eq!([order([right, wrong, low]), order([wrong, right, low])].map(|order| (order.kept, order.broken)), [(1, 0); 2]);
        let verdicts = [[high, low, low], [low, high, low], [high, low, &[]]].map(|ours| order(ours).verdict());
        assert_eq!(verdicts, ["kept", "broken", "undecided"]);
    }

    #[test]
    fn chance_alone_breaks_the_order_of_few_tables_however_many_pairs_they_have() {
        // Ten rows are 45 pairs.
        const TABLES: u64 = 400;
        let published: Vec<String> = (0..10).map(|row| format!("0.{}0", 9 - row)).collect();
        let uniform = |at: u64| key(7, Purpose::Bench, at) as f64 / 2f64.powi(64);
        // Twelve uniform numbers are a normal one of deviation 1.
        let normal = |at: u64| (0..12).map(|part| uniform(12 * at + part)).sum::<f64>() - 6.0;
        let (mut broken, mut uncorrected) = (0, 0);
        for table in 0..TABLES {
            let values: Vec<Vec<f64>> =
                (0..10).map(|row| (0..5).map(|seed| 0.5 + 0.01 * normal((table * 10 + row) * 5 + seed)).collect()).collect();
            let rows: Vec<(&str, &[f64])> = published.iter().map(String::as_str).zip(values.iter().map(Vec::as_slice)).collect();
            broken += u64::from(order_of(&rows).verdict() == "broken");
            let all: Vec<Summary> = values.iter().map(|values| Summary::of(values).unwrap()).collect();
            let breaks = |a: usize, b: usize| all[b].mean - all[a].mean > all[a].reach_of_difference(&all[b]).unwrap();
            uncorrected += u64::from((0..10).any(|a| (a + 1..10).any(|b| breaks(a, b))));
        }
        assert!(broken * 20 <= TABLES, "{broken} of {TABLES} tables");
        assert!(uncorrected * 20 > TABLES, "the correction has something to correct: {uncorrected} of {TABLES} tables");
    }
}
