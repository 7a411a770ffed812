//! Rows of a table in, predictions out, both in the table's units.

use minrnn_model::TableTask;
use minrnn_stream::{Error, Model, Sessions, TableSessions, expect_numbers, expect_table};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::filled;
use crate::failure::{Failure, Result, computed};
use crate::inputs::{self, Form, Sequences, Steps};
use crate::remembered::{Remembered, Session};
use crate::rows::{Columns, is_table, of_row, of_table};
use crate::steps::{self, Wanted};
use crate::threads::{Reading, within};

/// Steps of a sequence between two checks for signals.
const BETWEEN_SIGNALS: usize = 1024;

/// The sessions and what they need to read a row.
struct Table<'a> {
    model: &'a Model,
    task: &'a TableTask,
    columns: Columns<'a>,
    sessions: &'a mut TableSessions,
}

impl<'a> Table<'a> {
    fn new(session: &'a Session, sessions: &'a mut Sessions) -> Result<Self> {
        let task = expect_table(session.loaded.table.as_ref().filter(|_| session.is_table))?;
        let Sessions::Table(sessions) = sessions else { unreachable!("the sessions read rows of a table") };
        Ok(Self { model: &session.loaded.model, task, columns: session.loaded.columns_of(task), sessions })
    }

    /// Reads a row for each of the sessions `rows`, and writes the predictions.
    fn step(&mut self, rows: &[usize], values: &[f64], predictions: &mut [f64]) -> minrnn_stream::Result<()> {
        let numbers = self.sessions.step(self.model, self.task, rows, values)?;
        expect_numbers(rows, numbers)?;
        predictions.copy_from_slice(numbers);
        Ok(())
    }

    /// The same; if a prediction is not finite, the sessions are as they were. From call to call `before` keeps room for copies of their rows.
    fn step_or_undo(
        &mut self,
        rows: &[usize],
        values: &[f64],
        before: &mut Option<TableSessions>,
        predictions: &mut [f64],
    ) -> minrnn_stream::Result<()> {
        let exist = rows.is_sorted_by(|row, next| row < next) && rows.last().is_none_or(|&last| last < self.sessions.rows());
        if !exist {
            // Refused before anything is read.
            return self.step(rows, values, predictions);
        }
        let kept = match before.take() {
            Some(mut kept) if kept.rows() >= rows.len() => {
                rows.iter().enumerate().try_for_each(|(at, &row)| kept.copy_row(at, self.sessions, row))?;
                kept
            }
            _ => self.sessions.select(rows)?,
        };
        let read = self.step(rows, values, predictions);
        if let Err(Error::Prediction { .. }) = read {
            rows.iter().enumerate().try_for_each(|(at, &row)| self.sessions.copy_row(row, &kept, at))?;
        }
        // Past tokens are not kept twice.
        *before = Some(kept).filter(|kept| kept.state().past_widths().len() == 0);
        read
    }
}

/// The dimensions of a prediction: classes, or steps ahead, targets and quantiles.
pub(crate) fn prediction(task: &TableTask) -> Vec<usize> {
    match task {
        TableTask::Classify(classifier) => vec![classifier.classes.len()],
        TableTask::Regress(_) => vec![1],
        TableTask::Forecast(forecaster) => {
            let quantiles = Some(forecaster.quantiles.len()).filter(|&n| n > 0);
            [forecaster.horizon, forecaster.target.len()].into_iter().chain(quantiles).collect()
        }
    }
}

/// The numbers of a row of the table for each of `rows`, and whether a single one was given alone.
fn next_rows(session: &Session, table: &Table<'_>, inputs: &Bound<'_, PyAny>, rows: usize, is_one: bool) -> Result<(Vec<f64>, bool)> {
    match inputs.cast::<PyDict>() {
        Ok(row) if rows == 1 => Ok((of_row(&table.columns, row)?, true)),
        _ if is_table(inputs)? => {
            let values = of_table(&table.columns, inputs)?;
            let found = values.len() / table.task.columns().len();
            if found != rows {
                return Err(Failure::input(format!("inputs: expected a table of {rows} rows, a step for each row, found {found}")));
            }
            Ok((values, is_one))
        }
        _ => inputs::steps::<f64>(inputs, session.width(), rows, is_one),
    }
}

/// How surprising a row of the table is for each of `rows`; a number without dimensions if it was given alone.
pub(crate) fn surprise<'py>(
    session: &Session,
    sessions: &mut Sessions,
    inputs: &Bound<'py, PyAny>,
    rows: &[usize],
    is_one: bool,
) -> Result<Bound<'py, PyArrayDyn<f64>>> {
    let table = Table::new(session, sessions)?;
    let (values, is_alone) = next_rows(session, &table, inputs, rows.len(), is_one)?;
    filled(inputs.py(), &[rows.len()][usize::from(is_alone)..], |room: &mut [f64]| {
        for ((&row, values), place) in rows.iter().zip(values.chunks_exact(table.task.columns().len())).zip(room) {
            *place = table.sessions.surprise(table.task, row, values)?.unwrap_or(f64::NAN);
        }
        Ok(())
    })
}

/// One row of the table for each of `rows`.
pub(crate) fn step<'py>(
    session: &Session,
    remembered: &mut Remembered,
    inputs: &Bound<'py, PyAny>,
    rows: &[usize],
    is_one: bool,
) -> Result<Bound<'py, PyArrayDyn<f64>>> {
    let py = inputs.py();
    let Remembered { sessions, before, .. } = remembered;
    let pool = session.threads.pool(py, Reading::Step)?;
    sessions.set_threads(session.threads.most(Reading::Step));
    let mut table = Table::new(session, sessions)?;
    let (values, is_alone) = next_rows(session, &table, inputs, rows.len(), is_one)?;
    let shape = [&[rows.len()][usize::from(is_alone)..], &prediction(table.task)].concat();
    filled(py, &shape, |room| computed(py, || within(pool.as_deref(), || table.step_or_undo(rows, &values, before, room))))
}

/// Reads rows of a table into each of `rows` of the sessions, step by step; `keep(row, step)` says where the prediction after a step goes.
fn read(
    py: Python<'_>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
    mut keep: impl FnMut(usize, usize, &[f64]) + Send,
) -> Result<()> {
    let Steps::Table(numbers) = &sequences.steps else { unreachable!("the sessions read rows of a table") };
    let (width, lens) = (sequences.width, sequences.lens());
    let longest = lens.iter().copied().max().unwrap_or(0);
    let pool = session.threads.pool(py, Reading::Step)?;
    sessions.set_threads(session.threads.most(Reading::Step));
    // A copy is read into, so that the sessions are unchanged if the user stops it midway, or a row cannot be read.
    let mut picked = sessions.select(rows)?;
    let mut table = Table::new(session, &mut picked)?;
    let n_outputs = table.model.outputs();
    let (mut room, mut values, mut reading) = (vec![0.0; rows.len() * n_outputs], Vec::new(), Vec::new());
    for from in (0..longest).step_by(BETWEEN_SIGNALS) {
        computed(py, || {
            within(pool.as_deref(), || {
                for step in from..longest.min(from + BETWEEN_SIGNALS) {
                    reading.clear();
                    reading.extend((0..lens.len()).filter(|&at| step < lens[at]));
                    values.clear();
                    reading.iter().for_each(|&at| values.extend_from_slice(&numbers[at][step * width..][..width]));
                    let room = &mut room[..reading.len() * n_outputs];
                    table.step(&reading, &values, room)?;
                    reading.iter().zip(room.chunks_exact(n_outputs)).for_each(|(&at, predicted)| keep(at, step, predicted));
                }
                Ok(())
            })
        })?;
        py.check_signals()?;
    }
    Ok(rows.iter().enumerate().try_for_each(|(at, &row)| sessions.copy_row(row, &picked, at))?)
}

/// Reads rows of a table into each of `rows`; returns the model's internal activations after every step that they complete.
pub(crate) fn embed<'py>(
    py: Python<'py>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
    wanted: Wanted,
) -> Result<Bound<'py, PyAny>> {
    let Steps::Table(numbers) = &sequences.steps else { unreachable!("the sessions read rows of a table") };
    sessions.set_threads(session.threads.most(Reading::Sequences));
    let mut picked = sessions.select(rows)?;
    let Table { task, sessions: reading, .. } = Table::new(session, &mut picked)?;
    let all: Vec<usize> = (0..rows.len()).collect();
    let answer = reading.read(task, &all, numbers, |seen, state, workspace| {
        let mut seen = Sequences { steps: Steps::Values(seen), width: task.n_inputs(), form: sequences.form };
        // Where several rows are a step, as many rows can complete different numbers of steps.
        if seen.form == Form::Batch && seen.lens().windows(2).any(|pair| pair[0] != pair[1]) {
            seen.form = Form::List;
        }
        steps::forward_by(py, session, (state, workspace), &seen, &all, wanted)
    })?;
    rows.iter().enumerate().try_for_each(|(at, &row)| sessions.copy_row(row, &picked, at))?;
    Ok(answer)
}

/// Reads rows of a table into each of `rows`, all but the last of each at once; returns the prediction after the last.
pub(crate) fn prefill<'py>(
    py: Python<'py>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
) -> Result<Bound<'py, PyArrayDyn<f64>>> {
    let Steps::Table(numbers) = &sequences.steps else { unreachable!("the sessions read rows of a table") };
    let (width, lens) = (sequences.width, sequences.lens());
    if let Some(row) = lens.iter().position(|&len| len == 0) {
        return Err(Failure::input(format!("the sequence of row {row} is empty, expected at least one step")));
    }
    let pool = session.threads.pool(py, Reading::Sequences)?;
    let pool = pool.as_deref();
    sessions.set_threads(session.threads.most(Reading::Sequences));
    // A copy is read into, so that the sessions are unchanged if the user stops it midway, or a row cannot be read.
    let mut picked = sessions.select(rows)?;
    let mut table = Table::new(session, &mut picked)?;
    let shape = [&[rows.len()][usize::from(sequences.form == Form::Alone)..], &prediction(table.task)].concat();
    let (all, chunk) = ((0..rows.len()).collect::<Vec<usize>>(), steps::chunk(table.model, rows.len()));
    let answer = filled(py, &shape, |room| {
        let before_last = lens.iter().map(|len| len - 1).max().unwrap_or(0);
        for from in (0..before_last).step_by(chunk) {
            let part = steps::parts(numbers, width, |len| from.min(len - 1)..(from + chunk).min(len - 1));
            computed(py, || within(pool, || table.sessions.advance(table.model, table.task, &all, &part)))?;
            py.check_signals()?;
        }
        let last = steps::parts(numbers, width, |len| len - 1..len).concat();
        computed(py, || within(pool, || table.step(&all, &last, room)))
    })?;
    rows.iter().enumerate().try_for_each(|(at, &row)| sessions.copy_row(row, &picked, at))?;
    Ok(answer)
}

/// Reads rows of a table into each of `rows`; returns the predictions after every one.
pub(crate) fn forward<'py>(
    py: Python<'py>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
) -> Result<Bound<'py, PyAny>> {
    let task = Table::new(session, sessions)?.task;
    let (dims, n_outputs, lens) = (prediction(task), session.loaded.model.outputs(), sequences.lens());
    if sequences.form != Form::List {
        let len = lens.first().copied().unwrap_or(0);
        let shape = [&[rows.len(), len][usize::from(sequences.form == Form::Alone)..], &dims].concat();
        let array = filled(py, &shape, |room| {
            read(py, session, sessions, sequences, rows, |at, step, predicted| {
                room[(at * len + step) * n_outputs..][..n_outputs].copy_from_slice(predicted);
            })
        })?;
        return Ok(array.into_any());
    }
    let mut rooms: Vec<Vec<f64>> = lens.iter().map(|&len| Vec::with_capacity(len.saturating_mul(n_outputs).min(1 << 20))).collect();
    read(py, session, sessions, sequences, rows, |at, _, predicted| rooms[at].extend_from_slice(predicted))?;
    let array = |(room, &len): (Vec<f64>, &usize)| {
        filled(py, &[&[len][..], &dims].concat(), |array| {
            array.copy_from_slice(&room);
            Ok(())
        })
    };
    Ok(PyList::new(py, rooms.into_iter().zip(&lens).map(array).collect::<Result<Vec<_>>>()?)?.into_any())
}
