//! Sessions of any model behind one interface: those that read rows of a table, and those that read what the model itself reads.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use minrnn_model::TableTask;

use crate::{Error, Model, Result, SavedSessions, Saving, State, TableSessions, Workspace};

/// What a model remembers of one or many sequences, each a row, with the memory of a step. A door to another language keeps one of these for each
/// session that it hands out.
#[derive(Debug)]
pub enum Sessions {
    /// Rows of a table are read, and predictions in its units given.
    Table(TableSessions),
    /// Tokens or numbers are read as the model sees them.
    Plain(State, Workspace),
}

impl Sessions {
    /// `rows` sequences of which nothing has been read; of a table's rows where there is a task.
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

    /// Lets passes take at most `threads` threads; see [`Workspace::set_threads`].
    pub fn set_threads(&mut self, threads: usize) {
        match self {
            Self::Table(sessions) => sessions.set_threads(threads),
            Self::Plain(_, workspace) => workspace.set_threads(threads),
        }
    }

    /// What the model remembers.
    pub fn state(&self) -> &State {
        match self {
            Self::Table(sessions) => sessions.state(),
            Self::Plain(state, _) => state,
        }
    }

    /// The state to be stepped as the model sees its steps, whatever the sessions read, with the memory of a step. There must be as many rows
    /// afterwards, or the sessions of a table refuse what follows; the rows of it that they look back on stay as they are.
    pub fn parts_mut(&mut self) -> (&mut State, &mut Workspace) {
        match self {
            Self::Table(sessions) => sessions.state_mut(),
            Self::Plain(state, workspace) => (state, workspace),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.state().rows()
    }

    /// Bytes that all rows take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Table(sessions) => sessions.bytes(),
            Self::Plain(state, _) => state.bytes(),
        }
    }

    /// The rows `rows`, in that order; one may be chosen several times. Passes take as many threads as before.
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

    /// Begins row `row` anew.
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

    /// All that is remembered, as [`SavedSessions`], to go on from with the model that is `identity`. The rows are named by their numbers, but the
    /// only one of a table without a column that names sequences as that sequence is: not at all.
    ///
    /// # Errors
    /// As [`SavedSessions::to_bytes`].
    pub fn to_bytes(&self, identity: &str) -> Result<Vec<u8>> {
        self.saving(identity)?.to_bytes()
    }

    /// The same where the bytes go to a place that is there already.
    ///
    /// # Errors
    /// As [`SavedSessions::to_bytes`].
    pub fn saving(&self, identity: &str) -> Result<Saving<'_>> {
        let (has_groups, histories) = match self {
            Self::Table(sessions) => (sessions.has_groups(), sessions.histories().collect()),
            Self::Plain(..) => (true, Vec::new()),
        };
        let names: Vec<String> = match self.rows() {
            1 if !has_groups => vec![String::new()],
            rows => (0..rows).map(|row| row.to_string()).collect(),
        };
        Saving::new(identity, &names, &[], histories, self.state())
    }

    /// Sessions that go on from what was saved of the model that is `identity`.
    ///
    /// # Errors
    /// As [`SavedSessions::from_bytes`]; also when what was saved does not fit the task, or its sessions look back on rows of a table and there is none.
    pub fn from_bytes(bytes: &[u8], model: &Model, table: Option<&TableTask>, identity: &str) -> Result<Self> {
        let SavedSessions { histories, state, .. } = SavedSessions::from_bytes(bytes, model, identity)?;
        match table {
            Some(task) => TableSessions::of_parts(model, task, state, &histories).map(Self::Table),
            None if histories.is_empty() => Ok(Self::plain(state)),
            None => Err(Error::State("has rows of a table that its sessions look back on; give the task of that table".into())),
        }
    }
}
