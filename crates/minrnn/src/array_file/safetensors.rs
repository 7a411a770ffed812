//! The format of safetensors: the length of the header u64, the header (JSON) padded with spaces, then the tensors.

use serde_json::json;

use super::{ArrayLayout, Format};

pub(super) const FORMAT: Format = Format { ending: "safetensors", header, row };

/// How many rows each sequence has.
const LENGTHS: &str = "lengths";

fn header(layout: &ArrayLayout) -> Option<Vec<u8>> {
    let lengths: Vec<u8> = layout.lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
    let (first, bytes) = (lengths.len() as u64, layout.bytes()?);
    let end = first.checked_add(bytes)?;
    let listed = json!({
        LENGTHS: {"dtype": "I64", "shape": [layout.lengths.len()], "data_offsets": [0, first]},
        layout.name.as_str(): {"dtype": "F32", "shape": [layout.rows()?, layout.columns.len()], "data_offsets": [first, end]},
    });
    let mut text = listed.to_string();
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    Some([&(text.len() as u64).to_le_bytes(), text.as_bytes(), &lengths].concat())
}

fn row(_labels: &[String], row: &[f32], out: &mut Vec<u8>) {
    row.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}
