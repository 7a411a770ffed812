//! A constant matrix of weights, stored compactly, and its products for inference: y = x Wᵀ + bias.
//!
//! Which format do I want? [`WeightFormat::F32`] changes nothing; [`WeightFormat::Bf16`] halves the memory and with it the time of a
//! product with few rows, which is the time its weights take to arrive; [`WeightFormat::Int8`] halves it again; [`WeightFormat::Int4`]
//! takes a little more than half of that and costs accuracy.
//!
//! Products with [`WeightFormat::Int8`] and [`WeightFormat::Int4`] multiply integers: a row of inputs x is rounded to multiples of max |x|
//! / 32639, the same ones on every CPU. That changes an output by at most half a multiple for each weight, max |x| / 65278 · Σ_k |w_k|: for
//! inputs of similar magnitude, about a hundredth of the effect of rounding the weights to int8. Sums over 512 (int8) or 32 inputs (int4)
//! are exact; these are added in f32. A row with NaN or ±∞ gives NaN; one whose largest magnitude is below 3.9e-34 counts as 0. A row may
//! give ±∞ if Σ_k |q_k x_k|, with q the stored integers of at most 127, exceeds 3.4e38: with n inputs, from magnitudes of 2.6e36 / n on.
//!
//! With the other two formats inputs and sums are f32, with one exception:
//!
//! Products with [`WeightFormat::Bf16`] also round the inputs to bf16 if the CPU multiplies bf16 ([`Level::multiplies_bf16`]). That changes
//! an input by at most 2⁻⁹ of its magnitude, as it did the weights, and so an output by at most 2⁻⁹ · Σ_k |x_k · w_k|; errors of many
//! inputs mostly cancel. Inputs above the largest bf16 (3.39e38) then become infinite, and inputs, weights and sums below the smallest
//! normal f32 (1.2e-38) count as 0. Matrices of at least 8192 weights use AMX if the CPU has it ([`crate::matmul::bf16::has_tiles`]), which
//! takes sums in another order.
//!
//! The result for a row and an output has the same bits whatever other rows and outputs it is computed with: a batch gives the same as its
//! rows alone, and work may be split anywhere. Splits of the outputs at multiples of [`WeightMatrix::SPLIT`] waste nothing.
//!
//! ```
//! use minrnn_kernels::simd::Level;
//! use minrnn_kernels::weight_matrix::{Inputs, Scratch, WeightFormat, WeightMatrix};
//!
//! // Two outputs, three inputs.
//! let matrix = WeightMatrix::new(WeightFormat::Bf16, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! let mut y = [0.0; 2];
//! let inputs = Inputs { rows: 1, x: &[1.0, 0.0, -1.0], bias: Some(&[0.5, 0.0]) };
//! matrix.multiply(Level::current(), inputs, 0..2, &mut y, 2, &mut Scratch::default());
//! assert_eq!(y, [-1.5, -2.0]);
//! ```

mod bf16;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod bytes;
mod codec;
mod int4;
mod int8;
mod layout;
mod lines;
mod multiply;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod pairs;
mod panels;
mod prefetch;
mod products;
mod rows;
mod single;
mod target;
mod tile;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod tiles;

pub use lines::AlignedBytes;
pub use products::Inputs;

use crate::choices;
use crate::shape::{elements, expect_len};
#[cfg(doc)]
use crate::simd::Level;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use layout::{BLOCK, LINE_BYTES, Layout, Line};
use lines::Lines;

choices! {
    /// How the numbers of a weight matrix are stored.
    WeightFormat, "weight format" {
        /// As they are: 4 bytes a weight.
        #[default]
        F32 = "f32",
        /// bfloat16, rounded to the nearest, ties to even: 2 bytes a weight, relative error at most 2⁻⁹. Where the CPU multiplies bf16,
        /// products round their inputs as well.
        Bf16 = "bf16",
        /// Integers −127..=127 times an f32 scale of the output, its largest magnitude / 127: 1 byte a weight, error at most half a scale.
        Int8 = "int8",
        /// Integers −8..=7 times a bf16 scale for every 32 inputs of an output, chosen for the least squared error: 4.5 bits a weight,
        /// root-mean-square error 8 % of that of normally distributed weights.
        Int4 = "int4",
    }
}

impl WeightFormat {
    fn inputs_per_word(self) -> usize {
        match self {
            WeightFormat::F32 => 1,
            WeightFormat::Bf16 => 2,
            WeightFormat::Int8 => 4,
            WeightFormat::Int4 => 8,
        }
    }
}

/// Scratch memory of products, kept from call to call. One per thread; it fits every matrix and grows to the largest need: the rows,
/// rounded to 2 bytes per input for [`WeightFormat::Int8`] and [`WeightFormat::Int4`] and padded to whole words for the others; a few
/// hundred rows rounded to bf16 if the CPU multiplies bf16; 64 KiB of weights.
#[derive(Clone, Default)]
pub struct Scratch {
    /// Rows padded to whole words, if they are not whole, or rounded to integers.
    rows: rows::Memory,
    /// Rows rounded to bf16, if the CPU multiplies those; otherwise weights copied for several rows.
    lines: Vec<Line>,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.rows.bytes() + self.lines.capacity() * LINE_BYTES;
        f.debug_struct("Scratch").field("bytes", &bytes).finish()
    }
}

/// A matrix W `[outputs, inputs]` in one of the formats.
#[derive(Clone)]
pub struct WeightMatrix {
    format: WeightFormat,
    outputs: usize,
    inputs: usize,
    /// The weights, then the scales.
    lines: Lines,
}

impl fmt::Debug for WeightMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, outputs, inputs, .. } = self;
        f.debug_struct("WeightMatrix").field("format", format).field("outputs", outputs).field("inputs", inputs).finish_non_exhaustive()
    }
}

impl WeightMatrix {
    /// Number of outputs stored together: work split over threads at multiples of this wastes nothing.
    pub const SPLIT: usize = BLOCK * layout::PANEL;

    /// Rounds or quantises `values`.
    ///
    /// NaN and ±∞ are kept by [`WeightFormat::F32`] and [`WeightFormat::Bf16`], where they affect only their own output. The integer
    /// formats treat NaN as 0 and ±∞ as ± the largest finite magnitude that shares their scale.
    ///
    /// # Shapes
    /// `values`: `[outputs, inputs]`, row `i` holding the weights of output `i`
    ///
    /// # Panics
    /// When the length does not fit, or the matrix is larger than memory can hold.
    pub fn new(format: WeightFormat, outputs: usize, inputs: usize, values: &[f32]) -> Self {
        expect_len("weights", values, elements([outputs, inputs]));
        let layout = Layout::new(format, outputs, inputs);
        // Without inputs, the length of `values` does not limit the number of outputs.
        assert!(inputs > 0 || outputs <= 1 << 20, "a matrix of {outputs} outputs and no inputs; expected inputs for so many outputs");
        assert!(layout.byte_len().is_some(), "a matrix of {outputs} outputs and {inputs} inputs is larger than memory can be");
        let count = layout.blocks * (layout.words + layout.scales);
        let mut lines = alloc::vec![Line([0; BLOCK]); count];
        let (words, scales) = lines.split_at_mut(layout.blocks * layout.words);
        let per_word = format.inputs_per_word();
        for output in 0..layout.blocks * BLOCK {
            let (block, lane) = (output / BLOCK, output % BLOCK);
            // Padding outputs have no weights: the encoders take missing ones as 0.
            let row = if output < outputs { &values[output * inputs..][..inputs] } else { &[] };
            let part = |from: usize, len: usize| &row[from.min(row.len())..(from + len).min(row.len())];
            let mut put = |word: usize, bits: u32| words[layout.line(block, word)].0[lane] = bits;
            match format {
                WeightFormat::F32 => (0..layout.words).for_each(|word| put(word, part(word, 1).first().map_or(0, |w| w.to_bits()))),
                WeightFormat::Bf16 => (0..layout.words).for_each(|word| put(word, bf16::encode(part(word * per_word, per_word)))),
                WeightFormat::Int8 => {
                    let scale = int8::row_scale(row);
                    scales[block].0[lane] = scale.to_bits();
                    (0..layout.words).for_each(|word| put(word, int8::encode(part(word * per_word, per_word), scale)));
                }
                WeightFormat::Int4 => {
                    for group in 0..inputs.div_ceil(int4::GROUP) {
                        let (scale, levels) = int4::quantise(part(group * int4::GROUP, int4::GROUP));
                        scales[block * layout.scales + group / 2].0[lane] |= u32::from(scale) << (16 * (group % 2));
                        let first = group * int4::GROUP / per_word;
                        for (i, levels) in levels.chunks_exact(per_word).enumerate().take(layout.words - first) {
                            put(first + i, int4::encode(levels));
                        }
                    }
                }
            }
        }
        Self { format, outputs, inputs, lines: Lines::Own(lines) }
    }

    /// Length of [`WeightMatrix::to_bytes`], which is also the memory of the weights; `None` if it exceeds any memory.
    pub fn byte_len(format: WeightFormat, outputs: usize, inputs: usize) -> Option<usize> {
        outputs.checked_mul(inputs)?;
        Layout::new(format, outputs, inputs).byte_len()
    }

    /// The matrix saved by [`WeightMatrix::to_bytes`].
    ///
    /// `None` if the length is not [`WeightMatrix::byte_len`] or a scale is not finite. Nothing is allocated before that is checked.
    pub fn from_bytes(format: WeightFormat, outputs: usize, inputs: usize, bytes: &[u8]) -> Option<Self> {
        if Self::byte_len(format, outputs, inputs)? != bytes.len() {
            return None;
        }
        Self { format, outputs, inputs, lines: Lines::copied(bytes) }.checked()
    }

    /// The same for a part of `memory`, which is used in place: the matrix takes no memory of its own. It is copied if the part is not
    /// aligned to 64 bytes, or the CPU is not little-endian.
    ///
    /// `None` as for [`WeightMatrix::from_bytes`].
    ///
    /// # Panics
    /// When there is no such part.
    pub fn from_shared(format: WeightFormat, outputs: usize, inputs: usize, memory: &AlignedBytes, part: Range<usize>) -> Option<Self> {
        let bytes = &memory[part.clone()];
        if Self::byte_len(format, outputs, inputs)? != bytes.len() {
            return None;
        }
        let lines = Lines::shared(memory, part).unwrap_or_else(|| Lines::copied(bytes));
        Self { format, outputs, inputs, lines }.checked()
    }

    /// The same for constants, such as a file in flash memory; they are copied if they are not aligned to 64 bytes, or the CPU is not
    /// little-endian.
    ///
    /// `None` as for [`WeightMatrix::from_bytes`].
    pub fn from_constant(format: WeightFormat, outputs: usize, inputs: usize, bytes: &'static [u8]) -> Option<Self> {
        if Self::byte_len(format, outputs, inputs)? != bytes.len() {
            return None;
        }
        let lines = Lines::constant(bytes).unwrap_or_else(|| Lines::copied(bytes));
        Self { format, outputs, inputs, lines }.checked()
    }

    /// The matrix, if every scale is finite.
    fn checked(mut self) -> Option<Self> {
        let layout = self.layout();
        let mut scales = self.scales().iter().flat_map(|line| line.0);
        let finite = match self.format {
            WeightFormat::F32 | WeightFormat::Bf16 => true,
            WeightFormat::Int8 => scales.all(|bits| f32::from_bits(bits).is_finite()),
            WeightFormat::Int4 => scales.all(|bits| bf16::decode(bits, 0).is_finite() && bf16::decode(bits, 1).is_finite()),
        };
        if self.format == WeightFormat::Bf16 && self.inputs % 2 == 1 {
            // Products multiply the padding of a row by 0; it must not be NaN.
            let last = |block: usize| layout.line(block, layout.words - 1);
            let is_clean = (0..layout.blocks).all(|block| self.lines[last(block)].0.iter().all(|word| word >> 16 == 0));
            if !is_clean {
                let lines = self.lines.to_mut();
                (0..layout.blocks).for_each(|block| lines[last(block)].0.iter_mut().for_each(|word| *word &= 0xffff));
            }
        }
        finite.then_some(self)
    }

    /// The matrix as bytes, the same on every CPU: the lines of words of the layout (16 outputs side by side), little-endian, then the
    /// scales.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size_in_bytes());
        layout::to_bytes(&self.lines, &mut bytes);
        bytes
    }

    /// How the weights are stored.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Number of rows of W.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Number of columns of W.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Memory of weights, scales and padding, whether owned or shared.
    pub fn size_in_bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// Writes the weights of output `i` as f32: the values that products use.
    ///
    /// # Shapes
    /// `out`: `[inputs]`
    ///
    /// # Panics
    /// When there is no output `i` or the length does not fit.
    pub fn row(&self, i: usize, out: &mut [f32]) {
        assert!(i < self.outputs, "row {i} of a matrix with {} outputs; ask for a smaller one", self.outputs);
        expect_len("row", out, self.inputs);
        let (layout, block, lane) = (self.layout(), i / BLOCK, i % BLOCK);
        let (first, step) = layout.block(block);
        let scales = &self.scales()[block * layout.scales..][..layout.scales];
        let per_word = self.format.inputs_per_word();
        for (word, out) in out.chunks_mut(per_word).enumerate() {
            let bits = self.lines[first + word * step].0[lane];
            for (j, out) in out.iter_mut().enumerate() {
                *out = match self.format {
                    WeightFormat::F32 => f32::from_bits(bits),
                    WeightFormat::Bf16 => bf16::decode(bits, j),
                    WeightFormat::Int8 => int8::decode(bits, j, f32::from_bits(scales[0].0[lane])),
                    WeightFormat::Int4 => {
                        let group = word * per_word / int4::GROUP;
                        int4::decode(bits, j, bf16::decode(scales[group / 2].0[lane], group % 2))
                    }
                };
            }
        }
    }

    fn layout(&self) -> Layout {
        Layout::new(self.format, self.outputs, self.inputs)
    }

    fn words(&self) -> &[Line] {
        let layout = self.layout();
        &self.lines[..layout.blocks * layout.words]
    }

    fn scales(&self) -> &[Line] {
        let layout = self.layout();
        &self.lines[layout.blocks * layout.words..]
    }
}
