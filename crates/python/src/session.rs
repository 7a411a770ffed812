//! Sessions as Python sees them: a model's state for one or many sequences, each a row.

use std::path::PathBuf;
use std::sync::Arc;

use minrnn::output::expect_harmless;
use minrnn_model::write_atomic;
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays;
use crate::counts;
use crate::failure::{Failure, Mistake, Result, apart};
use crate::generation::{Generation, Settings};
use crate::inputs::Sequences;
use crate::loaded::Loaded;
use crate::plain;
use crate::remembered::Session;
use crate::texts::texts;
use crate::threads::Threads;
use crate::{steps, table};

#[pymethods]
impl Session {
    /// Number of rows.
    #[getter]
    fn batch(&self) -> Result<usize> {
        Ok(self.remembered()?.sessions.rows())
    }

    /// Bytes used by all rows.
    #[getter]
    fn nbytes(&self) -> Result<usize> {
        Ok(self.remembered()?.sessions.bytes())
    }

    /// Reads one step of every row, or of ``rows``: ``[batch]`` tokens or ``[batch, inputs]`` numbers. Returns the prediction after it.
    #[pyo3(signature = (inputs, rows = None))]
    fn step<'py>(&self, inputs: &Bound<'py, PyAny>, rows: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        let mut remembered = self.remembered()?;
        let (rows, is_one) = arrays::rows(rows, remembered.sessions.rows())?;
        let outputs = match self.is_table {
            true => table::step(self, &mut remembered, inputs, &rows, is_one)?.into_any(),
            false => steps::step(self, &mut remembered.sessions, inputs, &rows, is_one)?.into_any(),
        };
        self.keep_last(&mut remembered, &outputs);
        Ok(outputs)
    }

    /// How surprising the next row of the table is for every row, or for ``rows``, in nats, by what was forecast for it; NaN where that is not known.
    /// Given as to ``step``, before it; nothing is read.
    #[pyo3(signature = (inputs, rows = None))]
    fn surprise<'py>(&self, inputs: &Bound<'py, PyAny>, rows: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        let mut remembered = self.remembered()?;
        let (rows, is_one) = arrays::rows(rows, remembered.sessions.rows())?;
        Ok(table::surprise(self, &mut remembered.sessions, inputs, &rows, is_one)?.into_any())
    }

    /// Reads a whole sequence for every row, or for ``rows``: ``[batch, T]`` or ``[batch, T, inputs]``, or a list of sequences of any lengths.
    /// Returns the prediction after the last step of each.
    #[pyo3(signature = (inputs, rows = None))]
    fn prefill<'py>(&self, inputs: &Bound<'py, PyAny>, rows: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        let mut remembered = self.remembered()?;
        let (rows, is_one) = arrays::rows(rows, remembered.sessions.rows())?;
        let sequences = Sequences::read(&self.loaded, self.width(), inputs, rows.len(), is_one)?;
        let outputs = match self.is_table {
            true => table::prefill(inputs.py(), self, &mut remembered.sessions, &sequences, &rows)?.into_any(),
            false => steps::prefill(inputs.py(), self, &mut remembered.sessions, &sequences, &rows)?.into_any(),
        };
        self.keep_last(&mut remembered, &outputs);
        Ok(outputs)
    }

    /// Reads like ``prefill``. Returns the predictions after every step: ``[batch, T, …]``, or a list of arrays.
    #[pyo3(signature = (inputs, rows = None))]
    fn forward<'py>(&self, inputs: &Bound<'py, PyAny>, rows: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        let mut remembered = self.remembered()?;
        let (rows, is_one) = arrays::rows(rows, remembered.sessions.rows())?;
        let sequences = Sequences::read(&self.loaded, self.width(), inputs, rows.len(), is_one)?;
        let outputs = match self.is_table {
            true => table::forward(inputs.py(), self, &mut remembered.sessions, &sequences, &rows)?,
            false => steps::forward(inputs.py(), self, &mut remembered.sessions, &sequences, &rows, steps::Wanted::Outputs)?,
        };
        self.keep_last(&mut remembered, &outputs);
        Ok(outputs)
    }

    /// Reads like ``prefill``. Returns the head's input after every step, ``[batch, T, d_model]``, or the output of block ``layer`` (from 0).
    #[pyo3(signature = (inputs, rows = None, *, layer = None))]
    fn embed<'py>(
        &self,
        inputs: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = counts::layer)] layer: Option<usize>,
    ) -> Result<Bound<'py, PyAny>> {
        let mut remembered = self.remembered()?;
        let (rows, is_one) = arrays::rows(rows, remembered.sessions.rows())?;
        let sequences = Sequences::read(&self.loaded, self.width(), inputs, rows.len(), is_one)?;
        let wanted = layer.map_or(steps::Wanted::Features, steps::Wanted::Hidden);
        let inside = match self.is_table {
            true => table::embed(inputs.py(), self, &mut remembered.sessions, &sequences, &rows, wanted)?,
            false => steps::forward(inputs.py(), self, &mut remembered.sessions, &sequences, &rows, wanted)?,
        };
        if sequences.lens().iter().any(|&len| len > 0) {
            remembered.went_on(None);
        }
        Ok(inside)
    }

    /// Resets every row, or ``rows``.
    #[pyo3(signature = (rows = None))]
    fn reset(&self, rows: Option<&Bound<'_, PyAny>>) -> Result<()> {
        let mut remembered = self.remembered()?;
        let (rows, _) = arrays::rows(rows, remembered.sessions.rows())?;
        if let Some(row) = rows.iter().find(|&&row| row >= remembered.sessions.rows()) {
            return Err(Failure::input(format!("the session has {} rows, there is no row {row}", remembered.sessions.rows())));
        }
        rows.iter().try_for_each(|&row| remembered.sessions.restart(&self.loaded.model, row))?;
        if !rows.is_empty() {
            remembered.went_on(None);
        }
        Ok(())
    }

    /// A new session with copies of all rows, or of ``rows`` in that order; a row may be copied several times.
    #[pyo3(signature = (rows = None))]
    fn fork(&self, rows: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let remembered = self.remembered()?;
        let (rows, _) = arrays::rows(rows, remembered.sessions.rows())?;
        let forked = Self::of(self.loaded.clone(), remembered.sessions.select(&rows)?, self.threads, self.is_table);
        if rows.len() == 1 {
            forked.remembered()?.logits.clone_from(&remembered.logits);
        }
        Ok(forked)
    }

    /// Replaces row ``row`` by row ``source_row`` of ``source``, a session of the same model.
    fn copy_row(
        &self,
        #[pyo3(from_py_with = counts::row)] row: usize,
        source: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = counts::source_row)] source_row: usize,
    ) -> Result<()> {
        let refused = |_| Failure::new(Mistake::Kind, format!("source: expected a session, found {}", plain::kind_of(source)));
        let source = source.cast::<Self>().map_err(refused)?.get();
        if std::ptr::eq(self, source) {
            let mut remembered = self.remembered()?;
            let picked = remembered.sessions.select(&[source_row])?;
            return Ok(remembered.sessions.copy_row(row, &picked, 0)?);
        }
        if !Arc::ptr_eq(&self.loaded, &source.loaded) && self.loaded.identity()? != source.loaded.identity()? {
            return Err(Failure::new(Mistake::State, "the rows belong to sessions of different models"));
        }
        let (source, mut remembered) = (source.remembered()?, self.remembered()?);
        remembered.sessions.copy_row(row, &source.sessions, source_row)?;
        let is_whole = remembered.sessions.rows() == 1;
        remembered.went_on(source.logits.clone().filter(|_| is_whole));
        Ok(())
    }

    /// Saves the whole state: returns it as bytes, or writes it to the file ``path``. That may be an older saved session, but not the model or the data
    /// it was trained on.
    #[pyo3(signature = (path = None))]
    fn save<'py>(&self, py: Python<'py>, #[pyo3(from_py_with = plain::path)] path: Option<PathBuf>) -> Result<Option<Bound<'py, PyBytes>>> {
        let identity = self.loaded.identity()?;
        let bytes = self.remembered()?.sessions.to_bytes(identity)?;
        match path {
            None => Ok(Some(PyBytes::new(py, &bytes))),
            Some(path) => {
                let source = self.loaded.source.as_deref();
                apart(py, || -> minrnn::Result<()> {
                    expect_harmless(&path, source)?;
                    Ok(write_atomic(&path, &bytes)?)
                })??;
                Ok(None)
            }
        }
    }

    /// Restores a saved state of the same model, given as bytes or as the path of its file; the session then has as many rows as were saved.
    fn load(&self, saved: &Bound<'_, PyAny>) -> Result<()> {
        let restored = restored(saved, self.loaded.clone(), self.threads, self.is_table)?;
        let mut remembered = self.remembered()?;
        remembered.sessions = restored.into_remembered().sessions;
        remembered.went_on(None);
        Ok(())
    }

    /// The state as numbers, ``[batch, n]``, without the past steps that attention or long filters look back on.
    fn state<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArrayDyn<f32>>> {
        let remembered = self.remembered()?;
        let (rows, values) = (remembered.sessions.rows(), remembered.sessions.state().values());
        arrays::filled(py, &[rows, values.len() / rows.max(1)], |state: &mut [f32]| {
            state.copy_from_slice(values);
            Ok(())
        })
    }

    /// Continues a text, yielding pieces of text, or tokens with ``tokens=True``, as they are generated. Without a prompt it continues from what the
    /// session has read, or starts a new text if it has read nothing; a session that was restored, forked from several rows, or used with ``embed``
    /// does not hold the next token's logits and needs a prompt. ``temperature=0`` takes the most likely token. The text ends before the first
    /// occurrence of ``stop``, one string or several. The session has read everything that was yielded, and also a stop string that was met, although
    /// that is not yielded.
    #[pyo3(signature = (prompt = None, max_tokens = 256, *, temperature = 1.0, top_k = 0, top_p = 1.0, min_p = 0.0, repetition_penalty = 1.0, seed = 0, stop = Vec::new(), tokens = false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn generate(
        slf: &Bound<'_, Self>,
        prompt: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = counts::max_tokens)] max_tokens: usize,
        #[pyo3(from_py_with = plain::temperature)] temperature: f64,
        #[pyo3(from_py_with = counts::top_k)] top_k: usize,
        #[pyo3(from_py_with = plain::top_p)] top_p: f64,
        #[pyo3(from_py_with = plain::min_p)] min_p: f64,
        #[pyo3(from_py_with = plain::repetition_penalty)] repetition_penalty: f64,
        #[pyo3(from_py_with = counts::seed)] seed: u64,
        #[pyo3(from_py_with = stop_strings)] stop: Vec<String>,
        #[pyo3(from_py_with = plain::tokens)] tokens: bool,
    ) -> Result<Generation> {
        let sampling = minrnn_stream::Sampling { temperature, top_k, top_p, min_p, repetition_penalty, seed };
        Generation::new(slf, prompt, Settings { max_tokens, sampling, tokens, stop })
    }

    fn __len__(&self) -> Result<usize> {
        self.batch()
    }

    fn __repr__(&self) -> String {
        match self.remembered() {
            Ok(remembered) => format!("<minrnn.Session batch={} nbytes={}>", remembered.sessions.rows(), remembered.sessions.bytes()),
            Err(_) => "<minrnn.Session in use>".to_owned(),
        }
    }
}

fn stop_strings(any: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    Ok(texts(any, "stop")?)
}

/// The session of `loaded` that was saved as `saved`, its bytes or the path of its file; other threads of Python run while it is read.
pub(crate) fn restored(saved: &Bound<'_, PyAny>, loaded: Arc<Loaded>, threads: Threads, is_table: bool) -> Result<Session> {
    if let Ok(bytes) = saved.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return apart(saved.py(), move || Session::restored(loaded, bytes, threads, is_table))?;
    }
    let path: PathBuf =
        saved.extract().map_err(|_| Failure::new(Mistake::Kind, "expected the bytes of a saved session, or the path of its file"))?;
    apart(saved.py(), move || -> Result<Session> {
        let bytes = std::fs::read(&path).map_err(|source| minrnn_model::Error::io("read", &path, source))?;
        Session::restored(loaded, &bytes, threads, is_table)
    })?
}
