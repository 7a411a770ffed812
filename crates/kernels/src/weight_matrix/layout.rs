//! The layout of weights in memory and in bytes, the same on every CPU.
//!
//! Outputs come in blocks of 16, so that a block is one AVX-512 vector, two of AVX2 or four of NEON. The unit is the line: 16 words of
//! 32 bits, word `l` of output `16 · block + l`, each with 1 (f32), 2 (bf16), 4 (int8) or 8 (int4) successive inputs, the first in the
//! lowest bits. Lines are in this order:
//!
//! ```text
//! for every panel of four whole-or-padded blocks:  for every word of a row:  the lines of its four blocks
//! for every block left over (at most three):       for every word of a row:  its line
//! ```
//!
//! So the product of four blocks with one row reads memory sequentially, and needs no sum across the lanes of a vector. Outputs past the
//! last and inputs past the last of a row are padding, written as zero weights. Lines with scales follow, depending on the format.

use super::WeightFormat;
use alloc::vec::Vec;

/// Outputs of a block.
pub(super) const BLOCK: usize = 16;
/// Blocks of a panel.
pub(super) const PANEL: usize = 4;

/// Inputs of int4 with a common scale.
pub(super) const INT4_GROUP: usize = 32;

/// 16 words, one for each output of a block, in one cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u32; BLOCK]);

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = size_of::<Line>();

/// Sizes of a stored matrix in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// ⌈outputs / 16⌉.
    pub blocks: usize,
    /// Words of a row.
    pub words: usize,
    /// Lines of scales of a block.
    pub scales: usize,
}

impl Layout {
    pub fn new(format: WeightFormat, outputs: usize, inputs: usize) -> Self {
        let scales = match format {
            WeightFormat::F32 | WeightFormat::Bf16 => 0,
            WeightFormat::Int8 => 1,
            WeightFormat::Int4 => inputs.div_ceil(2 * INT4_GROUP),
        };
        Self { blocks: outputs.div_ceil(BLOCK), words: inputs.div_ceil(format.inputs_per_word()), scales }
    }

    /// Bytes of everything, `None` when that is more than memory can hold.
    pub fn byte_len(&self) -> Option<usize> {
        let lines = self.blocks.checked_mul(self.words.checked_add(self.scales)?)?;
        lines.checked_mul(LINE_BYTES).filter(|&bytes| bytes <= isize::MAX as usize)
    }

    /// Index of the line with a block's first words, and lines from one word to the next.
    #[inline(always)]
    pub fn block(&self, block: usize) -> (usize, usize) {
        let inside = block % PANEL;
        let panel = block - inside;
        if panel + PANEL <= self.blocks { (panel * self.words + inside, PANEL) } else { (block * self.words, 1) }
    }

    /// Index of the line with word `word` of a block.
    pub fn line(&self, block: usize, word: usize) -> usize {
        let (first, step) = self.block(block);
        first + word * step
    }
}

/// The lines as little-endian bytes.
pub(super) fn to_bytes(lines: &[Line], out: &mut Vec<u8>) {
    out.extend(lines.iter().flat_map(|line| line.0).flat_map(u32::to_le_bytes));
}

/// Whole lines from little-endian bytes.
pub(super) fn from_bytes(bytes: &[u8]) -> Vec<Line> {
    let line = |bytes: &[u8; LINE_BYTES]| {
        let (words, _) = bytes.as_chunks::<4>();
        Line(core::array::from_fn(|i| u32::from_le_bytes(words[i])))
    };
    bytes.as_chunks().0.iter().map(line).collect()
}
