//! Dropout of a branch and its residual: y = residual + keep ⊙ (x + bias) / (1 − p), without a stored mask.
//!
//! Whether element i is kept is a pure function of (key, i): a 32-bit word of Threefry-2x32 with 13 rounds (Salmon et al., "Parallel random
//! numbers: as easy as 1, 2, 3", 2011) is compared with the threshold ⌊p · 2³²⌋. So the backward pass draws the same mask again, and
//! neither threads nor the instruction set affect it.
//!
//! Sixteen counters at a time fill the vector units: element i reads word ⌊i / 16⌋ mod 2 of counter 16 ⌊i / 32⌋ + i mod 16.

use crate::grid::SharedOut;
use crate::out::{Out, Slots};
use crate::rows;
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, mul_add};

/// The inputs of dropout.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[rows, width]`.
    pub x: &'a [f32],
    /// `[width]`; `None` is 0.
    pub bias: Option<&'a [f32]>,
    /// `[rows, width]`; `None` is 0.
    pub residual: Option<&'a [f32]>,
}

/// y = residual + keep ⊙ (x + bias) / (1 − p), `[rows, width]`.
///
/// With `p = 0` nothing is dropped and nothing is drawn. Dropping multiplies by 0, so a dropped NaN or infinity becomes NaN.
///
/// # Panics
/// When a length does not fit or `p` is not in [0, 1).
pub fn forward(rows: usize, width: usize, inputs: Inputs, p: f32, key: u64, y: Out) {
    let Inputs { x, bias, residual } = inputs;
    expect_len("x", x, elements([rows, width]));
    bias.inspect(|bias| expect_len("bias", bias, width));
    residual.inspect(|residual| expect_len("residual", residual, elements([rows, width])));
    y.expect_len("y", elements([rows, width]));
    let mask = Mask::new(p, key);
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { width, first: at.start, x: &x[at.clone()], bias, residual: residual.map(|r| &r[at]), mask, y });
    });
}

/// Gradients of [`forward`] with respect to `x` and `bias`; that of `residual` is `d_y` itself.
///
/// # Shapes
/// - `d_y`, `d_x`: `[rows, width]`
/// - `d_bias`: `[width]`
///
/// # Panics
/// When a length does not fit or `p` is not in [0, 1).
pub fn backward(rows: usize, width: usize, d_y: &[f32], p: f32, key: u64, d_x: Out, d_bias: Option<Out>) {
    expect_len("d_y", d_y, elements([rows, width]));
    d_x.expect_len("d_x", elements([rows, width]));
    if let Some(d_bias) = &d_bias {
        d_bias.expect_len("d_bias", width);
    }
    let mask = Mask::new(p, key);
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    let sums = if d_bias.is_some() { width } else { 0 };
    let partial = rows::for_each_block(rows, width, sums, |range, sums| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        level.run(Backward { width, first: at.start, d_y: &d_y[at], mask, d_x, sums });
    });
    if let Some(d_bias) = d_bias {
        rows::combine(&partial, sums, 0, d_bias);
    }
}

/// Factors of the elements: 0 where dropped, 1 / (1 − p) where kept.
#[derive(Clone, Copy)]
struct Mask {
    key: [u32; 2],
    /// Words below it are dropped.
    threshold: u32,
    scale: f32,
}

/// Counters drawn together.
const LANES: usize = 16;
/// Elements that one draw decides.
const GROUP: usize = 2 * LANES;
/// Elements whose factors are held at once: they stay in the nearest cache.
const SPAN: usize = 1024;

impl Mask {
    fn new(p: f32, key: u64) -> Self {
        assert!((0.0..1.0).contains(&p), "dropout: p must be in [0, 1), found {p}");
        let threshold = (f64::from(p) * 4_294_967_296.0) as u32;
        Self { key: [key as u32, (key >> 32) as u32], threshold, scale: 1.0 / (1.0 - p) }
    }

    /// Writes the factors of the groups `group`, `group + 1`, … of 32 elements.
    #[inline(always)]
    fn fill<S: Simd>(&self, simd: S, group: u64, factors: &mut [[f32; GROUP]]) {
        let threshold = simd.splat_u32s(self.threshold);
        let (dropped, kept) = (simd.splat_f32s(0.0), simd.splat_f32s(self.scale));
        for (i, factors) in factors.iter_mut().enumerate() {
            for lane in (0..LANES).step_by(S::U32_LANES) {
                let words = threefry(simd, self.key, (group + i as u64) * LANES as u64, lane);
                for (half, words) in words.into_iter().enumerate() {
                    let value = simd.select_f32s(simd.less_than_u32s(words, threshold), dropped, kept);
                    simd::put(simd, factors, half * LANES + lane, value);
                }
            }
        }
    }
}

/// Threefry-2x32-13 of the counters `first + lane`, `first + lane + 1`, …; `first` is a multiple of 16, all lanes stay below `first + 16`.
#[inline(always)]
fn threefry<S: Simd>(simd: S, key: [u32; 2], first: u64, lane: usize) -> [S::u32s; 2] {
    const LANE: [u32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let [k0, k1] = key;
    let k2 = 0x1bd1_1bda ^ k0 ^ k1;
    let a = simd.add_u32s(simd.partial_load_u32s(&LANE[lane..]), simd.splat_u32s((first as u32).wrapping_add(k0)));
    let mut x = [a, simd.splat_u32s(((first >> 32) as u32).wrapping_add(k1))];
    x = inject(simd, four_rounds::<13, 15, 26, 6, S>(simd, x), k1, k2.wrapping_add(1));
    x = inject(simd, four_rounds::<17, 29, 16, 24, S>(simd, x), k2, k0.wrapping_add(2));
    x = inject(simd, four_rounds::<13, 15, 26, 6, S>(simd, x), k0, k1.wrapping_add(3));
    round::<17, S>(simd, x)
}

#[inline(always)]
fn four_rounds<const A: u32, const B: u32, const C: u32, const D: u32, S: Simd>(simd: S, x: [S::u32s; 2]) -> [S::u32s; 2] {
    round::<D, S>(simd, round::<C, S>(simd, round::<B, S>(simd, round::<A, S>(simd, x))))
}

#[inline(always)]
fn round<const ROTATION: u32, S: Simd>(simd: S, [a, b]: [S::u32s; 2]) -> [S::u32s; 2] {
    let a = simd.add_u32s(a, b);
    let left = simd.wrapping_dyn_shl_u32s(b, simd.splat_u32s(ROTATION));
    let right = simd.wrapping_dyn_shr_u32s(b, simd.splat_u32s(32 - ROTATION));
    [a, simd.xor_u32s(simd.or_u32s(left, right), a)]
}

#[inline(always)]
fn inject<S: Simd>(simd: S, [a, b]: [S::u32s; 2], first: u32, second: u32) -> [S::u32s; 2] {
    [simd.add_u32s(a, simd.splat_u32s(first)), simd.add_u32s(b, simd.splat_u32s(second))]
}

/// Cuts elements into stretches that lie in one row and use factors filled together, and runs `work` on each.
struct Stretches {
    width: usize,
    /// Index of the first element.
    first: usize,
    len: usize,
    mask: Mask,
}

/// What is done to a stretch: elements `at..at + factors.len()` of the block, starting at `column` of their row.
trait Stretch {
    fn apply<S: Simd>(&mut self, simd: S, at: usize, column: usize, factors: &[f32]);
}

impl Stretches {
    #[inline(always)]
    fn run<S: Simd>(&self, simd: S, mut work: impl Stretch) {
        let mut factors = [[1.0; GROUP]; SPAN / GROUP];
        let mut at = 0;
        while at < self.len {
            let group = (self.first + at) / GROUP;
            let skip = (self.first + at) % GROUP;
            let filled = (self.len - at + skip).min(SPAN);
            if self.mask.threshold > 0 {
                self.mask.fill(simd, group as u64, &mut factors[..filled.div_ceil(GROUP)]);
            }
            let end = at + filled - skip;
            let mut factors = &factors.as_flattened()[skip..filled];
            while at < end {
                let column = at % self.width;
                let (now, later) = factors.split_at((self.width - column).min(end - at));
                work.apply(simd, at, column, now);
                at += now.len();
                factors = later;
            }
        }
    }
}

struct Forward<'a> {
    width: usize,
    first: usize,
    x: &'a [f32],
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    mask: Mask,
    y: Slots<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        Stretches { width: self.width, first: self.first, len: self.x.len(), mask: self.mask }.run(simd, self);
    }
}

impl Stretch for Forward<'_> {
    #[inline(always)]
    fn apply<S: Simd>(&mut self, simd: S, at: usize, column: usize, factors: &[f32]) {
        let n = factors.len();
        let x = &self.x[at..at + n];
        let bias = self.bias.map(|bias| &bias[column..column + n]);
        let residual = self.residual.map(|residual| &residual[at..at + n]);
        let y = &mut self.y[at..at + n];
        for i in (0..n).step_by(S::F32_LANES) {
            let mut u = simd::load(simd, x, i);
            if let Some(bias) = bias {
                u = simd.add_f32s(u, simd::load(simd, bias, i));
            }
            let factor = simd::load(simd, factors, i);
            let value = match residual {
                Some(residual) => mul_add(simd, u, factor, simd::load(simd, residual, i)),
                None => simd.mul_f32s(u, factor),
            };
            simd::store(simd, y, i, value);
        }
    }
}

struct Backward<'a> {
    width: usize,
    first: usize,
    d_y: &'a [f32],
    mask: Mask,
    d_x: Slots<'a>,
    sums: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        Stretches { width: self.width, first: self.first, len: self.d_y.len(), mask: self.mask }.run(simd, self);
    }
}

impl Stretch for Backward<'_> {
    #[inline(always)]
    fn apply<S: Simd>(&mut self, simd: S, at: usize, column: usize, factors: &[f32]) {
        let n = factors.len();
        let d_y = &self.d_y[at..at + n];
        let d_x = &mut self.d_x[at..at + n];
        for i in (0..n).step_by(S::F32_LANES) {
            let d = simd.mul_f32s(simd::load(simd, d_y, i), simd::load(simd, factors, i));
            simd::store(simd, d_x, i, d);
            if !self.sums.is_empty() {
                simd::add_to(simd, &mut self.sums[column..column + n], i, d);
            }
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    struct Words {
        key: [u32; 2],
        first: u64,
    }

    impl WithSimd for Words {
        type Output = Vec<[u32; 2]>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let mut words = vec![[0; 2]; LANES];
            for lane in (0..LANES).step_by(S::U32_LANES) {
                for (half, vector) in threefry(simd, self.key, self.first, lane).into_iter().enumerate() {
                    let mut values = [0; LANES];
                    simd.partial_store_u32s(&mut values[..S::U32_LANES], vector);
                    (0..S::U32_LANES).for_each(|i| words[lane + i][half] = values[i]);
                }
            }
            words
        }
    }

    #[test]
    fn threefry_gives_the_known_answers() {
        // From Random123's kat_vectors: counters, keys and words of threefry2x32 13.
        for level in Level::available() {
            let words = |key, counter: u64| level.run(Words { key, first: counter & !15 })[counter as usize % 16];
            assert_eq!(words([0, 0], 0), [0x9d1c_5ec6, 0x8bd5_0731]);
            assert_eq!(words([u32::MAX, u32::MAX], u64::MAX), [0xfd36_d048, 0x2d17_272c]);
            assert_eq!(words([0x1319_8a2e, 0x0370_7344], 0x85a3_08d3_243f_6a88), [0xba3e_4725, 0xf27d_669e]);
        }
    }
}
