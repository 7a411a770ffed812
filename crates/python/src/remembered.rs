//! What a session remembers, and whether a thread is reading into it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use minrnn_stream::{Model, Sessions};
use pyo3::prelude::*;

use crate::arrays;
use crate::failure::{Failure, Mistake, Result};
use crate::inputs::Width;
use crate::loaded::Loaded;
use crate::threads::Threads;

/// What a model remembers of one or many sequences.
#[pyclass(frozen, module = "minrnn")]
pub(crate) struct Session {
    pub loaded: Arc<Loaded>,
    pub threads: Threads,
    /// Whether it reads rows of a table in its units.
    pub is_table: bool,
    remembered: Mutex<Remembered>,
}

/// What changes while it reads.
pub(crate) struct Remembered {
    pub sessions: Sessions,
    /// The logits of the token after those that the only row has read, where they are known.
    pub logits: Option<Vec<f32>>,
    /// How often it has read: a text that is generated sees by it whether something else was read since.
    pub readings: u64,
}

impl Remembered {
    /// Notes that other tokens are remembered than before, after which `logits` are those of the next one, where they are known.
    pub fn went_on(&mut self, logits: Option<Vec<f32>>) {
        self.logits = logits;
        self.readings += 1;
    }

    /// Whether the only row remembers what one remembers that has read nothing.
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

    /// One that has read what `sessions` hold.
    pub fn of(loaded: Arc<Loaded>, sessions: Sessions, threads: Threads, is_table: bool) -> Self {
        Self { loaded, threads, is_table, remembered: Mutex::new(Remembered { sessions, logits: None, readings: 0 }) }
    }

    /// A session that goes on from what was saved.
    pub fn restored(loaded: Arc<Loaded>, bytes: &[u8], threads: Threads, is_table: bool) -> Result<Self> {
        let table = loaded.table.as_ref().filter(|_| is_table);
        let sessions = Sessions::from_bytes(bytes, &loaded.model, table, loaded.identity()?)?;
        Ok(Self::of(loaded, sessions, threads, is_table))
    }

    /// What is remembered, where no other thread reads into it.
    pub fn remembered(&self) -> Result<MutexGuard<'_, Remembered>> {
        self.remembered.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                Failure::new(Mistake::Busy, "another thread is using the session; give each thread its own by fork()")
            }
            TryLockError::Poisoned(_) => Failure::new(Mistake::Internal, "a call on the session failed inside; make a new session"),
        })
    }

    /// Keeps what a text goes on from: the last of `outputs`, which a call gave that has read.
    pub fn keep_last(&self, remembered: &mut Remembered, outputs: &Bound<'_, PyAny>) {
        if self.width() != Width::Token || remembered.sessions.rows() != 1 {
            return remembered.went_on(None);
        }
        // Without any, nothing was there to read.
        if let Some(last) = arrays::last(outputs, self.loaded.model.outputs()) {
            remembered.went_on(Some(last));
        }
    }

    /// What is remembered, of a session that nobody uses any more.
    pub fn into_remembered(self) -> Remembered {
        self.remembered.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands at a step.
    pub fn width(&self) -> Width {
        match (&self.loaded.table, self.is_table) {
            (Some(task), true) => Width::Table(task.columns().len()),
            _ => Width::of(&self.loaded.model),
        }
    }
}
