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
use crate::prediction::{Predicted, labels, predict};
use crate::remembered::Session;
use crate::scoring::{Scored, score};
use crate::session::saved_bytes;
use crate::texts;
use crate::threads::Threads;

/// A trained model. What it remembers of sequences is in its sessions.
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

    /// Begins `batch` sequences of which nothing has been read.
    #[pyo3(signature = (batch = 1, *, threads = None, table = None))]
    fn session(
        &self,
        #[pyo3(from_py_with = counts::batch)] batch: usize,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
        table: Option<bool>,
    ) -> Result<Session> {
        Session::new(self.loaded.clone(), batch, Threads::asked(threads)?, self.is_table(table)?)
    }

    /// Goes on from sessions that were saved, as bytes or in a file.
    #[pyo3(signature = (saved, *, threads = None, table = None))]
    fn load_session(
        &self,
        saved: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
        table: Option<bool>,
    ) -> Result<Session> {
        Session::restored(self.loaded.clone(), &saved_bytes(saved)?, Threads::asked(threads)?, self.is_table(table)?)
    }

    /// The tokens of a text.
    fn encode<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> Result<Bound<'py, PyArrayDyn<u32>>> {
        let tokens = self.loaded.encode(py, &texts::text(text, "text")?)?;
        arrays::filled(py, &[tokens.len()], |room: &mut [u32]| {
            room.copy_from_slice(&tokens);
            Ok(())
        })
    }

    /// The text of tokens; what does not make up a character is U+FFFD.
    fn decode(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> Result<String> {
        let tokenizer = self.loaded.tokenizer()?;
        let tokens = arrays::read::<u32>(tokens, "tokens")?.values;
        Ok(apart(py, || tokenizer.decode(&tokens))??)
    }

    /// What the model says at the end of every sequence of a table, with the names of the sequences, the times that are forecast and notes on the table.
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

    /// How surprising each row of a table is to a forecaster, with the threshold above which one is marked and notes on the table.
    fn _score<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, PyAny>,
        usual: Option<&Bound<'py, PyAny>>,
        threshold: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = counts::threads)] threads: Option<usize>,
    ) -> Result<Scored<'py>> {
        let no_number = |_| Failure::new(Mistake::Kind, format!("threshold: expected a number, found {}", threshold.get_type()));
        let (threads, threshold) = (Threads::asked(threads)?, threshold.extract().map_err(no_number)?);
        score(py, &self.loaded, handed::read(table)?, usual.map(handed::read).transpose()?, threshold, threads)
    }

    /// The label of each sequence of a table as it stands there, in the order in which `_predict` has them.
    fn _labels(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> Result<Vec<String>> {
        labels(py, &self.loaded, handed::read(table)?)
    }

    /// What the model is for: `text`, `classifier`, `regressor`, `forecaster`, `policy`, `tokens` or `values`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.loaded.kind().name()
    }

    /// Where it was read from; none where it came as bytes.
    #[getter]
    fn path(&self) -> Option<&PathBuf> {
        self.loaded.source.as_ref()
    }

    /// Number of tokens it knows; 0 of one that reads values.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.loaded.model.vocab_size()
    }

    /// Numbers that it reads at a step; 0 of one that reads tokens.
    #[getter]
    fn inputs(&self) -> usize {
        match self.loaded.model.reads() {
            Reads::Tokens { .. } => 0,
            Reads::Values { width } => width,
        }
    }

    /// Numbers that it gives after a step.
    #[getter]
    fn outputs(&self) -> usize {
        self.loaded.model.outputs()
    }

    /// Number of trainable parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.loaded.model.parameters()
    }

    /// The columns that it reads, of one that was trained on a table.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.loaded.table.as_ref().map_or(Vec::new(), |task| task.columns().to_vec())
    }

    /// Names of the classes, of a classifier.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.loaded.table.as_ref().map_or(Vec::new(), |task| task.classes().to_vec())
    }

    /// After how many steps a session has stopped growing; 0 where it never grows.
    #[getter]
    fn steps_seen(&self) -> usize {
        self.loaded.model.steps_seen()
    }

    /// Bytes of a session of one row that has read `steps`.
    #[pyo3(signature = (steps = 1))]
    fn session_bytes(&self, #[pyo3(from_py_with = counts::steps)] steps: usize) -> u128 {
        self.loaded.model.session_bytes_of(self.loaded.table.as_ref(), steps)
    }

    /// The model's configuration as JSON.
    #[getter]
    fn _config(&self) -> Result<String> {
        json(self.loaded.model.config())
    }

    /// The task on tables as JSON; `null` where there is none.
    #[getter]
    fn _task(&self) -> Result<String> {
        json(&self.loaded.table)
    }

    /// The same, which refuses a model that has none.
    fn _table_task(&self) -> Result<String> {
        json(expect_table(self.loaded.table.as_ref())?)
    }

    /// What the numbers that are predicted are called, of forecasts those at one step, with the place of each; none where there is no task on tables.
    #[getter]
    fn _output_names(&self) -> Vec<(String, usize)> {
        self.loaded.table.as_ref().map_or_else(Vec::new, output_names)
    }

    /// How a step of a policy becomes numbers, as JSON; `null` of others.
    #[getter]
    fn _encoding(&self) -> Result<String> {
        json(&self.loaded.policy)
    }

    /// The rows `[batch, inputs]` of steps of a policy, from what is to be earned `[batch]`, observations `[batch, S]`, the actions before `[batch, A]` and the numbers of the
    /// steps `[batch]`.
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

    /// Name, shape and format of each tensor of a packed file.
    #[getter]
    fn tensors(&self) -> Vec<(String, Vec<usize>, String)> {
        self.loaded.tensors.iter().map(|entry| (entry.name.clone(), entry.shape.clone(), entry.format.to_string())).collect()
    }
}

fn json(what: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(what).map_err(|error| Failure::new(Mistake::Internal, error.to_string()))
}
