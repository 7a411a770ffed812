//! Named sessions in a file.
//!
//! ```text
//! magic (8 bytes) | length of the header u32 | header (JSON) | logits f32 … | histories f64 … | state (`State::to_bytes`) | CRC-32C of all before (u32)
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
/// Of sessions with histories.
const VERSION: u64 = 2;
/// Of those without, as versions before had them.
const WITHOUT_HISTORIES: u64 = 1;
const CHECKSUM: usize = 4;

/// Sessions and their names.
pub(super) struct Saved {
    /// The name of each, that of the longest silence first.
    pub names: Vec<String>,
    /// What the last step of a text predicted; empty for tables.
    pub logits: Vec<f32>,
    /// The last rows of each session, where its numbers are seen relative to them; else none at all.
    pub histories: Vec<Vec<f64>>,
    pub state: State,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    version: u64,
    model: Cow<'a, ModelIdentity>,
    names: Cow<'a, [String]>,
    logits: usize,
    /// How many numbers each history has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histories: Vec<usize>,
}

/// Writes `saved` to `path`, whole or not at all.
pub(super) fn write(path: &Path, identity: &ModelIdentity, saved: &Saved) -> Result<()> {
    let Saved { names, logits, histories, state } = saved;
    let header = Header {
        version: if histories.is_empty() { WITHOUT_HISTORIES } else { VERSION },
        model: Cow::Borrowed(identity),
        names: Cow::Borrowed(names),
        logits: logits.len(),
        histories: histories.iter().map(Vec::len).collect(),
    };
    let header = serde_json::to_vec(&header).map_err(|error| Error::malformed(path, error.to_string()))?;
    let length = u32::try_from(header.len()).map_err(|_| Error::malformed(path, "the names of its sessions take more than 4 GiB"))?;
    let mut bytes = [&MAGIC[..], &length.to_le_bytes(), &header].concat();
    bytes.extend(logits.iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend(histories.iter().flatten().flat_map(|x| x.to_le_bytes()));
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
    if header.version != if header.histories.is_empty() { WITHOUT_HISTORIES } else { VERSION } {
        return Err(format!("it has version {}, expected {WITHOUT_HISTORIES} or {VERSION}; use the minrnn that wrote it", header.version));
    }
    if *header.model != *identity {
        return Err("its sessions were saved with another model; give the model that they were made with".to_owned());
    }
    if header.logits != 0 && header.logits != model.outputs() {
        return Err(damaged(&format!("it has {} logits, expected {}", header.logits, model.outputs())));
    }
    let shorter = || damaged("it is shorter than its header says");
    let (logits, rest) = rest.split_at_checked(4 * header.logits).ok_or_else(shorter)?;
    let n_rows = header.histories.iter().try_fold(0usize, |sum, &n| sum.checked_add(n)).and_then(|n| n.checked_mul(8));
    let (histories, state) = n_rows.and_then(|n| rest.split_at_checked(n)).ok_or_else(shorter)?;
    let mut numbers = histories.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x));
    let histories: Vec<Vec<f64>> = header.histories.iter().map(|&n| numbers.by_ref().take(n).collect()).collect();
    let logits: Vec<f32> = logits.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect();
    let state = State::from_bytes(state, model).map_err(|error| error.to_string())?;
    let distinct: HashSet<&String> = header.names.iter().collect();
    if state.rows() != header.names.len() || distinct.len() != header.names.len() || logits.iter().any(|x| !x.is_finite()) {
        return Err(damaged("names, numbers and sessions do not fit each other"));
    }
    Ok(Saved { names: header.names.into_owned(), logits, histories, state })
}
