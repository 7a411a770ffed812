//! Aaren's attention to a prefix: the reference against a plain softmax and finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_close_above, assert_gradient, differences, dot, on_every_level, outputs, wide};
use minrnn_kernels::prefix_softmax::{self, Inputs, Start};
use minrnn_kernels::reference::prefix_softmax as reference;
use minrnn_kernels::{Shape, segments::PADDING};
use stepwise::{GRADIENT, KINDS, STATE, close, codes, cut, join, segments, shapes};

const NAMES: [&str; 4] = ["scores", "values", "mean", "log_weight"];
/// Gradients below this are differences of numbers of size 1, such as v − o where the memory is empty.
const NOISE: f64 = 1e-3;

#[derive(Clone)]
struct Case {
    shape: Shape,
    heads: usize,
    codes: Option<Vec<i32>>,
    /// As named above; the last two are the carried memory.
    inputs: [Vec<f32>; 4],
    carries: bool,
    d_y: Option<Vec<f32>>,
    d_last: [Option<Vec<f32>>; 2],
}

impl Case {
    fn new(shape: Shape, heads: usize, kind: usize, random: &mut Random) -> Self {
        let (all, states, steps) = (shape.elements(), shape.states(), shape.batch * shape.seq_len);
        let lengths = [steps * heads, all, states, shape.batch * heads];
        let mut inputs = lengths.map(|n| random.normal(n));
        inputs[0].iter_mut().for_each(|s| *s *= 3.0);
        let d_last = [Some(random.normal(states)), Some(random.normal(shape.batch * heads))];
        Self { shape, heads, codes: codes(shape, kind, random), inputs, carries: true, d_y: Some(random.normal(all)), d_last }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        self.carries = turn % 3 != 1;
        self.d_y = self.d_y.filter(|_| turn % 5 != 2);
        self.d_last[0] = self.d_last[0].take().filter(|_| turn % 4 != 1);
        self.d_last[1] = self.d_last[1].take().filter(|_| turn % 7 != 3);
        self
    }

    fn forward(&self) -> [Vec<f32>; 4] {
        let lengths = [self.shape.elements(), self.shape.states(), self.shape.batch * self.heads, self.inputs[0].len()];
        outputs(lengths, |[y, mean, log_weight, shares]| {
            let (inputs, start) = arguments(&self.inputs, self);
            prefix_softmax::forward(self.shape, inputs, start, y, mean, log_weight, shares);
        })
    }

    fn backward(&self, [y, _, _, shares]: &[Vec<f32>; 4]) -> [Vec<f32>; 4] {
        let (inputs, start) = arguments(&self.inputs, self);
        outputs(self.inputs.each_ref().map(Vec::len), |[d_scores, d_values, d_mean, d_log_weight]| {
            let [d_mean_last, d_log_weight_last] = self.d_last.each_ref().map(|d| d.as_deref());
            let upstream = prefix_softmax::Upstream { y, shares, d_y: self.d_y.as_deref(), d_mean_last, d_log_weight_last };
            let d = prefix_softmax::Gradients { d_scores, d_values, d_mean, d_log_weight };
            prefix_softmax::backward(self.shape, inputs, start, upstream, d);
        })
    }

    fn reference(&self) -> ([Vec<f64>; 3], [Vec<f64>; 4]) {
        let inputs = self.inputs.each_ref().map(|x| wide(x));
        let (arguments, start) = arguments(&inputs, self);
        let out = reference::forward(self.shape, arguments, start);
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (d_y, [d_mean, d_log_weight]) = (w(&self.d_y), self.d_last.each_ref().map(w));
        let d = reference::backward(self.shape, arguments, start, &out, d_y.as_deref(), d_mean.as_deref(), d_log_weight.as_deref());
        ([out.y, out.mean_last, out.log_weight_last], [d.d_scores, d.d_values, d.d_mean, d.d_log_weight])
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        on_every_level(|level| {
            let found = self.forward();
            for (i, name) in ["y", "mean_last", "log_weight_last"].iter().enumerate() {
                close(&format!("{name} of {:?} on {level}", self.shape), &found[i], &expected[i], STATE);
            }
            let gradients = self.backward(&found);
            for (i, name) in NAMES.iter().enumerate() {
                let what = format!("d_{name} of {:?} on {level}", self.shape);
                assert_close_above(&what, &gradients[i], &expected_gradients[i], GRADIENT, NOISE);
            }
        });
    }
}

fn arguments<'a, T>([scores, values, mean, log_weight]: &'a [Vec<T>; 4], case: &'a Case) -> (Inputs<'a, T>, Start<'a, T>) {
    let start = Start { memory: case.carries.then_some([mean, log_weight]), segments: segments(&case.codes, case.shape.seq_len) };
    (Inputs { heads: case.heads, scores, values }, start)
}

#[test]
fn the_reference_is_a_softmax_over_the_prefix() {
    let case = Case { carries: false, ..Case::new(Shape { batch: 1, seq_len: 9, width: 4 }, 2, 0, &mut Random(1)) };
    let ([y, ..], _) = case.reference();
    let (scores, values) = (wide(&case.inputs[0]), wide(&case.inputs[1]));
    for (at, y) in y.into_iter().enumerate() {
        let (t, e) = (at / 4, at % 4);
        let weight = |i: usize| (scores[i * 2 + e / 2] - scores[t * 2 + e / 2]).exp();
        let expected = (0..=t).map(|i| weight(i) * values[i * 4 + e]).sum::<f64>() / (0..=t).map(weight).sum::<f64>();
        assert!((y - expected).abs() < 1e-12, "{y}, expected {expected}");
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    let shape = Shape { batch: 2, seq_len: 5, width: 4 };
    let mut case = Case::new(shape, 2, 2, &mut Random(3));
    case.codes.as_mut().unwrap()[9] = PADDING;
    let (_, gradients) = case.reference();
    let inputs = case.inputs.each_ref().map(|x| wide(x));
    let (d_y, d_last) = (wide(case.d_y.as_ref().unwrap()), case.d_last.each_ref().map(|d| wide(d.as_ref().unwrap())));
    for (i, name) in NAMES.iter().enumerate() {
        let along = differences(&inputs[i], |x| {
            let mut inputs = inputs.clone();
            inputs[i] = x.to_vec();
            let (inputs, start) = arguments(&inputs, &case);
            let out = reference::forward(shape, inputs, start);
            dot(&out.y, &d_y) + dot(&out.mean_last, &d_last[0]) + dot(&out.log_weight_last, &d_last[1])
        });
        assert_gradient(name, &gradients[i], &along);
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    for (turn, shape) in shapes().enumerate() {
        for heads in [1, 3, 4].into_iter().filter(|heads| shape.width % heads == 0) {
            for kind in 0..KINDS {
                Case::new(shape, heads, kind, &mut random).thinned(turn * KINDS + kind).check();
            }
        }
    }
}

#[test]
fn any_cut_with_carried_memory_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 65, width: 8 };
    for (kind, at) in [0, 1, 30, 63, 64].into_iter().enumerate() {
        let whole = Case::new(shape, 2, kind % KINDS, &mut Random(5 + kind as u64));
        let part = |range: std::ops::Range<usize>| {
            let mut part = whole.clone();
            part.shape.seq_len = range.len();
            part.codes = whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone()));
            part.inputs[0] = cut(&whole.inputs[0], shape, 2, range.clone());
            part.inputs[1] = cut(&whole.inputs[1], shape, 8, range.clone());
            part.d_y = whole.d_y.as_ref().map(|d| cut(d, shape, 8, range.clone()));
            part
        };
        let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
        let out_first = first.forward();
        second.inputs[2..].clone_from_slice(&out_first[1..3]);
        let (out_second, out) = (second.forward(), whole.forward());
        close("y", &join([&out_first[0], &out_second[0]], 3), &wide(&out[0]), STATE);
        close("mean", &out_second[1], &wide(&out[1]), STATE);
        close("log_weight", &out_second[2], &wide(&out[2]), STATE);
        let d_second = second.backward(&out_second);
        first.d_last = [Some(d_second[2].clone()), Some(d_second[3].clone())];
        let (d_first, d) = (first.backward(&out_first), whole.backward(&out));
        for i in 0..2 {
            close(NAMES[i], &join([&d_first[i], &d_second[i]], 3), &wide(&d[i]), GRADIENT);
        }
        for i in 2..4 {
            close(NAMES[i], &d_first[i], &wide(&d[i]), GRADIENT);
        }
    }
}

#[test]
fn scores_beyond_the_exponent_of_f32_are_no_trouble() {
    let mut case = Case::new(Shape { batch: 1, seq_len: 6, width: 2 }, 1, 0, &mut Random(2));
    case.inputs[0] = vec![300.0, -300.0, 500.0, 1e4, -1e4, 0.0];
    let out = case.forward();
    let d = case.backward(&out);
    assert!(out.iter().chain(&d).flatten().all(|x| x.is_finite()), "{out:?} {d:?}");
}

#[test]
fn five_thousand_steps_stay_exact() {
    Case::new(Shape { batch: 1, seq_len: 5_000, width: 3 }, 1, 0, &mut Random(2)).check();
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let clean = Case::new(Shape { batch: 3, seq_len: 20, width: 6 }, 2, 3, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == PADDING) {
        dirty.inputs[0][step * 2..][..2].fill(f32::NAN);
        dirty.inputs[1][step * 6..][..6].fill(f32::NAN);
        dirty.d_y.as_mut().unwrap()[step * 6..][..6].fill(f32::NAN);
    }
    let out = clean.forward();
    assert_eq!(out, dirty.forward());
    assert_eq!(clean.backward(&out), dirty.backward(&out));
}

#[test]
fn threads_change_nothing() {
    let case = Case::new(Shape { batch: 5, seq_len: 40, width: 24 }, 3, 3, &mut Random(8));
    common::assert_threads_change_nothing(|| {
        let out = case.forward();
        let [scores, values, mean, log_weight] = case.backward(&out);
        let [y, mean_last, log_weight_last, shares] = out;
        [y, mean_last, log_weight_last, shares, scores, values, mean, log_weight]
    });
}
