//! A prompt that is read into the model piece by piece.

use minrnn_stream::{Model, PASS_STEPS, Result, State, Workspace};

use crate::cache::Cache;
use crate::job::Job;
use crate::logprobs::Logprob;

/// Tokens of a prompt that are read at once between two steps of texts being continued, which wait meanwhile; without such texts it is a whole pass.
const PIECE_BESIDE: usize = 128;

/// Most logits of a piece whose tokens are all scored.
const SCORED: usize = 1 << 20;

/// A job that has a session and is reading its prompt.
#[derive(Debug)]
pub(crate) struct Reading {
    pub job: Job,
    pub row: usize,
    /// How many tokens a cached state saved reading.
    pub cached: usize,
    /// Log-probabilities of the prompt's tokens but the first, if asked for.
    pub logprobs: Vec<Logprob>,
    at: usize,
}

impl Reading {
    /// Begins in session `row`, with the cached state of the prompt's beginning if there is one.
    pub fn begin(job: Job, row: usize, model: &Model, state: &mut State, cache: &mut Cache<State>) -> Result<Self> {
        let known = if job.of_prompt { None } else { cache.longest(&job.prompt[..job.prompt.len() - 1]) };
        let cached = match known {
            Some((len, known)) => {
                state.copy_row(row, known, 0)?;
                len
            }
            None => {
                model.restart(state, row)?;
                0
            }
        };
        Ok(Self { job, row, cached, logprobs: Vec::new(), at: cached })
    }

    /// Whether all tokens have been read but the last, which the first step of the text reads.
    pub fn is_done(&self) -> bool {
        self.at + 1 == self.job.prompt.len()
    }

    /// Reads a piece, a short one `beside` texts being continued.
    pub fn read(
        &mut self,
        model: &Model,
        vocab_size: usize,
        beside: bool,
        state: &mut State,
        workspace: &mut Workspace,
        cache: &mut Cache<State>,
    ) -> Result<()> {
        let prompt = &self.job.prompt;
        let piece = if beside { PIECE_BESIDE } else { PASS_STEPS };
        let most = if self.job.of_prompt { (SCORED / model.outputs().max(1)).clamp(1, piece) } else { piece };
        let end = (prompt.len() - 1).min((self.at / piece + 1) * piece).min(self.at + most);
        let tokens = &prompt[self.at..end];
        if self.job.of_prompt {
            let width = model.outputs();
            let mut session = state.select(&[self.row])?;
            let mut logits = vec![0.0; tokens.len() * width];
            model.forward(tokens, &mut session, &mut logits, workspace)?;
            state.copy_row(self.row, &session, 0)?;
            let top = self.job.logprobs.unwrap_or_default();
            let next = logits.chunks_exact(width).zip(&prompt[self.at + 1..]);
            for (logits, &token) in next {
                self.logprobs.push(Logprob::of(&logits[..vocab_size], token, top)?);
            }
        } else {
            model.advance_rows(&[self.row], &[tokens], state, workspace)?;
        }
        self.at = end;
        // States at these marks cover at least half of the prefix that long prompts share. States that grow are kept for whole prompts only.
        let is_mark = end.is_multiple_of(PASS_STEPS) && (end / PASS_STEPS).is_power_of_two() && model.steps_seen() == 0;
        if (is_mark || self.is_done()) && !cache.has(&prompt[..end]) {
            let session = state.select(&[self.row])?;
            let bytes = session.bytes();
            cache.insert(&prompt[..end], session, bytes);
        }
        Ok(())
    }
}
