//! GRU: the reference's gradients against finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_gradient, differences, outputs, wide};
use minrnn_kernels::gru::{self, Gradients, Inputs, Upstream};
use minrnn_kernels::reference::gru as reference;
use minrnn_kernels::simd::Level;
use minrnn_kernels::{GruForm, Shape, Start};
use stepwise::{
    GRADIENT, KINDS, STATE, assert_threads_change_the_order_of_sums_alone, assert_vanished, close, codes, cut, join, segments, shapes, sum,
};

const FORMS: [GruForm; 2] = [GruForm::Paper, GruForm::Torch];
const GRADIENTS: [&str; 6] = ["d_preact", "d_bias", "d_weight", "d_recurrent_bias", "d_h0", "d_init"];

#[derive(Clone)]
struct Case {
    shape: Shape,
    form: GruForm,
    codes: Option<Vec<i32>>,
    preact: Vec<f32>,
    bias: Option<Vec<f32>>,
    weight: Vec<f32>,
    recurrent_bias: Option<Vec<f32>>,
    h0: Option<Vec<f32>>,
    init: Option<Vec<f32>>,
    d_h: Option<Vec<f32>>,
    d_h_last: Option<Vec<f32>>,
}

impl Case {
    /// Everything present.
    fn full(shape: Shape, form: GruForm, kind: usize, random: &mut Random) -> Self {
        let e = shape.width;
        let bound = 1.0 / (e.max(1) as f64).sqrt();
        Self {
            shape,
            form,
            codes: codes(shape, kind, random),
            preact: random.normal(3 * shape.elements()),
            bias: Some(random.normal(3 * e)),
            weight: random.between(3 * e * e, -bound, bound),
            recurrent_bias: Some(random.normal(3 * e)),
            h0: Some(random.normal(shape.states())),
            init: Some(random.normal(e)),
            d_h: Some(random.normal(shape.elements())),
            d_h_last: Some(random.normal(shape.states())),
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        let drop = |x: &mut Option<Vec<f32>>, when: bool| *x = x.take().filter(|_| !when);
        drop(&mut self.bias, turn % 2 == 1);
        drop(&mut self.recurrent_bias, turn % 3 == 1);
        drop(&mut self.h0, turn % 5 == 1);
        drop(&mut self.init, turn % 7 == 1);
        drop(&mut self.d_h, turn % 3 == 2);
        drop(&mut self.d_h_last, turn % 4 == 3 && turn % 3 != 2);
        self
    }

    fn start(&self) -> Start<'_> {
        Start { h0: self.h0.as_deref(), init: self.init.as_deref(), segments: segments(&self.codes, self.shape.seq_len) }
    }

    fn inputs(&self) -> Inputs<'_> {
        let Case { form, preact, bias, weight, recurrent_bias, .. } = self;
        let (bias, recurrent_bias) = (bias.as_deref(), recurrent_bias.as_deref());
        Inputs { form: *form, preact, bias, weight, recurrent_bias, start: self.start() }
    }

    fn forward(&self) -> [Vec<f32>; 2] {
        outputs([self.shape.elements(), self.shape.states()], |[h, h_last]| gru::forward(self.shape, self.inputs(), h, h_last))
    }

    fn backward(&self, h: &[f32]) -> [Vec<f32>; 6] {
        let (shape, e) = (self.shape, self.shape.width);
        let upstream = Upstream { h, d_h: self.d_h.as_deref(), d_h_last: self.d_h_last.as_deref() };
        let lengths = [3 * shape.elements(), 3 * e, 3 * e * e, 3 * e, shape.states(), e];
        outputs(lengths, |[d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_init]| {
            let (d_bias, d_recurrent_bias) = (Some(d_bias), Some(d_recurrent_bias));
            gru::backward(shape, self.inputs(), upstream, Gradients { d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_init });
        })
    }

    /// Outputs and gradients of the reference in f64.
    fn reference(&self) -> ([Vec<f64>; 2], [Vec<f64>; 6]) {
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (h0, init) = (w(&self.h0), w(&self.init));
        let start = Start { h0: h0.as_deref(), init: init.as_deref(), segments: self.start().segments };
        let (preact, bias, weight, recurrent_bias) = (wide(&self.preact), w(&self.bias), wide(&self.weight), w(&self.recurrent_bias));
        let (bias, recurrent_bias) = (bias.as_deref(), recurrent_bias.as_deref());
        let inputs = Inputs { form: self.form, preact: &preact, bias, weight: &weight, recurrent_bias, start };
        let out = reference::forward(self.shape, inputs);
        let (d_h, d_h_last) = (w(&self.d_h), w(&self.d_h_last));
        let upstream = Upstream { h: &out.h, d_h: d_h.as_deref(), d_h_last: d_h_last.as_deref() };
        let d = reference::backward(self.shape, inputs, upstream);
        ([out.h, out.h_last], [d.d_preact, d.d_bias, d.d_weight, d.d_recurrent_bias, d.d_h0, d.d_init])
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        for level in Level::available() {
            let (found, gradients) = level.scope(|| {
                let found = self.forward();
                let gradients = self.backward(&found[0]);
                (found, gradients)
            });
            let name = |what: &str| format!("{what} of {:?} {:?} on {}", self.shape, self.form, level.name());
            for (i, what) in ["h", "h_last"].iter().enumerate() {
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
    for form in FORMS {
        let shape = Shape { batch: 2, seq_len: 5, width: 3 };
        let mut case = Case::full(shape, form, 2, &mut Random(3));
        case.codes.as_mut().unwrap()[9] = minrnn_kernels::segments::PADDING;
        let (_, gradients) = case.reference();
        let w = |x: &Option<Vec<f32>>| wide(x.as_ref().unwrap());
        let inputs = [wide(&case.preact), w(&case.bias), wide(&case.weight), w(&case.recurrent_bias), w(&case.h0), w(&case.init)];
        let (d_h, d_h_last) = (w(&case.d_h), w(&case.d_h_last));
        let loss = |[preact, bias, weight, recurrent_bias, h0, init]: [&[f64]; 6]| {
            let start = Start { h0: Some(h0), init: Some(init), segments: case.start().segments };
            let inputs = Inputs { form, preact, bias: Some(bias), weight, recurrent_bias: Some(recurrent_bias), start };
            let out = reference::forward(shape, inputs);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(&out.h, &d_h) + dot(&out.h_last, &d_h_last)
        };
        for (i, name) in GRADIENTS.iter().enumerate() {
            let along = differences(&inputs[i], |x| {
                let mut arguments = inputs.each_ref().map(|x| x.as_slice());
                arguments[i] = x;
                loss(arguments)
            });
            assert_gradient(name, &gradients[i], &along);
        }
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    for (turn, shape) in shapes().enumerate() {
        for form in FORMS {
            for kind in 0..KINDS {
                Case::full(shape, form, kind, &mut random).thinned(turn * KINDS + kind).check();
            }
        }
    }
}

#[test]
fn any_cut_with_carried_state_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 65, width: 8 };
    for form in FORMS {
        for (kind, at) in [0, 1, 63, 64, 30].into_iter().enumerate() {
            let whole = Case::full(shape, form, kind % KINDS, &mut Random(5 + kind as u64));
            let part = |range: std::ops::Range<usize>| {
                let cut_to = |x: &Option<Vec<f32>>| x.as_ref().map(|x| cut(x, shape, 8, range.clone()));
                Case {
                    shape: Shape { seq_len: range.len(), ..shape },
                    codes: whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone())),
                    preact: cut(&whole.preact, shape, 24, range.clone()),
                    d_h: cut_to(&whole.d_h),
                    ..whole.clone()
                }
            };
            let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
            let [h_first, carried] = first.forward();
            second.h0 = Some(carried);
            let [h_second, h_last] = second.forward();
            let d_second = second.backward(&h_second);
            first.d_h_last = Some(d_second[4].clone());
            let d_first = first.backward(&h_first);
            let [h, whole_last] = whole.forward();
            close("h", &join([&h_first, &h_second], 3), &wide(&h), STATE);
            close("h_last", &h_last, &wide(&whole_last), STATE);
            let d = whole.backward(&h);
            close("d_preact", &join([&d_first[0], &d_second[0]], 3), &wide(&d[0]), GRADIENT);
            close("d_h0", &d_first[4], &wide(&d[4]), GRADIENT);
            for i in [1, 2, 3, 5] {
                close(GRADIENTS[i], &sum(&d_first[i], &d_second[i]), &wide(&d[i]), GRADIENT);
            }
        }
    }
}

#[test]
fn saturated_gates_stay_exact_over_twenty_thousand_steps() {
    for form in FORMS {
        let shape = Shape { batch: 1, seq_len: 20_000, width: 3 };
        let mut case = Case::full(shape, form, 0, &mut Random(2));
        case.preact.iter_mut().for_each(|p| *p = 40.0 * p.signum());
        case.check();
    }
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    for form in FORMS {
        let shape = Shape { batch: 3, seq_len: 20, width: 5 };
        let clean = Case::full(shape, form, 3, &mut Random(4));
        let mut dirty = clean.clone();
        for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == minrnn_kernels::segments::PADDING) {
            dirty.preact[step * 15..][..15].fill(f32::NAN);
            dirty.d_h.as_mut().unwrap()[step * 5..][..5].fill(f32::NAN);
        }
        let [h, h_last] = clean.forward();
        assert_eq!([h.clone(), h_last], dirty.forward());
        assert_eq!(clean.backward(&h), dirty.backward(&h));
    }
}

#[test]
fn threads_change_nothing_but_the_order_of_sums() {
    let case = Case::full(Shape { batch: 5, seq_len: 40, width: 16 }, GruForm::Torch, 3, &mut Random(8));
    assert_threads_change_the_order_of_sums_alone(GRADIENTS, || {
        let out = case.forward();
        let d = case.backward(&out[0]);
        (out, d)
    });
}

#[test]
fn one_step_is_the_written_equation() {
    let (p, b, w, c, h0) = ([0.3, -0.4, 0.9], [0.1, 0.2, -0.3], [0.5, -1.5, 0.7], [-0.2, 0.4, 0.6], 0.8);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let r = sigmoid(p[0] + b[0] + w[0] * h0 + c[0]);
    let z = sigmoid(p[1] + b[1] + w[1] * h0 + c[1]);
    let n_paper = (p[2] + b[2] + w[2] * (r * h0) + c[2]).tanh();
    let n_torch = (p[2] + b[2] + r * (w[2] * h0 + c[2])).tanh();
    let start = Start { h0: Some(&[h0][..]), ..Start::default() };
    let shape = Shape { batch: 1, seq_len: 1, width: 1 };
    for (form, expected) in [(GruForm::Paper, (1.0 - z) * h0 + z * n_paper), (GruForm::Torch, (1.0 - z) * n_torch + z * h0)] {
        let inputs = Inputs { form, preact: &p, bias: Some(&b), weight: &w, recurrent_bias: Some(&c), start };
        let h = reference::forward(shape, inputs).h[0];
        assert!((h - expected).abs() < 1e-15, "{form:?}: {h}, expected {expected}");
    }
}

#[test]
fn gradients_vanish_without_subnormal_numbers() {
    for form in [GruForm::Torch, GruForm::Paper] {
        let mut case = Case::full(Shape { batch: 1, seq_len: 2500, width: 20 }, form, 0, &mut Random(42));
        case.d_h = None;
        for level in Level::available() {
            let d = level.scope(|| case.backward(&case.forward()[0]));
            assert_vanished(&format!("{form:?} on {}", level.name()), &d[0], 60);
        }
    }
}
