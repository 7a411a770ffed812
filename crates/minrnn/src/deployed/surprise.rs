//! How likely every token of an arriving text is according to a text model.

use std::path::Path;

use minrnn_model::Characters;
use minrnn_stream::{Model, SavedSessions, State, Workspace};

use super::saved::{read, write};
use crate::data::{TextInput, Tokenizer};
use crate::generate::ModelIdentity;
use crate::train::loss_of;
use crate::{Error, Result};

/// Maximum number of logits per pass.
const OUTPUTS: usize = 1 << 18;

/// A text read as it arrives.
pub struct Surprise<'m> {
    model: &'m Model,
    tokenizer: &'m Tokenizer,
    state: State,
    workspace: Workspace,
    /// The logits after the last token; empty before the first.
    logits: Vec<f32>,
    outputs: Vec<f32>,
    input: TextInput,
    /// The line of the next byte.
    line: u64,
}

/// Receives tokens and errors.
pub trait Listener {
    /// A token of line `line` as text, and its log-probability under the model; `None` for the very first.
    ///
    /// # Errors
    /// Any error ends the reading.
    fn token(&mut self, line: u64, text: &[u8], log_probability: Option<f64>) -> Result<()>;

    /// Something in line `line` that the model cannot read and that is skipped.
    ///
    /// # Errors
    /// Any error ends the reading.
    fn flaw(&mut self, line: u64, flaw: Error) -> Result<()>;

    /// A `character` in line `line` that is not in the vocabulary and is skipped; by default a [`flaw`](Self::flaw).
    ///
    /// # Errors
    /// Any error ends the reading.
    fn unknown(&mut self, line: u64, _character: char, flaw: Error) -> Result<()> {
        self.flaw(line, flaw)
    }

    /// A byte in line `line` that is not valid text and is skipped; by default a [`flaw`](Self::flaw).
    ///
    /// # Errors
    /// Any error ends the reading.
    fn not_text(&mut self, line: u64, flaw: Error) -> Result<()> {
        self.flaw(line, flaw)
    }
}

impl<'m> Surprise<'m> {
    /// A new text.
    ///
    /// # Errors
    /// When memory cannot hold its state.
    pub fn new(model: &'m Model, tokenizer: &'m Tokenizer) -> Result<Self> {
        let (state, workspace) = (model.init_state(1)?, Workspace::new());
        Ok(Self { model, tokenizer, state, workspace, logits: Vec::new(), outputs: Vec::new(), input: TextInput::new(), line: 1 })
    }

    /// Reads the next `bytes` of the text.
    ///
    /// What cannot be encoded yet waits, as described for [`TextInput`]. A byte vocabulary accepts any bytes, and none of them wait.
    ///
    /// # Errors
    /// Any error of `listener`, or when the model has no room for more.
    pub fn push(&mut self, bytes: &[u8], listener: &mut dyn Listener) -> Result<()> {
        if matches!(self.tokenizer, Tokenizer::Byte) {
            return self.read_bytes(bytes, listener);
        }
        let ready = self.input.push(self.tokenizer, bytes);
        self.read(&ready, listener)
    }

    /// The bytes that wait: the beginning of a character or a line, which [`save`](Self::save) leaves out.
    pub fn waiting(&self) -> &[u8] {
        self.input.pending()
    }

    /// Reads the bytes that wait, at the end of the text.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, listener: &mut dyn Listener) -> Result<()> {
        let rest = self.input.finish();
        self.read(&rest, listener)
    }

    /// Reads bytes that are tokens, whether or not they are text.
    fn read_bytes(&mut self, bytes: &[u8], listener: &mut dyn Listener) -> Result<()> {
        let mut tokens = Vec::new();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            tokens.clear();
            self.tokenizer.encode_bytes_into(line, 0, &mut tokens)?;
            self.score(&tokens, listener)?;
            self.line += u64::from(line.ends_with(b"\n"));
        }
        Ok(())
    }

    fn read(&mut self, text: &[u8], listener: &mut dyn Listener) -> Result<()> {
        for chunk in text.utf8_chunks() {
            for line in chunk.valid().split_inclusive('\n') {
                match self.tokenizer.encode(line) {
                    Ok(tokens) => self.score(&tokens, listener)?,
                    Err(_) => self.read_known(line, listener)?,
                }
                self.line += u64::from(line.ends_with('\n'));
            }
            if !chunk.invalid().is_empty() {
                let flaw = format!("line {}: a byte is not UTF-8; save the text as UTF-8", self.line);
                listener.not_text(self.line, Error::Data(flaw))?;
            }
        }
        Ok(())
    }

    /// Reads the characters of `line` that are in the vocabulary.
    fn read_known(&mut self, line: &str, listener: &mut dyn Listener) -> Result<()> {
        let mut tokens = Vec::new();
        for character in line.chars() {
            match self.tokenizer.encode(character.encode_utf8(&mut [0; 4])) {
                Ok(token) => tokens.extend(token),
                Err(_) => {
                    self.score(&std::mem::take(&mut tokens), listener)?;
                    let shown = character.escape_debug();
                    let origin = Characters::origin(character);
                    let flaw = format!("line {}: the model does not know the character '{shown}'{origin}", self.line);
                    listener.unknown(self.line, character, Error::Data(flaw))?;
                }
            }
        }
        self.score(&tokens, listener)
    }

    fn score(&mut self, tokens: &[u32], listener: &mut dyn Listener) -> Result<()> {
        let width = self.model.outputs();
        for tokens in tokens.chunks((OUTPUTS / width.max(1)).max(1)) {
            self.outputs.resize(tokens.len() * width, 0.0);
            self.model.forward(tokens, &mut self.state, &mut self.outputs, &mut self.workspace)?;
            let mut bytes = Vec::new();
            for (at, &token) in tokens.iter().enumerate() {
                let expected = if at == 0 { &self.logits[..] } else { &self.outputs[(at - 1) * width..at * width] };
                bytes.clear();
                self.tokenizer.append_bytes(token, &mut bytes)?;
                listener.token(self.line, &bytes, (!expected.is_empty()).then(|| -loss_of(expected, token as usize)))?;
            }
            self.logits.clear();
            self.logits.extend_from_slice(&self.outputs[(tokens.len() - 1) * width..]);
        }
        Ok(())
    }

    /// Writes the state to `path`, atomically. `identity` is that of the model.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path, identity: &ModelIdentity) -> Result<()> {
        write(
            path,
            self.model,
            identity,
            &SavedSessions {
                names: vec![String::new()],
                logits: self.logits.clone(),
                histories: Vec::new(),
                forecasts: Vec::new(),
                state: self.state.clone(),
            },
        )
    }

    /// Continues from the state saved to `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was saved with another model.
    pub fn load(path: &Path, model: &'m Model, tokenizer: &'m Tokenizer, identity: &ModelIdentity) -> Result<Self> {
        let SavedSessions { names, logits, state, .. } = read(path, model, identity)?;
        if names.len() != 1 {
            return Err(Error::malformed(path, format!("it holds {} sessions, expected that of one text", names.len())));
        }
        Ok(Self { logits, state, ..Self::new(model, tokenizer)? })
    }
}
