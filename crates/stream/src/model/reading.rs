//! Steps in, predictions out: one step of every session, whole prompts, or every output of a sequence.

use alloc::format;

use super::checks::input;
use super::{Model, PASS_STEPS};
use crate::Result;
use crate::inside::Inside;
use crate::reads::Steps;
use crate::state::State;
use crate::workspace::Workspace;

/// Most outputs of a pass that predicts after every step.
const PASS_OUTPUTS: usize = 1 << 22;

impl Model {
    /// Reads one token for every session and writes the logits of the next.
    ///
    /// # Shapes
    /// `tokens` `[B]`, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// When the model reads values, a token is not known, lengths or the state do not fit, or memory cannot hold the past that is kept;
    /// nothing is then read.
    pub fn step(&self, tokens: &[u32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, tokens.len())?;
        self.step_spans(|i| i, self.tokens(tokens)?, state, outputs, workspace)
    }

    /// Reads one step of numbers for every session and writes the prediction after it.
    ///
    /// # Shapes
    /// `values` `[B, F]`, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// When the model reads tokens, a number is NaN or infinite, lengths or the state do not fit, or memory cannot hold the past that is
    /// kept; nothing is then read.
    pub fn step_values(&self, values: &[f32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        let steps = self.values(values, 0)?;
        self.expect_rows(state, steps.len())?;
        self.step_spans(|i| i, steps, state, outputs, workspace)
    }

    /// Reads one token for each of the sessions `rows` and writes the logits of the next; the others stay as they are.
    ///
    /// # Shapes
    /// `rows`, `tokens` `[R]`, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when the rows are not ascending or do not exist.
    pub fn step_rows(
        &self,
        rows: &[usize],
        tokens: &[u32],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.step_some(rows, self.tokens(tokens)?, state, outputs, workspace)
    }

    /// Reads one step of numbers for each of the sessions `rows` and writes the prediction after it; the others stay as they are.
    ///
    /// # Shapes
    /// `rows` `[R]`, `values` `[R, F]`, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when the rows are not ascending or do not exist.
    pub fn step_rows_values(
        &self,
        rows: &[usize],
        values: &[f32],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.step_some(rows, self.values(values, 0)?, state, outputs, workspace)
    }

    /// Reads a prompt for every session, all tokens at once, and writes the logits after each prompt's last token. Prompts may differ in
    /// length.
    ///
    /// # Shapes
    /// `prompts` B of `[T]` tokens, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when there is not one prompt for each session, or a prompt is empty.
    pub fn prefill<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, prompts.len())?;
        self.read_and_predict(|i| i, &self.prompts(prompts)?, state, outputs, workspace)
    }

    /// Reads a prompt for each of the sessions `rows`, all tokens at once, and writes the logits after each prompt's last token; the others stay as
    /// they are.
    ///
    /// # Shapes
    /// `rows` `[R]`, `prompts` R of `[T]` tokens, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`prefill`](Model::prefill); also when the rows are not ascending or do not exist.
    pub fn prefill_rows<P: AsRef<[u32]>>(
        &self,
        rows: &[usize],
        prompts: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, prompts.len(), state)?;
        self.read_and_predict(|i| rows[i], &self.prompts(prompts)?, state, outputs, workspace)
    }

    /// Reads a sequence of numbers for every session, all steps at once, and writes the prediction after each sequence's last step.
    /// Sequences may differ in length.
    ///
    /// # Shapes
    /// `sequences` B of `[T, F]` numbers, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when there is not one sequence for each session, or a sequence is empty.
    pub fn prefill_values<P: AsRef<[f32]>>(
        &self,
        sequences: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_rows(state, sequences.len())?;
        self.read_and_predict(|i| i, &self.sequences(sequences)?, state, outputs, workspace)
    }

    /// Reads a sequence of numbers for each of the sessions `rows`, all steps at once, and writes the prediction after each sequence's last
    /// step; the others stay as they are.
    ///
    /// # Shapes
    /// `rows` `[R]`, `sequences` R of `[T, F]` numbers, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`prefill_values`](Model::prefill_values); also when the rows are not ascending or do not exist.
    pub fn prefill_rows_values<P: AsRef<[f32]>>(
        &self,
        rows: &[usize],
        sequences: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, sequences.len(), state)?;
        self.read_and_predict(|i| rows[i], &self.sequences(sequences)?, state, outputs, workspace)
    }

    /// Reads like [`prefill`](Model::prefill), but only updates the state; a prompt may be empty.
    ///
    /// # Shapes
    /// `prompts` B of `[T]` tokens for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when there is not one prompt for each session.
    pub fn advance<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, prompts.len())?;
        self.read_sequences(|i| i, &self.prompts(prompts)?, state, None, workspace)
    }

    /// Reads like [`prefill_rows`](Model::prefill_rows), but only updates the state; a prompt may be empty.
    ///
    /// # Shapes
    /// `rows` `[R]`, `prompts` R of `[T]` tokens
    ///
    /// # Errors
    /// As [`advance`](Model::advance); also when the rows are not ascending or do not exist.
    pub fn advance_rows<P: AsRef<[u32]>>(&self, rows: &[usize], prompts: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_some(rows, prompts.len(), state)?;
        self.read_sequences(|i| rows[i], &self.prompts(prompts)?, state, None, workspace)
    }

    /// Reads like [`prefill_rows_values`](Model::prefill_rows_values), but only updates the state; a sequence may be empty.
    ///
    /// # Shapes
    /// `rows` `[R]`, `sequences` R of `[T, F]` numbers
    ///
    /// # Errors
    /// As [`advance_values`](Model::advance_values); also when the rows are not ascending or do not exist.
    pub fn advance_rows_values<P: AsRef<[f32]>>(
        &self,
        rows: &[usize],
        sequences: &[P],
        state: &mut State,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, sequences.len(), state)?;
        self.read_sequences(|i| rows[i], &self.sequences(sequences)?, state, None, workspace)
    }

    /// Reads like [`prefill_values`](Model::prefill_values), but only updates the state; a sequence may be empty.
    ///
    /// # Shapes
    /// `sequences` B of `[T, F]` numbers for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when there is not one sequence for each session.
    pub fn advance_values<P: AsRef<[f32]>>(&self, sequences: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, sequences.len())?;
        self.read_sequences(|i| i, &self.sequences(sequences)?, state, None, workspace)
    }

    /// Reads tokens into one session and writes the logits after every token, as needed for the loss of a text.
    ///
    /// # Shapes
    /// `tokens` `[T]`, `outputs` `[T, outputs]`; `state` has one session
    ///
    /// # Errors
    /// As [`step`](Model::step); also when the state does not have exactly one session.
    pub fn forward(&self, tokens: &[u32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.read_and_predict_all(self.tokens(tokens)?, state, outputs, Inside::default(), workspace)
    }

    /// As [`forward`](Model::forward), and also writes what `inside` asks for.
    ///
    /// # Shapes
    /// As [`forward`](Model::forward); the buffers of `inside` are `[T, D]`
    ///
    /// # Errors
    /// As [`forward`](Model::forward); also when there is no such block, or a buffer does not fit.
    pub fn forward_inside(
        &self,
        tokens: &[u32],
        state: &mut State,
        outputs: &mut [f32],
        inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.read_and_predict_all(self.tokens(tokens)?, state, outputs, inside, workspace)
    }

    /// Reads steps of numbers into one session and writes the prediction after every step.
    ///
    /// # Shapes
    /// `values` `[T, F]`, `outputs` `[T, outputs]`; `state` has one session
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when the state does not have exactly one session.
    pub fn forward_values(&self, values: &[f32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.read_and_predict_all(self.values(values, 0)?, state, outputs, Inside::default(), workspace)
    }

    /// As [`forward_values`](Model::forward_values), and also writes what `inside` asks for.
    ///
    /// # Shapes
    /// As [`forward_values`](Model::forward_values); the buffers of `inside` are `[T, D]`
    ///
    /// # Errors
    /// As [`forward_values`](Model::forward_values); also when there is no such block, or a buffer does not fit.
    pub fn forward_values_inside(
        &self,
        values: &[f32],
        state: &mut State,
        outputs: &mut [f32],
        inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.read_and_predict_all(self.values(values, 0)?, state, outputs, inside, workspace)
    }

    fn step_some(&self, rows: &[usize], steps: Steps<'_>, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_some(rows, steps.len(), state)?;
        self.step_spans(|i| rows[i], steps, state, outputs, workspace)
    }

    fn step_spans(
        &self,
        row: impl Fn(usize) -> usize,
        steps: Steps<'_>,
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_room(steps.len(), outputs)?;
        (0..steps.len()).try_for_each(|i| self.reserve(state, row(i), 1))?;
        workspace.begin();
        for i in 0..steps.len() {
            self.add(workspace, state, row(i), steps.part(i, 1));
            workspace.wanted.push((workspace.rows - 1, i));
        }
        self.pass(state, outputs, workspace);
        Ok(())
    }

    fn read_and_predict(
        &self,
        row: impl Fn(usize) -> usize,
        sequences: &[Steps<'_>],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        if let Some(row) = sequences.iter().position(|steps| steps.len() == 0).map(&row) {
            return input(format!("the sequence of session {row} is empty, expected at least one step; begin a prompt with a start token"));
        }
        self.expect_room(sequences.len(), outputs)?;
        self.read_sequences(row, sequences, state, Some(outputs), workspace)
    }

    /// Reads in passes over the sessions that have something left, so that a short prompt costs nothing while a long one is read.
    fn read_sequences(
        &self,
        row: impl Fn(usize) -> usize,
        sequences: &[Steps<'_>],
        state: &mut State,
        mut outputs: Option<&mut [f32]>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        sequences.iter().enumerate().try_for_each(|(i, steps)| self.reserve(state, row(i), steps.len()))?;
        let mut read = 0;
        loop {
            let left = |steps: &Steps<'_>| steps.len().saturating_sub(read);
            let sessions = sequences.iter().filter(|steps| left(steps) > 0).count();
            if sessions == 0 {
                (0..sequences.len()).for_each(|i| state.shrink(row(i), self.places()));
                return Ok(());
            }
            let seq_len = (PASS_STEPS / sessions).max(1);
            workspace.begin();
            for (i, steps) in sequences.iter().enumerate().filter(|(_, steps)| left(steps) > 0) {
                let now = left(steps).min(seq_len);
                self.add(workspace, state, row(i), steps.part(read, now));
                if outputs.is_some() && now == left(steps) {
                    workspace.wanted.push((workspace.rows - 1, i));
                }
            }
            self.pass(state, outputs.as_deref_mut().unwrap_or(&mut []), workspace);
            read += seq_len;
        }
    }

    fn read_and_predict_all(
        &self,
        steps: Steps<'_>,
        state: &mut State,
        outputs: &mut [f32],
        mut inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_rows(state, 1)?;
        self.expect_room(steps.len(), outputs)?;
        inside.expect_fit(self.blocks.len(), steps.len(), self.config.d_model)?;
        self.reserve(state, 0, steps.len())?;
        let width = self.outputs();
        let seq_len = (PASS_OUTPUTS / width).clamp(1, PASS_STEPS);
        for (start, outputs) in (0..steps.len()).step_by(seq_len).zip(outputs.chunks_mut(seq_len * width)) {
            let now = seq_len.min(steps.len() - start);
            workspace.begin();
            self.add(workspace, state, 0, steps.part(start, now));
            // The last row of every step, counted from the end: a policy's steps have several rows, the first perhaps one fewer.
            let (each, last) = (self.places(), workspace.rows - 1);
            workspace.wanted.extend((0..now).map(|step| (last - each * (now - 1 - step), step)));
            self.pass_inside::<true>(state, outputs, inside.part(start, now, self.config.d_model), workspace);
        }
        state.shrink(0, self.places());
        Ok(())
    }
}
