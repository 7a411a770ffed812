//! Generated text: an iterator that chooses a token, lets the session read it, and yields the text that it completes.

use std::sync::{Mutex, PoisonError};

use minrnn_stream::{Continuation, Sampler, Sampling, StopStrings};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Mistake, Result, computed};
use crate::inputs::{Form, Sequences, Steps, Width};
use crate::remembered::{Remembered, Session};
use crate::steps;
use crate::threads::{Reading, within};

/// How much is generated, and how.
pub(crate) struct Settings {
    pub max_tokens: usize,
    pub sampling: Sampling,
    /// Whether tokens are yielded instead of text.
    pub tokens: bool,
    /// The text ends before the first of these.
    pub stop: Vec<String>,
}

/// A text being generated: an iterator over pieces of text, or over tokens.
#[pyclass(frozen, module = "minrnn")]
pub(crate) struct Generation {
    session: Py<Session>,
    going: Mutex<Going>,
}

struct Going {
    continuation: Continuation,
    /// The session's count of readings after it read the latest token.
    readings: u64,
    left: usize,
    /// Whether text is yielded and has not ended.
    text: bool,
}

impl Generation {
    pub fn new(session: &Bound<'_, Session>, prompt: Option<&Bound<'_, PyAny>>, settings: Settings) -> Result<Self> {
        let py = session.py();
        let this = session.get();
        let loaded = &this.loaded;
        if this.width() != Width::Token {
            return Err(Failure::new(Mistake::Kind, "the model reads values, expected one that reads tokens to generate them"));
        }
        let Settings { max_tokens, sampling, tokens, stop } = settings;
        // The same sampler as the command line uses for a single row.
        let (sampler, stops) = (Sampler::of_row(&sampling, 0)?, StopStrings::new(&stop)?);
        let has_text = !tokens && loaded.tokenizer.is_some();
        if !has_text && !stop.is_empty() {
            return Err(Failure::new(Mistake::Kind, "tokens are handed on, in which no text can be looked for; leave stop out"));
        }
        let mut remembered = this.remembered()?;
        if remembered.sessions.rows() != 1 {
            let found = remembered.sessions.rows();
            return Err(Failure::input(format!("the session has {found} rows, expected one to generate; take fork([row])")));
        }
        let prompt = prompt.map(|prompt| Sequences::read(loaded, Width::Token, prompt, 1, false)).transpose()?;
        let prompt = match prompt.filter(|prompt| prompt.lens() != [0]) {
            None if remembered.logits.is_some() => None,
            None if remembered.is_new(&loaded.model)? => {
                let start = loaded.tokenizer().map_or(0, |tokenizer| tokenizer.start_token());
                Some(Sequences { steps: Steps::Tokens(vec![vec![start]]), width: 1, form: Form::Alone })
            }
            None => {
                let sentence = "what comes next is not known to the session: one that was saved, a row out of several and embed do not \
                                keep it; give a prompt to go on with";
                return Err(Failure::new(Mistake::State, sentence));
            }
            given => given,
        };
        let read = match &prompt {
            Some(Sequences { steps: Steps::Tokens(tokens), .. }) => &tokens[0][..],
            _ => &[],
        };
        let continuation = Continuation::new(read, sampler, stops);
        if let Some(prompt) = &prompt {
            let logits = steps::prefill(py, this, &mut remembered.sessions, prompt, &[0])?;
            this.keep_last(&mut remembered, &logits);
        }
        let going = Going { continuation, readings: remembered.readings, left: max_tokens, text: has_text };
        drop(remembered);
        Ok(Self { session: session.clone().unbind(), going: Mutex::new(going) })
    }
}

impl Going {
    /// Chooses a token and lets the session read it.
    fn choose(&mut self, py: Python<'_>, session: &Session) -> Result<u32> {
        let mut remembered = session.remembered()?;
        let Remembered { sessions, logits, readings, .. } = &mut *remembered;
        let known = logits.as_mut().filter(|_| *readings == self.readings).ok_or_else(|| {
            Failure::new(Mistake::State, "the session has read something else since this text was begun; generate from there anew")
        })?;
        // A model may know more tokens than its tokenizer; those mean nothing.
        let n = session.loaded.tokenizer().map_or(known.len(), |tokenizer| tokenizer.vocab_size());
        let mut choices = known[..n.min(known.len())].to_vec();
        let token = self.continuation.choose(&mut choices)?;
        let pool = session.threads.pool(py, Reading::Step)?;
        sessions.set_threads(session.threads.most(Reading::Step));
        let model = &session.loaded.model;
        sessions.read_inputs(&[0], |state, workspace| {
            computed(py, || within(pool.as_deref(), || model.step_rows(&[0], &[token], state, known, workspace)))
        })?;
        *readings += 1;
        self.readings = *readings;
        self.left -= 1;
        Ok(token)
    }
}

#[pymethods]
impl Generation {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let mut going = self.going.try_lock().map_err(|_| Failure::new(Mistake::Busy, "another thread is generating this text"))?;
        let session = self.session.get();
        while going.left > 0 {
            let token = going.choose(py, session)?;
            if !going.text {
                return Ok(Some(token.into_pyobject(py).map_err(PyErr::from)?.into_any()));
            }
            let (piece, stopped) = going.continuation.show(session.loaded.tokenizer()?, token)?;
            if stopped {
                (going.left, going.text) = (0, false);
            }
            // A character may take several tokens.
            if !piece.is_empty() {
                return Ok(Some(PyString::new(py, &piece).into_any()));
            }
            py.check_signals()?;
        }
        // No more is coming, so what was held back is yielded.
        let rest = if std::mem::take(&mut going.text) { going.continuation.finish() } else { String::new() };
        Ok((!rest.is_empty()).then(|| PyString::new(py, &rest).into_any()))
    }

    fn __repr__(&self) -> String {
        let left = self.going.lock().unwrap_or_else(PoisonError::into_inner).left;
        format!("<minrnn.Generation with {left} tokens to come>")
    }
}
