//! Sessions of a deployed model by name, one for each sequence of interleaved rows.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use minrnn_model::TableTask;
use minrnn_stream::{Model, SavedSessions, TableSessions};

use super::saved::{read, write};
use crate::generate::ModelIdentity;
use crate::{Error, Result};

/// Number of sessions that there is room for at first.
const FEW: usize = 16;
/// No session.
const NONE: usize = usize::MAX;

/// Sessions by name, up to a maximum number: when there is no room for another, the one unused for the longest time is dropped.
pub struct Groups<'m> {
    model: &'m Model,
    task: &'m TableTask,
    sessions: TableSessions,
    rows: HashMap<Arc<str>, usize>,
    places: Vec<Place>,
    oldest: usize,
    newest: usize,
    max: usize,
}

/// A session, linked in the order of last use.
struct Place {
    name: Arc<str>,
    older: usize,
    newer: usize,
}

impl<'m> Groups<'m> {
    /// An empty set of up to `max` sessions of a model trained for `task`.
    ///
    /// # Errors
    /// When `max` is 0, or memory cannot hold a few sessions.
    pub fn new(model: &'m Model, task: &'m TableTask, max: usize) -> Result<Self> {
        if max == 0 {
            return Err(Error::Data("there must be room for at least 1 sequence, found 0".to_owned()));
        }
        Ok(Self {
            model,
            task,
            sessions: TableSessions::new(model, task, 0)?,
            rows: HashMap::new(),
            places: Vec::new(),
            oldest: NONE,
            newest: NONE,
            max,
        })
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether there is a session for the sequence `name`.
    pub fn knows(&self, name: &str) -> bool {
        self.rows.contains_key(name)
    }

    /// The names of all sequences, in no particular order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.places.iter().map(|place| &*place.name)
    }

    /// How surprising `values`, the next row of the sequence `name`, would be ([`TableSessions::surprise`]); `None` also for a sequence
    /// without a session. Nothing is read.
    ///
    /// # Errors
    /// As [`TableSessions::surprise`].
    pub fn surprise(&self, name: &str, values: &[f64]) -> Result<Option<f64>> {
        let Some(&row) = self.rows.get(name) else { return Ok(None) };
        Ok(self.sessions.surprise(self.task, row, values)?)
    }

    /// Reads the next row `[columns]` of the sequence `name`, in the units of the table, and replaces `numbers` by the predictions after it
    /// ([`TableTask::predict_into`]). Returns the name of the session dropped to make room, if any.
    ///
    /// # Errors
    /// When a number cannot be read ([`TableTask::expect_readable`]), or memory cannot hold another session; the sequence has then read
    /// nothing.
    pub fn step(&mut self, name: &str, values: &[f64], numbers: &mut Vec<f64>) -> Result<Option<Arc<str>>> {
        self.task.expect_readable(values)?;
        let (row, forgotten) = match self.rows.get(name) {
            Some(&row) => (row, None),
            None => self.begin(name)?,
        };
        let predicted = self.sessions.step(self.model, self.task, &[row], values)?;
        numbers.clear();
        numbers.extend_from_slice(predicted);
        if row != self.newest {
            self.leave(row);
            self.enter(row);
        }
        Ok(forgotten)
    }

    /// A session for `name`, which has none.
    fn begin(&mut self, name: &str) -> Result<(usize, Option<Arc<str>>)> {
        let name: Arc<str> = name.into();
        if self.places.len() < self.max {
            let row = self.places.len();
            if self.sessions.rows() == row {
                self.sessions.grow(self.model, self.task, row.max(FEW).min(self.max - row))?;
            }
            self.rows.insert(name.clone(), row);
            self.places.push(Place { name, older: NONE, newer: NONE });
            self.enter(row);
            return Ok((row, None));
        }
        let row = self.oldest;
        self.sessions.restart(self.model, row)?;
        let forgotten = std::mem::replace(&mut self.places[row].name, name.clone());
        self.rows.remove(&forgotten);
        self.rows.insert(name, row);
        Ok((row, Some(forgotten)))
    }

    /// Removes `row` from the order.
    fn leave(&mut self, row: usize) {
        let Place { older, newer, .. } = self.places[row];
        *(if older == NONE { &mut self.oldest } else { &mut self.places[older].newer }) = newer;
        *(if newer == NONE { &mut self.newest } else { &mut self.places[newer].older }) = older;
    }

    /// Puts `row` last, as the most recently used.
    fn enter(&mut self, row: usize) {
        let last = std::mem::replace(&mut self.newest, row);
        (self.places[row].older, self.places[row].newer) = (last, NONE);
        *(if last == NONE { &mut self.oldest } else { &mut self.places[last].newer }) = row;
    }

    /// Rows from the least to the most recently used.
    fn order(&self) -> Vec<usize> {
        let known = |row: usize| (row != NONE).then_some(row);
        std::iter::successors(known(self.oldest), |&row| known(self.places[row].newer)).collect()
    }

    /// Writes all sessions to `path`, atomically. `identity` is that of the model.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path, identity: &ModelIdentity) -> Result<()> {
        let order = self.order();
        let names = order.iter().map(|&row| self.places[row].name.to_string()).collect();
        let sessions = self.sessions.select(&order)?;
        let histories = sessions.histories().map(<[f64]>::to_vec).collect();
        let forecasts = sessions.forecasts().map(<[f32]>::to_vec).collect();
        let saved = SavedSessions { names, logits: Vec::new(), histories, forecasts, state: sessions.state().clone() };
        write(path, self.model, identity, &saved)
    }

    /// Loads the sessions saved to `path`, at most `max` of them: the most recently used.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was saved with another model, or as [`new`](Self::new).
    pub fn load(path: &Path, model: &'m Model, task: &'m TableTask, identity: &ModelIdentity, max: usize) -> Result<Self> {
        let mut groups = Self::new(model, task, max)?;
        let SavedSessions { names, state, histories, forecasts, .. } = read(path, model, identity)?;
        let sessions = TableSessions::of_parts(model, task, state, &histories, &forecasts);
        let sessions = sessions.map_err(|error| Error::malformed(path, error.to_string()))?;
        let kept: Vec<usize> = (names.len().saturating_sub(max)..names.len()).collect();
        groups.sessions = sessions.select(&kept)?;
        for (row, name) in kept.iter().map(|&at| Arc::<str>::from(names[at].as_str())).enumerate() {
            groups.rows.insert(name.clone(), row);
            groups.places.push(Place { name, older: NONE, newer: NONE });
            groups.enter(row);
        }
        Ok(groups)
    }
}
