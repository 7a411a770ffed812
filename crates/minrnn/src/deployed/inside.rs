//! A deployed model's internal activations, written to files while it reads: outputs, hidden states, embeddings.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::{ModelConfig, TableTask};
use minrnn_stream::{Inside, Model, Workspace};

use crate::array_file::{ArrayFile, ArrayLayout};
use crate::data::table::Series;
use crate::output::is_same_place;
use crate::{Error, Result, expect_output};

/// Maximum number of steps per pass, and of outputs per pass.
const CHUNK_LEN: usize = 512;
const CHUNK_OUTPUTS: usize = 1 << 20;

/// Which files are wanted; their extensions determine their formats ([`ArrayFile`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsideFiles {
    /// The model's outputs at every step, before softmax or conversion to units: `[steps, outputs]`.
    pub logits: Option<PathBuf>,
    /// A block, counted from 0, and the file for its output at every step: `[steps, D]`.
    pub hidden: Option<(usize, PathBuf)>,
    /// The head's input at the last step of every sequence: `[sequences, D]`.
    pub embeddings: Option<PathBuf>,
}

/// The inputs to read.
#[derive(Debug, Clone, Copy)]
pub enum InsideInputs<'a> {
    /// A text, as a single sequence.
    Text(&'a [u32]),
    /// The sequences of a table.
    Table(&'a TableTask, &'a [Series]),
}

impl InsideFiles {
    /// All files that are wanted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [self.logits.as_deref(), self.hidden.as_ref().map(|(_, path)| path.as_path()), self.embeddings.as_deref()].into_iter().flatten()
    }

    /// Checks everything that can be checked before reading.
    ///
    /// # Errors
    /// When an extension is unknown, a file is named twice, or the model has no such block.
    pub fn expect_fit(&self, config: &ModelConfig) -> Result<()> {
        self.paths().try_for_each(ArrayFile::expect_known)?;
        let paths: Vec<&Path> = self.paths().collect();
        if let Some(twice) =
            paths.iter().enumerate().find_map(|(at, path)| paths[..at].iter().any(|other| is_same_place(path, other)).then_some(path))
        {
            return Err(Error::malformed(twice, "it would be written twice; give each its own file"));
        }
        match &self.hidden {
            Some((layer, _)) if *layer >= config.n_layers => {
                let (n, found) = (config.n_layers, layer.saturating_add(1));
                Err(Error::Config(format!("the model has {n} blocks, expected one from 1 to {n}, found {found}")))
            }
            _ => Ok(()),
        }
    }
}

impl InsideInputs<'_> {
    /// Number of steps of each sequence.
    fn lengths(&self) -> Vec<u64> {
        match self {
            Self::Text(tokens) => vec![tokens.len() as u64],
            Self::Table(task, series) => series.iter().map(|series| series.steps_of(task) as u64).collect(),
        }
    }

    /// The names of a row's labels: its sequence, if sequences have names, and its step.
    fn labels(&self, has_steps: bool) -> Vec<String> {
        let group = if let Self::Table(task, _) = self { task.group() } else { None };
        group.into_iter().chain(has_steps.then_some("step")).map(str::to_owned).collect()
    }

    /// The label of sequence `at`, if they have any.
    fn label(&self, at: usize) -> Option<String> {
        match self {
            Self::Table(task, series) if task.group().is_some() => Some(series[at].name.clone()),
            _ => None,
        }
    }

    /// Names of the model's outputs: classes, or numbers.
    fn outputs(&self, n: usize) -> Vec<String> {
        match self {
            Self::Table(task, _) if !task.classes().is_empty() => task.classes().to_vec(),
            _ => numbered(n),
        }
    }
}

fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|at| at.to_string()).collect()
}

/// Reads `inputs` with `model` and writes the wanted `files`, atomically; returns false if `stop` was raised before the end.
///
/// # Errors
/// As [`InsideFiles::expect_fit`]; when the model has other inputs, returns a number that is not finite, or a file cannot be written.
pub fn write_inside(model: &Model, inputs: InsideInputs<'_>, files: &InsideFiles, stop: &AtomicBool) -> Result<bool> {
    files.expect_fit(model.config())?;
    let (d, width) = (model.config().d_model, model.outputs());
    let lengths = inputs.lengths();
    if lengths.contains(&0) {
        return Err(Error::Data("there is no step to read, expected at least 1".to_owned()));
    }
    let layout = |name: &str, has_steps: bool, columns: Vec<String>| ArrayLayout {
        name: name.to_owned(),
        labels: inputs.labels(has_steps),
        columns,
        lengths: if has_steps { lengths.clone() } else { vec![1; lengths.len()] },
    };
    let create = |path: Option<&PathBuf>, layout: ArrayLayout| path.map(|path| ArrayFile::create(path, &layout)).transpose();
    let mut logits = create(files.logits.as_ref(), layout("logits", true, inputs.outputs(width)))?;
    let mut hidden = create(files.hidden.as_ref().map(|(_, path)| path), layout("hidden", true, numbered(d)))?;
    let mut embeddings = create(files.embeddings.as_ref(), layout("embeddings", false, numbered(d)))?;

    let (mut state, mut workspace) = (model.init_state(1)?, Workspace::new());
    let (mut outputs, mut stream, mut features) = (Vec::new(), Vec::new(), Vec::new());
    let chunk_len = (CHUNK_OUTPUTS / width.max(1)).clamp(1, CHUNK_LEN);
    for (at, &length) in lengths.iter().enumerate() {
        model.restart(&mut state, 0)?;
        let (length, group) = (length as usize, inputs.label(at));
        for start in (0..length).step_by(chunk_len) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let steps = start..length.min(start + chunk_len);
            outputs.resize(steps.len() * width, 0.0f32);
            let room = |vector: &mut Vec<f32>, is_wanted: bool| vector.resize(if is_wanted { steps.len() * d } else { 0 }, 0.0);
            room(&mut stream, hidden.is_some());
            room(&mut features, embeddings.is_some());
            let inside = Inside {
                hidden: files.hidden.as_ref().map(|(layer, _)| (*layer, stream.as_mut_slice())),
                features: embeddings.is_some().then_some(features.as_mut_slice()),
            };
            match inputs {
                InsideInputs::Text(tokens) => {
                    model.forward_inside(&tokens[steps.clone()], &mut state, &mut outputs, inside, &mut workspace)?
                }
                InsideInputs::Table(task, series) => {
                    let seen = series[at].seen(task, steps.clone());
                    model.forward_values_inside(&seen, &mut state, &mut outputs, inside, &mut workspace)?;
                }
            }
            let what = || group.as_ref().map_or("the data".to_owned(), |name| format!("the sequence '{name}'"));
            expect_output(what, outputs.iter().chain(&stream).chain(&features).map(|&x| f64::from(x)))?;
            for (file, rows, width) in [(&mut logits, &outputs, width), (&mut hidden, &stream, d)] {
                let Some(file) = file else { continue };
                for (step, row) in steps.clone().zip(rows.chunks_exact(width)) {
                    let labels: Vec<String> = group.clone().into_iter().chain([(step + 1).to_string()]).collect();
                    file.push(&labels, row)?;
                }
            }
            if let Some(file) = embeddings.as_mut().filter(|_| steps.end == length) {
                let labels: Vec<String> = group.clone().into_iter().collect();
                file.push(&labels, &features[(steps.len() - 1) * d..])?;
            }
        }
    }
    [logits, hidden, embeddings].into_iter().flatten().try_for_each(ArrayFile::finish)?;
    Ok(true)
}
