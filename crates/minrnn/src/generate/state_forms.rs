//! Converts a state between the training model's form, tensor by tensor, and the runtime's, a row of numbers for each sequence plus lists
//! of past tokens, so that one can continue from what the other has read.
//!
//! Both hold the same numbers in the same order with a few exceptions: the runtime stores the states of Mamba's channels side by side,
//! keeps the rounding errors of RWKV-4's log-weights and of a mean's sums, and has no zeros before the first past token.

use std::collections::BTreeMap;

use burn::tensor::Device;
use minrnn_kernels::count;
use minrnn_model::{CheckedConfig, MixerKind};
use minrnn_stream::{Model, State as RuntimeState};

use super::token_session::StateTensor;
use crate::model::SequenceModel;
use crate::nn::State;
use crate::{Error, Result};

/// A tensor of the training model's state.
struct Part {
    name: String,
    /// Size of each dimension after the batch; the first may be any size if the tensor grows.
    shape: Vec<usize>,
    form: Form,
}

/// Where its numbers are in the runtime.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// In the row, in the same order.
    Same,
    /// In the row, transposed.
    Transposed,
    /// In the row, followed by as many zeros.
    WithLosses,
    /// In the list of past tokens of its block: all of it, or as many as given by the position tensor that follows it.
    Past { counted: bool },
}

/// The tensors of a model's state in the order of the runtime's rows.
fn parts(model: &Model) -> Result<Vec<Part>> {
    let config = model.config().checked()?;
    let tensors = SequenceModel::new(model.config(), 0, &Device::flex())?.init_state(1).tensors();
    let part = |(name, data): (String, burn::tensor::TensorData)| {
        let form = form(&config, &name);
        Part { shape: data.shape()[1..].to_vec(), name, form }
    };
    Ok(tensors.into_iter().map(part).collect())
}

fn form(config: &CheckedConfig, name: &str) -> Form {
    if name == "pooling.sum" {
        return Form::WithLosses;
    }
    let mut path = name.split('.');
    let (Some("blocks"), Some(layer), Some("mixer"), Some(tensor)) = (path.next(), path.next(), path.next(), path.next_back()) else {
        return Form::Same;
    };
    let mixer = layer.parse().map_or(config.mixer, |layer| config.mixer_at(layer));
    match (mixer, tensor) {
        (MixerKind::Mamba | MixerKind::S6, "ssm") => Form::Transposed,
        (MixerKind::Rwkv4, "log_weight") => Form::WithLosses,
        (MixerKind::Attention, "cache") => Form::Past { counted: true },
        (MixerKind::Hyena | MixerKind::HyenaFilter, "window") => Form::Past { counted: false },
        _ => Form::Same,
    }
}

/// The runtime's state of `batch_size` sequences that a training model has read.
///
/// # Errors
/// When a tensor is missing, has a different shape or name from those of the model's state, or holds a number that is not finite.
pub(super) fn to_runtime(model: &Model, batch_size: usize, tensors: Vec<StateTensor>) -> Result<RuntimeState> {
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> =
        tensors.into_iter().map(|(name, shape, values)| (name, (shape, values))).collect();
    let mut found = Vec::new();
    for part in parts(model)? {
        let Some((shape, values)) = tensors.remove(&part.name) else {
            return Err(Error::Shape(format!("the state has no '{}'; it belongs to another model", part.name)));
        };
        let grows = matches!(part.form, Form::Past { .. });
        let fits = shape.len() == part.shape.len() + 1
            && shape[0] == batch_size
            && (grows && shape[2..] == part.shape[1..] || shape[1..] == part.shape)
            && shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size)) == Some(values.len());
        if !fits {
            let expected = [&[batch_size], &part.shape[..]].concat();
            return Err(Error::Shape(format!("state '{}': expected shape {expected:?}, found {shape:?}", part.name)));
        }
        found.push((part, values));
    }
    if let Some(name) = tensors.keys().next() {
        return Err(Error::Shape(format!("the state has a part '{name}' that this model does not have; it belongs to another one")));
    }
    let (mut numbers, mut pasts) = (Vec::new(), Vec::new());
    let limits: Vec<usize> = parts_seen(model);
    for row in 0..batch_size {
        let mut lists = 0;
        for (at, (part, values)) in found.iter().enumerate() {
            let each = values.len() / batch_size;
            let values = &values[row * each..][..each];
            match part.form {
                Form::Same => numbers.extend_from_slice(values),
                Form::WithLosses => {
                    numbers.extend_from_slice(values);
                    numbers.resize(numbers.len() + values.len(), 0.0);
                }
                Form::Transposed => numbers.extend(transposed(values, part.shape[0])),
                Form::Past { counted } => {
                    let width = part.shape[1];
                    let held = values.len() / width;
                    let there = if counted { found.get(at + 1).map_or(0, |(_, places)| count::of(places[row]) as usize) } else { held };
                    let kept = held.min(there).min(limits[lists]);
                    pasts.push(values[(held - kept) * width..].to_vec());
                    lists += 1;
                }
            }
        }
    }
    Ok(RuntimeState::from_parts(model, batch_size, numbers, pasts)?)
}

/// The tensors of a training model's state of the sequences that the runtime has read.
///
/// # Errors
/// When the model's configuration is not valid.
pub(super) fn from_runtime(model: &Model, state: &RuntimeState) -> Result<Vec<StateTensor>> {
    let batch_size = state.rows();
    let row_len = state.bytes_per_row() / size_of::<f32>();
    let mut tensors = Vec::new();
    let (mut at, mut list) = (0, 0);
    for Part { name, shape, form } in parts(model)? {
        let len: usize = shape.iter().product();
        let row = |row: usize| &state.values()[row * row_len + at..][..len];
        let (shape, values): (Vec<usize>, Vec<f32>) = match form {
            Form::Same | Form::WithLosses => (shape, (0..batch_size).flat_map(|i| row(i).to_vec()).collect()),
            Form::Transposed => {
                let states = len / shape[0];
                (shape, (0..batch_size).flat_map(|i| transposed(row(i), states)).collect())
            }
            Form::Past { counted } => {
                let past = |i: usize| state.pasts(i).nth(list).unwrap_or(&[]);
                let width = shape[1];
                let longest = (0..batch_size).map(|i| past(i).len() / width).max().unwrap_or(0);
                // An empty cache has room for one token, a window for as many as it ever holds.
                let tokens = if counted { longest.max(shape[0]) } else { shape[0] };
                let padded = |i: usize| std::iter::repeat_n(0.0, tokens * width - past(i).len()).chain(past(i).iter().copied());
                (vec![tokens, width], (0..batch_size).flat_map(padded).collect())
            }
        };
        match form {
            Form::Past { .. } => list += 1,
            Form::WithLosses => at += 2 * len,
            Form::Same | Form::Transposed => at += len,
        }
        tensors.push((name, [&[batch_size], &shape[..]].concat(), values));
    }
    Ok(tensors)
}

/// Maximum number of past tokens in each list.
fn parts_seen(model: &Model) -> Vec<usize> {
    let config = model.config().checked().expect("the model's configuration");
    (0..config.n_layers).filter_map(|layer| config.block_past(layer)).map(|past| past.window.saturating_sub(1)).collect()
}

/// `[columns, rows]` of `values` `[rows, columns]`.
fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows.max(1);
    (0..values.len()).map(|i| values[i % rows * columns + i / rows]).collect()
}
