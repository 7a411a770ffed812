//! What holds for every recurrence whatever its inputs: cuts, causality, bounds, threads.

mod common;

use common::recurrence::{Batch, Cell, Named, Tested, cells, is_shared};
use common::{GRADIENT, OUTPUT, Random, assert_close_above, bits, wide};
use minrnn_kernels::segments::{PADDING, RESET};
use minrnn_kernels::{Candidate, Gates, Shape};
use proptest::prelude::*;

fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start").install(work)
}

fn random_batch(cell: Cell, shape: Shape, segments: (bool, bool), seed: u64) -> Batch {
    let mut random = Random(seed);
    let batch = cell.batch(shape, &mut random);
    if segments == (false, false) { batch } else { batch.with_segments(segments.0, segments.1, &mut random) }
}

/// Steps `from..to` of a sequence tensor with `row` values per step.
fn steps<T: Copy>(x: &[T], shape: Shape, row: usize, from: usize, to: usize) -> Vec<T> {
    if x.is_empty() {
        return vec![];
    }
    (0..shape.batch).flat_map(|b| x[(b * shape.seq_len + from) * row..(b * shape.seq_len + to) * row].to_vec()).collect()
}

fn part(batch: &Batch, cell: Cell, from: usize, to: usize) -> Batch {
    let (shape, width) = (batch.shape, batch.shape.width);
    Batch {
        shape: Shape { seq_len: to - from, ..shape },
        x: steps(&batch.x, shape, cell.parts() * width, from, to),
        y: if is_shared(cell) { batch.y.clone() } else { steps(&batch.y, shape, width, from, to) },
        codes: batch.codes.as_ref().map(|codes| steps(codes, shape, 1, from, to)),
        d_h: batch.d_h.as_ref().map(|d_h| steps(d_h, shape, width, from, to)),
        ..batch.clone()
    }
}

fn get<'a>(named: &'a Named<f32>, name: &str) -> &'a [f32] {
    &named.iter().find(|(n, _)| *n == name).expect("the name is known").1
}

/// Upstream gradients are of size 1, so differences are measured against at least that.
#[track_caller]
fn same(name: &str, found: &[f32], expected: &[f32]) {
    let tolerance = if name.starts_with('h') { OUTPUT } else { GRADIENT };
    assert_close_above(name, found, &wide(expected), tolerance, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cut_anywhere_changes_nothing(
        cell in prop::sample::select(cells()), batch in 1usize..4, seq_len in 0usize..150, width in 1usize..40,
        cut in 0.0..1.0, resets: bool, lengths: bool, seed: u64,
    ) {
        let shape = Shape { batch, seq_len, width };
        let whole = random_batch(cell, shape, (resets, lengths), seed);
        let cut = (cut * (seq_len + 1) as f64) as usize;
        let expected = cell.run(&whole);

        let mut first = part(&whole, cell, 0, cut);
        let mut second = part(&whole, cell, cut, seq_len);
        second.h0 = Some(get(&cell.run(&first), "h_last").to_vec());
        let second = cell.run(&second);
        first.d_h_last = Some(get(&second, "d_h0").to_vec());
        let first = cell.run(&first);

        for (name, row) in [("h", width), ("d_x", cell.parts() * width), ("d_y", width)] {
            same(name, get(&first, name), &steps(get(&expected, name), shape, row, 0, cut));
            same(name, get(&second, name), &steps(get(&expected, name), shape, row, cut, seq_len));
        }
        same("h_last", get(&second, "h_last"), get(&expected, "h_last"));
        same("d_h0", get(&first, "d_h0"), get(&expected, "d_h0"));
        let shared = expected.iter().any(|(name, _)| *name == "d_share").then_some("d_share");
        for name in ["d_init", "d_bias"].into_iter().chain(shared) {
            let both: Vec<f32> = get(&first, name).iter().zip(get(&second, name)).map(|(x, y)| x + y).collect();
            same(name, &both, get(&expected, name));
        }
    }

    #[test]
    fn the_future_does_not_reach_the_past(
        cell in prop::sample::select(cells()), seq_len in 1usize..150, width in 1usize..40, at in 0.0..1.0, resets: bool, seed: u64,
    ) {
        let shape = Shape { batch: 2, seq_len, width };
        let batch = random_batch(cell, shape, (resets, false), seed);
        let at = (at * seq_len as f64) as usize;
        let mut changed = batch.clone();
        let row = cell.parts() * width;
        changed.x[at * row..seq_len * row].iter_mut().for_each(|x| *x -= 0.25);
        if !is_shared(cell) && !changed.y.is_empty() {
            changed.y[at * width..seq_len * width].iter_mut().for_each(|y| *y += 0.25);
        }
        let (found, other) = (cell.run(&batch), cell.run(&changed));
        let past = |named: &Named<f32>| bits(&get(named, "h")[..at * width]);
        prop_assert_eq!(past(&found), past(&other));
        // Nor another row.
        let beside = |named: &Named<f32>| [("h", seq_len * width), ("h_last", width)].map(|(name, from)| bits(&get(named, name)[from..]));
        prop_assert_eq!(beside(&found), beside(&other));
    }

    #[test]
    fn mixtures_stay_between_the_start_and_the_candidates(
        gru: bool, scale in 0.1f32..60.0, seq_len in 1usize..300, seed: u64,
    ) {
        let cell = if gru { Cell::MinGru(Candidate::Identity) } else { Cell::MinLstm(Candidate::Identity, Gates::Normalized) };
        let width = 5;
        let mut batch = random_batch(cell, Shape { batch: 1, seq_len, width }, (false, false), seed);
        batch.bias = None;
        batch.x.iter_mut().for_each(|x| *x *= scale);
        let h = cell.run(&batch);
        for c in 0..width {
            let h0 = batch.h0.as_ref().expect("there is one")[c];
            let (mut low, mut high) = (h0, h0);
            for t in 0..seq_len {
                let candidate = batch.x[t * cell.parts() * width + c];
                (low, high) = (low.min(candidate), high.max(candidate));
                let h = get(&h, "h")[t * width + c];
                prop_assert!((low..=high).contains(&h), "step {} channel {}: {} outside {}..{}", t, c, h, low, high);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn threads_over_time_change_nothing(
        cell in prop::sample::select(cells()), batch in 1usize..4, seq_len in 2500usize..6000, width in 14usize..40, threads in 2usize..6,
        resets: bool, lengths: bool, seed: u64,
    ) {
        let batch = random_batch(cell, Shape { batch, seq_len, width }, (resets, lengths), seed);
        let (one, many) = (on(1, || cell.run(&batch)), on(threads, || cell.run(&batch)));
        for ((name, one), (_, many)) in one.iter().zip(&many) {
            same(name, many, one);
        }
    }
}

#[test]
fn padding_keeps_the_state_and_gives_nothing() {
    for cell in cells() {
        let mut batch = random_batch(cell, Shape { batch: 1, seq_len: 4, width: 3 }, (false, false), 1);
        batch.codes = Some(vec![PADDING; 4]);
        let out = cell.run(&batch);
        assert_eq!(get(&out, "h_last"), batch.h0.as_deref().expect("there is one"), "{cell:?}");
        assert_eq!(get(&out, "d_h0"), batch.d_h_last.as_deref().expect("there is one"), "{cell:?}");
        for name in ["h", "d_x", "d_y", "d_bias", "d_init"] {
            assert!(get(&out, name).iter().all(|&x| x == 0.0), "{cell:?} {name}");
        }
    }
}

#[test]
fn no_gradient_crosses_a_reset() {
    for cell in cells() {
        let mut batch = random_batch(cell, Shape { batch: 1, seq_len: 4, width: 3 }, (false, false), 2);
        batch.codes = Some(vec![RESET, 0, 0, 0]);
        let out = cell.run(&batch);
        assert!(get(&out, "d_h0").iter().all(|&x| x == 0.0), "{cell:?}");
        assert!(get(&out, "d_init").iter().all(|&x| x != 0.0), "{cell:?}");
        batch.h0 = Some(vec![f32::NAN; 3]);
        assert!(get(&cell.run(&batch), "h").iter().all(|x| x.is_finite()), "{cell:?}");
    }
}

#[test]
fn a_forget_gate_that_never_forgets_keeps_the_state_and_equal_gates_share_evenly() {
    let cell = Cell::MinLstm(Candidate::Identity, Gates::Normalized);
    let mut batch = random_batch(cell, Shape { batch: 1, seq_len: 1, width: 1 }, (false, false), 3);
    batch.bias = None;
    batch.h0 = Some(vec![0.7]);
    let mut h = |x: [f32; 3]| {
        batch.x = x.to_vec();
        get(&cell.run(&batch), "h")[0]
    };
    assert_eq!(h([5.0, 100.0, -100.0]), 0.7);
    assert_eq!(h([1.3, 0.4, 0.4]), 1.0);
}
