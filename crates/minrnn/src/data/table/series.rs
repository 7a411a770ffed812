//! The sequences of a table.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use minrnn_model::{TableTask, first_few};

use super::clock::Clock;
use super::frame::{Frame, Lead};
use super::label::Label;
use super::step::Step;
use super::texts::Texts;
use super::values::{Values, ValuesWriter};
use crate::numbers::INEXACT;
use crate::{Error, Result};

/// A sequence of T rows of `width` numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the group column; empty if there is none.
    pub name: String,
    /// Row-major `[T, width]`.
    pub values: Values<f64>,
    /// Number of values in each row.
    pub width: usize,
    /// The times of the rows, ascending; empty without a time column.
    pub times: Values<f64>,
    /// The format of the times.
    pub clock: Clock,
    /// The times of the rows after the last, if future rows with times are given.
    pub to_come: Values<f64>,
    /// The usual time step in most rows of the table, for a sequence of a single row.
    pub usual_step: Option<Step>,
}

impl Series {
    /// Number of rows T.
    #[allow(clippy::len_without_is_empty, reason = "a sequence has at least one row")]
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// The numbers of row `t`.
    #[inline]
    pub fn row(&self, t: usize) -> &[f64] {
        &self.values[t * self.width..][..self.width]
    }

    /// The numbers of row `t` and the rows before it, at most `reach` rows.
    #[inline]
    pub fn recent(&self, t: usize, reach: usize) -> &[f64] {
        &self.values[(t + 1).saturating_sub(reach) * self.width..(t + 1) * self.width]
    }

    /// What the model of `task` reads at `steps`, `[T, n_inputs]`; this series must have exactly the columns it reads.
    pub(crate) fn seen(&self, task: &TableTask, steps: Range<usize>) -> Vec<f32> {
        let mut inputs = vec![0.0; steps.len() * task.n_inputs()];
        steps.zip(inputs.chunks_exact_mut(task.n_inputs())).for_each(|(step, inputs)| self.show(task, step, inputs));
        inputs
    }

    /// Writes what the model of `task` reads at `step`, `[n_inputs]`; this series must have exactly the columns it reads.
    #[inline]
    pub(crate) fn show(&self, task: &TableTask, step: usize, inputs: &mut [f32]) {
        let rows = task.rows_of_step(step, self.len());
        task.show(&self.values[rows.start * self.width..rows.end * self.width], inputs);
    }

    /// Number of steps in which the model of `task` reads it.
    pub fn steps_of(&self, task: &TableTask) -> usize {
        task.steps(self.len())
    }

    /// All rows in order, `n` at a time; the last may be fewer.
    pub(super) fn rows_at_a_time(&self, n: usize) -> std::slice::Chunks<'_, f64> {
        self.values.chunks(n * self.width)
    }

    /// All rows in order.
    #[inline]
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.width)
    }

    /// Its name in a sentence.
    pub(crate) fn describe(&self) -> String {
        if self.name.is_empty() { "the table".to_owned() } else { format!("the sequence '{}'", self.name) }
    }

    /// Refuses steps that are not later than the previous one; the times `are_cut` if they were written more precisely than they are kept.
    fn expect_rising(&self, are_cut: bool) -> Result<()> {
        let Some(at) = self.times.windows(2).position(|pair| pair[0] >= pair[1]) else { return Ok(()) };
        let of = self.describe();
        let [before, time] = [at, at + 1].map(|at| self.clock.write(self.times[at]));
        let apart = match self.clock {
            Clock::Number if self.times[at].abs() >= INEXACT => {
                "; numbers are told apart up to 2^53: count larger ones from the first row on"
            }
            _ if are_cut => "; times are told apart to the microsecond: write finer ones as whole numbers, counted from the first row on",
            _ => "",
        };
        Err(Error::Data(match before == time {
            true if self.name.is_empty() => {
                format!(
                    "{of} has two rows of the time {time}, expected one; if it has several sequences, name what tells them apart with \
                     group{apart}"
                )
            }
            true => format!("{of} has two rows of the time {time}, expected one; is the group column the right one?{apart}"),
            false => format!("{of} goes on with {time} after {before}; expected a later time"),
        }))
    }

    /// Changes the numbers of all steps of `all`: `change` receives each sequence as it was, the index of the step and its numbers.
    ///
    /// # Errors
    /// When the changed numbers cannot be stored.
    pub(super) fn rewrite(all: &mut [Self], mut change: impl FnMut(&Self, usize, &mut [f64])) -> Result<()> {
        let mut written = ValuesWriter::new(1);
        let mut numbers = Vec::new();
        for series in all.iter() {
            for (t, step) in series.rows().enumerate() {
                numbers.clear();
                numbers.extend_from_slice(step);
                change(series, t, &mut numbers);
                written.extend(&numbers)?;
            }
        }
        let written = written.finish()?;
        let mut end = 0;
        for series in all {
            let first = end;
            end += series.values.len();
            series.values = written.part(first..end);
        }
        Ok(())
    }

    /// Fills `leads` with what other columns hold at later steps; beyond the end, with their last values.
    ///
    /// # Errors
    /// As [`Self::rewrite`].
    pub(super) fn fill_leads(all: &mut [Self], leads: &[Lead]) -> Result<()> {
        if leads.is_empty() {
            return Ok(());
        }
        Self::rewrite(all, |series, t, numbers| {
            leads.iter().for_each(|lead| numbers[lead.at] = series.row((t + lead.ahead).min(series.len() - 1))[lead.of]);
        })
    }

    /// Appends to sequences of `all`, given by index, the steps of the same sequence in another file.
    ///
    /// # Errors
    /// When they are not later, or cannot be stored.
    pub(super) fn extend(all: &mut [Self], later: &[(usize, Self)]) -> Result<()> {
        if later.is_empty() {
            return Ok(());
        }
        let of_place: HashMap<usize, &Self> = later.iter().map(|(at, later)| (*at, later)).collect();
        let (mut values, mut times) = (ValuesWriter::new(2), ValuesWriter::new(2));
        for (at, series) in all.iter().enumerate() {
            values.extend(&series.values)?;
            times.extend(&series.times)?;
            let Some(later) = of_place.get(&at) else { continue };
            let problem = match (series.times.is_empty(), later.times.is_empty()) {
                (false, true) => Some(
                    "it has no column of times, and the training file has one; give both one of the same name, or set time to nothing where their rows \
                     are in order",
                ),
                (true, false) => Some(
                    "it has a column of times, and the training file has none; give both one of the same name, or set time to nothing where their rows \
                     are in order",
                ),
                _ if !series.clock.agrees(later.clock) => Some("its times are written in another way than those of the training file"),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(Error::Data(problem.to_owned()));
            }
            values.extend(&later.values)?;
            times.extend(&later.times)?;
        }
        let (values, times) = (values.finish()?, times.finish()?);
        let (mut value, mut time) = (0, 0);
        for (at, series) in all.iter_mut().enumerate() {
            let more = of_place.get(&at);
            let n_values = series.values.len() + more.map_or(0, |more| more.values.len());
            let n_times = series.times.len() + more.map_or(0, |more| more.times.len());
            (series.values, series.times) = (values.part(value..value + n_values), times.part(time..time + n_times));
            (value, time) = (value + n_values, time + n_times);
            if more.is_some() {
                series.expect_rising(false)?;
            }
        }
        Ok(())
    }

    /// The time between steps, taken from the other sequences if there is a single step; `None` without a time column.
    pub fn time_step(&self) -> Option<Step> {
        self.clock.step(&self.times).or(self.usual_step)
    }

    /// The times of the next `n` steps in the table's format, those of the future rows if given; `None` without a time column.
    pub fn next_times(&self, n: usize) -> Option<Vec<String>> {
        let known = &self.to_come[..n.min(self.to_come.len())];
        let &last = known.last().or(self.times.last())?;
        let more = match n - known.len() {
            0 => Vec::new(),
            n_more => self.clock.go_on(last, self.time_step()?, n_more),
        };
        Some(known.iter().copied().chain(more).map(|time| self.clock.write(time)).collect())
    }

    /// The time from one step to the next in most rows of `all` (in a tie, the one whose name comes last); `None` without a time column.
    fn step_of_most(all: &[Self]) -> Option<Step> {
        let mut paces: BTreeMap<String, (usize, Step)> = BTreeMap::new();
        for series in all {
            let Some(step) = series.time_step() else { continue };
            paces.entry(step.name()).or_insert((0, step)).0 += series.len();
        }
        paces.into_values().max_by_key(|(rows, _)| *rows).map(|(_, step)| step)
    }

    /// The sequences of `frame`, its rows assigned by `groups`, in the order of their first rows.
    ///
    /// # Errors
    /// When two steps of a sequence have the same time, or they cannot be stored.
    pub(super) fn of(frame: &Frame, groups: Option<&Texts>) -> Result<Vec<Self>> {
        let (width, n_rows) = (frame.names.len(), frame.n_rows());
        let times = frame.times.as_ref();
        let clock = times.map_or(Clock::Number, |times| times.clock);
        let nameless = [String::new()];
        let names = groups.map_or(&nameless[..], Texts::distinct).iter();
        let rows = RowsInOrder::of(n_rows, groups, times.map(|times| &times.values[..]));
        let (mut values, mut in_order) = (ValuesWriter::new(2), ValuesWriter::new(2));
        for row in (0..n_rows).map(|at| rows.row(at)) {
            frame.numbers.iter().try_for_each(|column| values.push(column[row]))?;
            times.map_or(Ok(()), |times| in_order.push(times.values[row]))?;
        }
        let (values, in_order) = (values.finish()?, in_order.finish()?);
        let of = |(name, steps): (&String, &Range<usize>)| Self {
            name: name.clone(),
            values: values.part(steps.start * width..steps.end * width),
            width,
            times: times.map_or_else(Values::default, |_| in_order.part(steps.clone())),
            clock,
            to_come: Values::default(),
            usual_step: None,
        };
        let mut series: Vec<Self> = names.zip(&rows.of_series).map(of).collect();
        let are_cut = times.is_some_and(|times| times.is_cut);
        series.iter().try_for_each(|series| series.expect_rising(are_cut))?;
        Self::fill_leads(&mut series, &frame.leads)?;
        if series.iter().any(|series| series.len() == 1) {
            let usual = Self::step_of_most(&series);
            for alone in series.iter_mut().filter(|series| series.len() == 1) {
                alone.usual_step = alone.times.first().and_then(|&time| Some(usual?.starting_at(time)));
            }
        }
        Ok(series)
    }

    /// Refuses `all` if most of them, or the only one, have fewer than 2 steps.
    ///
    /// # Errors
    /// With a sentence that names the first.
    pub(super) fn expect_most_longer(all: &[Self]) -> Result<()> {
        let mut short = all.iter().filter(|series| series.len() < 2);
        let n = short.clone().count();
        let Some(first) = short.next().filter(|_| 2 * n > all.len()) else { return Ok(()) };
        let name = &first.name;
        Err(Error::Data(match n {
            1 if name.is_empty() => "it has 1 row, expected a sequence of at least 2".to_owned(),
            1 => format!("the sequence '{name}' has 1 step, expected at least 2; is the group column the right one?"),
            _ => format!(
                "{n} of {} sequences, such as '{name}', have 1 step, expected at least 2; is the group column the right one?",
                all.len()
            ),
        }))
    }

    /// A sentence if some of `n` sequences, those called `names`, have a single row, with what follows from it, for one and for several.
    pub(super) fn single_rows<'a>(names: impl ExactSizeIterator<Item = &'a str>, n: usize, [one, several]: [&str; 2]) -> Option<String> {
        let n_single = names.len();
        let (have, follows) = if n_single == 1 { ("has", one) } else { ("have", several) };
        let told = first_few(8, names.map(|name| format!("'{name}'")));
        (n_single > 0).then(|| format!("{n_single} of {n} sequences {have} a single row and {follows}: {told}"))
    }
}

/// The rows of a table in the order of its sequences: one sequence after the other, each in order of time.
struct RowsInOrder {
    /// The row at each place; `None` if the table is already in this order.
    order: Option<Vec<u32>>,
    /// The places of each sequence.
    of_series: Vec<Range<usize>>,
}

impl RowsInOrder {
    /// The order for a table of `n_rows`, which is one sequence unless `groups` assigns its rows.
    fn of(n_rows: usize, groups: Option<&Texts>, times: Option<&[f64]>) -> Self {
        let mut lengths = vec![0; groups.map_or(1, |groups| groups.distinct().len())];
        match groups.map(Texts::rows) {
            Some(rows) => rows.iter().for_each(|&group| lengths[group as usize] += 1),
            None => lengths[0] = n_rows,
        }
        let mut end = 0;
        let mut next = |length: &usize| {
            end += length;
            end - length..end
        };
        let of_series: Vec<Range<usize>> = lengths.iter().map(&mut next).collect();
        let are_together = groups.is_none_or(|groups| groups.rows().is_sorted());
        let mut order = (!are_together).then(|| {
            let mut order = vec![0u32; n_rows];
            let mut next: Vec<usize> = of_series.iter().map(|places| places.start).collect();
            for (&group, row) in groups.map_or(&[][..], Texts::rows).iter().zip(0..) {
                order[next[group as usize]] = row;
                next[group as usize] += 1;
            }
            order
        });
        if let Some(times) = times {
            for places in &of_series {
                let time = |order: &Option<Vec<u32>>, at: usize| times[order.as_ref().map_or(at, |order| order[at] as usize)];
                if places.clone().is_sorted_by(|&a, &b| time(&order, a) <= time(&order, b)) {
                    continue;
                }
                let order = order.get_or_insert_with(|| (0..).take(n_rows).collect());
                order[places.clone()].sort_by(|&a, &b| times[a as usize].total_cmp(&times[b as usize]));
            }
        }
        Self { order, of_series }
    }

    /// The row at a place.
    fn row(&self, at: usize) -> usize {
        self.order.as_ref().map_or(at, |order| order[at] as usize)
    }
}

/// The label of each group, of kind `label`: the one that all its rows have, compared by `same`.
///
/// # Errors
/// When a group has more than one.
pub(super) fn labels(groups: &Texts, labels: &Texts, column: &str, label: Label, same: impl Fn(u32, u32) -> bool) -> Result<Vec<u32>> {
    let mut found: Vec<Option<u32>> = vec![None; groups.distinct().len()];
    for (row, (&group, &own)) in groups.rows().iter().zip(labels.rows()).enumerate() {
        let first = *found[group as usize].get_or_insert(own);
        if !same(first, own) {
            let noun = label.noun();
            let [name, first, second] =
                [&groups.distinct()[group as usize], &labels.distinct()[first as usize], &labels.distinct()[own as usize]];
            return Err(Error::Data(format!(
                "the sequence '{name}' has the {noun} '{first}' and, in row {} of the data, '{second}'; expected one value of '{column}' in all \
                 of its rows",
                row + 1
            )));
        }
    }
    Ok(found.into_iter().map(|label| label.expect("a group has rows")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::texts::TextsWriter;
    use super::super::time_cells::Times;
    use super::*;

    /// A table with the numbers `row, 10 · row` and two columns that hold them at later steps.
    fn table(rows: &[(u8, u32)]) -> (Frame, Texts) {
        let mut groups = TextsWriter::new(1);
        rows.iter().try_for_each(|(group, _)| groups.push(&group.to_string())).unwrap();
        let column = |of: f64| (0..rows.len()).map(|row| row as f64 * of).collect::<Vec<f64>>().into();
        let times = rows.iter().map(|&(_, time)| f64::from(time)).collect::<Vec<f64>>();
        let frame = Frame {
            numbers: vec![column(1.0), column(10.0), column(0.0)],
            times: Some(Times { name: "t".to_owned(), clock: Clock::Number, values: times.into(), is_cut: false }),
            leads: vec![Lead { at: 2, of: 0, ahead: 2 }],
            ..Frame::of(&["row", "ten", "row+2"])
        };
        (frame, groups.finish().unwrap())
    }

    /// The rows of each group in order of time, groups in the order of their first rows.
    fn in_order(rows: &[(u8, u32)]) -> Vec<(u8, Vec<usize>)> {
        let mut found: Vec<(u8, Vec<usize>)> = Vec::new();
        for (at, &(group, _)) in rows.iter().enumerate() {
            match found.iter_mut().find(|(known, _)| *known == group) {
                Some((_, places)) => places.push(at),
                None => found.push((group, vec![at])),
            }
        }
        found.iter_mut().for_each(|(_, places)| places.sort_by_key(|&at| rows[at].1));
        found
    }

    #[test]
    fn most_sequences_have_two_rows_or_more_and_others_are_told_by_name() {
        let expect = |lengths: &[u8]| {
            let rows: Vec<(u8, u32)> = lengths.iter().zip(0..).flat_map(|(&n, group)| (0..n).map(move |t| (group, u32::from(t)))).collect();
            let (frame, groups) = table(&rows);
            Series::expect_most_longer(&Series::of(&frame, Some(&groups)).unwrap()).map_err(|error| error.to_string())
        };
        assert!([&[2, 2][..], &[1, 2], &[2, 1, 1, 3]].into_iter().all(|lengths| expect(lengths).is_ok()));
        let one = expect(&[1]).unwrap_err();
        assert_eq!(one, "the sequence '0' has 1 step, expected at least 2; is the group column the right one?");
        let most = expect(&[2, 1, 1]).unwrap_err();
        assert_eq!(most, "2 of 3 sequences, such as '1', have 1 step, expected at least 2; is the group column the right one?");

        let told = |names: &[&'static str]| Series::single_rows(names.iter().copied(), 40, ["is it", "are they"]);
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["a"]).unwrap(), "1 of 40 sequences has a single row and is it: 'a'");
        assert_eq!(told(&["a", "b"]).unwrap(), "2 of 40 sequences have a single row and are they: 'a', 'b'");
    }

    proptest! {
        #[test]
        fn rows_in_any_order_are_sequences_in_the_order_of_time(
            groups in prop::collection::vec(0u8..4, 1..60), keys in prop::collection::vec(any::<u32>(), 60), is_sorted in any::<(bool, bool)>()
        ) {
            let mut groups = groups;
            if is_sorted.0 {
                groups.sort_unstable();
            }
            let mut times: Vec<u32> = (0..groups.len() as u32).collect();
            if !is_sorted.1 {
                times.sort_by_key(|&at| keys[at as usize]);
            }
            let rows: Vec<(u8, u32)> = groups.into_iter().zip(times).collect();
            let (frame, groups) = table(&rows);
            let series = Series::of(&frame, Some(&groups)).unwrap();
            let expected = in_order(&rows);
            prop_assert_eq!(series.len(), expected.len());
            for (series, (group, places)) in series.iter().zip(&expected) {
                prop_assert_eq!(&series.name, &group.to_string());
                prop_assert!(series.times.iter().zip(places).all(|(&time, &at)| time == f64::from(rows[at].1)) && series.len() == places.len());
                for (t, step) in series.rows().enumerate() {
                    let later = places[(t + 2).min(places.len() - 1)];
                    prop_assert_eq!(step, &[places[t] as f64, places[t] as f64 * 10.0, later as f64]);
                }
            }
        }

        #[test]
        fn a_sequence_cut_into_two_files_is_the_whole_one(n in 2usize..40, cut in 1usize..39, others in 0u8..3) {
            let cut = cut.min(n - 1);
            let rows: Vec<(u8, u32)> = (0..n as u32).flat_map(|time| (0..=others).map(move |group| (group, time))).collect();
            let of = |rows: &[(u8, u32)], first: f64| {
                let (frame, groups) = table(rows);
                let mut all = Series::of(&Frame { leads: Vec::new(), ..frame }, Some(&groups)).unwrap();
                Series::rewrite(&mut all, |_, _, step| (step[0], step[1]) = (step[0] + first, step[1] + first * 10.0)).unwrap();
                all
            };
            let (before, after) = rows.split_at(cut * usize::from(others + 1));
            let mut all = of(before, 0.0);
            let later: Vec<(usize, Series)> = of(after, before.len() as f64).into_iter().enumerate().collect();
            // The first alone, then the others: adding to one leaves the others unchanged.
            let (first, rest) = later.split_at(1);
            Series::extend(&mut all, rest).unwrap();
            Series::extend(&mut all, first).unwrap();
            prop_assert_eq!(&all, &of(&rows, 0.0));
            prop_assert!(Series::extend(&mut all, &later).is_err(), "steps that are there already");
        }
    }
}
