//! The sequences of a table.

use std::ops::Range;

use minrnn_model::TableTask;

use super::cells::Texts;
use super::frame::{Frame, Lead};
use super::label::Label;
use super::times::{Clock, Step};
use crate::{Error, Result};

/// A sequence of T steps of `width` numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the group column calls it; empty where there is none.
    pub name: String,
    /// Row-major `[T, width]`.
    pub values: Vec<f64>,
    /// Numbers at each step.
    pub width: usize,
    /// When the steps were, rising; empty where no column tells.
    pub times: Vec<f64>,
    /// How the times are written.
    pub clock: Clock,
}

impl Series {
    /// Number of steps T.
    #[allow(clippy::len_without_is_empty, reason = "a sequence has at least two steps")]
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// The numbers of step `t`.
    #[inline]
    pub fn step(&self, t: usize) -> &[f64] {
        &self.values[t * self.width..][..self.width]
    }

    /// The numbers of step `t` and of those before it, at most `reach` steps.
    #[inline]
    pub fn recent(&self, t: usize, reach: usize) -> &[f64] {
        &self.values[(t + 1).saturating_sub(reach) * self.width..(t + 1) * self.width]
    }

    /// What the model of `task` reads at the steps `steps`, `[T, n_inputs]`; the columns that it reads are all there are.
    pub(crate) fn seen(&self, task: &TableTask, steps: Range<usize>) -> Vec<f32> {
        let mut inputs = vec![0.0; steps.len() * task.n_inputs()];
        steps.zip(inputs.chunks_exact_mut(task.n_inputs())).for_each(|(step, inputs)| task.show(self.recent(step, task.reach()), inputs));
        inputs
    }

    /// All steps in turn.
    #[inline]
    pub fn steps(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.width)
    }

    /// Puts the steps in the order of their times.
    ///
    /// # Errors
    /// When two have the same.
    fn put_in_order(&mut self) -> Result<()> {
        if self.times.windows(2).any(|pair| pair[0] > pair[1]) {
            let mut order: Vec<usize> = (0..self.times.len()).collect();
            order.sort_by(|&a, &b| self.times[a].total_cmp(&self.times[b]));
            self.values = order.iter().flat_map(|&at| self.step(at)).copied().collect();
            self.times = order.iter().map(|&at| self.times[at]).collect();
        }
        self.expect_rising()
    }

    /// Refuses steps that are not later than the ones before.
    fn expect_rising(&self) -> Result<()> {
        let Some(at) = self.times.windows(2).position(|pair| pair[0] >= pair[1]) else { return Ok(()) };
        let of = if self.name.is_empty() { "the table".to_owned() } else { format!("the sequence '{}'", self.name) };
        let [before, time] = [at, at + 1].map(|at| self.clock.write(self.times[at]));
        Err(Error::Data(match before == time {
            true => format!("{of} has two rows of the time {time}, expected one; is the group column the right one?"),
            false => format!("{of} goes on with {time} after {before}; expected a later time"),
        }))
    }

    /// Puts what other columns hold in later steps into `leads`, behind the end what they hold in the last one.
    pub(super) fn fill_leads(&mut self, leads: &[Lead]) {
        let (n, width) = (self.len(), self.width);
        for t in 0..if leads.is_empty() { 0 } else { n } {
            for lead in leads {
                self.values[t * width + lead.at] = self.values[(t + lead.ahead).min(n - 1) * width + lead.of];
            }
        }
    }

    /// Adds the steps of `later`, the same sequence in another file.
    ///
    /// # Errors
    /// When they are not later.
    pub(super) fn extend(&mut self, later: Self) -> Result<()> {
        if !self.clock.agrees(later.clock) || self.times.is_empty() != later.times.is_empty() {
            return Err(Error::Data("its times are written in another way than those of the training file".to_owned()));
        }
        self.values.extend(later.values);
        self.times.extend(later.times);
        self.expect_rising()
    }

    /// The time from one step to the next; none where no column tells.
    pub fn time_step(&self) -> Option<Step> {
        self.clock.step(&self.times)
    }

    /// The times of the next `n` steps as they would be written; none where no column tells.
    pub fn next_times(&self, n: usize) -> Option<Vec<String>> {
        let (step, &last) = (self.time_step()?, self.times.last()?);
        Some(self.clock.go_on(last, step, n).into_iter().map(|time| self.clock.write(time)).collect())
    }

    /// The sequences of `frame`, its rows told apart by `groups`, in the order of their first rows.
    ///
    /// # Errors
    /// When a sequence has fewer than 2 steps.
    pub(super) fn of(frame: &Frame, groups: Option<&Texts>) -> Result<Vec<Self>> {
        Self::of_at_least(frame, groups, 2)
    }

    /// The same, each with `least` steps or more.
    ///
    /// # Errors
    /// When a sequence has fewer.
    pub(super) fn of_at_least(frame: &Frame, groups: Option<&Texts>, least: usize) -> Result<Vec<Self>> {
        let width = frame.names.len();
        let times = frame.times.as_ref();
        let clock = times.map_or(Clock::Number, |times| times.clock);
        let new = |name: &str| Self { name: name.to_owned(), values: Vec::new(), width, times: Vec::new(), clock };
        let mut series: Vec<Self> = match groups {
            Some(groups) => groups.distinct().iter().map(|name| new(name)).collect(),
            None => vec![new("")],
        };
        // Many rows are held once, in room that fits.
        let mut lengths = vec![0; series.len()];
        (0..frame.n_rows()).for_each(|row| lengths[groups.map_or(0, |groups| groups.rows()[row] as usize)] += 1);
        for (series, &length) in series.iter_mut().zip(&lengths) {
            series.values.reserve_exact(length * width);
            series.times.reserve_exact(if times.is_some() { length } else { 0 });
        }
        for row in 0..frame.n_rows() {
            let at = groups.map_or(0, |groups| groups.rows()[row] as usize);
            series[at].values.extend(frame.numbers.iter().map(|column| column[row]));
            series[at].times.extend(times.map(|times| times.values[row]));
        }
        series.iter_mut().try_for_each(Self::put_in_order)?;
        series.iter_mut().for_each(|series| series.fill_leads(&frame.leads));
        match series.iter().find(|series| series.len() < least) {
            None => Ok(series),
            Some(short) if short.name.is_empty() => Err(Error::Data("it has 1 row, expected a sequence of at least 2".to_owned())),
            Some(short) => {
                let name = &short.name;
                Err(Error::Data(format!("the sequence '{name}' has 1 step, expected at least 2; is the group column the right one?")))
            }
        }
    }
}

/// The label of each group, which is a `label`: the one that all its rows have.
///
/// # Errors
/// When a group has more than one.
pub(super) fn labels(groups: &Texts, labels: &Texts, column: &str, label: Label) -> Result<Vec<u32>> {
    let mut found: Vec<Option<u32>> = vec![None; groups.distinct().len()];
    for (row, (&group, &own)) in groups.rows().iter().zip(labels.rows()).enumerate() {
        let first = *found[group as usize].get_or_insert(own);
        if first != own {
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
