//! Named sessions in a file.
//!
//! ```text
//! magic (8 bytes) | length of the header u32 | header (JSON) | logits f32 … | state (`State::to_bytes`) | CRC-32C of all before (u32)
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use minrnn_model::write_atomic;
use minrnn_stream::{Model, State};
use serde::{Deserialize, Serialize};

use crate::generate::ModelIdentity;
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"\x89minrnnG";
const VERSION: u64 = 1;
const CHECKSUM: usize = 4;

/// Sessions and their names.
pub(super) struct Saved {
    /// The name of each, that of the longest silence first.
    pub names: Vec<String>,
    /// What the last step of a text predicted; empty for tables.
    pub logits: Vec<f32>,
    pub state: State,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    version: u64,
    model: Cow<'a, ModelIdentity>,
    names: Cow<'a, [String]>,
    logits: usize,
}

/// Writes `saved` to `path`, whole or not at all.
pub(super) fn write(path: &Path, identity: &ModelIdentity, saved: &Saved) -> Result<()> {
    let Saved { names, logits, state } = saved;
    let header = Header { version: VERSION, model: Cow::Borrowed(identity), names: Cow::Borrowed(names), logits: logits.len() };
    let header = serde_json::to_vec(&header).map_err(|error| Error::malformed(path, error.to_string()))?;
    let length = u32::try_from(header.len()).map_err(|_| Error::malformed(path, "the names of its sessions take more than 4 GiB"))?;
    let mut bytes = [&MAGIC[..], &length.to_le_bytes(), &header].concat();
    bytes.extend(logits.iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend(state.to_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    write_atomic(path, &bytes).map_err(Error::from)
}

/// What was saved to `path` with `model`.
///
/// # Errors
/// When the file cannot be read, is damaged, or was saved with another model.
pub(super) fn read(path: &Path, model: &Model, identity: &ModelIdentity) -> Result<Saved> {
    let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    parse(&bytes, model, identity).map_err(|problem| Error::malformed(path, problem))
}

fn parse(bytes: &[u8], model: &Model, identity: &ModelIdentity) -> std::result::Result<Saved, String> {
    let damaged = |what: &str| format!("{what}; it is damaged, begin without it or take another one");
    let rest = bytes.strip_prefix(&MAGIC[..]).ok_or("expected sessions that were saved by minrnn stream, found another file")?;
    let end = bytes.len().checked_sub(CHECKSUM).filter(|&end| end >= MAGIC.len() + 4).ok_or_else(|| damaged("it was cut short"))?;
    if crc32c::crc32c(&bytes[..end]).to_le_bytes() != bytes[end..] {
        return Err(damaged("its checksum is another one"));
    }
    let (length, rest) = rest[..end - MAGIC.len()].split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let (header, rest) = rest.split_at_checked(length).ok_or_else(|| damaged("it is shorter than its header says"))?;
    let header: Header<'static> =
        serde_json::from_slice(header).map_err(|error| damaged(&format!("its header cannot be read ({error})")))?;
    if header.version != VERSION {
        return Err(format!("it has version {}, expected {VERSION}; use the minrnn that wrote it", header.version));
    }
    if *header.model != *identity {
        return Err("its sessions were saved with another model; give the model that they were made with".to_owned());
    }
    if header.logits != 0 && header.logits != model.outputs() {
        return Err(damaged(&format!("it has {} logits, expected {}", header.logits, model.outputs())));
    }
    let (logits, state) = rest.split_at_checked(4 * header.logits).ok_or_else(|| damaged("it is shorter than its header says"))?;
    let logits: Vec<f32> = logits.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect();
    let state = State::from_bytes(state, model).map_err(|error| error.to_string())?;
    let distinct: HashSet<&String> = header.names.iter().collect();
    if state.rows() != header.names.len() || distinct.len() != header.names.len() || logits.iter().any(|x| !x.is_finite()) {
        return Err(damaged("names, numbers and sessions do not fit each other"));
    }
    Ok(Saved { names: header.names.into_owned(), logits, state })
}
