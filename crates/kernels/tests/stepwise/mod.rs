//! What the tests of GRU and LSTM share: segments of every kind, and which sizes are tried.
#![allow(dead_code, reason = "every test binary uses its own part")]

use crate::common::{LENGTHS, Random, WIDTHS, all_bits, assert_close, wide};
use minrnn_kernels::Shape;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};

/// Kinds of segments.
pub const KINDS: usize = 4;

/// Codes of one kind: 0 dense, 1 lengths, 2 resets, 3 both.
pub fn codes(shape: Shape, kind: usize, random: &mut Random) -> Option<Vec<i32>> {
    let Shape { batch, seq_len, .. } = shape;
    let mut codes = vec![CONTINUE; batch * seq_len];
    for (b, row) in codes.chunks_exact_mut(seq_len.max(1)).enumerate() {
        if kind >= 2 {
            row.iter_mut().enumerate().for_each(|(t, code)| *code = if (t + b) % 11 == 3 || t + b == 1 { RESET } else { CONTINUE });
        }
        if kind % 2 == 1 {
            let length = if b == 1 { 0 } else { random.below(seq_len + 1) };
            row[length..].fill(PADDING);
        }
    }
    (kind > 0).then_some(codes)
}

/// The codes as segments.
pub fn segments(codes: &Option<Vec<i32>>, seq_len: usize) -> Segments<'_> {
    codes.as_ref().map_or(Segments::DENSE, |codes| Segments::new(codes, seq_len))
}

/// Sizes that are tried; long sequences only with narrow widths, since the reference is slow.
pub fn shapes() -> impl Iterator<Item = Shape> {
    let all = LENGTHS.into_iter().flat_map(|seq_len| WIDTHS.map(|width| (seq_len, width)));
    all.filter(|(seq_len, width)| seq_len * width <= 1100)
        .flat_map(|(seq_len, width)| [1, 3].map(|batch| Shape { batch, seq_len, width }))
        .chain([(0, 4, 3), (9, 5, 16), (1, 1000, 5), (3, 257, 16), (1, 64, 33), (2, 65, 64)].map(|(batch, seq_len, width)| Shape {
            batch,
            seq_len,
            width,
        }))
}

/// Heads that divide a width.
pub fn heads_of(width: usize) -> usize {
    [4, 3, 1].into_iter().find(|heads| width.is_multiple_of(*heads)).unwrap()
}

/// Steps `range` of every row of `x`, which has `per_step` elements for each of `shape`'s steps.
pub fn cut<T: Copy>(x: &[T], shape: Shape, per_step: usize, range: std::ops::Range<usize>) -> Vec<T> {
    let row = |b: usize| &x[(b * shape.seq_len + range.start) * per_step..(b * shape.seq_len + range.end) * per_step];
    (0..shape.batch).flat_map(|b| row(b).to_vec()).collect()
}

/// Joins rows of two parts along time, the inverse of [`cut`].
pub fn join(parts: [&[f32]; 2], batch: usize) -> Vec<f32> {
    let row = |part: &[f32], b: usize| part[part.len() / batch * b..part.len() / batch * (b + 1)].to_vec();
    (0..batch).flat_map(|b| [row(parts[0], b), row(parts[1], b)].concat()).collect()
}

/// Element-wise sum.
pub fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// States: a gate's argument is a sum of terms of size 1 to 5, whose rounding moves a state by a few 1e-7, and an open forget gate
/// adds such errors up over many steps.
pub const STATE: f64 = 1e-5;

/// Gradients: what returns through T steps is a product of T factors, each with the rounding of a state.
pub const GRADIENT: f64 = 5e-5;

/// [`assert_close`], except that a gradient which vanished on its way back must only be next to 0 (f32 has no smaller numbers).
#[track_caller]
pub fn close(name: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    if expected.iter().all(|x| x.abs() < 1e-30) {
        assert!(actual.iter().all(|x| x.abs() < 1e-30), "{name}: expected next to nothing, found {actual:?}");
    } else {
        assert_close(name, actual, expected, tolerance);
    }
}

/// Asserts that `run`, which gives states, h first, and the gradients `names`, gives the same bits on the same number of threads, and on other
/// numbers of them results that differ only by the order of sums.
#[track_caller]
pub fn assert_threads_change_the_order_of_sums_alone<const S: usize, const G: usize>(
    names: [&str; G],
    run: impl Fn() -> ([Vec<f32>; S], [Vec<f32>; G]) + Sync,
) {
    let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start").install(&run);
    let (states, gradients) = on(1);
    for threads in [2, 3, 8] {
        let (again, again_gradients) = on(threads);
        let (twice, twice_gradients) = on(threads);
        let bits = [(&again, &again_gradients), (&twice, &twice_gradients)].map(|(states, d)| (all_bits(states), all_bits(d)));
        assert_eq!(bits[0], bits[1], "the same bits on {threads} threads");
        close("h", &again[0], &wide(&states[0]), STATE);
        for (name, (found, expected)) in names.iter().zip(again_gradients.iter().zip(&gradients)) {
            close(name, found, &wide(expected), GRADIENT);
        }
    }
}

/// Asserts that of the gradients of one row, `per_step` at each step, those of the first steps have become 0, and that none is a subnormal number on
/// its way there.
pub fn assert_vanished(what: &str, d: &[f32], per_step: usize) {
    assert!(d[..16 * per_step].iter().all(|&d| d == 0.0), "{what}: {:?}", &d[..per_step]);
    assert!(d[d.len() - per_step..].iter().any(|&d| d.abs() > 1e-6), "{what}: {:?}", &d[d.len() - per_step..]);
    let subnormal = d.iter().filter(|d| d.is_subnormal()).count();
    assert_eq!(subnormal, 0, "{what}: subnormal numbers of {}", d.len());
}
