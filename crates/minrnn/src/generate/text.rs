//! Text from prompts: a session, a sampler for each row, and decoding of tokens to text that can be shown.

use std::ops::ControlFlow;
use std::path::Path;

use minrnn_stream::{Continuation, Sampler, Sampling, StopStrings};

use super::identity::ModelIdentity;
use super::saved::{SavedText, read, write};
use super::token_session::TokenSession;
use crate::data::Tokenizer;
use crate::{Error, Result};

/// Continues a batch of texts, one token per row at a time. Cloning forks it.
///
/// Every row samples independently, from a generator derived from the seed and the row's number, until it meets a stop string.
#[derive(Debug, Clone)]
pub struct TextGenerator<'t, S: TokenSession> {
    session: S,
    tokenizer: &'t Tokenizer,
    text: SavedText,
}

/// Text completed by one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The row it belongs to.
    pub row: usize,
    /// The text; empty while a character is incomplete or a stop string is possible.
    pub text: String,
    /// Whether the row met a stop string and has ended.
    pub stopped: bool,
}

impl<'t, S: TokenSession> TextGenerator<'t, S> {
    /// Reads one prompt into each row of `session`; an empty prompt starts from [`Tokenizer::start_token`]. Rows end before the first of
    /// `stops`. A byte vocabulary accepts prompts of any bytes, the others need UTF-8.
    ///
    /// # Errors
    /// When the session does not have one row for each prompt, a setting is out of range, a stop string is empty, a prompt has a character
    /// outside the vocabulary or is not UTF-8, or the tokenizer has more tokens than the model.
    pub fn new(
        mut session: S,
        tokenizer: &'t Tokenizer,
        prompts: &[impl AsRef<[u8]>],
        sampling: Sampling,
        stops: &[String],
    ) -> Result<Self> {
        if session.batch_size() != prompts.len() {
            let (found, expected) = (session.batch_size(), prompts.len());
            return Err(Error::Shape(format!("expected a session of {expected} rows, one for each prompt, found {found}")));
        }
        tokenizer.expect_known(session.vocab_size())?;
        let stops = StopStrings::new(stops)?;
        let mut read = Vec::with_capacity(prompts.len());
        let mut rows = Vec::with_capacity(prompts.len());
        for (row, prompt) in prompts.iter().enumerate() {
            let mut tokens = Vec::new();
            tokenizer.encode_bytes_into(prompt.as_ref(), 0, &mut tokens)?;
            if tokens.is_empty() {
                tokens.push(tokenizer.start_token());
            }
            rows.push(Continuation::new(&tokens, Sampler::of_row(&sampling, row)?, stops.clone()));
            tokens.pop();
            read.push(tokens);
        }
        session.advance(&read)?;
        Ok(Self { session, tokenizer, text: SavedText { sampling, rows } })
    }

    /// Number of rows.
    pub fn batch_size(&self) -> usize {
        self.text.rows.len()
    }

    /// The sampling settings.
    pub fn sampling(&self) -> &Sampling {
        &self.text.sampling
    }

    /// Whether every row has met a stop string.
    pub fn is_done(&self) -> bool {
        self.text.rows.iter().all(Continuation::is_stopped)
    }

    /// Chooses tokens by `sampling` from now on, with generators restarted from its seed.
    ///
    /// # Errors
    /// When a setting is out of range; nothing is then changed.
    pub fn resample(&mut self, sampling: Sampling) -> Result<()> {
        let samplers = (0..self.batch_size()).map(|row| Sampler::of_row(&sampling, row)).collect::<Result<Vec<_>, _>>()?;
        for (row, sampler) in self.text.rows.iter_mut().zip(samplers) {
            row.set_sampler(sampler);
        }
        self.text.sampling = sampling;
        Ok(())
    }

    /// Replaces the stop strings; returns the text of each row that the old ones held back.
    ///
    /// # Errors
    /// When a stop string is empty; nothing is then changed.
    pub fn replace_stops(&mut self, stops: &[String]) -> Result<Vec<String>> {
        let stops = StopStrings::new(stops)?;
        Ok(self.text.rows.iter_mut().map(|row| row.replace_stops(stops.clone())).collect())
    }

    /// Continues every row with a text of its own, even a row that had stopped; returns each row's text that was held back.
    ///
    /// # Errors
    /// When there is not one text for each row, or one has a character outside the vocabulary or is not UTF-8 where that is required;
    /// nothing is then changed.
    pub fn prompt(&mut self, texts: &[impl AsRef<[u8]>]) -> Result<Vec<String>> {
        if texts.len() != self.batch_size() {
            return Err(Error::Shape(format!("expected a text for each of {} rows, found {}", self.batch_size(), texts.len())));
        }
        let encoded = |text: &[u8]| -> Result<Vec<u32>> {
            let mut tokens = Vec::new();
            self.tokenizer.encode_bytes_into(text, 0, &mut tokens)?;
            Ok(tokens)
        };
        let tokens = texts.iter().map(|text| encoded(text.as_ref())).collect::<Result<Vec<_>>>()?;
        let mut read = Vec::with_capacity(texts.len());
        for (row, mut tokens) in self.text.rows.iter_mut().zip(tokens) {
            tokens.insert(0, row.unread());
            row.extend(&tokens[1..]);
            tokens.pop();
            read.push(tokens);
        }
        self.session.advance(&read)?;
        Ok(self.finish())
    }

    /// Generates one token for every row that has not stopped; returns what each completed.
    ///
    /// # Errors
    /// When the model's logits are not finite.
    pub fn step(&mut self) -> Result<Vec<Piece>> {
        let active: Vec<usize> = (0..self.batch_size()).filter(|&row| !self.text.rows[row].is_stopped()).collect();
        let tokens: Vec<u32> = active.iter().map(|&row| self.text.rows[row].unread()).collect();
        let mut logits = self.session.step_rows(&active, &tokens)?;
        let mut pieces = Vec::with_capacity(active.len());
        for (i, &row) in active.iter().enumerate() {
            // A model may know more tokens than its tokenizer; those mean nothing.
            let logits = &mut logits.row_mut(i)[..self.tokenizer.vocab_size()];
            let text = &mut self.text.rows[row];
            let token = text.choose(logits).map_err(|error| naming(row, error))?;
            let (text, stopped) = text.show(self.tokenizer, token)?;
            pieces.push(Piece { row, text, stopped });
        }
        Ok(pieces)
    }

    /// Generates up to `max_tokens` tokens for every row and passes each piece to `each`, which may stop it; returns the number of tokens
    /// generated in all rows together.
    ///
    /// # Errors
    /// When the model's logits are not finite.
    pub fn generate(&mut self, max_tokens: usize, mut each: impl FnMut(Piece) -> ControlFlow<()>) -> Result<usize> {
        let mut generated = 0;
        for _ in 0..max_tokens {
            if self.is_done() {
                break;
            }
            let pieces = self.step()?;
            generated += pieces.len();
            // Every piece of the step is passed on, since its tokens have been generated.
            let flow: Vec<_> = pieces.into_iter().map(&mut each).collect();
            if flow.iter().any(ControlFlow::is_break) {
                break;
            }
        }
        Ok(generated)
    }

    /// Ends the text: returns what each row held back. Do not call it before [`save`](TextGenerator::save), so that the loaded generator
    /// still holds it.
    pub fn finish(&mut self) -> Vec<String> {
        self.text.rows.iter_mut().map(Continuation::finish).collect()
    }

    /// A generator of the rows `rows`, in that order; a row may be chosen several times, and its copies continue identically until
    /// [`resample`](TextGenerator::resample) gives each its own generator.
    ///
    /// # Errors
    /// When a row does not exist.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let session = self.session.select(rows)?;
        let chosen = rows.iter().map(|&row| self.text.rows[row].clone()).collect();
        let text = SavedText { sampling: self.text.sampling.clone(), rows: chosen };
        Ok(Self { session, tokenizer: self.tokenizer, text })
    }

    /// Writes everything that the continuation depends on to `path`, atomically. `identity` is that of the model.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, identity: &ModelIdentity) -> Result<()> {
        write(&self.session, path.as_ref(), identity, Some(&self.text))
    }

    /// Loads the generator saved to `path`, on the model of `like`; it continues exactly as the saved one would have.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, holds no text, or was saved with another model.
    pub fn load(path: impl AsRef<Path>, like: &S, tokenizer: &'t Tokenizer, identity: &ModelIdentity) -> Result<Self> {
        let path = path.as_ref();
        let (session, text) = read(path, like, identity)?;
        tokenizer.expect_known(session.vocab_size())?;
        let Some(text) = text else {
            return Err(Error::malformed(path, "the saved session has no text in it; it was saved without a generator"));
        };
        if text.rows.len() != session.batch_size() {
            let (expected, found) = (session.batch_size(), text.rows.len());
            return Err(Error::malformed(path, format!("it has text for {found} rows, expected {expected}; the saved session is damaged")));
        }
        for row in &text.rows {
            row.check(tokenizer).map_err(|error| Error::malformed(path, error.to_string()))?;
        }
        Ok(Self { session, tokenizer, text })
    }
}

/// Adds to the error the row whose logits are not finite.
fn naming(row: usize, error: minrnn_stream::Error) -> Error {
    match error {
        minrnn_stream::Error::Logit { value, .. } => Error::Output { what: format!("text {}", row + 1), value: value.into() },
        error => error.into(),
    }
}
