//! Sequences read by the inference runtime.

use minrnn_stream::{Model, State, Workspace};

use super::token_session::{Logits, StateTensor, TokenSession, expect_rows, expect_step};
use crate::{Error, Result};

/// The name of the state in a saved session.
const STATE: &str = "runtime";

/// A batch of sequences and the state a runtime's model carries for each. Cloning forks it; the copies share the weights.
#[derive(Debug, Clone)]
pub struct RuntimeSession<'m> {
    model: &'m Model,
    state: State,
    workspace: Workspace,
}

impl<'m> RuntimeSession<'m> {
    /// `batch_size` sequences of which nothing has been read.
    ///
    /// # Errors
    /// When memory cannot hold so many.
    pub fn new(model: &'m Model, batch_size: usize) -> Result<Self> {
        Ok(Self { model, state: model.init_state(batch_size)?, workspace: Workspace::new() })
    }

    /// The state carried.
    pub fn state(&self) -> &State {
        &self.state
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
        vec![(STATE.to_owned(), vec![self.batch_size(), self.values_per_row()], self.state.values().to_vec())]
    }

    fn restore(&self, batch_size: usize, tensors: Vec<StateTensor>) -> Result<Self> {
        let mut values = None;
        for (name, shape, tensor) in tensors {
            if name != STATE {
                return Err(Error::Shape(format!("the state has a part '{name}', expected '{STATE}'; it was saved by another program")));
            }
            if shape != [batch_size, self.values_per_row()] {
                let expected = [batch_size, self.values_per_row()];
                return Err(Error::Shape(format!("state '{STATE}': expected shape {expected:?}, found {shape:?}")));
            }
            values = Some(tensor);
        }
        let values = values.ok_or_else(|| Error::Shape(format!("the state has no '{STATE}'; it was saved by another program")))?;
        Ok(Self { model: self.model, state: State::from_values(self.model, batch_size, values)?, workspace: Workspace::new() })
    }
}
