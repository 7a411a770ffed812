//! NumPy's format, version 1.0 (numpy.lib.format): magic, version, length of the header u16, the header as a Python dictionary, padded so
//! that the numbers start at a multiple of 64 bytes.

use super::{ArrayLayout, Format};

pub(super) const FORMAT: Format = Format { ending: "npy", header, row };

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
const ALIGNMENT: usize = 64;
/// Maximum number of digits of the row count.
const ROWS_DIGITS: usize = 21;

fn header(layout: &ArrayLayout) -> Option<Vec<u8>> {
    layout.bytes()?;
    let (rows, width) = (layout.rows()?, layout.columns.len());
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    // NumPy leaves room for the row count to grow.
    text.extend(std::iter::repeat_n(' ', ROWS_DIGITS - rows.to_string().len()));
    let frame = MAGIC.len() + size_of::<u16>();
    let end = (frame + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - frame - text.len() - 1));
    text.push('\n');
    let len = u16::try_from(text.len()).ok()?;
    Some([MAGIC, &len.to_le_bytes(), text.as_bytes()].concat())
}

fn row(_labels: &[String], row: &[f32], out: &mut Vec<u8>) {
    row.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}
