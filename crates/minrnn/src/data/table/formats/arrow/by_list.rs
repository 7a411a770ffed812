//! Arrow files read by the list of their parts at the end, as Polars writes them: only that list has the schema, and dictionaries may follow the rows
//! that need them.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::Block;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_schema::{ArrowError, SchemaRef};

use super::super::super::limit::TableLimit;
use super::super::super::quiet::guarded;
use super::super::failed;
use super::decoded::{Unfolded, by_bytes};
use super::{CONTINUATION, FILE, Source, cut, damaged, message_of, no_schema, unreadable};
use crate::Result;

/// Bytes after the list: its length and the magic word.
const END: u64 = 10;

/// Whether a file with this `beginning` is to be read by its list: no message follows the magic word.
pub(super) fn is_needed(beginning: &[u8]) -> bool {
    let Some(behind) = beginning.strip_prefix(FILE) else { return false };
    let filled = behind.chunks_exact(8).take(7).take_while(|bytes| bytes.iter().all(|&byte| byte == 0)).count();
    behind[8 * filled..].first_chunk().is_some_and(|start: &[u8; 4]| *start != CONTINUATION)
}

/// A file whose list of parts has been read.
pub(super) struct Parts<R> {
    source: R,
    decoder: FileDecoder,
    /// The dictionaries still to be read.
    dictionaries: IntoIter<Block>,
    batches: IntoIter<Block>,
    schema: SchemaRef,
    unfolded: Unfolded,
}

impl<R: Read + Seek> Parts<R> {
    pub fn open(mut source: R, limit: Option<TableLimit>) -> Result<Self> {
        guarded(|| {
            let length = source.seek(SeekFrom::End(0)).map_err(failed)?;
            let start_of_end = length.checked_sub(END).ok_or_else(cut)?;
            let end = bytes(&mut source, start_of_end, END)?;
            let n_bytes = read_footer_length(end.try_into().map_err(|_| cut())?).map_err(|_| cut())? as u64;
            let list = bytes(&mut source, start_of_end.checked_sub(n_bytes).ok_or_else(cut)?, n_bytes)?;
            let list = arrow_ipc::root_as_footer(&list).map_err(|error| damaged(&error.to_string()))?;
            let schema = list.schema().ok_or_else(no_schema)?;
            let schema = Arc::new(arrow_ipc::convert::try_fb_to_schema(schema).map_err(unreadable)?);
            Ok(Self {
                source,
                decoder: FileDecoder::new(by_bytes(&schema), list.version()),
                dictionaries: list.dictionaries().into_iter().flatten().copied().collect::<Vec<_>>().into_iter(),
                batches: list.recordBatches().into_iter().flatten().copied().collect::<Vec<_>>().into_iter(),
                unfolded: Unfolded::new(&schema, limit),
                schema,
            })
        })
    }

    /// The bytes of a part, after a check of the sizes they claim.
    fn part(&mut self, block: &Block) -> Result<Buffer> {
        let nowhere = || damaged("a part lies nowhere in it");
        let [start, head, body] = [block.offset(), block.metaDataLength().into(), block.bodyLength()].map(u64::try_from);
        let (start, head, body) = (start.map_err(|_| nowhere())?, head.map_err(|_| nowhere())?, body.map_err(|_| nowhere())?);
        let part = bytes(&mut self.source, start, head.checked_add(body).ok_or_else(nowhere)?)?;
        let (message, body) = part.split_at_checked(head as usize).ok_or_else(nowhere)?;
        let message = message.get(if message.starts_with(&CONTINUATION) { 8 } else { 4 }..).ok_or_else(nowhere)?;
        // The list may name the same part again and again.
        self.unfolded.take(&message_of(message)?, body, part.len())?;
        Ok(Buffer::from_vec(part))
    }
}

/// `length` bytes at `start`, if there are that many.
fn bytes(source: &mut (impl Read + Seek), start: u64, length: u64) -> Result<Vec<u8>> {
    source.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = Vec::new();
    source.take(length).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(cut()) }
}

impl<R: Read + Seek> Source for Parts<R> {
    fn limit(&self) -> Option<TableLimit> {
        self.unfolded.limit()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(block) = self.dictionaries.next() {
            let part = self.part(&block)?;
            self.decoder.read_dictionary(&block, &part).map_err(unreadable)?;
        }
        let Some(block) = self.batches.next() else { return Ok(None) };
        let part = self.part(&block)?;
        let batch = self.decoder.read_record_batch(&block, &part).map_err(unreadable)?;
        batch.map(Some).ok_or_else(|| unreadable(ArrowError::IpcError("a part of rows has none".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_files::{fixture, read, wanted};
    use super::*;

    #[test]
    fn a_list_of_parts_that_lie_nowhere_is_a_sentence() {
        let whole = fixture("polars.arrow");
        let read = |bytes: &[u8]| read(bytes, &wanted(&["step"], &["name"])).map(|frame| frame.n_rows()).map_err(|error| error.to_string());
        assert_eq!(read(&whole), Ok(300));
        for cut in [64, 500, whole.len() - 1] {
            let sentence = read(&whole[..cut]).unwrap_err();
            assert!(sentence.contains("cut short"), "{cut}: {sentence}");
        }
        // The list says where each batch lies and how long it is.
        let batch = whole.windows(4).position(|bytes| *bytes == CONTINUATION).unwrap() as u64;
        let place = whole.windows(8).rposition(|bytes| *bytes == batch.to_le_bytes()).unwrap();
        for (at, value) in [(0, u64::MAX), (0, 1 << 40), (16, u64::MAX), (16, 1 << 40)] {
            let mut damaged = whole.clone();
            damaged[place + at..][..8].copy_from_slice(&value.to_le_bytes());
            let sentence = read(&damaged).unwrap_err();
            assert!(sentence.contains("cut short") || sentence.contains("it is damaged"), "{at}, {value}: {sentence}");
        }
    }
}
