//! Scores a model in the inference runtime on a text: its loss, and how often it agrees with another.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::{ModelConfig, likeliest};
use minrnn_stream::{Model, State, Workspace};

use crate::Result;
use crate::memory::{Estimate, Run, running};
use crate::train::{Evaluation, is_right, loss_of};

/// Number of tokens between two checks of `stop`.
const PASS: usize = 2048;

/// The result of one pass over a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Loss and accuracy.
    pub evaluation: Evaluation,
    /// Share of positions at which both models have the same most likely token.
    pub agreement: Option<f64>,
}

/// The peak memory that [`score`] needs in addition to the model of `config`, for `n_tokens` tokens.
///
/// # Errors
/// When the configuration is not valid.
pub fn score_memory(config: &ModelConfig, n_tokens: usize) -> Result<Estimate> {
    let read = n_tokens.min(PASS);
    running("evaluation", config, Run { sessions: 1, steps: n_tokens, threads: 1, read, predicted: read })
}

/// Predicts every token of `tokens` but the first from all tokens before it; `None` if `stop` was raised.
///
/// # Errors
/// When a model does not know a token.
///
/// # Panics
/// When there are no tokens.
pub fn score(model: &Model, against: Option<&Model>, tokens: &[u32], stop: &AtomicBool) -> Result<Option<Score>> {
    let mut reader = Reader::new(model)?;
    let mut other = against.map(Reader::new).transpose()?;
    let (mut loss, mut right, mut same) = (0.0, 0u64, 0u64);
    for (inputs, targets) in tokens[..tokens.len() - 1].chunks(PASS).zip(tokens[1..].chunks(PASS)) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let logits = reader.read(inputs)?;
        let rows = || logits.chunks_exact(model.outputs());
        for (logits, &target) in rows().zip(targets) {
            loss += loss_of(logits, target as usize);
            right += u64::from(is_right(logits, target as usize));
        }
        if let Some(other) = &mut other {
            let width = other.model.outputs();
            let others = other.read(inputs)?.chunks_exact(width).map(likeliest);
            same += others.zip(rows().map(likeliest)).filter(|(a, b)| a == b).count() as u64;
        }
    }
    let n_scored = tokens.len() as u64 - 1;
    let share = |count: u64| count as f64 / n_scored as f64;
    let evaluation = Evaluation { loss: loss / n_scored as f64, accuracy: Some(share(right)), n_scored };
    Ok(Some(Score { evaluation, agreement: other.map(|_| share(same)) }))
}

/// One session of a model.
struct Reader<'m> {
    model: &'m Model,
    state: State,
    workspace: Workspace,
    logits: Vec<f32>,
}

impl<'m> Reader<'m> {
    fn new(model: &'m Model) -> Result<Self> {
        Ok(Self { model, state: model.init_state(1)?, workspace: Workspace::new(), logits: Vec::new() })
    }

    fn read(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        self.logits.resize(tokens.len() * self.model.outputs(), 0.0);
        self.model.forward(tokens, &mut self.state, &mut self.logits, &mut self.workspace)?;
        Ok(&self.logits)
    }
}
