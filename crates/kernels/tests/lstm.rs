//! LSTM: the reference's gradients against finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_gradient, differences, outputs, wide};
use minrnn_kernels::lstm::{self, Gradients, Inputs, Upstream};
use minrnn_kernels::reference::lstm as reference;
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Shape, Start};
use stepwise::{
    GRADIENT, KINDS, STATE, assert_threads_change_the_order_of_sums_alone, assert_vanished, close, codes, cut, join, segments, shapes, sum,
};

const STATES: [&str; 4] = ["h", "c", "h_last", "c_last"];
const GRADIENTS: [&str; 8] = ["d_preact", "d_bias", "d_weight", "d_recurrent_bias", "d_h0", "d_c0", "d_init_h", "d_init_c"];

#[derive(Clone)]
struct Case {
    shape: Shape,
    codes: Option<Vec<i32>>,
    preact: Vec<f32>,
    bias: Option<Vec<f32>>,
    weight: Vec<f32>,
    recurrent_bias: Option<Vec<f32>>,
    h0: Option<Vec<f32>>,
    c0: Option<Vec<f32>>,
    init_h: Option<Vec<f32>>,
    init_c: Option<Vec<f32>>,
    d_h: Option<Vec<f32>>,
    d_h_last: Option<Vec<f32>>,
    d_c_last: Option<Vec<f32>>,
}

impl Case {
    /// Everything present.
    fn full(shape: Shape, kind: usize, random: &mut Random) -> Self {
        let e = shape.width;
        let bound = 1.0 / (e.max(1) as f64).sqrt();
        Self {
            shape,
            codes: codes(shape, kind, random),
            preact: random.normal(4 * shape.elements()),
            bias: Some(random.normal(4 * e)),
            weight: random.between(4 * e * e, -bound, bound),
            recurrent_bias: Some(random.normal(4 * e)),
            h0: Some(random.normal(shape.states())),
            c0: Some(random.normal(shape.states())),
            init_h: Some(random.normal(e)),
            init_c: Some(random.normal(e)),
            d_h: Some(random.normal(shape.elements())),
            d_h_last: Some(random.normal(shape.states())),
            d_c_last: Some(random.normal(shape.states())),
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        let drop = |x: &mut Option<Vec<f32>>, when: bool| *x = x.take().filter(|_| !when);
        drop(&mut self.bias, turn % 2 == 1);
        drop(&mut self.recurrent_bias, turn % 3 == 1);
        drop(&mut self.h0, turn % 5 == 1);
        drop(&mut self.c0, turn % 5 == 2);
        drop(&mut self.init_h, turn % 7 == 1);
        drop(&mut self.init_c, turn % 7 == 2);
        drop(&mut self.d_h, turn % 3 == 2);
        drop(&mut self.d_h_last, turn % 4 == 3);
        drop(&mut self.d_c_last, turn % 4 == 1 && turn % 3 != 2);
        self
    }

    fn start(&self) -> lstm::Start<'_> {
        let h = Start { h0: self.h0.as_deref(), init: self.init_h.as_deref(), segments: segments(&self.codes, self.shape.seq_len) };
        lstm::Start { h, c0: self.c0.as_deref(), init_c: self.init_c.as_deref() }
    }

    fn inputs(&self) -> Inputs<'_> {
        let Case { preact, bias, weight, recurrent_bias, .. } = self;
        Inputs { preact, bias: bias.as_deref(), weight, recurrent_bias: recurrent_bias.as_deref(), start: self.start() }
    }

    fn forward(&self) -> [Vec<f32>; 4] {
        let (all, last) = (self.shape.elements(), self.shape.states());
        outputs([all, all, last, last], |[h, c, h_last, c_last]| lstm::forward(self.shape, self.inputs(), h, c, h_last, c_last))
    }

    fn backward(&self, h: &[f32], c: &[f32]) -> [Vec<f32>; 8] {
        let (shape, e, states) = (self.shape, self.shape.width, self.shape.states());
        let (d_h, d_h_last, d_c_last) = (self.d_h.as_deref(), self.d_h_last.as_deref(), self.d_c_last.as_deref());
        let upstream = Upstream { h, c, d_h, d_h_last, d_c_last };
        let lengths = [4 * shape.elements(), 4 * e, 4 * e * e, 4 * e, states, states, e, e];
        outputs(lengths, |[d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_c0, d_init_h, d_init_c]| {
            let (d_bias, d_recurrent_bias) = (Some(d_bias), Some(d_recurrent_bias));
            let d = Gradients { d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_c0, d_init_h, d_init_c };
            lstm::backward(shape, self.inputs(), upstream, d);
        })
    }

    /// Outputs and gradients of the reference in f64.
    fn reference(&self) -> ([Vec<f64>; 4], [Vec<f64>; 8]) {
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (h0, init, c0, init_c) = (w(&self.h0), w(&self.init_h), w(&self.c0), w(&self.init_c));
        let h = Start { h0: h0.as_deref(), init: init.as_deref(), segments: self.start().h.segments };
        let start = lstm::Start { h, c0: c0.as_deref(), init_c: init_c.as_deref() };
        let (preact, bias, weight, recurrent_bias) = (wide(&self.preact), w(&self.bias), wide(&self.weight), w(&self.recurrent_bias));
        let (bias, recurrent_bias) = (bias.as_deref(), recurrent_bias.as_deref());
        let inputs = Inputs { preact: &preact, bias, weight: &weight, recurrent_bias, start };
        let out = reference::forward(self.shape, inputs);
        let (d_h, d_h_last, d_c_last) = (w(&self.d_h), w(&self.d_h_last), w(&self.d_c_last));
        let (d_h, d_h_last, d_c_last) = (d_h.as_deref(), d_h_last.as_deref(), d_c_last.as_deref());
        let d = reference::backward(self.shape, inputs, Upstream { h: &out.h, c: &out.c, d_h, d_h_last, d_c_last });
        let gradients = [d.d_preact, d.d_bias.clone(), d.d_weight, d.d_bias, d.d_h0, d.d_c0, d.d_init_h, d.d_init_c];
        ([out.h, out.c, out.h_last, out.c_last], gradients)
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        for level in Level::available() {
            let (found, gradients) = level.scope(|| {
                let found = self.forward();
                let gradients = self.backward(&found[0], &found[1]);
                (found, gradients)
            });
            let name = |what: &str| format!("{what} of {:?} on {}", self.shape, level.name());
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
    let shape = Shape { batch: 2, seq_len: 5, width: 3 };
    let mut case = Case::full(shape, 2, &mut Random(3));
    case.codes.as_mut().unwrap()[9] = minrnn_kernels::segments::PADDING;
    let (_, gradients) = case.reference();
    let w = |x: &Option<Vec<f32>>| wide(x.as_ref().unwrap());
    let inputs = [wide(&case.preact), w(&case.bias), wide(&case.weight), w(&case.recurrent_bias)];
    let inputs = inputs.into_iter().chain([&case.h0, &case.c0, &case.init_h, &case.init_c].map(w)).collect::<Vec<_>>();
    let (d_h, d_h_last, d_c_last) = (w(&case.d_h), w(&case.d_h_last), w(&case.d_c_last));
    let loss = |[preact, bias, weight, recurrent_bias, h0, c0, init, init_c]: [&[f64]; 8]| {
        let h = Start { h0: Some(h0), init: Some(init), segments: case.start().h.segments };
        let start = lstm::Start { h, c0: Some(c0), init_c: Some(init_c) };
        let inputs = Inputs { preact, bias: Some(bias), weight, recurrent_bias: Some(recurrent_bias), start };
        let out = reference::forward(shape, inputs);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(&out.h, &d_h) + dot(&out.h_last, &d_h_last) + dot(&out.c_last, &d_c_last)
    };
    for (i, name) in GRADIENTS.iter().enumerate() {
        let along = differences(&inputs[i], |x| {
            let mut arguments: [&[f64]; 8] = std::array::from_fn(|i| inputs[i].as_slice());
            arguments[i] = x;
            loss(arguments)
        });
        assert_gradient(name, &gradients[i], &along);
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    for (turn, shape) in shapes().enumerate() {
        for kind in 0..KINDS {
            Case::full(shape, kind, &mut random).thinned(turn * KINDS + kind).check();
        }
    }
}

#[test]
fn any_cut_with_carried_state_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 65, width: 8 };
    for (kind, at) in [0, 1, 63, 64, 30].into_iter().enumerate() {
        let whole = Case::full(shape, kind % KINDS, &mut Random(5 + kind as u64));
        let part = |range: std::ops::Range<usize>| {
            let cut_to = |x: &Option<Vec<f32>>| x.as_ref().map(|x| cut(x, shape, 8, range.clone()));
            Case {
                shape: Shape { seq_len: range.len(), ..shape },
                codes: whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone())),
                preact: cut(&whole.preact, shape, 32, range.clone()),
                d_h: cut_to(&whole.d_h),
                ..whole.clone()
            }
        };
        let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
        let [h_first, c_first, h_carried, c_carried] = first.forward();
        (second.h0, second.c0) = (Some(h_carried), Some(c_carried));
        let [h_second, c_second, h_last, c_last] = second.forward();
        let d_second = second.backward(&h_second, &c_second);
        (first.d_h_last, first.d_c_last) = (Some(d_second[4].clone()), Some(d_second[5].clone()));
        let d_first = first.backward(&h_first, &c_first);
        let [h, c, whole_h_last, whole_c_last] = whole.forward();
        close("h", &join([&h_first, &h_second], 3), &wide(&h), STATE);
        close("c", &join([&c_first, &c_second], 3), &wide(&c), STATE);
        close("h_last", &h_last, &wide(&whole_h_last), STATE);
        close("c_last", &c_last, &wide(&whole_c_last), STATE);
        let d = whole.backward(&h, &c);
        close("d_preact", &join([&d_first[0], &d_second[0]], 3), &wide(&d[0]), GRADIENT);
        for i in [4, 5] {
            close(GRADIENTS[i], &d_first[i], &wide(&d[i]), GRADIENT);
        }
        for i in [1, 2, 3, 6, 7] {
            close(GRADIENTS[i], &sum(&d_first[i], &d_second[i]), &wide(&d[i]), GRADIENT);
        }
    }
}

#[test]
fn saturated_gates_stay_exact_over_twenty_thousand_steps() {
    let shape = Shape { batch: 1, seq_len: 20_000, width: 3 };
    let mut case = Case::full(shape, 0, &mut Random(2));
    case.preact.iter_mut().for_each(|p| *p = 40.0 * p.signum());
    case.check();
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let shape = Shape { batch: 3, seq_len: 20, width: 5 };
    let clean = Case::full(shape, 3, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == minrnn_kernels::segments::PADDING) {
        dirty.preact[step * 20..][..20].fill(f32::NAN);
        dirty.d_h.as_mut().unwrap()[step * 5..][..5].fill(f32::NAN);
    }
    let out = clean.forward();
    assert_eq!(out, dirty.forward());
    assert_eq!(clean.backward(&out[0], &out[1]), dirty.backward(&out[0], &out[1]));
}

#[test]
fn threads_change_nothing_but_the_order_of_sums() {
    let case = Case::full(Shape { batch: 5, seq_len: 40, width: 16 }, 3, &mut Random(8));
    assert_threads_change_the_order_of_sums_alone(GRADIENTS, || {
        let out = case.forward();
        let d = case.backward(&out[0], &out[1]);
        (out, d)
    });
}

#[test]
fn one_step_is_the_written_equation() {
    let (p, b, w, r) = ([0.3, -0.4, 0.9, 1.2], [0.1, 0.2, -0.3, 0.0], [0.5, -1.5, 0.7, 0.4], [-0.2, 0.4, 0.6, -0.1]);
    let (h0, c0) = (0.8, -0.6);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let sum = |gate: usize| p[gate] + b[gate] + w[gate] * h0 + r[gate];
    let c = sigmoid(sum(1)) * c0 + sigmoid(sum(0)) * sum(2).tanh();
    let h = sigmoid(sum(3)) * c.tanh();
    let start = lstm::Start { h: Start { h0: Some(&[h0][..]), ..Start::default() }, c0: Some(&[c0]), init_c: None };
    let inputs = Inputs { preact: &p, bias: Some(&b), weight: &w, recurrent_bias: Some(&r), start };
    let out = reference::forward(Shape { batch: 1, seq_len: 1, width: 1 }, inputs);
    assert!((out.h[0] - h).abs() < 1e-15 && (out.c[0] - c).abs() < 1e-15, "{out:?}, expected {h}, {c}");
}

#[test]
fn gradients_vanish_without_subnormal_numbers() {
    let mut case = Case::full(Shape { batch: 1, seq_len: 1200, width: 20 }, 0, &mut Random(41));
    case.d_h = None;
    for level in Level::available() {
        let d = level.scope(|| {
            let [h, c, ..] = case.forward();
            case.backward(&h, &c)
        });
        assert_vanished(level.name(), &d[0], 80);
    }
}
