//! Every recurrence kernel against its reference in f64: outputs, final states and gradients, on awkward sizes.

mod common;

use common::recurrence::{Batch, Cell, Named, Tested, cells};
use common::{GRADIENT, LENGTHS, OUTPUT, Random, WIDTHS, assert_close, assert_close_above, bits, written_bits};
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Candidate, Gates, Shape};

/// Runs `work` on a pool of `threads` threads at `level`.
fn on<R: Send>(threads: usize, level: Level, work: impl FnOnce() -> R + Send) -> R {
    // WebAssembly has only one.
    if cfg!(target_family = "wasm") {
        return level.scope(work);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    pool.install(|| level.scope(work))
}

fn fastest() -> Level {
    *Level::available().last().expect("plain is always there")
}

/// Compares everything with the reference, with tolerances multiplied by `slack`.
#[track_caller]
fn check(cell: Cell, batch: &Batch, threads: usize, level: Level, slack: f64) {
    let found = on(threads, level, || cell.run(batch));
    compare(&format!("{} on {threads} threads", level.name()), cell, batch, &found, slack);
}

/// Candidates and upstream gradients are of size 1: a lone number that happens to cancel is measured against that. Likewise a sum over
/// all steps is measured against the size of such sums: the rounding of its terms alone, added up exactly, may be 2e-5 of a sum that
/// cancels to 1.
#[track_caller]
fn compare(how: &str, cell: Cell, batch: &Batch, found: &Named<f32>, slack: f64) {
    for ((name, found), (_, expected)) in found.iter().zip(cell.run_reference(batch)) {
        let (tolerance, floor) = match *name {
            "h" | "h_last" => (OUTPUT, 0.5),
            "d_x" | "d_y" => (GRADIENT, 1e-30),
            "d_share" => (GRADIENT, (batch.shape.steps().max(1) as f64).sqrt()),
            _ => (GRADIENT, 1.0),
        };
        let what = format!("{cell:?} {:?} {how}: {name}", batch.shape);
        assert_close_above(&what, found, &expected, slack * tolerance, floor);
    }
}

/// All sizes.
fn shapes() -> Vec<Shape> {
    let of_length = |&seq_len| WIDTHS.into_iter().flat_map(move |width| [0, 1, 3].map(|batch| Shape { batch, seq_len, width }));
    LENGTHS.iter().flat_map(of_length).collect()
}

#[test]
fn kernels_match_the_reference_on_every_level() {
    let mut random = Random(1);
    for cell in cells() {
        for shape in shapes() {
            let batch = cell.batch(shape, &mut random);
            for level in Level::available() {
                let found = on(2, level, || cell.run(&batch));
                compare(level.name(), cell, &batch, &found, 1.0);
            }
        }
    }
}

#[test]
fn kernels_match_the_reference_with_and_without_each_optional_input() {
    let mut random = Random(2);
    for cell in cells() {
        for choice in 0..32 {
            let seq_len = 65;
            let mut batch = cell.batch(Shape { batch: 3, seq_len, width: 33 }, &mut random);
            let absent = |bit: usize| choice >> bit & 1 == 1;
            batch.h0 = batch.h0.filter(|_| !absent(0));
            batch.init = batch.init.filter(|_| !absent(1));
            batch.bias = batch.bias.filter(|_| !absent(2));
            batch.d_h = batch.d_h.filter(|_| !absent(3));
            batch.d_h_last = batch.d_h_last.filter(|_| !absent(4));
            check(cell, &batch.with_segments(true, true, &mut random), 1, fastest(), 1.0);
        }
    }
}

#[test]
fn kernels_match_the_reference_on_segments() {
    let mut random = Random(3);
    for cell in cells() {
        for seq_len in [0, 1, 2, 7, 64, 257] {
            for (resets, lengths) in [(true, false), (false, true), (true, true)] {
                let batch = cell.batch(Shape { batch: 4, seq_len, width: 19 }, &mut random);
                check(cell, &batch.with_segments(resets, lengths, &mut random), 2, fastest(), 1.0);
            }
        }
    }
}

#[test]
fn long_single_sequences_are_exact_when_cut_over_threads() {
    let mut random = Random(4);
    let seq_len = 5000;
    for cell in cells() {
        for (batch, width, threads) in [(1, 16, 4), (3, 33, 2)] {
            let batch = cell.batch(Shape { batch, seq_len, width }, &mut random);
            check(cell, &batch, threads, fastest(), 2.0);
            for (resets, lengths) in [(true, false), (false, true), (true, true)] {
                check(cell, &batch.clone().with_segments(resets, lengths, &mut random), threads, fastest(), 2.0);
            }
        }
    }
}

#[test]
fn the_same_work_on_the_same_threads_gives_the_same_bits() {
    let mut random = Random(5);
    for cell in cells() {
        for (batch, seq_len) in [(1, 2000), (7, 100)] {
            let batch = cell.batch(Shape { batch, seq_len, width: 18 }, &mut random).with_segments(true, false, &mut random);
            let run = || on(3, fastest(), || cell.run(&batch)).iter().flat_map(|(_, values)| bits(values)).collect::<Vec<_>>();
            let first = run();
            (0..3).for_each(|_| assert!(run() == first, "{cell:?}"));
        }
    }
}

#[test]
fn large_outputs_are_the_same_as_small_ones() {
    // Large enough to bypass the caches; the same rows one by one are not.
    let shape = Shape { batch: 9, seq_len: 2048, width: 128 };
    for cell in [Cell::Linear, Cell::MinGru(Candidate::Positive)] {
        let batch = cell.batch(shape, &mut Random(6));
        let whole = on(2, fastest(), || cell.run(&batch));
        let n = shape.elements() / shape.batch;
        for b in 0..shape.batch {
            let part = |x: &[f32], n: usize| x.get(b * n..(b + 1) * n).map_or(vec![], <[f32]>::to_vec);
            let row = Batch {
                shape: Shape { batch: 1, ..shape },
                x: part(&batch.x, n * cell.parts()),
                y: part(&batch.y, n),
                h0: batch.h0.as_ref().map(|h0| part(h0, shape.width)),
                d_h: batch.d_h.as_ref().map(|d| part(d, n)),
                d_h_last: batch.d_h_last.as_ref().map(|d| part(d, shape.width)),
                ..batch.clone()
            };
            let alone = on(1, fastest(), || cell.run(&row));
            for (i, size) in [(0, n), (1, shape.width), (2, n * cell.parts()), (5, shape.width)] {
                assert!(written_bits(&alone[i].1) == bits(&part(&whole[i].1, size)), "{cell:?} row {b}: {}", alone[i].0);
            }
        }
    }
}

#[test]
fn nan_in_an_input_reaches_the_output() {
    for cell in cells() {
        for level in Level::available() {
            for column in 0..cell.parts() {
                let shape = Shape { batch: 1, seq_len: 5, width: 20 };
                let mut batch = cell.batch(shape, &mut Random(7));
                batch.x[(2 * cell.parts() + column) * shape.width + 3] = f32::NAN;
                let found = on(1, level, || cell.run(&batch));
                let h = &found[0].1;
                let hit = |t: usize, c: usize| h[t * shape.width + c].is_nan();
                assert!((0..5).all(|t| hit(t, 3) == (t >= 2)), "{cell:?} {} column {column}", level.name());
                assert!((0..20).all(|c| c == 3 || !hit(4, c)), "{cell:?} {} column {column}", level.name());
            }
        }
    }
}

#[test]
fn gates_of_forty_stay_within_the_promise_over_twenty_thousand_steps() {
    let mut random = Random(8);
    for cell in cells().into_iter().filter(|cell| cell.parts() > 1) {
        for threads in [1, 4] {
            let mut batch = cell.batch(Shape { batch: 1, seq_len: 20_000, width: 2 }, &mut random);
            batch.x.iter_mut().for_each(|x| *x = if random.below(2) == 0 { -40.0 } else { 40.0 });
            let found = on(threads, fastest(), || cell.run(&batch));
            assert_close(&format!("{cell:?}"), &found[0].1, &cell.run_reference(&batch)[0].1, 1e-4);
        }
    }
}

#[test]
fn gates_of_a_hundred_are_exact() {
    for level in Level::available() {
        for (p, q) in [(100.0, 100.0), (-100.0, -100.0), (100.0, -100.0), (-100.0, 100.0), (-100.0, -99.0), (-25.0, -21.0), (-90.0, 0.0)] {
            let cell = Cell::MinLstm(Candidate::Positive, Gates::Normalized);
            let mut batch = cell.batch(Shape { batch: 1, seq_len: 3, width: 1 }, &mut Random(9));
            batch.bias = None;
            batch.x = [0.7, p, q].repeat(3);
            check(cell, &batch, 1, level, 1.0);
        }
    }
}

#[test]
fn a_gradient_that_has_vanished_is_zero_and_not_the_least_of_all_numbers() {
    use minrnn_kernels::recurrence::{Cell, Gradients, Inputs, Upstream, backward};
    let shape = Shape { batch: 1, seq_len: 4096, width: 20 };
    // The decay is 0.9 at every step: 1e-45 times that is 1e-45.
    let (a, d_h_last) = (vec![0.9f32; shape.elements()], vec![1.0; shape.states()]);
    let inputs = Inputs { preact: &a, bias: None, extra: &a };
    for (threads, level) in Level::available().iter().flat_map(|&level| [(1, level), (3, level)]) {
        let sizes = [a.len(), a.len(), shape.states(), shape.width];
        let [d_a, d_b, d_h0, _] = common::outputs(sizes, |[d_preact, d_extra, d_h0, d_init]| {
            on(threads, level, || {
                let gradients = Gradients { d_preact, d_bias: None, d_extra, d_h0, d_init };
                let upstream = Upstream { h: &a, d_h: None, d_h_last: Some(&d_h_last) };
                backward(shape, Cell::Linear, inputs, Default::default(), upstream, gradients);
            });
        });
        assert!(d_h0.iter().all(|&x| x == 0.0), "{}: {d_h0:?}", level.name());
        // The last gradient that is left, times a state of 0.9; one more if a chunk begins with what another one left.
        let traces = d_a.iter().chain(&d_b).filter(|x| x.is_subnormal()).count();
        assert!(traces <= 2 * shape.width, "{}, {threads} threads: {traces} traces", level.name());
    }
}

/// Later products would be slow with them.
#[test]
fn gradients_of_gates_vanish_without_subnormal_numbers() {
    let shape = Shape { batch: 1, seq_len: 2000, width: 20 };
    for cell in cells().into_iter().filter(|cell| cell.parts() > 1) {
        let mut batch = cell.batch(shape, &mut Random(13));
        batch.d_h = None;
        for (threads, level) in Level::available().iter().flat_map(|&level| [(1, level), (3, level)]) {
            for (name, d) in on(threads, level, || cell.run(&batch)) {
                let subnormal = d.iter().filter(|x| x.is_subnormal()).count();
                assert_eq!(subnormal, 0, "{cell:?} on {}, {threads} threads: of {name}, {}", level.name(), d.len());
            }
        }
    }
}

#[test]
fn slow_gates_do_not_drift() {
    // Keeping 1 − z in f32 next to 1 would be wrong by 3e-4 here.
    let seq_len = 300_000;
    for threads in [1, 4] {
        for cell in [Cell::MinGru(Candidate::Identity), Cell::MinLstm(Candidate::Identity, Gates::Normalized)] {
            let mut batch = cell.batch(Shape { batch: 1, seq_len, width: 2 }, &mut Random(10));
            batch.bias = None;
            for row in batch.x.chunks_mut(2 * cell.parts()) {
                row[2..4].fill(if cell.parts() == 2 { -9.21 } else { 0.0 });
                row[4..].fill(-9.21);
            }
            let found = on(threads, fastest(), || cell.run(&batch));
            let expected = cell.run_reference(&batch);
            assert_close(&format!("{cell:?} h on {threads}"), &found[0].1, &expected[0].1, 3e-5);
            assert_close(&format!("{cell:?} d_x on {threads}"), &found[2].1, &expected[2].1, 3e-4);
        }
    }
}

#[test]
fn a_million_ordinary_steps_stay_within_the_promise() {
    for cell in [Cell::MinGru(Candidate::Positive), Cell::MinLstm(Candidate::Positive, Gates::Normalized), Cell::LogSpace] {
        for threads in [1, 2] {
            let batch = cell.batch(Shape { batch: 1, seq_len: 1 << 20, width: 2 }, &mut Random(11));
            let found = on(threads, fastest(), || cell.run(&batch));
            assert_close(&format!("{cell:?}"), &found[0].1, &cell.run_reference(&batch)[0].1, 4e-6);
        }
    }
}
