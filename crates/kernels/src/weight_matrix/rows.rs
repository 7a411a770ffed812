//! The inputs of a product as its steps read them: f32 unchanged, or rounded to 16-bit integers, in pairs or as bytes.
//!
//! A row x multiplied by integers becomes round(x / s) with s = max |x| / 32639: the error of an input is at most s / 2, 2⁻¹⁵·⁹⁹ of the
//! largest. The integers are the same on every CPU: 32639 = 127 · 256 + 127 is the largest number consisting of two signed bytes. A row
//! whose largest magnitude is below 3.9e-34 becomes 0; one with NaN or ±∞ has scale NaN, and so do all its results.

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::bytes;
use super::codec::{Codec, Row};
use super::layout::Layout;
use crate::simd::{Level, Simd, WithSimd};
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The largest magnitude of a rounded input.
const LARGEST: f32 = 32639.0;
/// Added to a number below 2²², it leaves the nearest integer in the lower half of the bits.
const ROUND: f32 = 12_582_912.0;

/// Memory of padded or rounded rows, kept from product to product.
#[derive(Clone, Default)]
pub(super) struct Memory {
    units: Vec<u32>,
    offsets: Vec<i32>,
    scales: Vec<f32>,
}

impl Memory {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.units.capacity() + self.offsets.capacity() + self.scales.capacity())
    }
}

/// Rows of x.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub count: usize,
    /// `[count, stride]`.
    units: &'a [u32],
    /// The units of all words of a row.
    pub stride: usize,
    /// `[count, groups]`, or empty.
    offsets: &'a [i32],
    groups: usize,
    /// `[count]`, or empty.
    scales: &'a [f32],
}

impl<'a> Rows<'a> {
    /// Rows of f32, `inputs` each, padded with 0 to whole words if necessary.
    pub fn floating<C: Codec>(x: &'a [f32], rows: usize, inputs: usize, layout: &Layout, memory: &'a mut Memory) -> Self {
        let stride = layout.words * C::UNITS;
        let units = if stride == inputs {
            // SAFETY: every f32 is a u32 of the same size and alignment.
            unsafe { core::slice::from_raw_parts(x.as_ptr().cast::<u32>(), x.len()) }
        } else {
            memory.units.clear();
            for row in x.chunks_exact(inputs) {
                memory.units.extend(row.iter().map(|x| x.to_bits()));
                memory.units.resize(memory.units.len() + stride - inputs, 0);
            }
            &memory.units
        };
        Self { count: rows, units, stride, offsets: &[], groups: 0, scales: &[] }
    }

    /// Rows rounded to integers; `zero` is what 0 is stored as.
    pub fn rounded<C: Codec>(
        level: Level,
        x: &[f32],
        rows: usize,
        inputs: usize,
        layout: &Layout,
        zero: i32,
        memory: &'a mut Memory,
    ) -> Self {
        let (stride, groups) = (layout.words * C::UNITS, layout.words.div_ceil(C::GROUP));
        let Memory { units, offsets, scales } = memory;
        // Only what is added is cleared, since all of it is written.
        let grow = |len: usize, now: usize| len.max(now);
        units.resize(grow(rows * stride, units.len()), 0);
        offsets.resize(grow(rows * groups, offsets.len()), 0);
        scales.resize(grow(rows, scales.len()), 0.0);
        let (units, offsets, scales) = (&mut units[..rows * stride], &mut offsets[..rows * groups], &mut scales[..rows]);
        level.run(&mut Round::<C> { x, inputs, stride, groups, zero, units, offsets, scales, format: PhantomData });
        Self { count: rows, units, stride, offsets, groups, scales }
    }

    /// Row `r`, or the last if there are fewer.
    #[inline(always)]
    pub fn row(&self, r: usize) -> Row<'a> {
        let r = r.min(self.count - 1);
        Row {
            units: &self.units[r * self.stride..][..self.stride],
            offsets: &self.offsets[r * self.groups..][..self.groups],
            scale: self.scales.get(r).copied().unwrap_or(1.0),
        }
    }
}

/// Rounds rows.
struct Round<'a, C> {
    x: &'a [f32],
    inputs: usize,
    stride: usize,
    groups: usize,
    zero: i32,
    units: &'a mut [u32],
    offsets: &'a mut [i32],
    scales: &'a mut [f32],
    format: PhantomData<C>,
}

impl<C: Codec> WithSimd for &mut Round<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for r in 0..self.scales.len() {
            let x = &self.x[r * self.inputs..][..self.inputs];
            let units = &mut self.units[r * self.stride..][..self.stride];
            let (scale, inverse) = scale(largest::<C>(x));
            self.scales[r] = scale;
            let offsets = &mut self.offsets[r * self.groups..][..self.groups];
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            if C::BYTES {
                // SAFETY: bytes are multiplied only if the CPU was found to do that.
                unsafe { bytes::round::<C>(x, inverse, self.zero, units, offsets) };
                continue;
            }
            row::<C>(x, inverse, self.zero, units, offsets);
        }
    }
}

/// Rounds a row, and writes −`zero` times the sum of each group.
#[inline(always)]
fn row<C: Codec>(x: &[f32], inverse: f32, zero: i32, units: &mut [u32], offsets: &mut [i32]) {
    for (g, offset) in offsets.iter_mut().enumerate() {
        let per_group = C::GROUP * C::INPUTS;
        let x = &x[g * per_group..x.len().min((g + 1) * per_group)];
        let units = &mut units[g * C::GROUP * C::UNITS..];
        let whole = x.len() / C::INPUTS;
        let mut sum = 0;
        for word in 0..whole {
            sum += pairs::<C>(&x[word * C::INPUTS..][..C::INPUTS], inverse, &mut units[word * C::UNITS..][..C::UNITS]);
        }
        if whole * C::INPUTS < x.len() {
            let rest = &x[whole * C::INPUTS..];
            let mut padded = [0.0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            sum += pairs::<C>(&padded[..C::INPUTS], inverse, &mut units[whole * C::UNITS..][..C::UNITS]);
        }
        *offset = zero.wrapping_neg().wrapping_mul(sum);
    }
}

/// The largest magnitude of a row, ∞ or NaN if it has one.
#[inline(always)]
fn largest<C: Codec>(x: &[f32]) -> f32 {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if C::BYTES {
        // SAFETY: bytes are multiplied only if the CPU was found to do that.
        return f32::from_bits(unsafe { bytes::largest(x) });
    }
    // The bits of magnitudes are in the order of the magnitudes, with those of ∞ and NaN above all others.
    let mut largest = 0;
    for x in x {
        largest = u32::max(largest, x.to_bits() & 0x7fff_ffff);
    }
    f32::from_bits(largest)
}

/// The scale of a row, and the factor of its inputs.
#[inline(always)]
fn scale(largest: f32) -> (f32, f32) {
    let scale = largest / LARGEST;
    match () {
        () if !largest.is_finite() => (f32::NAN, 0.0),
        () if scale < f32::MIN_POSITIVE => (0.0, 0.0),
        () => (scale, LARGEST / largest),
    }
}

/// Rounds the inputs of a word, and returns their sum: a unit holds an input and the one half a word further on.
#[inline(always)]
fn pairs<C: Codec>(x: &[f32], inverse: f32, units: &mut [u32]) -> i32 {
    let mut sum = 0;
    for j in 0..C::UNITS {
        let (low, high) = (x[j] * inverse + ROUND, x[j + C::UNITS] * inverse + ROUND);
        units[j] = low.to_bits() & 0xffff | high.to_bits() << 16;
        sum += i32::from(low.to_bits() as i16) + i32::from(high.to_bits() as i16);
    }
    sum
}
