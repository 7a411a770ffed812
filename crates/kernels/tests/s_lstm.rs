//! sLSTM: the reference's gradients against finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_gradient, differences, dot, outputs, wide};
use minrnn_kernels::reference::s_lstm as reference;
use minrnn_kernels::s_lstm::{self, EMPTY_M, ForgetGate, Gradients, Inputs, Start, Upstream};
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Shape, segments::PADDING};
use stepwise::{
    GRADIENT, KINDS, STATE, assert_threads_change_the_order_of_sums_alone, assert_vanished, close, codes, cut, heads_of, join, segments,
    shapes, sum,
};

const STATES: [&str; 8] = ["h", "c", "n", "m", "last h", "last c", "last n", "last m"];
const GRADIENTS: [&str; 6] = ["d_preact", "d_weight", "d_bias", "d_h0", "d_c0", "d_n0"];
const FORGET: [ForgetGate; 2] = [ForgetGate::Sigmoid, ForgetGate::Exponential];

#[derive(Clone)]
struct Case {
    shape: Shape,
    heads: usize,
    forget: ForgetGate,
    codes: Option<Vec<i32>>,
    preact: Vec<f32>,
    weight: Vec<f32>,
    bias: Option<Vec<f32>>,
    /// h, c, n, m.
    carried: Option<[Vec<f32>; 4]>,
    d_h: Option<Vec<f32>>,
    /// Of the last h, c, n.
    d_last: [Option<Vec<f32>>; 3],
}

impl Case {
    /// Everything present.
    fn full(shape: Shape, heads: usize, forget: ForgetGate, kind: usize, random: &mut Random) -> Self {
        let (e, states) = (shape.width, shape.states());
        let bound = 1.0 / ((e / heads).max(1) as f64).sqrt();
        let n0 = random.between(states, 1.0, 3.0);
        Self {
            shape,
            heads,
            forget,
            codes: codes(shape, kind, random),
            preact: random.normal(4 * shape.elements()),
            weight: random.between(4 * e * e / heads, -bound, bound),
            bias: Some(random.normal(4 * e)),
            carried: Some([random.normal(states), random.normal(states), n0, random.normal(states)]),
            d_h: Some(random.normal(shape.elements())),
            d_last: [(); 3].map(|()| Some(random.normal(states))),
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        self.bias = self.bias.filter(|_| turn.is_multiple_of(2));
        self.carried = self.carried.filter(|_| turn % 5 != 1);
        self.d_h = self.d_h.filter(|_| turn % 7 != 2);
        for (part, d_last) in self.d_last.iter_mut().enumerate().filter(|(part, _)| turn % 4 == part + 1) {
            *d_last = d_last.take().filter(|_| part > 3);
        }
        self
    }

    fn start(&self) -> Start<'_> {
        let part = |part: usize| self.carried.as_ref().map(|carried| &carried[part][..]);
        Start { h0: part(0), c0: part(1), n0: part(2), m0: part(3), segments: segments(&self.codes, self.shape.seq_len) }
    }

    fn inputs(&self) -> Inputs<'_> {
        let Case { heads, forget, preact, weight, bias, .. } = self;
        Inputs { heads: *heads, forget: *forget, preact, weight, bias: bias.as_deref(), start: self.start() }
    }

    /// States of every step, then the last ones.
    fn forward(&self) -> [Vec<f32>; 8] {
        let (all, last) = (self.shape.elements(), self.shape.states());
        outputs([all, all, all, all, last, last, last, last], |[h, c, n, m, h_last, c_last, n_last, m_last]| {
            let last = [h_last, c_last, n_last, m_last];
            s_lstm::forward(self.shape, self.inputs(), [h, c, n, m], last);
        })
    }

    fn backward(&self, out: &[Vec<f32>; 8]) -> [Vec<f32>; 6] {
        let states = self.shape.states();
        let lengths = [self.preact.len(), self.weight.len(), 4 * self.shape.width, states, states, states];
        let d_last = self.d_last.each_ref().map(Option::as_deref);
        let upstream = Upstream { states: [&out[0], &out[1], &out[2], &out[3]], d_h: self.d_h.as_deref(), d_last };
        outputs(lengths, |[d_preact, d_weight, d_bias, d_h0, d_c0, d_n0]| {
            let d = Gradients { d_preact, d_weight, d_bias: Some(d_bias), d_start: [d_h0, d_c0, d_n0] };
            s_lstm::backward(self.shape, self.inputs(), upstream, d);
        })
    }

    /// Outputs and gradients of the reference in f64.
    fn reference(&self) -> ([Vec<f64>; 8], [Vec<f64>; 6]) {
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (preact, weight, bias) = (wide(&self.preact), wide(&self.weight), w(&self.bias));
        let carried = self.carried.as_ref().map(|carried| carried.each_ref().map(|part| wide(part)));
        let part = |part: usize| carried.as_ref().map(|carried| &carried[part][..]);
        let start = Start { h0: part(0), c0: part(1), n0: part(2), m0: part(3), segments: self.start().segments };
        let (heads, forget, bias) = (self.heads, self.forget, bias.as_deref());
        let inputs = Inputs { heads, forget, preact: &preact, weight: &weight, bias, start };
        let out = reference::forward(self.shape, inputs);
        let (d_h, d_last) = (w(&self.d_h), self.d_last.each_ref().map(w));
        let d_last = d_last.each_ref().map(Option::as_deref);
        let states = out.states.each_ref().map(Vec::as_slice);
        let d = reference::backward(self.shape, inputs, Upstream { states, d_h: d_h.as_deref(), d_last });
        let [h, c, n, m] = out.states;
        let [h_last, c_last, n_last, m_last] = out.last;
        let [d_h0, d_c0, d_n0] = d.d_start;
        ([h, c, n, m, h_last, c_last, n_last, m_last], [d.d_preact, d.d_weight, d.d_bias, d_h0, d_c0, d_n0])
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        for level in Level::available() {
            let (found, gradients) = level.scope(|| {
                let found = self.forward();
                let gradients = self.backward(&found);
                (found, gradients)
            });
            let name = |what: &str| format!("{what} of {:?}, {} heads, {:?}, on {}", self.shape, self.heads, self.forget, level.name());
            for (i, what) in STATES.iter().enumerate() {
                close(&name(what), &found[i], &expected[i], STATE);
            }
            for (i, what) in GRADIENTS.iter().enumerate() {
                close(&name(what), &gradients[i], &expected_gradients[i], GRADIENT);
            }
        }
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    let shape = Shape { batch: 2, seq_len: 5, width: 4 };
    for forget in FORGET {
        let mut case = Case::full(shape, 2, forget, 2, &mut Random(3));
        case.codes.as_mut().unwrap()[9] = PADDING;
        let w = |x: &Option<Vec<f32>>| wide(x.as_ref().unwrap());
        let carried = case.carried.as_ref().unwrap().each_ref().map(|part| wide(part));
        let inputs = [wide(&case.preact), wide(&case.weight), w(&case.bias), carried[0].clone(), carried[1].clone(), carried[2].clone()];
        let (d_h, weights) = (w(&case.d_h), case.d_last.each_ref().map(w));
        let run = |[preact, weight, bias, h0, c0, n0]: [&[f64]; 6]| {
            let start = Start { h0: Some(h0), c0: Some(c0), n0: Some(n0), m0: Some(&carried[3]), segments: case.start().segments };
            reference::forward(shape, Inputs { heads: 2, forget, preact, weight, bias: Some(bias), start })
        };
        // c and n mean c e^m and n e^m: m is a scale that no loss may depend on.
        let scaled = |x: &[f64], m: &[f64]| x.iter().zip(m).map(|(x, m)| x * m.exp()).collect::<Vec<f64>>();
        let loss = |arguments: [&[f64]; 6]| {
            let out = run(arguments);
            let [h, c, n, m] = &out.last;
            dot(&out.states[0], &d_h) + dot(h, &weights[0]) + dot(&scaled(c, m), &weights[1]) + dot(&scaled(n, m), &weights[2])
        };
        let arguments: [&[f64]; 6] = std::array::from_fn(|i| inputs[i].as_slice());
        let out = run(arguments);
        let [_, _, _, h0, c0, n0] = arguments;
        let start = Start { h0: Some(h0), c0: Some(c0), n0: Some(n0), m0: Some(&carried[3]), segments: case.start().segments };
        let d_last = [weights[0].clone(), scaled(&weights[1], &out.last[3]), scaled(&weights[2], &out.last[3])];
        let d_last = d_last.each_ref().map(|d| Some(d.as_slice()));
        let [preact, weight, bias] = [0, 1, 2].map(|i: usize| &inputs[i][..]);
        let upstream = Upstream { states: out.states.each_ref().map(Vec::as_slice), d_h: Some(&d_h), d_last };
        let d = reference::backward(shape, Inputs { heads: 2, forget, preact, weight, bias: Some(bias), start }, upstream);
        let [d_h0, d_c0, d_n0] = d.d_start;
        for (i, (name, analytic)) in GRADIENTS.iter().zip([d.d_preact, d.d_weight, d.d_bias, d_h0, d_c0, d_n0]).enumerate() {
            let along = differences(&inputs[i], |x| {
                let mut arguments = arguments;
                arguments[i] = x;
                loss(arguments)
            });
            assert_gradient(&format!("{name}, {forget:?}"), &analytic, &along);
        }
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    for (turn, shape) in shapes().enumerate() {
        for kind in 0..KINDS {
            let forget = FORGET[(turn + kind) % 2];
            // An exponential forget gate that stays above 1 is of no use: keep it near 1.
            let mut case = Case::full(shape, heads_of(shape.width), forget, kind, &mut random).thinned(turn * KINDS + kind);
            case.weight.iter_mut().for_each(|x| *x *= 0.5);
            case.check();
        }
    }
}

#[test]
fn any_cut_with_carried_state_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 65, width: 8 };
    for (kind, at) in [0, 1, 63, 64, 30].into_iter().enumerate() {
        let mut whole = Case::full(shape, 2, FORGET[kind % 2], kind % KINDS, &mut Random(5 + kind as u64));
        if kind == 0 {
            whole.carried = None;
        }
        let part = |range: std::ops::Range<usize>| Case {
            shape: Shape { seq_len: range.len(), ..shape },
            codes: whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone())),
            preact: cut(&whole.preact, shape, 32, range.clone()),
            d_h: whole.d_h.as_ref().map(|d| cut(d, shape, 8, range.clone())),
            ..whole.clone()
        };
        let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
        let out_first = first.forward();
        second.carried = Some([4, 5, 6, 7].map(|i: usize| out_first[i].clone()));
        let out_second = second.forward();
        let d_second = second.backward(&out_second);
        first.d_last = [3, 4, 5].map(|i: usize| Some(d_second[i].clone()));
        let d_first = first.backward(&out_first);
        let out = whole.forward();
        let d = whole.backward(&out);
        for i in 0..4 {
            close(STATES[i], &join([&out_first[i], &out_second[i]], 3), &wide(&out[i]), STATE);
            close(STATES[4 + i], &out_second[4 + i], &wide(&out[4 + i]), STATE);
        }
        close("d_preact", &join([&d_first[0], &d_second[0]], 3), &wide(&d[0]), GRADIENT);
        for i in [3, 4, 5] {
            close(GRADIENTS[i], &d_first[i], &wide(&d[i]), GRADIENT);
        }
        for i in [1, 2] {
            close(GRADIENTS[i], &sum(&d_first[i], &d_second[i]), &wide(&d[i]), GRADIENT);
        }
    }
}

#[test]
fn gates_of_forty_stay_finite_and_exact_over_many_steps() {
    let shape = Shape { batch: 1, seq_len: 2000, width: 4 };
    let mut case = Case::full(shape, 2, ForgetGate::Sigmoid, 0, &mut Random(2));
    case.preact.iter_mut().for_each(|p| *p = 40.0 * p.signum());
    case.check();
    for x in case.backward(&case.forward()) {
        assert!(x.iter().all(|x| x.is_finite()));
    }
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let shape = Shape { batch: 3, seq_len: 20, width: 6 };
    let clean = Case::full(shape, 3, ForgetGate::Sigmoid, 3, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == PADDING) {
        dirty.preact[step * 24..][..24].fill(f32::NAN);
        dirty.d_h.as_mut().unwrap()[step * 6..][..6].fill(f32::NAN);
    }
    let out = clean.forward();
    assert_eq!(out, dirty.forward());
    assert_eq!(clean.backward(&out), dirty.backward(&out));
}

#[test]
fn threads_change_nothing_but_the_order_of_sums() {
    let case = Case::full(Shape { batch: 5, seq_len: 40, width: 16 }, 2, ForgetGate::Sigmoid, 3, &mut Random(8));
    assert_threads_change_the_order_of_sums_alone(GRADIENTS, || {
        let out = case.forward();
        let d = case.backward(&out);
        (out, d)
    });
}

#[test]
fn the_first_step_is_the_written_equation() {
    let (p, b, r): ([f64; 4], [f64; 4], [f64; 4]) = ([0.3, -0.4, 0.9, 1.2], [0.1, 0.2, -0.3, 0.0], [0.5, -1.5, 0.7, 0.4]);
    let shape = Shape { batch: 1, seq_len: 1, width: 1 };
    let forget = ForgetGate::Sigmoid;
    let inputs = Inputs { heads: 1, forget, preact: &p, weight: &r, bias: Some(&b), start: Start::default() };
    let out = reference::forward(shape, inputs);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    // From an empty state i* = 1: c = z, n = 1, m = ĩ.
    let z = (p[2] + b[2]).tanh();
    for (found, expected) in out.last.iter().zip([sigmoid(p[3] + b[3]) * z, z, 1.0, p[0] + b[0]]) {
        assert!((found[0] - expected).abs() < 1e-15, "{out:?}, expected {expected}");
    }
    assert!(EMPTY_M.is_finite());
}

#[test]
fn a_nan_in_a_gate_of_the_state_is_in_all_of_it_on_every_level() {
    for gate in [0, 1] {
        let mut case = Case::full(Shape { batch: 1, seq_len: 5, width: 20 }, 2, ForgetGate::Sigmoid, 0, &mut Random(44));
        case.codes = None;
        case.preact[3 * 80 + gate * 20] = f32::NAN;
        for level in Level::available() {
            let found = level.scope(|| case.forward());
            for (what, state) in STATES.iter().zip(&found[..4]) {
                assert!(state[..60].iter().all(|x| x.is_finite()), "{what} before it, on {}", level.name());
                assert!(state[60].is_nan(), "{what} is {} with a NaN in gate {gate}, on {}", state[60], level.name());
            }
        }
    }
}

#[test]
fn gradients_vanish_without_subnormal_numbers() {
    // The stabiliser keeps what exponential gates forget far from vanishing; sigmoids do forget.
    let mut case = Case::full(Shape { batch: 1, seq_len: 600, width: 20 }, 2, ForgetGate::Sigmoid, 0, &mut Random(43));
    case.d_h = None;
    for level in Level::available() {
        let d = level.scope(|| case.backward(&case.forward()));
        assert_vanished(level.name(), &d[0], 80);
    }
}
