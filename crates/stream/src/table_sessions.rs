//! Sessions of a model trained on a table: rows in, predictions out, both in the units of the table.

use alloc::{boxed::Box, format, vec::Vec};
use core::fmt;

use minrnn_model::{History, TableTask};

use crate::forecasts::Forecasts;
use crate::kind::{expect_surprise, expect_task_of};
use crate::{Error, Model, Result, State, Workspace};

/// The memory of sessions that read rows of a table: a [`State`], the last rows of each session if the next row is read relative to them
/// or belongs to the same [step](TableTask::rows_per_step), the forecast of the next row if it tells [how surprising](Self::surprise) that
/// row is, and the scratch memory of a step. Cloning forks all sessions.
#[derive(Clone)]
pub struct TableSessions {
    state: State,
    /// Whether the table has a column that says which sequence a row belongs to.
    has_groups: bool,
    reads: Rows,
    /// One for each session, or none where a row alone decides.
    histories: Vec<History>,
    /// Those of the next row of each session.
    forecasts: Forecasts,
    workspace: Workspace,
    scratch: Box<Scratch>,
}

/// Memory of a step, of which a copy has none.
#[derive(Default)]
struct Scratch {
    inputs: Vec<f32>,
    outputs: Vec<f32>,
    numbers: Vec<f64>,
    /// Sessions as they were before a step that has not all of its rows yet; the first ones are in use.
    before: Option<State>,
}

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What sessions of a task read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rows {
    columns: usize,
    /// Rows that decide how the last of them is seen.
    reach: usize,
    /// Rows that the model reads as one step.
    per_step: usize,
    /// Whether they are kept.
    looks_back: bool,
    /// Numbers of a forecast that are kept.
    forecast: usize,
}

impl Rows {
    fn of(task: &TableTask) -> Self {
        let (columns, reach, per_step) = (task.columns().len(), task.reach(), task.rows_per_step());
        Self { columns, reach, per_step, looks_back: task.looks_back(), forecast: task.outputs_of_surprise() }
    }

    fn history(self) -> History {
        History::of_steps(self.columns, self.reach, self.per_step)
    }
}

impl fmt::Debug for TableSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { columns, reach, .. } = self.reads;
        let mut sizes = f.debug_struct("TableSessions");
        sizes
            .field("rows", &self.rows())
            .field("columns", &columns)
            .field("reach", &reach)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl TableSessions {
    /// `rows` new sessions of `model`, trained for `task`.
    ///
    /// # Errors
    /// When the task is that of another model, or memory cannot hold so many.
    pub fn new(model: &Model, task: &TableTask, rows: usize) -> Result<Self> {
        expect_usable_task_of(model, task)?;
        let mut sessions = Self::of_state(model.init_state(rows)?, task.group().is_some(), Rows::of(task));
        sessions.reserve(rows)?;
        sessions.begin();
        Ok(sessions)
    }

    /// Sessions of `model`, trained for `task`, that continue from `state`. Each of `histories` has the last rows of one session if the
    /// task looks back; otherwise `histories` is empty. Each of `forecasts` has the model's first outputs after the last row of a session,
    /// [as many](TableTask::outputs_of_surprise) as say how surprising the next one is, or is empty if they are not known; if none is known,
    /// `forecasts` may be empty.
    ///
    /// # Errors
    /// When the task or the state is that of another model, there is not one history or forecast for each session, or one does not fit the
    /// task.
    pub fn of_parts(model: &Model, task: &TableTask, state: State, histories: &[Vec<f64>], forecasts: &[Vec<f32>]) -> Result<Self> {
        expect_usable_task_of(model, task)?;
        state.expect_shape(model.state_shape())?;
        let misfit = || Error::State("has no rows, or forecasts, that fit the model; it is damaged, begin without it".into());
        let reads = Rows::of(task);
        let mut sessions = Self::of_state(state, task.group().is_some(), reads);
        if histories.len() != sessions.looking_back() {
            return Err(misfit());
        }
        let history = |rows: &Vec<f64>| reads.history().after(rows);
        sessions.histories = histories.iter().map(history).collect::<Option<_>>().ok_or_else(misfit)?;
        let rows = sessions.rows();
        sessions.forecasts.reserve(rows)?;
        sessions.forecasts.resize(rows);
        if !forecasts.is_empty() && (forecasts.len() != rows || !sessions.forecasts.restore(forecasts)) {
            return Err(misfit());
        }
        Ok(sessions)
    }

    fn of_state(state: State, has_groups: bool, reads: Rows) -> Self {
        let forecasts = Forecasts::new(reads.forecast);
        let (histories, workspace, scratch) = (Vec::new(), Workspace::new(), Box::default());
        Self { state, has_groups, reads, histories, forecasts, workspace, scratch }
    }

    /// Checks that the sessions were made for `task`.
    fn expect_task(&self, task: &TableTask) -> Result<()> {
        let (Rows { columns, reach, per_step, .. }, found) = (self.reads, Rows::of(task));
        if found == self.reads {
            return Ok(());
        }
        Err(Error::Input(format!(
            "the sessions read rows of {columns} columns, {reach} of which decide what is seen, {per_step} at a step, found a task of {} columns, {} rows, \
             and {} at a step; take the task that they were made for",
            found.columns, found.reach, found.per_step
        )))
    }

    /// How many sessions have a history.
    fn looking_back(&self) -> usize {
        if self.reads.looks_back { self.rows() } else { 0 }
    }

    /// Checks that the state has as many sessions as there are histories. A caller with mutable access may have replaced it, and a session without
    /// its history would see rows as if none had come before them.
    fn expect_whole(&self) -> Result<()> {
        let (histories, expected) = (self.histories.len(), self.looking_back());
        if histories == expected {
            return Ok(());
        }
        Err(Error::Input(format!(
            "the state has {expected} sessions, expected the {histories} whose last rows are kept; leave it as many as it had, or begin all anew"
        )))
    }

    /// Makes room for the histories and the forecasts of `more` sessions.
    fn reserve(&mut self, more: usize) -> Result<()> {
        self.forecasts.reserve(more)?;
        if !self.reads.looks_back {
            return Ok(());
        }
        let refused = |_| Error::Memory(format!("memory cannot hold the rows that {more} more sessions look back on; keep fewer sessions"));
        self.histories.try_reserve_exact(more).map_err(refused)
    }

    /// Gives the sessions after those that have a history an empty one, and no forecast; there must be room for them.
    fn begin(&mut self) {
        let reads = self.reads;
        self.histories.resize_with(self.looking_back(), || reads.history());
        self.forecasts.resize(self.rows());
    }

    /// Lets passes use at most `threads` threads; see [`Workspace::set_threads`].
    pub fn set_threads(&mut self, threads: usize) {
        self.workspace.set_threads(threads);
    }

    /// Number of sessions.
    pub fn rows(&self) -> usize {
        self.state.rows()
    }

    /// Whether the table has a column that says which sequence a row belongs to.
    pub fn has_groups(&self) -> bool {
        self.has_groups
    }

    /// The model's state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, to be stepped by other means, and the scratch memory of a step. The number of sessions must stay the same, or later calls fail.
    pub(crate) fn state_mut(&mut self) -> (&mut State, &mut Workspace) {
        (&mut self.state, &mut self.workspace)
    }

    /// Forgets what session `row` expects of its next row.
    pub(crate) fn forget_forecast(&mut self, row: usize) {
        self.forecasts.forget(row);
    }

    /// The last rows of each session, relative to which the next is read, `[n, columns]`, newest last; empty if the task does not look
    /// back.
    pub fn histories(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.histories.iter().map(History::rows)
    }

    /// The forecast that decides how surprising the next row of each session is, as the model's first outputs, each empty if it is not known;
    /// none if the task does not tell surprise.
    pub fn forecasts(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.forecasts.each()
    }

    /// Bytes used by all sessions.
    pub fn bytes(&self) -> usize {
        self.state.bytes() + self.histories.iter().map(History::bytes).sum::<usize>() + self.forecasts.bytes()
    }

    /// The sessions `rows`, in that order; a row may be chosen several times.
    ///
    /// # Errors
    /// As [`State::select`].
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        self.expect_whole()?;
        let mut selected = Self::of_state(self.state.select(rows)?, self.has_groups, self.reads);
        selected.workspace.most_threads = self.workspace.most_threads;
        selected.histories = rows.iter().filter_map(|&row| self.histories.get(row).cloned()).collect();
        selected.forecasts = self.forecasts.select(rows);
        Ok(selected)
    }

    /// Adds `more` new sessions.
    ///
    /// # Errors
    /// When the model or the task is a different one, or memory cannot hold so many; no session is then added.
    pub fn grow(&mut self, model: &Model, task: &TableTask, more: usize) -> Result<()> {
        self.expect_task(task)?;
        expect_task_of(model, task)?;
        self.expect_whole()?;
        // Room is made first, so that a refusal leaves no session without a history.
        self.reserve(more)?;
        self.state.append(&model.init_state(more)?)?;
        self.begin();
        Ok(())
    }

    /// Resets session `row`.
    ///
    /// # Errors
    /// As [`Model::restart`].
    pub fn restart(&mut self, model: &Model, row: usize) -> Result<()> {
        self.expect_whole()?;
        model.restart(&mut self.state, row)?;
        self.histories.get_mut(row).into_iter().for_each(History::clear);
        self.forecasts.forget(row);
        Ok(())
    }

    /// Replaces session `row` by session `source_row` of `source`.
    ///
    /// # Errors
    /// As [`State::copy_row`]; also when the two were made for different tasks.
    pub fn copy_row(&mut self, row: usize, source: &Self, source_row: usize) -> Result<()> {
        if self.reads != source.reads {
            return Err(Error::Input("the rows belong to sessions of different tasks; take both from sessions of one".into()));
        }
        self.expect_whole()?;
        source.expect_whole()?;
        self.state.copy_row(row, &source.state, source_row)?;
        if let (Some(history), Some(other)) = (self.histories.get_mut(row), source.histories.get(source_row)) {
            history.clone_from(other);
        }
        self.forecasts.copy_row(row, &source.forecasts, source_row);
        Ok(())
    }

    /// Reads the next rows of the table for each of the sessions `rows` with `read`, which is given the model's inputs, the state and the
    /// scratch memory, and may ask for the model's activations, or its predictions, after each step. From then on the sessions look back on
    /// rows up to the last of these. If several rows are a step, it is the steps that are completed; the rows after them wait for others.
    ///
    /// # Shapes
    /// `rows` `[R]`, ascending; `values` R of `[T, columns]`; the inputs given to `read` R of `[T, inputs]`, or of as many steps as `values`
    /// complete
    ///
    /// # Errors
    /// When the sessions were made for another task, there is not one sequence for each of the rows, a row has the wrong width, a number
    /// cannot be read ([`TableTask::expect_readable`]), or the rows are not ascending or do not exist; and any error of `read`, which must
    /// then leave the state as it was, as every method of [`Model`] does. The sessions have then read nothing, unless `read` replaced their
    /// state with that of other sessions.
    pub fn read<V: AsRef<[f64]>, T, E: From<Error>>(
        &mut self,
        task: &TableTask,
        rows: &[usize],
        values: &[V],
        read: impl FnOnce(Vec<Vec<f32>>, &mut State, &mut Workspace) -> Result<T, E>,
    ) -> Result<T, E> {
        self.expect_task(task)?;
        self.expect_whole()?;
        self.state.expect_rows(rows)?;
        if rows.len() != values.len() {
            let (sessions, found) = (rows.len(), values.len());
            return Err(Error::Input(format!("expected rows of the table for each of {sessions} sessions, found those for {found}")).into());
        }
        let each = || rows.iter().zip(values).map(|(&row, values)| (row, values.as_ref()));
        let mut inputs = Vec::new();
        for (row, values) in each() {
            inputs.push(self.room_for_inputs(task, rows, row, values)?);
        }
        // The histories change only once the model has read; rows that it refuses leave no trace.
        let mut histories: Vec<Option<History>> = rows.iter().map(|&row| self.histories.get(row).cloned()).collect();
        for (((_, values), inputs), history) in each().zip(&mut inputs).zip(&mut histories) {
            let mut inputs = inputs.chunks_exact_mut(task.n_inputs());
            let mut next = || inputs.next().expect("there is room for every step");
            for values in values.chunks_exact(self.reads.columns) {
                match history {
                    Some(history) => {
                        history.push(values);
                        if history.pending() == 0 {
                            task.show(history.rows(), next());
                        }
                    }
                    None => task.show(values, next()),
                }
            }
        }
        let given = read(inputs, &mut self.state, &mut self.workspace)?;
        self.expect_whole()?;
        for (&row, history) in rows.iter().zip(histories) {
            if let (Some(place), Some(history)) = (self.histories.get_mut(row), history) {
                *place = history;
            }
        }
        // What `read` was told of the outputs is not known here. A session that read nothing expects what it expected.
        each().filter(|(_, values)| !values.is_empty()).for_each(|(row, _)| self.forecasts.forget(row));
        Ok(given)
    }

    /// Checks that `values`, rows of the table for session `row`, one of `rows`, can be read, and makes room for the model's inputs at the steps
    /// that they complete.
    fn room_for_inputs(&self, task: &TableTask, rows: &[usize], row: usize, values: &[f64]) -> Result<Vec<f32>> {
        let width = self.reads.columns.max(1);
        if !values.len().is_multiple_of(width) {
            return Err(Error::Input(format!("expected rows of {width} numbers for session {row}, found {} numbers", values.len())));
        }
        values.chunks_exact(width).try_for_each(|values| task.expect_readable(values)).map_err(|flaw| of_row(rows, row, flaw))?;
        let refused = |_| Error::Memory("memory cannot hold what the model reads of so many rows; give fewer at once".into());
        let pending = self.histories.get(row).map_or(0, History::pending);
        let steps = (pending + values.len() / width) / self.reads.per_step;
        let (mut inputs, len) = (Vec::new(), steps.saturating_mul(task.n_inputs()));
        inputs.try_reserve_exact(len).map_err(refused)?;
        inputs.resize(len, 0.0);
        Ok(inputs)
    }

    /// Reads the next rows of the table for each of the sessions `rows`, all at once, and only updates the state; a sequence may be empty.
    ///
    /// # Shapes
    /// `rows` `[R]`, ascending; `values` R of `[T, columns]`
    ///
    /// # Errors
    /// As [`read`](Self::read); also when the model is a different one, or memory cannot hold the past that is kept; the sessions have then
    /// read nothing.
    pub fn advance<V: AsRef<[f64]>>(&mut self, model: &Model, task: &TableTask, rows: &[usize], values: &[V]) -> Result<()> {
        expect_task_of(model, task)?;
        self.read(task, rows, values, |inputs, state, workspace| model.advance_rows_values(rows, &inputs, state, workspace))
    }

    /// Reads the next row of each of the sessions `rows`, in the units of the table, and returns the predictions after it
    /// ([`TableTask::predict_into`]): for each session as many numbers as the model has outputs. Whether they are finite is checked by
    /// [`expect_numbers`]. If [several rows](TableTask::rows_per_step) are a step and this is not the last of one, they are those that the
    /// model would make if the sequence ended here. Nothing is allocated once as many rows have been read before,
    /// unless past tokens have to be copied for that.
    ///
    /// # Shapes
    /// `rows` `[R]`, ascending; `values` `[R, columns]`; the predictions `[R, outputs]`
    ///
    /// # Errors
    /// When the model or the task is not the one the sessions were made for, a row has the wrong width, a number cannot be read
    /// ([`TableTask::expect_readable`]), the rows are not ascending or do not exist, or memory cannot hold the past that is kept; the
    /// sessions have then read nothing.
    pub fn step(&mut self, model: &Model, task: &TableTask, rows: &[usize], values: &[f64]) -> Result<&[f64]> {
        self.expect_task(task)?;
        expect_task_of(model, task)?;
        self.expect_whole()?;
        let width = task.columns().len();
        if rows.len().checked_mul(width) != Some(values.len()) {
            let (found, n) = (values.len(), rows.len());
            return Err(Error::Input(format!("{n} rows have {found} numbers, expected {width} in each, one for each column that is read")));
        }
        let mut each = rows.iter().zip(values.chunks_exact(width.max(1)));
        each.try_for_each(|(&row, values)| task.expect_readable(values).map_err(|flaw| of_row(rows, row, flaw)))?;
        self.state.expect_rows(rows)?;
        let (n_inputs, n_outputs) = (task.n_inputs(), model.outputs());
        let refused = |_| no_room(rows.len());
        let room = |held: usize, each: usize| rows.len().saturating_mul(each).saturating_sub(held);
        self.scratch.inputs.try_reserve(room(self.scratch.inputs.len(), n_inputs)).map_err(refused)?;
        self.scratch.outputs.try_reserve(room(self.scratch.outputs.len(), n_outputs)).map_err(refused)?;
        self.scratch.numbers.try_reserve(room(self.scratch.numbers.len(), n_outputs)).map_err(refused)?;
        self.scratch.inputs.resize(rows.len() * n_inputs, 0.0);
        self.scratch.outputs.resize(rows.len() * n_outputs, 0.0);
        for ((&row, values), inputs) in rows.iter().zip(values.chunks_exact(width)).zip(self.scratch.inputs.chunks_exact_mut(n_inputs)) {
            let recent = match self.histories.get_mut(row) {
                Some(history) => {
                    history.push(values);
                    history.rows()
                }
                None => values,
            };
            task.show(recent, inputs);
        }
        if let Err(error) = self.step_inputs(model, rows) {
            rows.iter().for_each(|&row| self.histories.get_mut(row).into_iter().for_each(History::pop));
            return Err(error);
        }
        self.scratch.numbers.clear();
        for ((&row, values), outputs) in rows.iter().zip(values.chunks_exact(width)).zip(self.scratch.outputs.chunks_exact(n_outputs)) {
            self.forecasts.keep(row, outputs);
            let recent = self.histories.get(row).map_or(values, History::rows);
            task.extend_predictions(recent, outputs, &mut self.scratch.numbers);
        }
        Ok(&self.scratch.numbers)
    }

    /// Reads a step of inputs for each of the sessions `rows` and writes the outputs after it. Those whose step has not all of its rows yet are
    /// then as they were.
    fn step_inputs(&mut self, model: &Model, rows: &[usize]) -> Result<()> {
        let Self { state, histories, workspace, scratch, .. } = self;
        let Scratch { inputs, outputs, before, .. } = &mut **scratch;
        let is_pending = |row: &&usize| histories.get(**row).is_some_and(|history| history.pending() > 0);
        let pending = || rows.iter().filter(is_pending).enumerate();
        let n = pending().count();
        if n > 0 && before.as_ref().is_none_or(|before| before.rows() < n || !before.is_like(state)) {
            *before = Some(model.init_state(n)?);
        }
        if let Some(before) = before {
            pending().try_for_each(|(at, &row)| before.copy_row(at, state, row))?;
        }
        model.step_rows_values(rows, inputs, state, outputs, workspace)?;
        if let Some(kept) = before {
            // They have room: what they have just read was more.
            pending().try_for_each(|(at, &row)| state.copy_row(row, kept, at))?;
        }
        // Past tokens are not kept twice.
        before.take_if(|_| state.past_widths().len() > 0);
        Ok(())
    }

    /// How surprising `values`, the next row of session `row`, would be to a forecaster, in nats: the negative log-likelihood of the targets'
    /// values under the forecast that [`step`](Self::step) made for them after the row before ([`minrnn_model::Forecaster::surprise`]). To be
    /// asked before the row is read; nothing changes. `None` at the beginning of a sequence, as far as the task looks back; where all targets
    /// are missing; and after rows that were read by other means than [`step`](Self::step), which do not tell the forecast.
    ///
    /// ```no_run
    /// use minrnn_stream::{PackedModel, TableSessions};
    ///
    /// let PackedModel { model, table, surprise: held_out, .. } = PackedModel::read("meters.minrnn")?;
    /// let table = table.expect("it was trained on a table");
    /// let threshold = held_out.map(|rows| rows.threshold(0.999)).transpose()?;
    /// let mut sessions = TableSessions::new(&model, &table, 1)?;
    /// for load in [10.2, 9.8, 31.0] {
    ///     let surprise = sessions.surprise(&table, 0, &[load])?;
    ///     sessions.step(&model, &table, &[0], &[load])?;
    ///     if surprise.zip(threshold).is_some_and(|(surprise, threshold)| surprise > threshold.surprise) {
    ///         println!("{load} is unusual");
    ///     }
    /// }
    /// # Ok::<(), minrnn_stream::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the sessions were made for another task, the task tells no surprise or forecasts a column that it does not read, the row has the
    /// wrong width or a number that cannot be read ([`TableTask::expect_readable`]), or there is no such session.
    pub fn surprise(&self, task: &TableTask, row: usize, values: &[f64]) -> Result<Option<f64>> {
        self.expect_task(task)?;
        self.expect_whole()?;
        self.state.expect_rows(&[row])?;
        let forecaster = expect_surprise(task)?;
        task.expect_readable(values)?;
        let next = forecaster.targets_of(values)?;
        let Some(outputs) = self.forecasts.of(row) else { return Ok(None) };
        Ok(forecaster.surprise(self.histories.get(row).map_or(&[], History::rows), outputs, &next))
    }
}

fn no_room(rows: usize) -> Error {
    Error::Memory(format!("memory cannot hold what a step of {rows} rows reads and predicts; step fewer"))
}

/// Checks that the predictions for each of the sessions `rows`, as returned by [`TableSessions::step`], are finite; those of a badly
/// trained model may not be.
///
/// # Errors
/// [`Error::Prediction`] for the first row with one that is not.
pub fn expect_numbers(rows: &[usize], predictions: &[f64]) -> Result<()> {
    let width = (predictions.len() / rows.len().max(1)).max(1);
    let mut each = rows.iter().zip(predictions.chunks_exact(width));
    let flaw = each.find_map(|(&row, numbers)| Some((row, *numbers.iter().find(|number| !number.is_finite())?)));
    flaw.map_or(Ok(()), |(row, value)| Err(Error::Prediction { row, value }))
}

/// Checks that `model` reads and predicts what `task` says, and that the parts of the task fit together, as they do if it was read from a file.
fn expect_usable_task_of(model: &Model, task: &TableTask) -> Result<()> {
    expect_task_of(model, task)?;
    Ok(task.expect_usable(task.n_inputs(), task.n_outputs())?)
}

/// The error `flaw` for the row of a session, which is named if there are several in `rows`.
fn of_row(rows: &[usize], row: usize, flaw: minrnn_model::Error) -> Error {
    match flaw {
        minrnn_model::Error::Row(flaw) if rows.len() > 1 => minrnn_model::Error::Row(format!("row {row}, {flaw}")).into(),
        flaw => flaw.into(),
    }
}
