//! Bounds on an Arrow decoder: no more work than a table's limit allows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::{CompressionType, Message, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use super::super::super::limit::{Room, TableLimit};
use super::super::MOST_OF_ZSTD;
use super::cut;
use crate::{Error, Result};

/// LZ4 expands a byte to at most this many.
const MOST_OF_LZ4: i64 = 256;

/// The schema to decode a file with: text views become byte views. Many views may share one long text, and the decoder would validate it for each of them,
/// even in columns that are not read; here only texts that are read are validated, within the limit on their room.
pub(super) fn by_bytes(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(field_by_bytes).collect::<Vec<_>>()))
}

fn field_by_bytes(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(kind_by_bytes(field.data_type())))
}

fn kind_by_bytes(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), Box::new(kind_by_bytes(values))),
        DataType::List(field) => DataType::List(field_by_bytes(field)),
        DataType::LargeList(field) => DataType::LargeList(field_by_bytes(field)),
        DataType::ListView(field) => DataType::ListView(field_by_bytes(field)),
        DataType::LargeListView(field) => DataType::LargeListView(field_by_bytes(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(field_by_bytes(field), *length),
        DataType::Map(field, is_sorted) => DataType::Map(field_by_bytes(field), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_by_bytes).collect()),
        DataType::Union(fields, mode) => DataType::Union(fields.iter().map(|(id, field)| (id, field_by_bytes(field))).collect(), *mode),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(field_by_bytes(ends), field_by_bytes(values)),
        plain => plain.clone(),
    }
}

/// The room left for what messages unfold to.
pub(super) struct Unfolded {
    room: Room,
    /// The dictionary of every column that has one; several may have the same.
    used: Vec<i64>,
    /// The size of each dictionary in bytes.
    dictionaries: HashMap<i64, u64>,
}

impl Unfolded {
    pub fn new(schema: &Schema, limit: Option<TableLimit>) -> Self {
        #[expect(deprecated, reason = "nothing else tells which column has which dictionary")]
        let used = schema.flattened_fields().into_iter().filter_map(|field| field.dict_id()).collect();
        Self { room: Room::for_parts(limit), used, dictionaries: HashMap::new() }
    }

    pub fn limit(&self) -> Option<TableLimit> {
        self.room.limit()
    }

    /// Takes room for a `message` of `n_bytes` bytes, its head and `body`.
    ///
    /// # Errors
    /// When there is too little, or its buffers claim to unfold to more than their codec can make of their bytes: that much would be allocated before the
    /// lie is found out.
    pub fn take(&mut self, message: &Message<'_>, body: &[u8], n_bytes: usize) -> Result<()> {
        let dictionary = message.header_as_dictionary_batch();
        let batch = message.header_as_record_batch().or(dictionary.and_then(|dictionary| dictionary.data()));
        let unfolded = batch.map_or(Ok(0), |batch| claimed(&batch, body))?.max(n_bytes as u64);
        let Some(dictionary) = dictionary else {
            // The decoder validates a column's whole dictionary for every batch of rows.
            let in_columns =
                self.used.iter().filter_map(|id| self.dictionaries.get(id)).fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
            return self.room.take(unfolded.saturating_add(in_columns));
        };
        let known = self.dictionaries.entry(dictionary.id()).or_default();
        *known = if dictionary.isDelta() { known.saturating_add(unfolded) } else { unfolded };
        // A dictionary that is extended is copied.
        self.room.take(*known)
    }
}

/// The total bytes of all buffers of `batch` once unfolded.
fn claimed(batch: &RecordBatch<'_>, body: &[u8]) -> Result<u64> {
    let is_zstd = batch.compression().map(|compression| compression.codec() == CompressionType::ZSTD);
    let most = is_zstd.map(|is_zstd| if is_zstd { MOST_OF_ZSTD } else { MOST_OF_LZ4 });
    let mut unfolded = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        // Several buffers may refer to the same bytes.
        let mut n_bytes = buffer.length().max(0);
        if let Some(most) = most {
            let bytes = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
            let bytes = bytes.and_then(|(start, length)| body.get(start..start.checked_add(length)?)).ok_or_else(cut)?;
            // The length before the bytes is -1 if they are not compressed.
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
        // A buffer's unfolded length precedes its first frame, which begins with these bytes.
        for (name, start) in [("lz4.feather", [0x04, 0x22, 0x4d, 0x18]), ("zstd.feather", [0x28, 0xb5, 0x2f, 0xfd])] {
            let mut bytes = fixture(name);
            let frame = bytes.windows(4).position(|bytes| bytes == start).unwrap();
            bytes[frame - 8..frame].copy_from_slice(&(1i64 << 40).to_le_bytes());
            let sentence = refusal(&bytes, &["step"], &[]);
            assert!(sentence.contains("claim to unfold to 1099511627776"), "{name}: {sentence}");
        }
    }
}
