//! Where the sums of a product go.

use super::codec::numbers;
use super::layout::{BLOCK, Line};
use crate::simd::{self, Simd};
use core::ops::Range;

/// The outputs that are wanted of every row.
pub(super) struct Target<'a> {
    pub outputs: Range<usize>,
    /// Where the first output of the first row goes.
    pub y: *mut f32,
    pub stride: usize,
    /// Of all outputs.
    pub bias: Option<&'a [f32]>,
}

/// Which of the sums over parts of the inputs it is.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The first: the target holds nothing yet.
    pub starts: bool,
    /// The last: scale and bias are due.
    pub ends: bool,
}

impl Part {
    /// The sum over all inputs.
    pub const WHOLE: Self = Self { starts: true, ends: true };
}

impl Target<'_> {
    /// The blocks with wanted outputs.
    pub fn blocks(&self) -> Range<usize> {
        self.outputs.start / BLOCK..self.outputs.end.div_ceil(BLOCK)
    }

    /// Adds the f32 sums of a block to those of earlier parts, finishes them after the last one (`scales` is then a line of f32), and writes those
    /// that are wanted.
    ///
    /// # Safety
    /// The outputs of the row lie in the target, which nothing else uses.
    #[inline(always)]
    pub unsafe fn put<S: Simd>(&self, simd: S, sums: &Line, scales: Option<&Line>, block: usize, row: usize, part: Part) {
        let first = block * BLOCK;
        let (from, until) = (self.outputs.start.max(first), self.outputs.end.min(first + BLOCK));
        let (skipped, count) = (from - first, until - from);
        let y = self.y.wrapping_add(row * self.stride + from - self.outputs.start);
        let mut edge = [0.0f32; BLOCK];
        let target = if count == BLOCK { y } else { edge.as_mut_ptr() };
        // SAFETY: the caller's promise; vectors are those of a whole block.
        unsafe {
            if count < BLOCK && !part.starts {
                edge.as_mut_ptr().add(skipped).copy_from_nonoverlapping(y, count);
            }
            for at in (0..BLOCK).step_by(S::F32_LANES) {
                let target = target.add(at).cast::<S::f32s>();
                let mut value = numbers(simd, sums, at);
                if !part.starts {
                    value = simd.add_f32s(target.read_unaligned(), value);
                }
                if part.ends {
                    if let Some(scales) = scales {
                        value = simd.mul_f32s(value, numbers(simd, scales, at));
                    }
                    if let Some(bias) = self.bias.and_then(|bias| bias.get(first + at..)) {
                        value = simd.add_f32s(value, simd::load(simd, bias, 0));
                    }
                }
                target.write_unaligned(value);
            }
            if count < BLOCK {
                y.copy_from_nonoverlapping(edge.as_ptr().add(skipped), count);
            }
        }
    }
}
