//! Steps and sequences as the model sees them: tokens or numbers in, its outputs out.

use std::ops::Range;

use minrnn_stream::{Inside, Model, PASS_STEPS, Sessions, State, Workspace};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rayon::ThreadPool;

use crate::arrays::filled;
use crate::failure::{Result, computed};
use crate::inputs::{self, Form, Sequences, Steps, Width};
use crate::remembered::Session;
use crate::threads::{Reading, within};

/// Multiply-adds between two checks for signals: some tens of milliseconds.
const BETWEEN_SIGNALS: usize = 1 << 31;
/// Most steps between two checks, as their outputs may be kept.
const MOST_STEPS: usize = 1 << 16;

/// One step of each of `rows`.
pub(crate) fn step<'py>(
    session: &Session,
    sessions: &mut Sessions,
    inputs: &Bound<'py, PyAny>,
    rows: &[usize],
    is_one: bool,
) -> Result<Bound<'py, PyArrayDyn<f32>>> {
    let (py, model) = (inputs.py(), &session.loaded.model);
    let pool = session.threads.pool(py, Reading::Step)?;
    sessions.set_threads(session.threads.most(Reading::Step));
    let shape = [rows.len(), model.outputs()];
    sessions.read_inputs(rows, |state, workspace| match session.width() {
        Width::Token => {
            let (tokens, is_alone) = inputs::steps::<u32>(inputs, Width::Token, rows.len(), is_one)?;
            filled(py, &shape[usize::from(is_alone)..], |room| {
                computed(py, || within(pool.as_deref(), || model.step_rows(rows, &tokens, state, room, workspace)))
            })
        }
        width => {
            let (values, is_alone) = inputs::steps::<f32>(inputs, width, rows.len(), is_one)?;
            filled(py, &shape[usize::from(is_alone)..], |room| {
                computed(py, || within(pool.as_deref(), || model.step_rows_values(rows, &values, state, room, workspace)))
            })
        }
    })
}

/// Steps between two checks for signals, in whole passes of the runtime.
pub(crate) fn chunk(model: &Model, rows: usize) -> usize {
    let steps = BETWEEN_SIGNALS / model.step_macs().saturating_mul(rows).max(1);
    steps.next_multiple_of(PASS_STEPS).clamp(PASS_STEPS, MOST_STEPS)
}

/// The steps of each sequence in the range that `range` gives for its length.
pub(crate) fn parts<T>(sequences: &[Vec<T>], width: usize, range: impl Fn(usize) -> Range<usize>) -> Vec<&[T]> {
    let part = |sequence| {
        let sequence: &Vec<T> = sequence;
        let Range { start, end } = range(sequence.len() / width);
        &sequence[start * width..end * width]
    };
    sequences.iter().map(part).collect()
}

impl Sequences {
    /// Reads a part of each sequence into `rows`, only updating the state.
    fn advance(
        &self,
        model: &Model,
        range: impl Fn(usize) -> Range<usize>,
        rows: &[usize],
        state: &mut State,
        workspace: &mut Workspace,
    ) -> minrnn_stream::Result<()> {
        match &self.steps {
            Steps::Tokens(tokens) => model.advance_rows(rows, &parts(tokens, 1, range), state, workspace),
            Steps::Values(values) => model.advance_rows_values(rows, &parts(values, self.width, range), state, workspace),
            Steps::Table(_) => unreachable!("rows of a table are read in its units"),
        }
    }

    /// The same, with the outputs after the last step of each.
    fn predict(
        &self,
        model: &Model,
        range: impl Fn(usize) -> Range<usize>,
        rows: &[usize],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> minrnn_stream::Result<()> {
        match &self.steps {
            Steps::Tokens(tokens) => model.prefill_rows(rows, &parts(tokens, 1, range), state, outputs, workspace),
            Steps::Values(values) => model.prefill_rows_values(rows, &parts(values, self.width, range), state, outputs, workspace),
            Steps::Table(_) => unreachable!("rows of a table are read in its units"),
        }
    }
}

/// Reads a sequence into each of `rows`; returns the outputs after its last step.
pub(crate) fn prefill<'py>(
    py: Python<'py>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
) -> Result<Bound<'py, PyArrayDyn<f32>>> {
    let model = &session.loaded.model;
    let (shape, longest) = ([rows.len(), model.outputs()], sequences.lens().into_iter().max().unwrap_or(0));
    let pool = session.threads.pool(py, Reading::Sequences)?;
    let pool = pool.as_deref();
    sessions.set_threads(session.threads.most(Reading::Sequences));
    let chunk = chunk(model, rows.len());
    let read = |state: &mut State, workspace: &mut Workspace, room: &mut [f32]| {
        if longest <= chunk {
            return computed(py, || within(pool, || sequences.predict(model, |len| 0..len, rows, state, room, workspace)));
        }
        // A copy is read into, so that the rows are unchanged if the user stops it midway.
        let mut picked = state.select(rows)?;
        let all: Vec<usize> = (0..rows.len()).collect();
        for from in (0..longest).step_by(chunk) {
            let range = |len: usize| from.min(len.saturating_sub(1))..(from + chunk).min(len.saturating_sub(1));
            computed(py, || within(pool, || sequences.advance(model, range, &all, &mut picked, workspace)))?;
            py.check_signals()?;
        }
        let last = |len: usize| len.saturating_sub(1)..len;
        computed(py, || within(pool, || sequences.predict(model, last, &all, &mut picked, room, workspace)))?;
        put_back(state, rows, &picked)
    };
    sessions.read_inputs(rows, |state, workspace| {
        filled(py, &shape[usize::from(sequences.form == Form::Alone)..], |room| read(state, workspace, room))
    })
}

fn put_back(state: &mut State, rows: &[usize], picked: &State) -> Result<()> {
    Ok(rows.iter().enumerate().try_for_each(|(at, &row)| state.copy_row(row, picked, at))?)
}

/// What is wanted after every step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// What the model predicts.
    Outputs,
    /// The input of the head.
    Features,
    /// The output of a block.
    Hidden(usize),
}

/// Reads a sequence into each of `rows`; returns what is wanted after every step.
pub(crate) fn forward<'py>(
    py: Python<'py>,
    session: &Session,
    sessions: &mut Sessions,
    sequences: &Sequences,
    rows: &[usize],
    wanted: Wanted,
) -> Result<Bound<'py, PyAny>> {
    sessions.set_threads(session.threads.most(Reading::Sequences));
    sessions.read_inputs(rows, |state, workspace| forward_by(py, session, (state, workspace), sequences, rows, wanted))
}

/// The same for rows of a state, with the scratch memory of a step.
pub(crate) fn forward_by<'py>(
    py: Python<'py>,
    session: &Session,
    (state, workspace): (&mut State, &mut Workspace),
    sequences: &Sequences,
    rows: &[usize],
    wanted: Wanted,
) -> Result<Bound<'py, PyAny>> {
    let model = &session.loaded.model;
    let width = match wanted {
        Wanted::Outputs => model.outputs(),
        Wanted::Features | Wanted::Hidden(_) => model.config().d_model,
    };
    let pool = session.threads.pool(py, Reading::Sequences)?;
    let mut picked = state.select(rows)?;
    let lens = sequences.lens();
    let mut read = |at: usize, room: &mut [f32]| -> Result<()> {
        let mut one = picked.select(&[at])?;
        Forward { model, wanted, pool: pool.as_deref() }.read(py, &sequences.of_row(at), &mut one, room, workspace)?;
        Ok(picked.copy_row(at, &one, 0)?)
    };
    let answer = match sequences.form {
        Form::Alone => filled(py, &[lens[0], width], |room| read(0, room))?.into_any(),
        Form::Batch => filled(py, &[rows.len(), lens.first().copied().unwrap_or(0), width], |room| {
            let each = room.len() / rows.len().max(1);
            (0..rows.len()).try_for_each(|at| read(at, &mut room[at * each..(at + 1) * each]))
        })?
        .into_any(),
        Form::List => {
            let one = |at| filled(py, &[lens[at], width], |room| read(at, room));
            PyList::new(py, (0..rows.len()).map(one).collect::<Result<Vec<_>>>()?)?.into_any()
        }
    };
    put_back(state, rows, &picked)?;
    Ok(answer)
}

struct Forward<'a> {
    model: &'a Model,
    wanted: Wanted,
    pool: Option<&'a ThreadPool>,
}

impl Forward<'_> {
    /// Reads one sequence into the one row of `state`.
    fn read(&self, py: Python<'_>, steps: &Steps, state: &mut State, room: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        let Self { model, wanted, pool } = *self;
        let (len, width) = match (steps, Width::of(model).len()) {
            (Steps::Tokens(tokens), _) => (tokens[0].len(), 1),
            (Steps::Values(values), width) => (values[0].len() / width, width),
            (Steps::Table(_), _) => unreachable!("rows of a table are read in its units"),
        };
        let (chunk, each) = (chunk(model, 1), room.len() / len.max(1));
        let mut outputs = Vec::new();
        for start in (0..len).step_by(chunk) {
            let range = start..(start + chunk).min(len);
            let room = &mut room[range.start * each..range.end * each];
            let (outputs, inside) = match wanted {
                Wanted::Outputs => (room, Inside::default()),
                Wanted::Features | Wanted::Hidden(_) => {
                    outputs.resize(range.len() * model.outputs(), 0.0);
                    let inside = match wanted {
                        Wanted::Hidden(layer) => Inside { hidden: Some((layer, room)), features: None },
                        _ => Inside { hidden: None, features: Some(room) },
                    };
                    (&mut outputs[..], inside)
                }
            };
            computed(py, || {
                within(pool, || match steps {
                    Steps::Tokens(tokens) => model.forward_inside(&tokens[0][range], state, outputs, inside, workspace),
                    Steps::Values(values) => {
                        let range = range.start * width..range.end * width;
                        model.forward_values_inside(&values[0][range], state, outputs, inside, workspace)
                    }
                    Steps::Table(_) => unreachable!("rows of a table are read in its units"),
                })
            })?;
            py.check_signals()?;
        }
        Ok(())
    }
}
