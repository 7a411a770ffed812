//! The state of a session, and whether a thread is reading into it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use minrnn_stream::{Model, Sessions, TableSessions};
use pyo3::prelude::*;

use crate::arrays;
use crate::failure::{Failure, Mistake, Result};
use crate::inputs::Width;
use crate::loaded::Loaded;
use crate::threads::Threads;

/// A model's state for one or many sequences, each a row.
///
/// A single row may be given without the row dimension; the answer then has none either. A model trained on a table reads rows in the
/// table's units and answers with class probabilities ``[classes]``, a regressor's number ``[1]``, or a forecast ``[horizon, targets]`` or
/// ``[horizon, targets, quantiles]``, float64. Other models, and any with ``table=False``, read numbers as the model sees them and answer
/// with its outputs ``[outputs]``, float32. A refused call changes nothing.
#[pyclass(frozen, module = "minrnn")]
pub(crate) struct Session {
    pub loaded: Arc<Loaded>,
    pub threads: Threads,
    /// Whether it reads rows of a table in its units.
    pub is_table: bool,
    remembered: Mutex<Remembered>,
}

/// What changes as the session reads.
pub(crate) struct Remembered {
    pub sessions: Sessions,
    /// The logits of the next token of a single row, if known.
    pub logits: Option<Vec<f32>>,
    /// How often it has read, by which a text being generated notices that something else has been read since.
    pub readings: u64,
    /// Room for the rows as they are before a step, in which they are found again if it is refused.
    pub before: Option<TableSessions>,
}

impl Remembered {
    /// Notes that the state has changed; `logits` are now those of the next token, if known.
    pub fn went_on(&mut self, logits: Option<Vec<f32>>) {
        self.logits = logits;
        self.readings += 1;
    }

    /// Whether the state of the only row is that of a row that has read nothing.
    pub fn is_new(&self, model: &Model) -> Result<bool> {
        let state = self.sessions.state();
        let mut new = state.select(&[0])?;
        model.restart(&mut new, 0)?;
        Ok(new == *state)
    }
}

impl Session {
    pub fn new(loaded: Arc<Loaded>, rows: usize, threads: Threads, is_table: bool) -> Result<Self> {
        let sessions = Sessions::new(&loaded.model, loaded.table.as_ref().filter(|_| is_table), rows)?;
        Ok(Self::of(loaded, sessions, threads, is_table))
    }

    /// A session with the state `sessions`.
    pub fn of(loaded: Arc<Loaded>, sessions: Sessions, threads: Threads, is_table: bool) -> Self {
        Self { loaded, threads, is_table, remembered: Mutex::new(Remembered { sessions, logits: None, readings: 0, before: None }) }
    }

    /// A session restored from saved bytes.
    pub fn restored(loaded: Arc<Loaded>, bytes: &[u8], threads: Threads, is_table: bool) -> Result<Self> {
        let table = loaded.table.as_ref().filter(|_| is_table);
        let sessions = Sessions::from_bytes(bytes, &loaded.model, table, loaded.identity()?)?;
        Ok(Self::of(loaded, sessions, threads, is_table))
    }

    /// The state, unless another thread is using it.
    pub fn remembered(&self) -> Result<MutexGuard<'_, Remembered>> {
        self.remembered.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                Failure::new(Mistake::Busy, "another thread is using the session; give each thread its own by fork()")
            }
            TryLockError::Poisoned(_) => Failure::new(Mistake::Internal, "a call on the session failed inside; make a new session"),
        })
    }

    /// Keeps what a text continues from: the last of `outputs`, the result of a call that has read.
    pub fn keep_last(&self, remembered: &mut Remembered, outputs: &Bound<'_, PyAny>) {
        if self.width() != Width::Token || remembered.sessions.rows() != 1 {
            return remembered.went_on(None);
        }
        // Without outputs there was nothing to read.
        if let Some(last) = arrays::last(outputs, self.loaded.model.outputs()) {
            remembered.went_on(Some(last));
        }
    }

    /// The state of a session that is not used any more.
    pub fn into_remembered(self) -> Remembered {
        self.remembered.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a step consists of.
    pub fn width(&self) -> Width {
        match (&self.loaded.table, self.is_table) {
            (Some(task), true) => Width::Table(task.columns().len()),
            _ => Width::of(&self.loaded.model),
        }
    }
}
