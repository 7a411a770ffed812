mod common;
use common::*;
use minrnn_kernels::Out;
use minrnn_kernels::attention::{self, Sizes, Start, Upstream};
use minrnn_kernels::reference;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};

/// A case: sizes, what each row has of the cache, and codes of the new steps.
struct Case {
    sizes: Sizes,
    lengths: Vec<usize>,
    codes: Option<Vec<i32>>,
}

impl Case {
    fn segments(&self) -> Segments<'_> {
        self.codes.as_deref().map_or(Segments::DENSE, |codes| Segments::new(codes, self.sizes.seq_len))
    }

    fn start<'a, T>(&'a self, past: &'a [T]) -> Start<'a, T> {
        Start { past, lengths: &self.lengths, segments: self.segments() }
    }

    fn elements(&self) -> (usize, usize, usize, usize) {
        let Sizes { batch, seq_len, past, next, .. } = self.sizes;
        let d = self.sizes.width();
        (batch * seq_len * 3 * d, batch * past * 2 * d, batch * seq_len * d, batch * next * 2 * d)
    }
}

/// Dense rows, and rows of other lengths with resets, with and without a cache and a window.
fn cases(seq_lens: &[usize], heads: usize, head_width: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for &seq_len in seq_lens {
        for (past, next, window) in [(0, seq_len, usize::MAX), (5, 7, usize::MAX), (3, 3, 3), (70, 130, 65), (2, 1, 1)] {
            for ragged in [false, true] {
                let batch = 3;
                let sizes = Sizes { batch, seq_len, past, next, heads, head_width, window };
                let lengths = vec![past, past / 2, 0];
                let codes = ragged.then(|| {
                    let ends = [seq_len, seq_len / 2, 0];
                    let code = |b: usize, t: usize| match t {
                        t if t >= ends[b] => PADDING,
                        t if (b == 0 && (t == seq_len / 3 || t == seq_len / 2)) || (b == 1 && t == 0) => RESET,
                        _ => CONTINUE,
                    };
                    (0..batch).flat_map(|b| (0..seq_len).map(move |t| code(b, t))).collect()
                });
                cases.push(Case { sizes, lengths, codes });
            }
        }
    }
    cases
}

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    for case in cases(&[0, 1, 6], 2, 2) {
        let (qkv, past, y, next) = case.elements();
        let (x, cache) = (wide(&random.normal(qkv)), wide(&random.normal(past)));
        let (w_y, w_next) = (wide(&random.normal(y)), wide(&random.normal(next)));
        let loss = |x: &[f64], cache: &[f64]| {
            let out = reference::attention::forward(case.sizes, x, case.start(cache));
            dot(&out.y, &w_y) + dot(&out.next, &w_next)
        };
        let (d_qkv, d_past) = reference::attention::backward(case.sizes, &x, case.start(&cache), Some(&w_y), Some(&w_next));
        assert_gradient("d_qkv", &d_qkv, &differences(&x, |x| loss(x, &cache)));
        assert_gradient("d_past", &d_past, &differences(&cache, |cache| loss(&x, cache)));
    }
}

/// Scores are sums of up to 64 products before their exponentials: twice the tolerance of the element-wise kernels.
#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (seq_lens, heads, head_width) in [(&[0, 1, 2, 7, 63, 64, 65, 257][..], 2, 5), (&[65, 300], 1, 64), (&[3], 3, 16)] {
        for case in cases(seq_lens, heads, head_width) {
            let (qkv, past, y, next) = case.elements();
            let (x, cache, d_y, d_next) = (random.normal(qkv), random.normal(past), random.normal(y), random.normal(next));
            let (wide_x, wide_cache) = (wide(&x), wide(&cache));
            let expected = reference::attention::forward(case.sizes, &wide_x, case.start(&wide_cache));
            let gradients =
                reference::attention::backward(case.sizes, &wide_x, case.start(&wide_cache), Some(&wide(&d_y)), Some(&wide(&d_next)));
            on_every_level(|level| {
                let what = format!("{level} {:?}", case.sizes);
                let lens = [y, expected.log_sums.len(), next];
                let [found_y, log_sums, found_next] =
                    outputs(lens, |[y, l, n]| attention::forward(case.sizes, &x, case.start(&cache), y, l, n));
                assert_close(&format!("{what} y"), &found_y, &expected.y, 2.0 * OUTPUT);
                assert_close(&format!("{what} log_sums"), &log_sums, &expected.log_sums, 2.0 * OUTPUT);
                assert_close(&format!("{what} next"), &found_next, &expected.next, 0.0);
                let [d_qkv, d_past] = outputs([qkv, past], |[d_qkv, d_past]| {
                    let start = case.start(&cache);
                    let upstream = Upstream { y: &found_y, log_sums: &log_sums, d_y: Some(&d_y), d_next: Some(&d_next) };
                    attention::backward(case.sizes, &x, start, upstream, d_qkv, d_past)
                });
                assert_close(&format!("{what} d_qkv"), &d_qkv, &gradients.0, 2.0 * GRADIENT);
                assert_close(&format!("{what} d_past"), &d_past, &gradients.1, 2.0 * GRADIENT);
            });
        }
    }
}

/// Scores far beyond what exp can take, and outputs or cache without a gradient.
#[test]
fn large_scores_and_absent_gradients() {
    let mut random = Random(3);
    for case in cases(&[70], 2, 4) {
        let (qkv, past, y, next) = case.elements();
        let x: Vec<f32> = random.normal(qkv).into_iter().map(|x| 40.0 * x).collect();
        let (cache, d_y, d_next) = (random.normal(past), random.normal(y), random.normal(next));
        let (wide_x, wide_cache) = (wide(&x), wide(&cache));
        let expected = reference::attention::forward(case.sizes, &wide_x, case.start(&wide_cache));
        let lens = [y, expected.log_sums.len(), next];
        let [found, log_sums, _] = outputs(lens, |[y, l, n]| attention::forward(case.sizes, &x, case.start(&cache), y, l, n));
        assert!(found.iter().all(|x| x.is_finite()));
        // A score of thousands is known to about 1e-4 in f32, and so are ratios of weights.
        assert_close("y", &found, &expected.y, 1e-3);
        for (with_y, with_next) in [(true, false), (false, true), (false, false)] {
            let (d_y, d_next) = (with_y.then_some(&d_y[..]), with_next.then_some(&d_next[..]));
            let [d_qkv, d_past] = outputs([qkv, past], |[d_qkv, d_past]| {
                let upstream = Upstream { y: &found, log_sums: &log_sums, d_y, d_next };
                attention::backward(case.sizes, &x, case.start(&cache), upstream, d_qkv, d_past)
            });
            assert!(d_qkv.iter().chain(&d_past).all(|x| x.is_finite()));
            if !with_y {
                let wide_next = d_next.map(wide);
                let exact = reference::attention::backward(case.sizes, &wide_x, case.start(&wide_cache), None, wide_next.as_deref());
                assert_close("d_qkv", &d_qkv, &exact.0, 0.0);
                assert_close("d_past", &d_past, &exact.1, 0.0);
            }
        }
    }
}

/// One over the root of a head's width is no power of two, so that products with it are rounded.
#[test]
fn scores_too_large_to_tell_close_ones_apart_choose_one_value() {
    let mut random = Random(4);
    for case in cases(&[70], 2, 8) {
        let (qkv, past, y, next) = case.elements();
        let d = case.sizes.width();
        let (mut x, mut cache) = (random.normal(qkv), random.normal(past));
        // Queries and keys, not values.
        x.chunks_exact_mut(3 * d).for_each(|step| step[..2 * d].iter_mut().for_each(|x| *x *= 1e5));
        cache.chunks_exact_mut(2 * d).for_each(|step| step[..d].iter_mut().for_each(|x| *x *= 1e5));
        let d_y = random.normal(y);
        let (wide_x, wide_cache, wide_d_y) = (wide(&x), wide(&cache), wide(&d_y));
        let expected = reference::attention::forward(case.sizes, &wide_x, case.start(&wide_cache));
        let gradients = reference::attention::backward(case.sizes, &wide_x, case.start(&wide_cache), Some(&wide_d_y), None);
        let values = |d_qkv: &[f64]| d_qkv.chunks_exact(3 * d).flat_map(|step| step[2 * d..].to_vec()).collect::<Vec<_>>();
        on_every_level(|_| {
            let lens = [y, expected.log_sums.len(), next];
            let [found, log_sums, _] = outputs(lens, |[y, l, n]| attention::forward(case.sizes, &x, case.start(&cache), y, l, n));
            assert_close("y", &found, &expected.y, 1e-5);
            let [d_qkv, _] = outputs([qkv, past], |[d_qkv, d_past]| {
                let upstream = Upstream { y: &found, log_sums: &log_sums, d_y: Some(&d_y), d_next: None };
                attention::backward(case.sizes, &x, case.start(&cache), upstream, d_qkv, d_past)
            });
            assert_close("d_v", &values(&wide(&d_qkv)).iter().map(|&x| x as f32).collect::<Vec<_>>(), &values(&gradients.0), 1e-5);
        });
    }
}

/// The slices' lengths do not limit the number of heads then.
#[test]
fn without_steps_any_number_of_heads_returns_at_once() {
    let empty: &[f32] = &[];
    for head_width in [0, 1] {
        let sizes = Sizes { batch: 1, seq_len: 0, past: 0, next: 0, heads: 1 << (usize::BITS - 24), head_width, window: 1 };
        let start = Start { lengths: &[0], ..Start::default() };
        attention::forward(sizes, &[], start, Out::default(), Out::default(), Out::default());
        for d_y in [None, Some(empty)] {
            let upstream = Upstream { y: &[], log_sums: &[], d_y, d_next: Some(&[]) };
            attention::backward(sizes, &[], start, upstream, Out::default(), Out::default());
        }
    }
}

/// With as many heads as threads the tasks do not depend on the threads; with fewer, shares of the queries are summed.
#[test]
fn threads_change_nothing_but_the_order_of_sums_over_shares() {
    let mut random = Random(4);
    for heads in [16, 1] {
        let sizes = Sizes { batch: 1, seq_len: 400, past: 0, next: 0, heads, head_width: 8, window: 300 };
        let case = Case { sizes, lengths: vec![0], codes: None };
        let (qkv, past, y, _) = case.elements();
        let (x, d_y) = (random.normal(qkv), random.normal(y));
        let run = || {
            let [y, log_sums] = outputs([y, heads * 400], |[y, l]| attention::forward(sizes, &x, case.start(&[]), y, l, Out::default()));
            let [d_qkv, _] = outputs([qkv, past], |[d, p]| {
                let upstream = Upstream { y: &y, log_sums: &log_sums, d_y: Some(&d_y), d_next: None };
                attention::backward(sizes, &x, case.start(&[]), upstream, d, p);
            });
            [y, log_sums, d_qkv]
        };
        if heads == 16 {
            assert_threads_change_nothing(run);
        } else {
            let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start").install(run);
            let (alone, together) = (on(1), on(5));
            assert!(written_bits(&alone[0]) == written_bits(&together[0]) && all_bits(&on(5)) == all_bits(&together));
            assert_close("d_qkv", &together[2], &wide(&alone[2]), GRADIENT);
        }
    }
}
