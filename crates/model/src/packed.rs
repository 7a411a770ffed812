//! A model in one file: configuration, everything needed to use it, and weights in their final format, with one checksum.
//!
//! ```text
//! magic (8 bytes) | version u32 | length of the header u32 | length of the file u64 | header (JSON) |
//! section | … | section | tensor | … | tensor | CRC-32C of all before (u32)
//! ```
//!
//! Numbers are little-endian; every section and every tensor starts at a multiple of 64 bytes, padded with zeros. The header lists both in
//! the order of the file. The file says of each section whether a version that does not know it may skip it or must refuse the file.
//! Matrices are stored as products read them, so loading is a copy; other tensors are f32.
//!
//! Version 1 had a tokenizer (`tokenizer_bytes`) instead of the list of sections, and can still be read.

use alloc::collections::BTreeMap;
use alloc::{format, string::String, string::ToString, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::checksum::crc32c;
use crate::{Error, ModelConfig, Result, WeightFormat};

const VERSION: u32 = 2;
const FRAME: usize = PackedFile::FRAME;
const CHECKSUM: usize = 4;
const ALIGNMENT: usize = 64;

/// A tensor of a packed file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorEntry {
    /// Its path in the model, such as `backbone.blocks.0.mixer.in_proj.weight`.
    pub name: String,
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// How its numbers are stored; everything but matrices is f32.
    pub format: WeightFormat,
    /// Its size in bytes, including scales and row padding.
    pub bytes: usize,
}

/// Named bytes of a packed file other than weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// The name, such as [`Section::TOKENIZER`].
    pub name: &'a str,
    /// Whether a reader that does not know the section must refuse the file.
    pub required: bool,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Section<'a> {
    /// A text model's `tokenizer.json`.
    pub const TOKENIZER: &'static str = "tokenizer";
    /// The `task.json` of a model trained on a table: a [`TableTask`](crate::TableTask).
    pub const TABLE: &'static str = "table";
    /// A policy's `task.json`: how a step becomes numbers.
    pub const POLICY: &'static str = "policy";
    /// The `surprise.json` of a model that scores how surprising rows are: a [`Calibration`](crate::Calibration).
    pub const SURPRISE: &'static str = "surprise";
    /// The sections that this version knows.
    const KNOWN: [&'static str; 4] = [Self::TOKENIZER, Self::TABLE, Self::POLICY, Self::SURPRISE];

    /// A tokenizer; required, since a text model is useless without it.
    pub fn tokenizer(bytes: &'a [u8]) -> Self {
        Self { name: Self::TOKENIZER, required: true, bytes }
    }

    /// A task on tables; required, since it gives the inputs and outputs their meaning.
    pub fn table(bytes: &'a [u8]) -> Self {
        Self { name: Self::TABLE, required: true, bytes }
    }

    /// The surprises of held-out rows; optional.
    pub fn surprise(bytes: &'a [u8]) -> Self {
        Self { name: Self::SURPRISE, required: false, bytes }
    }

    /// How a policy's steps become numbers.
    pub fn policy(bytes: &'a [u8]) -> Self {
        Self { name: Self::POLICY, required: true, bytes }
    }
}

/// A parsed packed file; tensors are taken out one by one.
#[derive(Debug)]
pub struct PackedFile<'a> {
    config: ModelConfig,
    /// In the order of the file, whether or not they have been taken.
    entries: Vec<TensorEntry>,
    /// By their name, and whether a reader must know them.
    sections: BTreeMap<String, (bool, &'a [u8])>,
    /// What has not been taken: for each name its place in `entries` and its bytes.
    tensors: BTreeMap<String, (usize, &'a [u8])>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionEntry {
    name: String,
    bytes: usize,
    required: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    model: ModelConfig,
    sections: Vec<SectionEntry>,
    tensors: Vec<TensorEntry>,
}

/// The header of version 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstHeader {
    model: ModelConfig,
    tokenizer_bytes: Option<usize>,
    tensors: Vec<TensorEntry>,
}

impl From<FirstHeader> for Header {
    fn from(FirstHeader { model, tokenizer_bytes, tensors }: FirstHeader) -> Self {
        let tokenizer = |bytes| SectionEntry { name: Section::TOKENIZER.to_string(), bytes, required: true };
        Self { model, sections: tokenizer_bytes.map(tokenizer).into_iter().collect(), tensors }
    }
}

impl<'a> PackedFile<'a> {
    /// The bytes every packed model begins with.
    pub const MAGIC: [u8; 8] = *b"\x89minrnn\n";
    /// Bytes before the header: magic, version and the two lengths.
    pub const FRAME: usize = 24;

    /// Parses a packed model from the bytes of its file.
    ///
    /// # Errors
    /// When they are damaged or cut short, of a newer version, not those of a packed model, or have a required section that is not known.
    /// No size is used for allocation before it has been checked.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (Header { model, sections: listed, tensors: entries }, end) = header(bytes)?;
        let mut parts = Parts { bytes: &bytes[..bytes.len() - CHECKSUM], at: end };
        let mut sections = BTreeMap::new();
        for SectionEntry { name, bytes, required } in listed {
            let part = parts.next(&format!("section '{name}'"), bytes)?;
            if required && !Section::KNOWN.contains(&name.as_str()) {
                return damaged(format!("needs its section '{name}', which this version does not know; use a newer minrnn"));
            }
            if sections.insert(name.clone(), (required, part)).is_some() {
                return damaged(format!("lists section '{name}' twice; pack the model again"));
            }
        }
        let mut tensors = BTreeMap::new();
        for (i, entry) in entries.iter().enumerate() {
            let part = parts.next(&entry.name, entry.bytes)?;
            if tensors.insert(entry.name.clone(), (i, part)).is_some() {
                return damaged(format!("lists tensor '{}' twice; pack the model again", entry.name));
            }
        }
        if parts.at != parts.bytes.len() {
            let surplus = parts.bytes.len() - parts.at;
            return damaged(format!("has {surplus} bytes that its header does not account for; pack the model again"));
        }
        Ok(Self { config: model, entries, sections, tensors })
    }

    /// Checks the beginning of a file of `length` bytes before the rest is read: `beginning` is its first [`FRAME`](Self::FRAME) bytes, or
    /// fewer if it has fewer.
    ///
    /// # Errors
    /// When it is not a packed model, has another version, or does not have that length.
    pub fn expect_frame(beginning: &[u8], length: u64) -> Result<()> {
        frame(beginning, length).map(|_| ())
    }

    /// The length a file claims in its `beginning`, which is as for [`expect_frame`](Self::expect_frame): for sources of unknown length,
    /// such as a pipe.
    ///
    /// # Errors
    /// When it is not a packed model, or has another version.
    pub fn claimed_length(beginning: &[u8]) -> Result<u64> {
        let claimed = beginning.first_chunk::<FRAME>().map_or(beginning.len() as u64, |frame| number(&frame[16..]));
        frame(beginning, claimed).map(|_| claimed)
    }

    /// The model's configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The tensors of the file, in order, including those that have been taken.
    pub fn entries(&self) -> &[TensorEntry] {
        &self.entries
    }

    /// The configuration and the [`entries`](Self::entries), when nothing else is needed.
    pub fn into_parts(self) -> (ModelConfig, Vec<TensorEntry>) {
        (self.config, self.entries)
    }

    /// The bytes of a section, or `None`.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.get(name).map(|&(_, bytes)| bytes)
    }

    /// All sections in order of their names, including unknown ones.
    pub fn sections(&self) -> impl Iterator<Item = Section<'_>> {
        self.sections.iter().map(|(name, &(required, bytes))| Section { name, required, bytes })
    }

    /// Takes out the tensor `name`, which must have `shape`: its format and its bytes.
    ///
    /// # Errors
    /// When there is no such tensor, or its shape differs.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<(WeightFormat, &'a [u8])> {
        let Some((place, bytes)) = self.tensors.remove(name) else {
            return damaged(format!("lacks tensor '{name}'; pack the model again"));
        };
        let entry = &self.entries[place];
        if entry.shape != shape {
            return damaged(format!("has tensor '{name}' with shape {:?}, expected {shape:?}; pack the model again", entry.shape));
        }
        Ok((entry.format, bytes))
    }

    /// Checks that every tensor has been taken.
    ///
    /// # Errors
    /// When one is left: it does not belong to the model.
    pub fn expect_empty(&self) -> Result<()> {
        match self.tensors.keys().next() {
            None => Ok(()),
            Some(name) => damaged(format!("has a tensor '{name}' that is not part of its model; pack the model again")),
        }
    }

    /// The bytes of a file of `config` with these sections and tensors.
    ///
    /// # Panics
    /// When the header would be longer than 4 GiB, or a tensor's size differs from its entry.
    pub fn encode(config: &ModelConfig, sections: &[Section<'_>], tensors: &[(TensorEntry, Vec<u8>)]) -> Vec<u8> {
        let listed =
            |section: &Section<'_>| SectionEntry { name: section.name.to_string(), bytes: section.bytes.len(), required: section.required };
        let header = Header {
            model: config.clone(),
            sections: sections.iter().map(listed).collect(),
            tensors: tensors.iter().map(|(entry, _)| entry.clone()).collect(),
        };
        let header = serde_json::to_vec(&header).expect("numbers and names serialise");
        let tensor = |(entry, bytes): &'_ (TensorEntry, Vec<u8>)| assert_eq!(entry.bytes, bytes.len(), "tensor '{}'", entry.name);
        tensors.iter().for_each(tensor);
        let parts = || sections.iter().map(|section| section.bytes).chain(tensors.iter().map(|(_, bytes)| bytes.as_slice()));
        // Room for all of it at once: a growing list would be held twice, in addition to the parts.
        let room = parts().fold(FRAME + header.len(), |end, part| end.next_multiple_of(ALIGNMENT) + part.len()) + CHECKSUM;
        let mut bytes = Vec::with_capacity(room);
        bytes.resize(FRAME, 0);
        bytes.extend(&header);
        for part in parts() {
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            bytes.extend(part);
        }
        let file_len = (bytes.len() + CHECKSUM) as u64;
        bytes[..8].copy_from_slice(&Self::MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::try_from(header.len()).expect("a header below 4 GiB").to_le_bytes());
        bytes[16..24].copy_from_slice(&file_len.to_le_bytes());
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes
    }
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(Error::Packed(problem))
}

/// The integer whose little-endian bytes are `bytes`.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
}

/// The version and the end of the header of a file of `length` bytes, given its `beginning`.
fn frame(beginning: &[u8], length: u64) -> Result<(u64, u64)> {
    let Some((frame, _)) = beginning.split_first_chunk::<FRAME>() else {
        return damaged(format!("has {length} bytes, fewer than its first {FRAME}"));
    };
    if frame[..8] != PackedFile::MAGIC {
        return damaged("is none: it does not begin like one".into());
    }
    let (version, header_len, file_len) = (number(&frame[8..12]), number(&frame[12..16]), number(&frame[16..]));
    if !(1..=u64::from(VERSION)).contains(&version) {
        return damaged(format!("has version {version}, expected at most {VERSION}; use the minrnn that wrote it"));
    }
    if file_len != length {
        return damaged(format!("should have {file_len} bytes but has {length}; it was cut short or damaged, copy it again"));
    }
    let end = FRAME as u64 + header_len;
    if end + CHECKSUM as u64 > file_len {
        return damaged(format!("claims a header of {header_len} bytes in a file of {file_len}; it is damaged, copy it again"));
    }
    Ok((version, end))
}

/// The header and where it ends, after all checks of the file as a whole.
fn header(bytes: &[u8]) -> Result<(Header, usize)> {
    let (version, end) = frame(bytes, bytes.len() as u64)?;
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc32c(body).to_le_bytes() != checksum {
        return damaged("is damaged: its checksum does not match; copy it again".into());
    }
    let end = end as usize;
    let text = &bytes[FRAME..end];
    let header = if version == 1 { serde_json::from_slice::<FirstHeader>(text).map(Header::from) } else { serde_json::from_slice(text) };
    match header {
        Ok(header) => Ok((header, end)),
        Err(error) => damaged(format!("has a header that cannot be read ({error}); use the minrnn that wrote it")),
    }
}

/// The parts after the header, one after the other.
struct Parts<'a> {
    /// All but the checksum.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    fn next(&mut self, name: &str, len: usize) -> Result<&'a [u8]> {
        let start = self.at.next_multiple_of(ALIGNMENT);
        match start.checked_add(len).filter(|&end| end <= self.bytes.len()) {
            Some(end) => {
                self.at = end;
                Ok(&self.bytes[start..end])
            }
            None => damaged(format!("claims {len} bytes for {name}, more than it has; pack the model again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn config() -> ModelConfig {
        ModelConfig { vocab_size: 5, d_model: 4, n_layers: 1, ..Default::default() }
    }

    fn tensor(name: &str) -> (TensorEntry, Vec<u8>) {
        (TensorEntry { name: name.to_string(), shape: vec![2], format: WeightFormat::F32, bytes: 8 }, vec![7; 8])
    }

    /// The file with its checksum put right after `change`.
    fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        bytes.truncate(bytes.len() - CHECKSUM);
        change(&mut bytes);
        let file_len = (bytes.len() + CHECKSUM) as u64;
        bytes[16..24].copy_from_slice(&file_len.to_le_bytes());
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes
    }

    #[test]
    fn what_is_no_packed_model_is_told_by_its_first_bytes() {
        let bytes = PackedFile::encode(&config(), &[], &[tensor("a")]);
        let told = |beginning: &[u8], length: usize| PackedFile::expect_frame(beginning, length as u64).map_err(|told| told.to_string());
        assert_eq!(told(&bytes[..PackedFile::FRAME], bytes.len()), Ok(()));
        assert!(told(&bytes[..PackedFile::FRAME], 3 << 30).unwrap_err().contains("but has 3221225472"));
        assert!(told(&[0; PackedFile::FRAME], bytes.len()).unwrap_err().contains("does not begin like one"));
        let mut other = bytes[..PackedFile::FRAME].to_vec();
        other[8] = 0;
        assert!(told(&other, bytes.len()).unwrap_err().contains("has version 0"));
        assert!(told(&bytes[..7], 7).unwrap_err().contains("has 7 bytes"));
        let claimed = |beginning: &[u8]| PackedFile::claimed_length(beginning).map_err(|told| told.to_string());
        assert_eq!(claimed(&bytes[..PackedFile::FRAME]), Ok(bytes.len() as u64));
        assert!(claimed(&[0; PackedFile::FRAME]).unwrap_err().contains("does not begin like one"));
        assert!(claimed(&bytes[..7]).unwrap_err().contains("has 7 bytes"));
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        let sections = [Section::tokenizer(b"{}"), Section { name: "history", required: false, bytes: b"abc" }];
        let bytes = PackedFile::encode(&config(), &sections, &[tensor("a"), tensor("b")]);
        let mut file = PackedFile::parse(&bytes).unwrap();
        assert_eq!(*file.config(), config());
        assert_eq!(file.section(Section::TOKENIZER), Some(&b"{}"[..]));
        assert_eq!(file.sections().collect::<Vec<_>>(), [sections[1], sections[0]]);
        assert_eq!(file.take("a", &[2]).unwrap(), (WeightFormat::F32, &[7; 8][..]));
        assert!(file.expect_empty().unwrap_err().to_string().contains("'b'"));
        assert!(file.take("b", &[3]).unwrap_err().to_string().contains("shape [2], expected [3]"));
        // What was taken stays listed.
        let names: Vec<&str> = file.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(file.into_parts(), (config(), [tensor("a").0, tensor("b").0].to_vec()));
    }

    #[test]
    fn an_unknown_section_is_skipped_unless_it_is_required() {
        let with = |required| PackedFile::encode(&config(), &[Section { name: "later", required, bytes: b"abc" }], &[tensor("a")]);
        let bytes = with(false);
        assert_eq!(PackedFile::parse(&bytes).unwrap().section("later"), Some(&b"abc"[..]));
        let refused = PackedFile::parse(&with(true)).unwrap_err().to_string();
        assert!(refused.contains("needs its section 'later'") && refused.contains("newer minrnn"), "{refused}");
    }

    #[test]
    fn a_section_that_is_listed_twice_is_refused() {
        let twice = [Section::tokenizer(b"{}"), Section::tokenizer(b"[]")];
        let refused = PackedFile::parse(&PackedFile::encode(&config(), &twice, &[])).unwrap_err().to_string();
        assert!(refused.contains("section 'tokenizer' twice"), "{refused}");
    }

    #[test]
    fn a_version_from_the_future_and_version_zero_are_refused() {
        for version in [0u32, 3, u32::MAX] {
            let bytes = changed(PackedFile::encode(&config(), &[], &[]), |bytes| bytes[8..12].copy_from_slice(&version.to_le_bytes()));
            let refused = PackedFile::parse(&bytes).unwrap_err().to_string();
            assert!(refused.contains(&format!("has version {version}, expected at most 2")), "{refused}");
        }
    }
}
