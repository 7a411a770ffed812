//! The inputs of a session: how many sequences, and the steps of each.

use minrnn_stream::{Model, Reads};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrays::{self, Array, Number};
use crate::failure::{Failure, Mistake, Result};
use crate::loaded::Loaded;
use crate::rows::{is_table, of_table};
use crate::texts::text;

/// What a step consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// A token.
    Token,
    /// So many numbers, as the model sees them.
    Values(usize),
    /// So many numbers, in the units of the table.
    Table(usize),
}

impl Width {
    /// What the model itself reads.
    pub fn of(model: &Model) -> Self {
        match model.reads() {
            Reads::Tokens { .. } => Self::Token,
            Reads::Values { width } => Self::Values(width),
        }
    }

    /// The shape of a step: its number of numbers, or empty for a token.
    fn step(self) -> Vec<usize> {
        match self {
            Self::Token => Vec::new(),
            Self::Values(width) | Self::Table(width) => vec![width],
        }
    }

    /// Whether a step is one number, which needs no dimension of its own.
    fn is_single(self) -> bool {
        matches!(self, Self::Values(1) | Self::Table(1))
    }

    /// Numbers of a step.
    pub fn len(self) -> usize {
        self.step().first().copied().unwrap_or(1)
    }
}

/// One step for each of `n` rows; and whether a single row was given without the dimension of rows.
pub(crate) fn steps<T: Number>(any: &Bound<'_, PyAny>, width: Width, n: usize, is_one: bool) -> Result<(Vec<T>, bool)> {
    let Array { shape, values } = arrays::read::<T>(any, "inputs")?;
    let step = width.step();
    // In a list of arrays a step of one number needs no dimension of its own, as with several sequences.
    let is_list_of_one = n == 1 && width.is_single() && shape.len() == 2 && shape[0] == 1 && is_list_of_a_vector(any);
    let is_alone = n == 1 && !is_list_of_one && (shape == step || width.is_single() && shape.is_empty());
    let is_batch = !is_one && shape.len() == step.len() + 1 && shape[0] == n && shape[1..] == step;
    if is_alone || is_batch {
        return Ok((values, is_alone));
    }
    let batch = [&[n][..], &step].concat();
    let or_one = if n == 1 { format!(" or {step:?}") } else { String::new() };
    Err(Failure::input(format!("inputs: expected the shape {batch:?}{or_one}, a step for each row, found {shape:?}")))
}

/// A sequence for each row.
#[derive(Debug)]
pub(crate) struct Sequences {
    pub steps: Steps,
    /// Numbers of a step.
    pub width: usize,
    pub form: Form,
}

/// Numbers of the steps of each sequence.
#[derive(Debug)]
pub(crate) enum Steps {
    Tokens(Vec<Vec<u32>>),
    Values(Vec<Vec<f32>>),
    Table(Vec<Vec<f64>>),
}

/// The form of the inputs, which the outputs follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One sequence alone.
    Alone,
    /// An array with a dimension of rows.
    Batch,
    /// A list of sequences, which may have different lengths.
    List,
}

impl Sequences {
    /// Reads sequences for `n` rows of a session that reads `width` at each step.
    pub fn read(loaded: &Loaded, width: Width, any: &Bound<'_, PyAny>, n: usize, is_one: bool) -> Result<Self> {
        let (steps, form) = match width {
            Width::Token => match texts(loaded, any)? {
                Some((tokens, form)) => (Steps::Tokens(tokens), form),
                None => of(any, width, n, is_one).map(|(tokens, form)| (Steps::Tokens(tokens), form))?,
            },
            Width::Values(_) => of(any, width, n, is_one).map(|(values, form)| (Steps::Values(values), form))?,
            Width::Table(_) => match tables(loaded, any)? {
                Some((rows, form)) => (Steps::Table(rows), form),
                None => of(any, width, n, is_one).map(|(values, form)| (Steps::Table(values), form))?,
            },
        };
        let sequences = Self { steps, width: width.len(), form };
        match sequences.lens().len() == n {
            true => Ok(sequences),
            false => Err(Failure::input(format!("inputs: expected a sequence for each of {n} rows, found {}", sequences.lens().len()))),
        }
    }

    /// Steps of each sequence.
    pub fn lens(&self) -> Vec<usize> {
        fn lens<T>(sequences: &[Vec<T>], width: usize) -> Vec<usize> {
            sequences.iter().map(|numbers| numbers.len() / width.max(1)).collect()
        }
        match &self.steps {
            Steps::Tokens(tokens) => lens(tokens, 1),
            Steps::Values(values) => lens(values, self.width),
            Steps::Table(rows) => lens(rows, self.width),
        }
    }
}

/// The tokens of texts, if texts were given.
fn texts(loaded: &Loaded, any: &Bound<'_, PyAny>) -> Result<Option<(Vec<Vec<u32>>, Form)>> {
    let tokens = |any: &Bound<'_, PyAny>| loaded.encode(any.py(), &text(any, "inputs")?);
    if any.is_instance_of::<PyString>() {
        return Ok(Some((vec![tokens(any)?], Form::Alone)));
    }
    match arrays::list(any) {
        Some(texts) if !texts.is_empty() && texts.iter().all(|text| text.is_instance_of::<PyString>()) => {
            Ok(Some((texts.iter().map(tokens).collect::<Result<_>>()?, Form::List)))
        }
        _ => Ok(None),
    }
}

/// The rows of tables, each a sequence, if tables were given.
fn tables(loaded: &Loaded, any: &Bound<'_, PyAny>) -> Result<Option<(Vec<Vec<f64>>, Form)>> {
    let Some(task) = &loaded.table else { return Ok(None) };
    let columns = &loaded.columns_of(task);
    if is_table(any)? {
        return Ok(Some((vec![of_table(columns, any)?], Form::Alone)));
    }
    match arrays::list(any) {
        Some(tables) if tables.first().map_or(Ok(false), is_table)? => {
            Ok(Some((tables.iter().map(|table| of_table(columns, table)).collect::<Result<_>>()?, Form::List)))
        }
        _ => Ok(None),
    }
}

/// Sequences of numbers.
fn of<T: Number>(any: &Bound<'_, PyAny>, width: Width, n: usize, is_one: bool) -> Result<(Vec<Vec<T>>, Form)> {
    let step = width.step();
    if n != 1
        && let Some(sequences) = arrays::list(any)
    {
        let one = |sequence: &Bound<'_, PyAny>| {
            let Array { shape, values } = arrays::read::<T>(sequence, "inputs")?;
            if shape.len() == 1 + step.len() && shape[1..] == step || width.is_single() && shape.len() == 1 || shape == [0] {
                return Ok(values);
            }
            Err(Failure::input(format!("inputs: expected sequences of the shape {}, found {shape:?}", shown(&[], &step))))
        };
        return Ok((sequences.iter().map(one).collect::<Result<_>>()?, Form::List));
    }
    let Array { shape, values } = arrays::read::<T>(any, "inputs")?;
    // In a list of arrays a step of one number needs no dimension of its own, as with several sequences.
    let is_list_of_one = n == 1 && width.is_single() && shape.len() == 2 && shape[0] == 1 && is_list_of_a_vector(any);
    let is_alone =
        n == 1 && !is_list_of_one && (shape.len() == 1 + step.len() && shape[1..] == step || width.is_single() && shape.len() == 1);
    if is_alone || n == 1 && shape == [0] {
        return Ok((vec![values], Form::Alone));
    }
    if !is_one && (is_list_of_one || shape.len() == 2 + step.len() && shape[0] == n && shape[2..] == step) {
        let each = shape[1] * width.len();
        let row = |row: usize| values[row * each..(row + 1) * each].to_vec();
        return Ok(((0..n).map(row).collect(), Form::Batch));
    }
    let or_one = if n == 1 { format!(" or {}", shown(&[], &step)) } else { String::new() };
    let sentence = format!("inputs: expected the shape {}{or_one}, a sequence for each row, found {shape:?}", shown(&[n], &step));
    // A text for a model without a vocabulary is refused before this.
    Err(Failure::new(if shape.is_empty() { Mistake::Kind } else { Mistake::Input }, sentence))
}

/// Whether `any` is a list of a single one-dimensional array, however many steps it has.
fn is_list_of_a_vector(any: &Bound<'_, PyAny>) -> bool {
    let is_vector = |part: &Bound<'_, PyAny>| part.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n == 1);
    arrays::list(any).is_some_and(|parts| matches!(&parts[..], [part] if is_vector(part)))
}

/// A shape in which T stands for any number of steps, for errors.
fn shown(rows: &[usize], step: &[usize]) -> String {
    let sizes = rows.iter().map(usize::to_string).chain(["T".to_owned()]).chain(step.iter().map(usize::to_string));
    format!("[{}]", sizes.collect::<Vec<_>>().join(", "))
}

impl Sequences {
    /// The steps of row `at` alone.
    pub fn of_row(&self, at: usize) -> Steps {
        match &self.steps {
            Steps::Tokens(tokens) => Steps::Tokens(vec![tokens[at].clone()]),
            Steps::Values(values) => Steps::Values(vec![values[at].clone()]),
            Steps::Table(rows) => Steps::Table(vec![rows[at].clone()]),
        }
    }
}
