//! Sessions of a deployed model by name, one for each sequence of rows that arrive between each other.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use minrnn_model::{History, TableTask};
use minrnn_stream::{Model, State, Workspace};

use super::saved::{Saved, read, write};
use crate::generate::ModelIdentity;
use crate::{Error, Result};

/// Sessions that there is room for at first.
const FEW: usize = 16;
/// No session.
const NONE: usize = usize::MAX;

/// As many sessions as are wanted at most: where there is no room for one more, the one that has been silent for the longest time is
/// forgotten.
pub struct Groups<'m> {
    model: &'m Model,
    task: &'m TableTask,
    state: State,
    workspace: Workspace,
    rows: HashMap<Arc<str>, usize>,
    places: Vec<Place>,
    /// The last rows of each session, where they decide how the next is seen.
    histories: Vec<History>,
    inputs: Vec<f32>,
    outputs: Vec<f32>,
    oldest: usize,
    newest: usize,
    max: usize,
}

/// A session in the order in which they last spoke.
struct Place {
    name: Arc<str>,
    older: usize,
    newer: usize,
}

impl<'m> Groups<'m> {
    /// No session yet, of at most `max`, of a model that was trained for `task`.
    ///
    /// # Errors
    /// When `max` is 0, or memory cannot hold a few sessions.
    pub fn new(model: &'m Model, task: &'m TableTask, max: usize) -> Result<Self> {
        if max == 0 {
            return Err(Error::Data("there must be room for at least 1 sequence, found 0".to_owned()));
        }
        let state = model.init_state(0)?;
        Ok(Self {
            model,
            task,
            state,
            workspace: Workspace::new(),
            rows: HashMap::new(),
            places: Vec::new(),
            histories: Vec::new(),
            inputs: vec![0.0; task.n_inputs()],
            outputs: vec![0.0; model.outputs()],
            oldest: NONE,
            newest: NONE,
            max,
        })
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Reads the next row `[columns]` of the sequence `name`, in the units of the table, and replaces `numbers` by what is predicted after it
    /// ([`TableTask::predict_into`]). The name that was forgotten for it, if any.
    ///
    /// # Errors
    /// When the model reads something else, a number is NaN or infinite, or memory cannot hold one session more; the sequence then has read
    /// nothing.
    pub fn step(&mut self, name: &str, values: &[f64], numbers: &mut Vec<f64>) -> Result<Option<Arc<str>>> {
        if values.len() != self.task.columns().len() {
            let (found, expected) = (values.len(), self.task.columns().len());
            return Err(Error::Shape(format!("a row has {found} numbers, expected {expected}, one for each column that is read")));
        }
        let may_miss = !self.task.missing().is_error();
        if let Some(x) = values.iter().find(|x| x.is_infinite() || x.is_nan() && !may_miss) {
            return Err(Error::Data(format!("a row has {x}, expected finite numbers")));
        }
        let (row, forgotten) = match self.rows.get(name) {
            Some(&row) => (row, None),
            None => self.begin(name)?,
        };
        let history = self.histories.get_mut(row);
        let recent = match history {
            Some(history) => {
                history.push(values);
                history.rows()
            }
            None => values,
        };
        self.task.show(recent, &mut self.inputs);
        let stepped = self.model.step_rows_values(&[row], &self.inputs, &mut self.state, &mut self.outputs, &mut self.workspace);
        if let Err(error) = stepped {
            self.histories.get_mut(row).into_iter().for_each(History::pop);
            return Err(error.into());
        }
        self.task.predict_into(recent, &self.outputs, numbers);
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
            if self.state.rows() == row {
                let more = row.max(FEW).min(self.max - row);
                self.state.append(&self.model.init_state(more)?)?;
            }
            self.rows.insert(name.clone(), row);
            self.places.push(Place { name, older: NONE, newer: NONE });
            if self.task.reach() > 1 {
                self.histories.push(History::new(self.task.columns().len(), self.task.reach()));
            }
            self.enter(row);
            return Ok((row, None));
        }
        let row = self.oldest;
        self.model.restart(&mut self.state, row)?;
        self.histories.get_mut(row).into_iter().for_each(History::clear);
        let forgotten = std::mem::replace(&mut self.places[row].name, name.clone());
        self.rows.remove(&forgotten);
        self.rows.insert(name, row);
        Ok((row, Some(forgotten)))
    }

    /// Takes `row` out of the order.
    fn leave(&mut self, row: usize) {
        let Place { older, newer, .. } = self.places[row];
        *(if older == NONE { &mut self.oldest } else { &mut self.places[older].newer }) = newer;
        *(if newer == NONE { &mut self.newest } else { &mut self.places[newer].older }) = older;
    }

    /// Puts `row` behind all others.
    fn enter(&mut self, row: usize) {
        let last = std::mem::replace(&mut self.newest, row);
        (self.places[row].older, self.places[row].newer) = (last, NONE);
        *(if last == NONE { &mut self.oldest } else { &mut self.places[last].newer }) = row;
    }

    /// Rows from the one that has been silent for the longest time to the one that spoke last.
    fn order(&self) -> Vec<usize> {
        let known = |row: usize| (row != NONE).then_some(row);
        std::iter::successors(known(self.oldest), |&row| known(self.places[row].newer)).collect()
    }

    /// Writes all sessions to `path`, whole or not at all. `identity` is that of the model.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path, identity: &ModelIdentity) -> Result<()> {
        let order = self.order();
        let names = order.iter().map(|&row| self.places[row].name.to_string()).collect();
        let histories = order.iter().filter_map(|&row| self.histories.get(row)).map(|history| history.rows().to_vec()).collect();
        write(path, identity, &Saved { names, logits: Vec::new(), histories, state: self.state.select(&order)? })
    }

    /// The sessions that were saved to `path`, at most `max` of them: those that spoke last.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was saved with another model, or as [`new`](Self::new).
    pub fn load(path: &Path, model: &'m Model, task: &'m TableTask, identity: &ModelIdentity, max: usize) -> Result<Self> {
        let mut groups = Self::new(model, task, max)?;
        let Saved { names, state, histories, .. } = read(path, model, identity)?;
        let kept: Vec<usize> = (names.len().saturating_sub(max)..names.len()).collect();
        groups.state = state.select(&kept)?;
        if task.reach() > 1 {
            let misfit = || Error::malformed(path, "its sessions have no rows that fit the model; it is damaged, begin without it");
            let history = |&at: &usize| History::of_rows(histories.get(at)?, task.columns().len(), task.reach());
            groups.histories = kept.iter().map(history).collect::<Option<_>>().ok_or_else(misfit)?;
        }
        for (row, name) in kept.iter().map(|&at| Arc::<str>::from(names[at].as_str())).enumerate() {
            groups.rows.insert(name.clone(), row);
            groups.places.push(Place { name, older: NONE, newer: NONE });
            groups.enter(row);
        }
        Ok(groups)
    }
}
