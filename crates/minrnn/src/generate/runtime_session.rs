//! Sequences read by the inference runtime.

use std::collections::BTreeMap;

use minrnn_stream::{Model, State, Workspace};

use super::state_forms;
use super::token_session::{Logits, StateTensor, TokenSession, expect_finite, expect_rows, expect_step};
use crate::{Error, Result};

/// The name of the state in a saved session.
const STATE: &str = "runtime";
/// Prefixes of the names of each block's past tokens `[B, tokens, width]`, zeros before the first, and of their counts `[B]`.
const PAST: &str = "past.";
const COUNT: &str = "count.";

/// A batch of sequences and the runtime model's state for each. Cloning forks it; the copies share the weights.
#[derive(Debug, Clone)]
pub struct RuntimeSession<'m> {
    model: &'m Model,
    state: State,
    workspace: Workspace,
}

impl<'m> RuntimeSession<'m> {
    /// `batch_size` new sequences.
    ///
    /// # Errors
    /// When memory cannot hold that many.
    pub fn new(model: &'m Model, batch_size: usize) -> Result<Self> {
        Ok(Self { model, state: model.init_state(batch_size)?, workspace: Workspace::new() })
    }

    /// Continues from a state of `model`, such as one of [`SavedSessions`](minrnn_stream::SavedSessions). The state of another model is
    /// refused by the first step.
    pub fn of(model: &'m Model, state: State) -> Self {
        Self { model, state, workspace: Workspace::new() }
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state as in the training model: name, shape and values of each tensor, from which [`Session`](super::Session) can continue with
    /// [`restore`](TokenSession::restore).
    ///
    /// # Errors
    /// When memory cannot hold the training model, which defines its tensors.
    pub fn training_tensors(&self) -> Result<Vec<StateTensor>> {
        state_forms::from_runtime(self.model, &self.state)
    }
}

impl TokenSession for RuntimeSession<'_> {
    fn batch_size(&self) -> usize {
        self.state.rows()
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn advance<P: AsRef<[u32]>>(&mut self, prompts: &[P]) -> Result<()> {
        Ok(self.model.advance(prompts, &mut self.state, &mut self.workspace)?)
    }

    fn step_rows(&mut self, rows: &[usize], tokens: &[u32]) -> Result<Logits> {
        expect_step(rows, tokens, self.batch_size())?;
        let mut values = vec![0.0; rows.len() * self.vocab_size()];
        self.model.step_rows(rows, tokens, &mut self.state, &mut values, &mut self.workspace)?;
        Ok(Logits::new(values, self.vocab_size()))
    }

    fn select(&self, rows: &[usize]) -> Result<Self> {
        expect_rows(rows, self.batch_size())?;
        Ok(Self { model: self.model, state: self.state.select(rows)?, workspace: Workspace::new() })
    }

    fn values_per_row(&self) -> usize {
        self.state.bytes_per_row() / size_of::<f32>()
    }

    fn tensors(&self) -> Vec<StateTensor> {
        let rows = self.batch_size();
        let mut tensors = vec![(STATE.to_owned(), vec![rows, self.values_per_row()], self.state.values().to_vec())];
        for (at, width) in self.state.past_widths().enumerate() {
            let past = |row: usize| self.state.pasts(row).nth(at).unwrap_or(&[]);
            let longest = (0..rows).map(|row| past(row).len()).max().unwrap_or(0);
            let padded = (0..rows).flat_map(|row| std::iter::repeat_n(0.0, longest - past(row).len()).chain(past(row).iter().copied()));
            tensors.push((format!("{PAST}{at}"), vec![rows, longest / width, width], padded.collect()));
            // At most `max_seq_len`, which an f32 counts exactly.
            let counts = (0..rows).map(|row| (past(row).len() / width) as f32).collect();
            tensors.push((format!("{COUNT}{at}"), vec![rows], counts));
        }
        tensors
    }

    fn restore(&self, batch_size: usize, tensors: Vec<StateTensor>) -> Result<Self> {
        expect_finite(tensors.iter().map(|(name, _, values)| (name.as_str(), values.as_slice())))?;
        if tensors.iter().all(|(name, ..)| name != STATE) {
            // A state saved by the training model.
            let state = state_forms::to_runtime(self.model, batch_size, tensors)?;
            return Ok(Self { model: self.model, state, workspace: Workspace::new() });
        }
        let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> =
            tensors.into_iter().map(|(name, shape, values)| (name, (shape, values))).collect();
        let mut take = |name: &str, fits: &dyn Fn(&[usize]) -> bool, expected: &str| {
            let Some((shape, values)) = tensors.remove(name) else {
                return Err(Error::Shape(format!("the state has no '{name}'; it was saved by another program")));
            };
            if fits(&shape) {
                return Ok(values);
            }
            Err(Error::Shape(format!("state '{name}': expected shape {expected}, found {shape:?}")))
        };
        let expected = [batch_size, self.values_per_row()];
        let values = take(STATE, &|shape| shape == expected, &format!("{expected:?}"))?;
        let mut pasts = Vec::new();
        for (at, width) in self.state.past_widths().enumerate() {
            let fits = |shape: &[usize]| matches!(shape, &[rows, _, found] if rows == batch_size && found == width);
            let past = take(&format!("{PAST}{at}"), &fits, &format!("[{batch_size}, tokens, {width}]"))?;
            let counts = take(&format!("{COUNT}{at}"), &|shape| shape == [batch_size], &format!("[{batch_size}]"))?;
            pasts.push((past, counts, width));
        }
        if let Some(name) = tensors.keys().next() {
            return Err(Error::Shape(format!("the state has a part '{name}', expected '{STATE}'; it was saved by another program")));
        }
        let mut lists = Vec::new();
        for row in 0..batch_size {
            for (past, counts, width) in &pasts {
                let row_of = &past[past.len() / batch_size * row..][..past.len() / batch_size];
                let kept = (counts[row].max(0.0) as usize).min(row_of.len() / width);
                lists.push(row_of[row_of.len() - kept * width..].to_vec());
            }
        }
        Ok(Self { model: self.model, state: State::from_parts(self.model, batch_size, values, lists)?, workspace: Workspace::new() })
    }
}
