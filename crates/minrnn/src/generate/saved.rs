//! Sessions in files: safetensors with one tensor `state.…` for each part of the state; the rest is JSON in the header, preceded by the
//! CRC-32C of the JSON and the tensors in eight hexadecimal digits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::TensorData;
use minrnn_model::{Tensor, Weights, write_safetensors};
use minrnn_stream::{Continuation, Sampling};
use serde::{Deserialize, Serialize};

use super::identity::ModelIdentity;
use super::session::Session;
use super::token_session::{TokenSession, expect_finite};
use crate::checkpoint::state_tensors;
use crate::model::SequenceModel;
use crate::nn::Mixer;
use crate::tensor_file::read_tensors;
use crate::{Error, Result};

const KEY: &str = "minrnn_session";
const VERSION: u64 = 2;
/// The version without a checksum before its JSON.
const UNCHECKED: u64 = 1;
const CHECKSUM_DIGITS: usize = 8;
const PREFIX: &str = "state.";

/// Everything but the model's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedText {
    pub sampling: Sampling,
    /// One for each row; the model has read everything before its latest token.
    pub rows: Vec<Continuation>,
}

/// The description of a session in the header.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved<'a> {
    version: u64,
    model: Cow<'a, ModelIdentity>,
    batch_size: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, SavedText>>,
}

impl<'m, M: Mixer> Session<'m, M> {
    /// Writes the state to `path`, atomically. `identity` is that of the model.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, identity: &ModelIdentity) -> Result<()> {
        write(self, path.as_ref(), identity, None)
    }

    /// Loads the session saved to `path`, with or without text. `identity` is that of `model`.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was saved with another model.
    pub fn load(path: impl AsRef<Path>, model: &'m SequenceModel<M>, identity: &ModelIdentity) -> Result<Self> {
        Ok(read(path.as_ref(), &Self::new(model, 0), identity)?.0)
    }
}

pub(super) fn write(session: &impl TokenSession, path: &Path, identity: &ModelIdentity, text: Option<&SavedText>) -> Result<()> {
    let saved = Saved { version: VERSION, model: Cow::Borrowed(identity), batch_size: session.batch_size(), text: text.map(Cow::Borrowed) };
    let header = serde_json::to_string(&saved).map_err(|error| Error::malformed(path, error.to_string()))?;
    let tensors: BTreeMap<String, Tensor> = session
        .tensors()
        .into_iter()
        .map(|(name, shape, data)| Ok((format!("{PREFIX}{name}"), Tensor::new(shape, data)?)))
        .collect::<Result<_>>()?;
    let checksum = checksum(&header, tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)));
    let tensors = tensors.into_iter().map(|(name, tensor)| {
        let (shape, data) = tensor.into_parts();
        (name, shape, Cow::Owned(data))
    });
    write_safetensors(path, tensors, Some((KEY, &format!("{checksum}{header}")))).map_err(Error::from)
}

/// The checksum of a session's JSON and its tensors, in the order of their names.
fn checksum<'a>(header: &str, tensors: impl Iterator<Item = (&'a str, &'a Tensor)>) -> String {
    let mut crc = crc32c::crc32c(header.as_bytes());
    for (name, tensor) in tensors {
        crc = crc32c::crc32c_append(crc, format!("\n{name} {:?}\n", tensor.shape()).as_bytes());
        let values: Vec<u8> = tensor.data().iter().flat_map(|value| value.to_le_bytes()).collect();
        crc = crc32c::crc32c_append(crc, &values);
    }
    format!("{crc:0CHECKSUM_DIGITS$x}")
}

/// The JSON of a saved session, after checking it and the tensors against the checksum, and whether there was a checksum.
fn checked<'a>(header: &'a str, weights: &Weights) -> Result<(&'a str, bool), String> {
    if header.starts_with('{') {
        return Ok((header, false));
    }
    let damaged = || "the saved session is damaged: its checksum does not match; save it again, or continue from another one".to_owned();
    let (expected, json) = header.split_at_checked(CHECKSUM_DIGITS).ok_or_else(damaged)?;
    let tensors = weights.names().filter_map(|name| Some((name, weights.get(name)?)));
    if checksum(json, tensors) == expected { Ok((json, true)) } else { Err(damaged()) }
}

/// Checks that the file of `weights`, if it is a saved session, is undamaged.
///
/// # Errors
/// When its checksum differs.
pub fn expect_undamaged(weights: &Weights) -> Result<()> {
    let Some(header) = weights.metadata().get(KEY) else { return Ok(()) };
    checked(header, weights).map(|_| ()).map_err(|problem| Error::malformed(weights.path(), problem))
}

/// A session like `like` and the text saved with it.
pub(super) fn read<S: TokenSession>(path: &Path, like: &S, identity: &ModelIdentity) -> Result<(S, Option<SavedText>)> {
    let mut weights = read_tensors(path, "a saved session")?;
    let Some(header) = weights.metadata().get(KEY) else {
        return Err(Error::malformed(path, "expected a saved session, found another safetensors file"));
    };
    let (json, is_checked) = checked(header, &weights).map_err(|problem| Error::malformed(path, problem))?;
    let saved: Saved<'static> =
        serde_json::from_str(json).map_err(|error| Error::malformed(path, format!("the saved session is damaged: {error}")))?;
    if saved.version != if is_checked { VERSION } else { UNCHECKED } {
        let problem = format!("session version {}, expected {VERSION}; use the minrnn that wrote it", saved.version);
        return Err(Error::malformed(path, problem));
    }
    if *saved.model != *identity {
        let what = "the session was saved with another model or other weights";
        let problem = format!("{what}{}; load it with the checkpoint it was made with", difference(&weights, like));
        return Err(Error::malformed(path, problem));
    }
    // Nothing is allocated for rows that the file does not hold; a state that has grown holds more than a new one. Training model and
    // runtime can continue from each other's states, which have equally many numbers except for stored rounding errors, at most as many
    // again.
    let of_one_row = like.values_per_row().div_ceil(2);
    if saved.batch_size.checked_mul(of_one_row).is_none_or(|least| least > weights.value_count()) {
        let (rows, found) = (saved.batch_size, weights.value_count());
        let problem =
            format!("it claims {rows} rows of at least {of_one_row} values, but holds {found} values; the saved session is damaged");
        return Err(Error::malformed(path, problem));
    }
    let parts = weights.names().filter_map(|name| Some((name.trim_start_matches(PREFIX), weights.get(name)?.data())));
    expect_finite(parts).map_err(|error| error.in_file(path))?;
    let tensors = state_tensors(&mut weights, PREFIX)?;
    weights.expect_empty()?;
    let values = |data: TensorData| (data.shape().to_vec(), data.try_to_vec().expect("states are f32"));
    let tensors = tensors.into_iter().map(|(name, data)| {
        let (shape, values) = values(data);
        (name, shape, values)
    });
    let session = like.restore(saved.batch_size, tensors.collect()).map_err(|error| Error::malformed(path, error.to_string()))?;
    Ok((session, saved.text.map(Cow::into_owned)))
}

/// The first part of a saved state that does not fit a session like `like`, in words; empty if all fit.
fn difference<S: TokenSession>(weights: &Weights, like: &S) -> String {
    let part = |(name, expected, _): (String, Vec<usize>, Vec<f32>)| match weights.get(&format!("{PREFIX}{name}")) {
        None => Some(format!(": its state has no '{name}'")),
        // The number of rows and the length of a cache may differ.
        Some(found) if found.shape().len() == expected.len() && found.shape().last() == expected.last() => None,
        Some(found) => {
            let rows = found.shape().iter().take(1).copied();
            let expected: Vec<usize> = rows.chain(expected.into_iter().skip(1)).collect();
            Some(format!(": its state '{name}' has shape {:?}, expected {expected:?}", found.shape()))
        }
    };
    like.tensors().into_iter().find_map(part).unwrap_or_default()
}
