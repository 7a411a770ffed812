//! RWKV-4's time mixing: the reference against the published numbers and finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_close_above, assert_gradient, differences, dot, on_every_level, outputs, wide};
use minrnn_kernels::reference::rwkv4 as reference;
use minrnn_kernels::rwkv4::{self, Inputs, Start};
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Shape, segments::PADDING};
use stepwise::{GRADIENT, KINDS, STATE, close, codes, cut, join, segments, shapes, sum};

const NAMES: [&str; 7] = ["receptance", "key", "value", "decay", "bonus", "mean", "log_weight"];

/// Gradients below this are differences of numbers of size 1, such as v − y where the memory is empty.
const NOISE: f64 = 1e-3;

#[derive(Clone)]
struct Case {
    shape: Shape,
    codes: Option<Vec<i32>>,
    /// As named above; the last two are the carried memory.
    inputs: [Vec<f32>; 7],
    carries: bool,
    d_y: Option<Vec<f32>>,
    d_last: [Option<Vec<f32>>; 2],
}

impl Case {
    fn new(shape: Shape, kind: usize, random: &mut Random) -> Self {
        let (all, states, e) = (shape.elements(), shape.states(), shape.width);
        let lengths = [all, all, all, e, e, states, states];
        Self {
            shape,
            codes: codes(shape, kind, random),
            inputs: lengths.map(|n| random.normal(n)),
            carries: true,
            d_y: Some(random.normal(all)),
            d_last: [Some(random.normal(states)), Some(random.normal(states))],
        }
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
        let (all, states) = (self.shape.elements(), self.shape.states());
        outputs([all, states, states, rwkv4::kept_len(self.shape)], |[y, mean, log_weight, kept]| {
            let (inputs, start) = arguments(&self.inputs, self);
            rwkv4::forward(self.shape, inputs, start, y, mean, log_weight, kept);
        })
    }

    fn backward(&self, kept: &[f32]) -> [Vec<f32>; 7] {
        let (inputs, start) = arguments(&self.inputs, self);
        outputs(self.inputs.each_ref().map(Vec::len), |[d_receptance, d_key, d_value, d_decay, d_bonus, d_mean, d_log_weight]| {
            let d_last = self.d_last.each_ref().map(|d| d.as_deref());
            let upstream = rwkv4::Upstream { kept, d_y: self.d_y.as_deref(), d_last };
            let d = rwkv4::Gradients { d_receptance, d_key, d_value, d_decay, d_bonus, d_memory: [d_mean, d_log_weight] };
            rwkv4::backward(self.shape, inputs, start, upstream, d);
        })
    }

    fn reference(&self) -> ([Vec<f64>; 3], [Vec<f64>; 7]) {
        let inputs = self.inputs.each_ref().map(|x| wide(x));
        let (arguments, start) = arguments(&inputs, self);
        let out = reference::forward(self.shape, arguments, start);
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (d_y, [d_mean, d_log_weight]) = (w(&self.d_y), self.d_last.each_ref().map(w));
        let d = reference::backward(self.shape, arguments, start, &out, d_y.as_deref(), d_mean.as_deref(), d_log_weight.as_deref());
        let d = [d.d_receptance, d.d_key, d.d_value, d.d_decay, d.d_bonus, d.d_mean, d.d_log_weight];
        ([out.y, out.mean_last, out.log_weight_last], d)
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        on_every_level(|level| {
            let found = self.forward();
            for (i, name) in ["y", "mean_last", "log_weight_last"].iter().enumerate() {
                close(&format!("{name} of {:?} on {level}", self.shape), &found[i], &expected[i], STATE);
            }
            let gradients = self.backward(&found[3]);
            for (i, name) in NAMES.iter().enumerate() {
                let what = format!("d_{name} of {:?} on {level}", self.shape);
                assert_close_above(&what, &gradients[i], &expected_gradients[i], GRADIENT, NOISE);
            }
        });
    }
}

fn arguments<'a, T>([r, k, v, decay, bonus, mean, log_weight]: &'a [Vec<T>; 7], case: &'a Case) -> (Inputs<'a, T>, Start<'a, T>) {
    let start = Start { memory: case.carries.then_some([mean, log_weight]), segments: segments(&case.codes, case.shape.seq_len) };
    (Inputs { receptance: r, key: k, value: v, decay, bonus }, start)
}

/// RWKV-4 (arXiv:2305.13048) by hand: y before its gate.
#[test]
fn the_reference_gives_the_published_numbers() {
    let shape = Shape { batch: 1, seq_len: 3, width: 1 };
    let (k, v, open) = ([0.0, 1.0, -1.0], [1.0, 2.0, 3.0], [1e3; 3]);
    let inputs = Inputs { receptance: &open[..], key: &k, value: &v, decay: &[0.5f64.ln()], bonus: &[0.25] };
    let out = reference::forward(shape, inputs, Start::default());
    for (y, expected) in out.y.iter().zip([1.0, 1.777_299_86, 1.964_667_43]) {
        assert!((y - expected).abs() < 1e-8, "{y}, expected {expected}");
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    let shape = Shape { batch: 2, seq_len: 5, width: 3 };
    let mut case = Case::new(shape, 2, &mut Random(3));
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
        for kind in 0..KINDS {
            Case::new(shape, kind, &mut random).thinned(turn * KINDS + kind).check();
        }
    }
}

#[test]
fn any_cut_with_carried_memory_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 140, width: 8 };
    for (kind, at) in [0, 1, 63, 128, 139].into_iter().enumerate() {
        let whole = Case::new(shape, kind % KINDS, &mut Random(5 + kind as u64));
        let part = |range: std::ops::Range<usize>| {
            let mut part = whole.clone();
            part.shape.seq_len = range.len();
            part.codes = whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone()));
            for x in part.inputs.iter_mut().take(3).chain(part.d_y.as_mut()) {
                *x = cut(x, shape, 8, range.clone());
            }
            part
        };
        let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
        let [y_first, mean, log_weight, kept_first] = first.forward();
        (second.inputs[5], second.inputs[6]) = (mean, log_weight);
        let [y_second, mean, log_weight, kept_second] = second.forward();
        let [y, whole_mean, whole_log_weight, kept] = whole.forward();
        close("y", &join([&y_first, &y_second], 3), &wide(&y), STATE);
        close("mean", &mean, &wide(&whole_mean), STATE);
        close("log_weight", &log_weight, &wide(&whole_log_weight), STATE);
        let d_second = second.backward(&kept_second);
        first.d_last = [Some(d_second[5].clone()), Some(d_second[6].clone())];
        let d_first = first.backward(&kept_first);
        let d = whole.backward(&kept);
        for i in 0..3 {
            close(NAMES[i], &join([&d_first[i], &d_second[i]], 3), &wide(&d[i]), GRADIENT);
        }
        for i in [3, 4] {
            close(NAMES[i], &sum(&d_first[i], &d_second[i]), &wide(&d[i]), GRADIENT);
        }
        for i in [5, 6] {
            close(NAMES[i], &d_first[i], &wide(&d[i]), GRADIENT);
        }
    }
}

#[test]
fn large_keys_and_a_slow_decay_stay_exact() {
    let shape = Shape { batch: 1, seq_len: 5000, width: 3 };
    let mut case = Case::new(shape, 0, &mut Random(2));
    case.inputs[1].iter_mut().for_each(|k| *k *= 5.0);
    case.inputs[3].copy_from_slice(&[-6.0, -5.0, 0.0]);
    case.check();
}

/// σ(r) is 1/2 throughout; keys are 8 times standard normal, and the past fades by as little as 1e-4 a step.
#[test]
fn many_single_steps_stay_as_exact_as_the_whole_sequence() {
    let shape = Shape { batch: 1, seq_len: 16_000, width: 5 };
    let mut case = Case::new(shape, 0, &mut Random(6));
    case.carries = false;
    case.inputs[0].fill(0.0);
    case.inputs[1].iter_mut().for_each(|k| *k *= 8.0);
    case.inputs[3].copy_from_slice(&[-9.0, -8.0, -7.0, -5.0, 0.0]);
    let inputs = case.inputs.each_ref().map(|x| wide(x));
    let (arguments, start) = arguments(&inputs, &case);
    let expected = reference::forward(shape, arguments, start);
    let [r, k, v, decay, bonus, ..] = &case.inputs;
    let fading: Vec<f32> = decay.iter().map(|decay| -decay.exp()).collect();
    on_every_level(|level| {
        let mut memory = [vec![0.0; 5], vec![rwkv4::EMPTY; 5], vec![0.0; 5]];
        let mut y = vec![f32::NAN; shape.elements()];
        for (t, y) in y.chunks_exact_mut(5).enumerate() {
            let step = [r, k, v].map(|x| &x[t * 5..][..5]);
            rwkv4::step(Level::current(), step, [&fading, bonus], memory.each_mut().map(Vec::as_mut_slice), y);
        }
        assert_close_above(&format!("y on {level}"), &y, &expected.y, 1e-5, 0.0);
        assert_close_above(&format!("mean on {level}"), &memory[0], &expected.mean_last, 1e-5, 0.0);
        // l is as exact as its rounding allows.
        assert_close_above(&format!("log-weight on {level}"), &memory[1], &expected.log_weight_last, 1e-6, 0.0);
        let whole = case.forward();
        assert_close_above(&format!("y of the whole on {level}"), &whole[0], &expected.y, 1e-5, 0.0);
    });
}

#[test]
fn keys_beyond_the_exponent_of_f32_are_no_trouble() {
    let shape = Shape { batch: 1, seq_len: 6, width: 2 };
    let mut case = Case::new(shape, 0, &mut Random(2));
    case.inputs[1] = [300.0, -300.0].repeat(6);
    let out = case.forward();
    let d = case.backward(&out[3]);
    assert!(out.iter().chain(&d).flatten().all(|x| x.is_finite()), "{out:?} {d:?}");
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let clean = Case::new(Shape { batch: 3, seq_len: 20, width: 5 }, 3, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == PADDING) {
        for x in dirty.inputs.iter_mut().take(3).chain(dirty.d_y.as_mut()) {
            x[step * 5..][..5].fill(f32::NAN);
        }
    }
    let out = clean.forward();
    assert_eq!(out, dirty.forward());
    assert_eq!(clean.backward(&out[3]), dirty.backward(&out[3]));
}

#[test]
fn threads_change_nothing() {
    let case = Case::new(Shape { batch: 5, seq_len: 40, width: 130 }, 3, &mut Random(8));
    common::assert_threads_change_nothing(|| {
        let [y, mean, log_weight, kept] = case.forward();
        let [r, k, v, decay, bonus, d_mean, d_log_weight] = case.backward(&kept);
        [y, mean, log_weight, r, k, v, decay, bonus, d_mean, d_log_weight]
    });
}
