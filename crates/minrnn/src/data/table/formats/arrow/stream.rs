//! A stream of Arrow's messages, read one after the other.

use std::io::Read;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;

use super::super::super::limit::{Room, TableLimit};
use super::super::super::quiet::guarded;
use super::super::{MOST_OF_ZSTD, failed, of_read};
use super::{CONTINUATION, FILE, Source, cut, unreadable};
use crate::{Error, Result};

/// LZ4 makes at most so many bytes of one.
const MOST_OF_LZ4: i64 = 256;

/// The length of the metadata of a message.
type Head = Option<usize>;

/// A file whose schema has been read.
pub(super) struct Batches<R> {
    source: R,
    decoder: StreamDecoder,
    /// The message that comes next, if one does.
    next: Head,
    schema: SchemaRef,
    room: Room,
}

impl<R: Read> Batches<R> {
    pub fn open(mut source: R, limit: Option<TableLimit>) -> Result<Self> {
        guarded(|| {
            let mut start = [0; 8];
            source.read_exact(&mut start).map_err(|error| of_read(error, cut))?;
            if start == FILE {
                // Writers fill up with zeros to at most 64 bytes.
                for _ in 0..8 {
                    source.read_exact(&mut start).map_err(|error| of_read(error, cut))?;
                    if start != [0; 8] {
                        break;
                    }
                }
            }
            let (decoder, schema) = (StreamDecoder::new(), SchemaRef::new(arrow_schema::Schema::empty()));
            let mut batches = Self { source, decoder, next: None, schema, room: Room::for_parts(limit) };
            batches.next = batches.take_head(start)?;
            while batches.decoder.schema().is_none() && batches.next.is_some() {
                batches.advance()?;
            }
            batches.schema = batches.decoder.schema().ok_or_else(|| Error::Data("it has no schema".to_owned()))?;
            Ok(batches)
        })
    }

    /// Hands the first bytes of a message to the decoder.
    fn take_head(&mut self, start: [u8; 8]) -> Result<Head> {
        let [a, b, c, d, length @ ..] = start;
        if [a, b, c, d] != CONTINUATION {
            return Err(Error::Data("it is damaged, or was written by a program from before 2019; write it anew".to_owned()));
        }
        self.decoder.decode(&mut Buffer::from(&start[..])).map_err(unreadable)?;
        let length = i32::from_le_bytes(length);
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(Error::Data(format!("it is damaged: a message has {length} bytes"))),
        }
    }

    /// `length` bytes, if so many follow.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.source.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() == length { Ok(bytes) } else { Err(cut()) }
    }

    /// Reads the next message; the batch of rows that it is, if it is one.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(length) = self.next else { return Ok(None) };
        let metadata = self.bytes(length)?;
        let message = arrow_ipc::root_as_message(&metadata).map_err(|error| Error::Data(format!("it is damaged: {error}")))?;
        let body =
            usize::try_from(message.bodyLength()).map_err(|_| Error::Data("it is damaged: a message has less than no bytes".to_owned()))?;
        let body = self.bytes(body)?;
        self.room.take(expect_believable(&message, &body)?)?;
        let mut batch = None;
        for part in [metadata, body] {
            let mut part = Buffer::from_vec(part);
            batch = self.decoder.decode(&mut part).map_err(unreadable)?.or(batch);
        }
        // A message without a body is decoded once more follows.
        let mut start = Vec::new();
        self.source.by_ref().take(8).read_to_end(&mut start).map_err(failed)?;
        self.next = match start.try_into() {
            Ok(start) => self.take_head(start)?,
            Err(start) if Vec::is_empty(&start) => self.take_head([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?,
            Err(_) => return Err(cut()),
        };
        Ok(batch)
    }
}

impl<R: Read> Source for Batches<R> {
    fn limit(&self) -> Option<TableLimit> {
        self.room.limit()
    }

    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.next.is_some() {
            if let Some(batch) = self.advance()? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Refuses a message whose buffers claim to unfold to more than their codec can make of their bytes: so much would be allocated before it is found out.
/// Gives the bytes that all of its buffers have unfolded.
pub(super) fn expect_believable(message: &arrow_ipc::Message<'_>, body: &[u8]) -> Result<u64> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let batch = message.header_as_record_batch().or(dictionary);
    let Some(batch) = batch else { return Ok(0) };
    let is_zstd = batch.compression().map(|compression| compression.codec() == CompressionType::ZSTD);
    let most = is_zstd.map(|is_zstd| if is_zstd { MOST_OF_ZSTD } else { MOST_OF_LZ4 });
    let mut unfolded = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        // Several of them may be the same bytes.
        let mut n_bytes = buffer.length().max(0);
        if let Some(most) = most {
            let bytes = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
            let bytes = bytes.and_then(|(start, length)| body.get(start..start.checked_add(length)?)).ok_or_else(cut)?;
            // The length before the bytes is -1 where they are not compressed.
            let claimed = bytes.first_chunk().map_or(0, |claimed| i64::from_le_bytes(*claimed));
            if claimed > bytes.len() as i64 * most {
                return Err(Error::Data(format!("it is damaged: {} bytes claim to unfold to {claimed}", bytes.len())));
            }
            n_bytes = n_bytes.max(claimed);
        }
        unfolded = unfolded.saturating_add(n_bytes.cast_unsigned());
    }
    Ok(unfolded)
}

#[cfg(test)]
mod tests {
    use super::super::test_files::{fixture, refusal};

    #[test]
    fn what_claims_to_unfold_to_more_than_it_can_is_not_believed() {
        // The length of a buffer before it is unfolded stands before the first frame, which begins so.
        for (name, start) in [("lz4.feather", [0x04, 0x22, 0x4d, 0x18]), ("zstd.feather", [0x28, 0xb5, 0x2f, 0xfd])] {
            let mut bytes = fixture(name);
            let frame = bytes.windows(4).position(|bytes| bytes == start).unwrap();
            bytes[frame - 8..frame].copy_from_slice(&(1i64 << 40).to_le_bytes());
            let sentence = refusal(&bytes, &["step"], &[]);
            assert!(sentence.contains("claim to unfold to 1099511627776"), "{name}: {sentence}");
        }
    }
}
