//! Models: loaded once, shared by their sessions.

use std::path::PathBuf;
use std::sync::Arc;

use minrnn::data::table::output_names;
use minrnn_stream::{AlignedBytes, Reads, expect_table};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays;
use crate::counts;
use crate::failure::{Failure, Mistake, Result, apart, computed};
use crate::handed;
use crate::loaded::Loaded;
use crate::plain;
use crate::prediction::{Predicted, labels, predict};
use crate::remembered::Session;
use crate::scoring::{self, Scored, score, share};
use crate::session::restored;
use crate::text_scoring::{ScoredText, Text, score_text, unit};
use crate::texts;
use crate::threads::Threads;

/// A trained model. Its sessions hold the state of sequences.
#[pyclass(frozen, subclass, module = "minrnn", name = "Model")]
pub(crate) struct PyModel {
    loaded: Arc<Loaded>,
}

impl PyModel {
    fn is_table(&self, table: Option<bool>) -> Result<bool> {
        if table == Some(true) {
            expect_table(self.loaded.table.as_ref())?;
        }
        Ok(table.unwrap_or(self.loaded.table.is_some()))
    }
}

#[pymethods]
impl PyModel {
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> Result<Self> {
        if let Ok(bytes) = source.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            let copied = AlignedBytes::copied(bytes);
            let refused = |_| Failure::new(Mistake::Memory, format!("memory cannot hold the {} bytes of a model", bytes.len()));
            let copied = copied.map_err(refused)?;
            return Ok(Self { loaded: Arc::new(py.detach(|| Loaded::of_bytes(copied))?) });
        }
        let refused =
            |_| Failure::new(Mistake::Kind, "expected the path of a packed model, a run or a checkpoint, or the bytes of a packed model");
        let path: PathBuf = source.extract().map_err(refused)?;
        let loaded = computed(py, || Ok(Loaded::read(&path)))??;
        Ok(Self { loaded: Arc::new(loaded) })
    }

    /// Starts ``batch`` sequences. ``threads`` is the maximum number of threads for a call, 0 for all cores; by default steps use one and whole
    /// sequences all cores. With ``table=False`` a session reads the model's own inputs instead of rows of its table.
    #[pyo3(signature = (batch = 1, *, threads = None, table = None))]
    fn session(
        &self,
        #[pyo3(from_py_with = counts::batch)] batch: usize,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
        #[pyo3(from_py_with = plain::table)] table: Option<bool>,
    ) -> Result<Session> {
        Session::new(self.loaded.clone(), batch, Threads::asked(threads)?, self.is_table(table)?)
    }

    /// Restores saved sessions, given as bytes or as the path of their file. ``threads`` and ``table`` are as in ``session``.
    #[pyo3(signature = (saved, *, threads = None, table = None))]
    fn load_session(
        &self,
        saved: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
        #[pyo3(from_py_with = plain::table)] table: Option<bool>,
    ) -> Result<Session> {
        restored(saved, self.loaded.clone(), Threads::asked(threads)?, self.is_table(table)?)
    }

    /// The tokens of a text, uint32.
    fn encode<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> Result<Bound<'py, PyArrayDyn<u32>>> {
        let tokens = self.loaded.encode(py, &texts::text(text, "text")?)?;
        arrays::filled(py, &[tokens.len()], |room: &mut [u32]| {
            room.copy_from_slice(&tokens);
            Ok(())
        })
    }

    /// The text of tokens; bytes that do not form a character become U+FFFD.
    fn decode(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> Result<String> {
        let tokenizer = self.loaded.tokenizer()?;
        let tokens = arrays::read::<u32>(tokens, "tokens")?.values;
        Ok(apart(py, || tokenizer.decode(&tokens))??)
    }

    /// The surprise, in nats, that a share ``share`` of the rows held out in training did not exceed; None if the model does not know.
    #[pyo3(signature = (share = 0.999))]
    fn threshold(&self, #[pyo3(from_py_with = scoring::own_share)] share: f64) -> Result<Option<f64>> {
        scoring::threshold(&self.loaded, share)
    }

    /// The names of a table's sequences, the times that are forecast, the predictions at the end of every sequence, and notes on the table.
    fn _predict<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, PyAny>,
        future: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
    ) -> Result<Predicted<'py>> {
        let threads = Threads::asked(threads)?;
        predict(py, &self.loaded, handed::read(table)?, future.map(handed::read).transpose()?, threads)
    }

    /// How surprising each row of a table is to a forecaster, with the threshold above which a row is marked, and notes on the table.
    fn _score<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, PyAny>,
        usual: Option<&Bound<'py, PyAny>>,
        threshold: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
    ) -> Result<Scored<'py>> {
        let (threads, share) = (Threads::asked(threads)?, share(threshold)?);
        score(py, &self.loaded, handed::read(table)?, usual.map(handed::read).transpose()?, share, threads)
    }

    /// How surprising each line or token of a text is to a text model, with the threshold above which one is marked and notes on the texts.
    fn _score_text<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        usual: Option<&Bound<'py, PyAny>>,
        by: &Bound<'py, PyAny>,
        threshold: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
    ) -> Result<ScoredText<'py>> {
        let (threads, unit, share) = (Threads::asked(threads)?, unit(by)?, share(threshold)?);
        let usual = usual.map(|usual| Text::of(usual, texts::USUAL_TEXT)).transpose()?;
        score_text(py, &self.loaded, Text::of(text, texts::TEXT)?, usual, unit, share, threads)
    }

    /// The label of each sequence of a table, as the table has it, in the order of ``_predict``.
    fn _labels(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> Result<Vec<String>> {
        labels(py, &self.loaded, handed::read(table)?)
    }

    /// What the model does: ``text``, ``classifier``, ``regressor``, ``forecaster``, ``policy``, ``tokens`` or ``values``.
    #[getter]
    fn kind(&self) -> &'static str {
        self.loaded.kind().name()
    }

    /// The path the model was loaded from; None if it was given as bytes.
    #[getter]
    fn path(&self) -> Option<&PathBuf> {
        self.loaded.source.as_ref()
    }

    /// The number of tokens the model knows; 0 for a model that reads values.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.loaded.model.vocab_size()
    }

    /// The number of inputs at each step; 0 for a model that reads tokens.
    #[getter]
    fn inputs(&self) -> usize {
        match self.loaded.model.reads() {
            Reads::Tokens { .. } => 0,
            Reads::Values { width } => width,
        }
    }

    /// The number of outputs after a step.
    #[getter]
    fn outputs(&self) -> usize {
        self.loaded.model.outputs()
    }

    /// The number of trainable parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.loaded.model.parameters()
    }

    /// The columns that it reads, for a model trained on a table; otherwise empty.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.loaded.table.as_ref().map_or(Vec::new(), |task| task.columns().to_vec())
    }

    /// The names of a classifier's classes; empty for other models.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.loaded.table.as_ref().map_or(Vec::new(), |task| task.classes().to_vec())
    }

    /// The number of steps after which a session stops growing; 0 if it never grows.
    #[getter]
    fn steps_seen(&self) -> usize {
        self.loaded.model.steps_seen()
    }

    /// Bytes of a one-row session after ``steps`` steps.
    #[pyo3(signature = (steps = 1))]
    fn session_bytes(&self, #[pyo3(from_py_with = counts::steps)] steps: usize) -> u128 {
        self.loaded.model.session_bytes_of(self.loaded.table.as_ref(), steps)
    }

    /// The model's configuration as JSON.
    #[getter]
    fn _config(&self) -> Result<String> {
        json(self.loaded.model.config())
    }

    /// The task on tables as JSON; ``null`` if there is none.
    #[getter]
    fn _task(&self) -> Result<String> {
        json(&self.loaded.table)
    }

    /// The same, but fails if there is none.
    fn _table_task(&self) -> Result<String> {
        json(expect_table(self.loaded.table.as_ref())?)
    }

    /// The name of each predicted number (for a forecaster, of those at one step) with its index; empty if there is no task on tables.
    #[getter]
    fn _output_names(&self) -> Vec<(String, usize)> {
        self.loaded.table.as_ref().map_or_else(Vec::new, output_names)
    }

    /// How a policy's step becomes numbers, as JSON; ``null`` for other models.
    #[getter]
    fn _encoding(&self) -> Result<String> {
        json(&self.loaded.policy)
    }

    /// The rows ``[batch, inputs]`` of a policy's steps, from the returns to go ``[batch]``, observations ``[batch, S]``, previous actions ``[batch, A]``
    /// and step numbers ``[batch]``.
    fn _rows<'py>(
        &self,
        py: Python<'py>,
        to_go: &Bound<'py, PyAny>,
        observations: &Bound<'py, PyAny>,
        before: &Bound<'py, PyAny>,
        times: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyArrayDyn<f32>>> {
        let encoding = self.loaded.policy.as_ref().ok_or_else(|| Failure::new(Mistake::Kind, "the model is not a policy"))?;
        let [observation, action] = [encoding.observation_width(), encoding.action_width];
        let (to_go, times) = (arrays::read::<f64>(to_go, "returns")?.values, arrays::read::<u32>(times, "times")?.values);
        let observations = arrays::read::<f32>(observations, "observations")?.values;
        let before = arrays::read::<f32>(before, "actions")?.values;
        let n = to_go.len();
        let fits = [(times.len(), 1), (observations.len(), observation), (before.len(), action)];
        if fits.iter().any(|&(len, width)| n.checked_mul(width) != Some(len)) {
            return Err(Failure::input(format!("{n} returns need as many times, observations and actions")));
        }
        arrays::filled(py, &[n, encoding.width()], |rows| {
            for (at, row) in rows.chunks_exact_mut(encoding.width()).enumerate() {
                let seen = &observations[at * observation..][..observation];
                encoding.write(row, to_go[at], seen, &before[at * action..][..action], times[at] as usize);
            }
            Ok(())
        })
    }

    /// The name, shape and format of each tensor of a packed file.
    #[getter]
    fn tensors(&self) -> Vec<(String, Vec<usize>, String)> {
        self.loaded.tensors.iter().map(|entry| (entry.name.clone(), entry.shape.clone(), entry.format.to_string())).collect()
    }
}

fn json(what: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(what).map_err(|error| Failure::new(Mistake::Internal, error.to_string()))
}
