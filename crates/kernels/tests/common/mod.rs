//! What the kernel tests share: the tolerance table, reproducible data, poisoned outputs, comparisons by name.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub mod recurrence;

use minrnn_kernels::segments::{CONTINUE, PADDING, RESET};
use minrnn_kernels::{Out, Shape};

/// Outputs and final states: |error| ≤ this · max(|x|, rms(x)).
pub const OUTPUT: f64 = 2e-6;
/// Gradients, by the same measure.
pub const GRADIENT: f64 = 1e-5;
/// Analytic gradients of a reference against central differences, both f64.
pub const DIFFERENCES: f64 = 1e-6;

/// Sequence lengths every recurrence is tried on.
pub const LENGTHS: [usize; 9] = [0, 1, 2, 7, 63, 64, 65, 257, 1000];
/// Widths every recurrence is tried on.
pub const WIDTHS: [usize; 5] = [1, 5, 16, 33, 64];

/// Rows and widths that kernels on the last dimension are tried on.
pub const MATRICES: [(usize, usize); 10] = [(0, 3), (1, 1), (3, 5), (2, 16), (5, 33), (127, 64), (129, 7), (300, 65), (1000, 1), (2, 1000)];

/// The message that `work` panics with.
#[track_caller]
pub fn panic_of(work: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("a panic");
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a message")
}

/// Runs `check` with the kernels restricted to each instruction set of this machine in turn.
pub fn on_every_level(check: impl Fn(&str)) {
    for level in minrnn_kernels::simd::Level::available() {
        level.scope(|| check(level.name()));
    }
}

/// The bits of `values`: those of 0 and −0 differ, those of a NaN are equal to themselves.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// The bits of what a kernel wrote, which must have no NaN: outputs hold NaN where nothing was written.
#[track_caller]
pub fn written_bits(values: &[f32]) -> Vec<u32> {
    assert!(!values.iter().any(|x| x.is_nan()), "an output has NaN in it");
    bits(values)
}

/// The same of several outputs.
#[track_caller]
pub fn all_bits<const N: usize>(outputs: &[Vec<f32>; N]) -> [Vec<u32>; N] {
    outputs.each_ref().map(|values| written_bits(values))
}

/// Asserts that `run` gives the same bits on 1, 2, 5 and 16 threads.
#[track_caller]
pub fn assert_threads_change_nothing<const N: usize>(run: impl Fn() -> [Vec<f32>; N] + Sync) {
    // There is only one thread.
    if cfg!(target_family = "wasm") {
        return;
    }
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        all_bits(&pool.install(&run))
    };
    let alone = on(1);
    assert!([2, 5, 16].into_iter().all(|threads| alone == on(threads)), "the number of threads changes the result");
}

/// Σ x y.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A small generator (SplitMix64), so that data need no crate.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// `n` values, roughly standard normal.
    pub fn normal(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| ((0..12).map(|_| self.uniform()).sum::<f64>() - 6.0) as f32).collect()
    }

    /// `n` values uniform in `low..high`.
    pub fn between(&mut self, n: usize, low: f64, high: f64) -> Vec<f32> {
        (0..n).map(|_| (low + (high - low) * self.uniform()) as f32).collect()
    }
}

/// Codes of a batch: a reset with the given probability, and padding after a random length when `padded`.
pub fn codes(random: &mut Random, shape: Shape, resets: f64, padded: bool) -> Vec<i32> {
    let mut codes = Vec::new();
    for _ in 0..shape.batch {
        let length = if padded { random.below(shape.seq_len + 1) } else { shape.seq_len };
        codes.extend((0..shape.seq_len).map(|t| match t {
            t if t >= length => PADDING,
            _ if random.uniform() < resets => RESET,
            _ => CONTINUE,
        }));
    }
    codes
}

/// Runs `write` on a buffer of `n` numbers that are none of the expected ones, and asserts that afterwards exactly those in `range` are NaN.
#[track_caller]
pub fn assert_nan_in(name: &str, range: core::ops::Range<usize>, n: usize, write: impl FnOnce(Out<'_>)) {
    let mut numbers = vec![77.0f32; n];
    write(Out::new(&mut numbers));
    let wrong = numbers.iter().enumerate().find(|(i, x)| x.is_nan() != range.contains(i));
    assert!(wrong.is_none(), "{name}: expected NaN in {range:?} alone, found {wrong:?}");
}

/// The same values in f64.
pub fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// Runs `write` on `N` outputs of the given lengths, poisoned with NaN first, and returns them.
pub fn outputs<const N: usize>(lengths: [usize; N], write: impl FnOnce([Out<'_>; N])) -> [Vec<f32>; N] {
    let mut buffers = lengths.map(|n| vec![f32::NAN; n]);
    write(buffers.each_mut().map(Out::from));
    buffers
}

/// max |actual − expected| / max(|expected|, rms(expected), floor).
pub fn error(actual: &[f32], expected: &[f64], floor: f64) -> f64 {
    assert_eq!(actual.len(), expected.len());
    let rms = (expected.iter().map(|x| x * x).sum::<f64>() / expected.len().max(1) as f64).sqrt();
    let relative = |(&a, &e): (&f32, &f64)| {
        let difference = (f64::from(a) - e).abs();
        if difference == 0.0 { 0.0 } else { difference / e.abs().max(rms).max(floor) }
    };
    actual.iter().zip(expected).map(relative).fold(0.0, |worst, e| if e.is_nan() || e > worst { e } else { worst })
}

/// Asserts that the error of `actual` is at most `tolerance`.
#[track_caller]
pub fn assert_close(name: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    assert_close_above(name, actual, expected, tolerance, 0.0);
}

/// The same where numbers below `floor` are noise, such as a lone sum of terms of that size that cancel.
#[track_caller]
pub fn assert_close_above(name: &str, actual: &[f32], expected: &[f64], tolerance: f64, floor: f64) {
    let found = error(actual, expected, floor);
    assert!(found <= tolerance, "{name}: error {found:.2e}, tolerance {tolerance:.0e}");
}

/// The same for gradients that are sums of `terms` numbers of order 1.
#[track_caller]
pub fn assert_sums_close(name: &str, actual: &[f32], expected: &[f64], terms: usize) {
    assert_close_above(name, actual, expected, GRADIENT, (terms as f64).sqrt());
}

/// Gradient of `loss` with respect to every element of `x` by central differences.
pub fn differences(x: &[f64], mut loss: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let mut x = x.to_vec();
    (0..x.len())
        .map(|i| {
            let middle = x[i];
            x[i] = middle + STEP;
            let above = loss(&x);
            x[i] = middle - STEP;
            let below = loss(&x);
            x[i] = middle;
            (above - below) / (2.0 * STEP)
        })
        .collect()
}

/// Asserts that an analytic gradient agrees with central differences of the loss.
#[track_caller]
pub fn assert_gradient(name: &str, analytic: &[f64], differences: &[f64]) {
    assert_eq!(analytic.len(), differences.len());
    for (i, (a, d)) in analytic.iter().zip(differences).enumerate() {
        assert!((a - d).abs() <= DIFFERENCES * d.abs().max(1.0), "{name}[{i}]: {a}, central differences {d}");
    }
}
