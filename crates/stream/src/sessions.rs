//! Sessions of any model behind one interface, whether they read rows of a table or the model's own inputs.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use minrnn_model::TableTask;

use crate::saved_sessions::Parts;
use crate::{Error, Model, Result, SavedSessions, Saving, State, TableSessions, Workspace};

/// A model's state for one or many sequences, each a row, with the scratch memory of a step. A binding to another language keeps one of
/// these for each of its sessions.
#[derive(Debug)]
pub enum Sessions {
    /// Reads rows of a table, and predicts in its units.
    Table(TableSessions),
    /// Reads tokens or numbers as the model sees them.
    Plain(State, Workspace),
}

impl Sessions {
    /// `rows` new sequences; of a table's rows if there is a task.
    ///
    /// # Errors
    /// When the task is that of another model, or memory cannot hold so many.
    pub fn new(model: &Model, table: Option<&TableTask>, rows: usize) -> Result<Self> {
        match table {
            Some(task) => TableSessions::new(model, task, rows).map(Self::Table),
            None => model.init_state(rows).map(Self::plain),
        }
    }

    fn plain(state: State) -> Self {
        Self::Plain(state, Workspace::new())
    }

    /// Lets passes use at most `threads` threads; see [`Workspace::set_threads`].
    pub fn set_threads(&mut self, threads: usize) {
        match self {
            Self::Table(sessions) => sessions.set_threads(threads),
            Self::Plain(_, workspace) => workspace.set_threads(threads),
        }
    }

    /// The model's state.
    pub fn state(&self) -> &State {
        match self {
            Self::Table(sessions) => sessions.state(),
            Self::Plain(state, _) => state,
        }
    }

    /// Steps the model on its own inputs, whatever the sessions read: `step` is given the state and the scratch memory of a step, and may change
    /// the rows `rows`. The number of rows must stay the same, or the sessions of a table will return errors; the rows of the table that they
    /// look back on are not updated, and what `rows` expected of the next row of the table is forgotten.
    ///
    /// # Errors
    /// Any error of `step`, which must then leave the state as it was, as every method of [`Model`] does.
    pub fn read_inputs<T, E>(&mut self, rows: &[usize], step: impl FnOnce(&mut State, &mut Workspace) -> Result<T, E>) -> Result<T, E> {
        let (state, workspace) = match self {
            Self::Table(sessions) => sessions.state_mut(),
            Self::Plain(state, workspace) => (state, workspace),
        };
        let given = step(state, workspace)?;
        if let Self::Table(sessions) = self {
            rows.iter().for_each(|&row| sessions.forget_forecast(row));
        }
        Ok(given)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.state().rows()
    }

    /// Bytes used by all rows.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Table(sessions) => sessions.bytes(),
            Self::Plain(state, _) => state.bytes(),
        }
    }

    /// The rows `rows`, in that order; one may be chosen several times. The number of threads is kept.
    ///
    /// # Errors
    /// As [`State::select`].
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        match self {
            Self::Table(sessions) => sessions.select(rows).map(Self::Table),
            Self::Plain(state, workspace) => {
                let mut selected = Self::plain(state.select(rows)?);
                selected.set_threads(workspace.most_threads);
                Ok(selected)
            }
        }
    }

    /// Resets row `row`.
    ///
    /// # Errors
    /// As [`Model::restart`].
    pub fn restart(&mut self, model: &Model, row: usize) -> Result<()> {
        match self {
            Self::Table(sessions) => sessions.restart(model, row),
            Self::Plain(state, _) => model.restart(state, row),
        }
    }

    /// Replaces row `row` by row `source_row` of `source`.
    ///
    /// # Errors
    /// As [`State::copy_row`]; also when one reads a table and the other does not.
    pub fn copy_row(&mut self, row: usize, source: &Self, source_row: usize) -> Result<()> {
        match (self, source) {
            (Self::Table(sessions), Self::Table(source)) => sessions.copy_row(row, source, source_row),
            (Self::Plain(state, _), Self::Plain(source, _)) => state.copy_row(row, source, source_row),
            _ => Err(Error::Input("the rows belong to sessions of different models".into())),
        }
    }

    /// The whole state, as [`SavedSessions`], to be restored with the model identified by `identity`. Rows are named by their numbers; the
    /// only row of a table without a column of sequence names has an empty name.
    ///
    /// # Errors
    /// As [`SavedSessions::to_bytes`].
    pub fn to_bytes(&self, identity: &str) -> Result<Vec<u8>> {
        self.saving(identity)?.to_bytes()
    }

    /// As [`to_bytes`](Self::to_bytes), for writing to an existing buffer.
    ///
    /// # Errors
    /// As [`SavedSessions::to_bytes`].
    pub fn saving(&self, identity: &str) -> Result<Saving<'_>> {
        let (has_groups, histories, forecasts) = match self {
            Self::Table(sessions) => (sessions.has_groups(), sessions.histories().collect(), sessions.forecasts().collect()),
            Self::Plain(..) => (true, Vec::new(), Vec::new()),
        };
        let names: Vec<String> = match self.rows() {
            1 if !has_groups => vec![String::new()],
            rows => (0..rows).map(|row| row.to_string()).collect(),
        };
        Saving::new(identity, &names, Parts { logits: &[], histories, forecasts, state: self.state() })
    }

    /// Restores sessions that were saved with the model identified by `identity`.
    ///
    /// # Errors
    /// As [`SavedSessions::from_bytes`]; also when they do not fit the task, or they look back on rows of a table and there is no task.
    pub fn from_bytes(bytes: &[u8], model: &Model, table: Option<&TableTask>, identity: &str) -> Result<Self> {
        let SavedSessions { histories, forecasts, state, .. } = SavedSessions::from_bytes(bytes, model, identity)?;
        match table {
            Some(task) => TableSessions::of_parts(model, task, state, &histories, &forecasts).map(Self::Table),
            None if histories.is_empty() => Ok(Self::plain(state)),
            None => Err(Error::State("has rows of a table that its sessions look back on; give the task of that table".into())),
        }
    }
}
