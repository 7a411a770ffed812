//! A stream of Arrow messages, read one after the other.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::MessageHeader;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_schema::SchemaRef;

use super::super::super::limit::TableLimit;
use super::super::super::quiet::guarded;
use super::super::{failed, of_read};
use super::decoded::{Unfolded, by_bytes};
use super::{CONTINUATION, FILE, Source, cut, damaged, message_of, no_schema, unreadable};
use crate::{Error, Result};

/// The length of the metadata of a message.
type Head = Option<usize>;

/// A file whose schema has been read.
pub(super) struct Batches<R> {
    source: R,
    /// The message that comes next, if one does.
    next: Head,
    schema: SchemaRef,
    /// The schema to decode batches with.
    decoded: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    unfolded: Unfolded,
}

impl<R: Read> Batches<R> {
    pub fn open(mut source: R, limit: Option<TableLimit>) -> Result<Self> {
        guarded(|| {
            let mut start = [0; 8];
            source.read_exact(&mut start).map_err(|error| of_read(error, cut))?;
            if start == FILE {
                // Writers pad with zeros to at most 64 bytes.
                for _ in 0..8 {
                    source.read_exact(&mut start).map_err(|error| of_read(error, cut))?;
                    if start != [0; 8] {
                        break;
                    }
                }
            }
            let length = head(start)?.ok_or_else(no_schema)?;
            let (metadata, _) = message(&mut source, length)?;
            let schema = message_of(&metadata)?.header_as_schema().ok_or_else(no_schema)?;
            let schema = Arc::new(arrow_ipc::convert::try_fb_to_schema(schema).map_err(unreadable)?);
            let next = next_head(&mut source)?;
            let (decoded, unfolded) = (by_bytes(&schema), Unfolded::new(&schema, limit));
            Ok(Self { source, next, schema, decoded, dictionaries: HashMap::new(), unfolded })
        })
    }

    /// Reads the next message; returns its batch of rows, if it is one.
    fn advance(&mut self, length: usize) -> Result<Option<RecordBatch>> {
        let (metadata, body) = message(&mut self.source, length)?;
        let message = message_of(&metadata)?;
        self.unfolded.take(&message, &body, metadata.len() + body.len())?;
        let (body, version) = (Buffer::from_vec(body), message.version());
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| damaged("a message is empty"))?;
                let schema = Arc::clone(&self.decoded);
                Some(read_record_batch(&body, batch, schema, &self.dictionaries, None, &version).map_err(unreadable)?)
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch().ok_or_else(|| damaged("a message is empty"))?;
                read_dictionary(&body, dictionary, &self.decoded, &mut self.dictionaries, &version).map_err(unreadable)?;
                None
            }
            MessageHeader::NONE => None,
            other => return Err(damaged(&format!("it has a message of the kind {other:?} behind its schema"))),
        };
        self.next = next_head(&mut self.source)?;
        Ok(batch)
    }
}

/// What the first bytes of a message say.
fn head(start: [u8; 8]) -> Result<Head> {
    let [a, b, c, d, length @ ..] = start;
    if [a, b, c, d] != CONTINUATION {
        return Err(Error::Data("it is damaged, or was written by a program from before 2019; write it anew".to_owned()));
    }
    let length = i32::from_le_bytes(length);
    match usize::try_from(length) {
        Ok(0) => Ok(None),
        Ok(length) => Ok(Some(length)),
        Err(_) => Err(damaged(&format!("a message has {length} bytes"))),
    }
}

/// The next message, if one follows.
fn next_head(source: &mut impl Read) -> Result<Head> {
    let mut start = Vec::new();
    source.take(8).read_to_end(&mut start).map_err(failed)?;
    match start.try_into() {
        Ok(start) => head(start),
        Err(start) if Vec::is_empty(&start) => Ok(None),
        Err(_) => Err(cut()),
    }
}

/// The metadata of a message, which have `length` bytes, and its body.
fn message(source: &mut impl Read, length: usize) -> Result<(Vec<u8>, Vec<u8>)> {
    let metadata = bytes(source, length)?;
    let body = usize::try_from(message_of(&metadata)?.bodyLength()).map_err(|_| damaged("a message has less than no bytes"))?;
    let body = bytes(source, body)?;
    Ok((metadata, body))
}

/// `length` bytes, if that many follow.
fn bytes(source: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() == length { Ok(bytes) } else { Err(cut()) }
}

impl<R: Read> Source for Batches<R> {
    fn limit(&self) -> Option<TableLimit> {
        self.unfolded.limit()
    }

    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(length) = self.next {
            if let Some(batch) = self.advance(length)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}
