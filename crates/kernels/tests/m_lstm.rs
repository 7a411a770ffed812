//! mLSTM: the reference's forms against each other and finite differences, the chunked kernel and the step against the reference.

mod common;
mod stepwise;

use common::{Random, assert_close, assert_gradient, differences, dot, outputs, wide};
use minrnn_kernels::m_lstm::{self, CHUNK, EMPTY_M, EPS, Gradients, Inputs, Start, Upstream};
use minrnn_kernels::reference::m_lstm as reference;
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Shape, segments::PADDING, segments::RESET};
use stepwise::{GRADIENT, KINDS, STATE, close, codes, cut, heads_of, join, segments, shapes};

const OUTPUTS: [&str; 4] = ["h", "last C", "last n", "last m"];
const GRADIENTS: [&str; 6] = ["d_q", "d_k", "d_v", "d_gates", "d_c0", "d_n0"];

#[derive(Clone)]
struct Case {
    shape: Shape,
    heads: usize,
    codes: Option<Vec<i32>>,
    qkv: [Vec<f32>; 3],
    gates: Vec<f32>,
    /// C, n, m.
    carried: Option<[Vec<f32>; 3]>,
    d_h: Option<Vec<f32>>,
    /// Of the last C and n.
    d_last: [Option<Vec<f32>>; 2],
}

impl Case {
    /// Everything present; forget gates around `forget_bias`.
    fn full(shape: Shape, heads: usize, kind: usize, forget_bias: f32, random: &mut Random) -> Self {
        let (e, all) = (shape.width / heads, shape.batch * heads);
        let mut gates = random.normal(shape.batch * shape.seq_len * 2 * heads);
        for row in gates.chunks_exact_mut(2 * heads) {
            row[heads..].iter_mut().for_each(|f| *f += forget_bias);
        }
        Self {
            shape,
            heads,
            codes: codes(shape, kind, random),
            qkv: [(); 3].map(|()| random.normal(shape.elements())),
            gates,
            carried: Some([random.normal(all * e * e), random.normal(all * e), random.normal(all)]),
            d_h: Some(random.normal(shape.elements())),
            d_last: [Some(random.normal(all * e * e)), Some(random.normal(all * e))],
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        self.carried = self.carried.filter(|_| turn % 3 != 1);
        self.d_h = self.d_h.filter(|_| turn % 7 != 2);
        self.d_last[0] = self.d_last[0].take().filter(|_| turn.is_multiple_of(2));
        self.d_last[1] = self.d_last[1].take().filter(|_| turn % 4 < 2);
        self
    }

    fn start(&self) -> Start<'_> {
        let part = |part: usize| self.carried.as_ref().map(|carried| &carried[part][..]);
        Start { c0: part(0), n0: part(1), m0: part(2), segments: segments(&self.codes, self.shape.seq_len) }
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs { heads: self.heads, qkv: self.qkv.each_ref().map(Vec::as_slice), gates: &self.gates, start: self.start() }
    }

    fn forward(&self) -> [Vec<f32>; 4] {
        let (e, all) = (self.shape.width / self.heads, self.shape.batch * self.heads);
        outputs([self.shape.elements(), all * e * e, all * e, all], |[h, c, n, m]| {
            m_lstm::forward(self.shape, self.inputs(), h, [c, n, m]);
        })
    }

    fn backward(&self, h: &[f32]) -> [Vec<f32>; 6] {
        let (e, all, elements) = (self.shape.width / self.heads, self.shape.batch * self.heads, self.shape.elements());
        outputs([elements, elements, elements, self.gates.len(), all * e * e, all * e], |[d_q, d_k, d_v, d_gates, d_c0, d_n0]| {
            let upstream = Upstream { h, d_h: self.d_h.as_deref(), d_last: self.d_last.each_ref().map(Option::as_deref) };
            m_lstm::backward(self.shape, self.inputs(), upstream, Gradients { d_qkv: [d_q, d_k, d_v], d_gates, d_start: [d_c0, d_n0] });
        })
    }

    /// The same, step by step.
    fn steps(&self, level: Level) -> [Vec<f32>; 4] {
        let Shape { batch, seq_len, width } = self.shape;
        let e = width / self.heads;
        let mut out = [vec![0.0; self.shape.elements()], vec![], vec![], vec![]];
        for index in 0..batch * self.heads {
            let (b, head) = (index / self.heads, index % self.heads);
            let (mut c, mut n, mut m) = (vec![0.0; e * e], vec![0.0; e], EMPTY_M);
            if let Some([c0, n0, m0]) = &self.carried {
                (c, n, m) = (c0[index * e * e..][..e * e].to_vec(), n0[index * e..][..e].to_vec(), m0[index]);
            }
            for t in 0..seq_len {
                let (at, gate) = ((b * seq_len + t) * width + head * e, (b * seq_len + t) * 2 * self.heads + head);
                match self.codes.as_ref().map(|codes| codes[b * seq_len + t]) {
                    Some(PADDING) => break,
                    Some(RESET) => (c, n, m) = (vec![0.0; e * e], vec![0.0; e], EMPTY_M),
                    _ => {}
                }
                let qkv = self.qkv.each_ref().map(|x| &x[at..at + e]);
                let gates = [self.gates[gate], self.gates[gate + self.heads]];
                m_lstm::step(level, qkv, gates, &mut c, &mut n, &mut m, &mut out[0][at..at + e]);
            }
            out[1].extend(c);
            out[2].extend(n);
            out[3].push(m);
        }
        out
    }

    /// Outputs and gradients of the reference in f64.
    fn reference(&self) -> ([Vec<f64>; 4], [Vec<f64>; 6]) {
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (qkv, gates) = (self.qkv.each_ref().map(|x| wide(x)), wide(&self.gates));
        let qkv = qkv.each_ref().map(Vec::as_slice);
        let carried = self.carried.as_ref().map(|carried| carried.each_ref().map(|part| wide(part)));
        let part = |part: usize| carried.as_ref().map(|carried| &carried[part][..]);
        let start = Start { c0: part(0), n0: part(1), m0: part(2), segments: self.start().segments };
        let eps = f64::from(EPS);
        let inputs = Inputs { heads: self.heads, qkv, gates: &gates, start };
        let out = reference::forward(self.shape, eps, inputs);
        let (d_h, d_last) = (w(&self.d_h), self.d_last.each_ref().map(w));
        let d_last = d_last.each_ref().map(Option::as_deref);
        let d = reference::backward(self.shape, eps, inputs, Upstream { h: &out.h, d_h: d_h.as_deref(), d_last });
        let ([c, n, m], [d_q, d_k, d_v], [d_c0, d_n0]) = (out.last, d.d_qkv, d.d_start);
        ([out.h, c, n, m], [d_q, d_k, d_v, d.d_gates, d_c0, d_n0])
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        for level in Level::available() {
            let (found, gradients) = level.scope(|| {
                let found = self.forward();
                let gradients = self.backward(&found[0]);
                (found, gradients)
            });
            let name = |what: &str| format!("{what} of {:?}, {} heads, on {}", self.shape, self.heads, level.name());
            let steps = self.steps(level);
            // With one channel h is ±v where n·q is large: the gradients of q, k and the gates are what a cancellation leaves.
            let floor = if self.shape.width == self.heads { 1.0 } else { 0.0 };
            for (i, what) in OUTPUTS.iter().enumerate() {
                close_in_rms(&name(what), &found[i], &expected[i], OUTPUT_RMS, floor);
                close_in_rms(&name(&format!("{what} by steps")), &steps[i], &expected[i], OUTPUT_RMS, floor);
            }
            for (i, what) in GRADIENTS.iter().enumerate() {
                close_in_rms(&name(what), &gradients[i], &expected_gradients[i], GRADIENT_RMS, floor);
            }
        }
    }
}

/// Outputs and memories against f64, by the relative root mean square: a single h may be the quotient of two sums that cancel.
const OUTPUT_RMS: f64 = 1e-5;
/// Gradients, by the same measure.
const GRADIENT_RMS: f64 = 1e-4;

/// Asserts rms(actual − expected) ≤ `tolerance` · max(rms(expected), `floor`), except next to 0.
#[track_caller]
fn close_in_rms(name: &str, actual: &[f32], expected: &[f64], tolerance: f64, floor: f64) {
    assert_eq!(actual.len(), expected.len(), "{name}");
    let rms = |squares: f64| (squares / expected.len().max(1) as f64).sqrt();
    let error = rms(actual.iter().zip(expected).map(|(&a, e)| (f64::from(a) - e).powi(2)).sum());
    let limit = tolerance * rms(expected.iter().map(|e| e * e).sum()).max(floor) + 1e-30;
    assert!(error <= limit, "{name}: rms of the error {error:.2e}, limit {limit:.2e}");
}

/// The published test vector: e = 2, T = 3.
fn published() -> (Shape, [[f64; 6]; 3], [f64; 6]) {
    let (q, k) = ([1.0, 0.0, 0.5, -1.0, 2.0, 1.0], [0.0, 1.0, 1.0, 1.0, -1.0, 0.5]);
    let v = [1.0, 2.0, -1.0, 0.0, 0.5, 3.0];
    (Shape { batch: 1, seq_len: 3, width: 2 }, [q, k, v], [0.0, 2.0, 1.0, 0.0, -1.0, 1.0])
}

#[test]
fn the_published_vector_comes_out_of_every_form() {
    let (shape, qkv, gates) = published();
    let expected = [0.0, 0.0, 0.46211716, -0.53788284, -1.01673832, -0.16005855];
    let wide_qkv = qkv.each_ref().map(|x| &x[..]);
    let inputs = Inputs { heads: 1, qkv: wide_qkv, gates: &gates, start: Start::default() };
    let recurrent = reference::forward(shape, 0.0, inputs);
    let parallel = reference::parallel(shape, 1, 0.0, wide_qkv, &gates);
    for h in [&recurrent.h, &parallel] {
        assert!(h.iter().zip(expected).all(|(h, e)| (h - e).abs() < 1e-8), "{h:?}");
    }
    assert!((recurrent.last[2][0] - 0.68673831).abs() < 1e-8);
    let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let qkv = qkv.each_ref().map(|x| narrow(x));
    let case = Case { shape, heads: 1, codes: None, qkv, gates: narrow(&gates), carried: None, d_h: None, d_last: [None, None] };
    let [h, _, _, m] = case.forward();
    assert!(h.iter().zip(expected).all(|(&h, e)| (f64::from(h) - e).abs() < 5e-6), "{h:?}");
    assert!((m[0] - 0.686_738_3).abs() < 1e-6);
}

#[test]
fn the_parallel_form_equals_the_recurrence() {
    let shape = Shape { batch: 2, seq_len: 33, width: 6 };
    let case = Case::full(shape, 3, 0, 1.0, &mut Random(1));
    let (qkv, gates) = (case.qkv.each_ref().map(|x| wide(x)), wide(&case.gates));
    let qkv = qkv.each_ref().map(Vec::as_slice);
    for eps in [0.0, 1e-6] {
        let recurrent = reference::forward(shape, eps, Inputs { heads: 3, qkv, gates: &gates, start: Start::default() }).h;
        let parallel = reference::parallel(shape, 3, eps, qkv, &gates);
        assert!(recurrent.iter().zip(&parallel).all(|(a, b)| (a - b).abs() < 1e-12 * a.abs().max(1.0)));
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    let shape = Shape { batch: 2, seq_len: 5, width: 4 };
    let mut case = Case::full(shape, 2, 2, 1.0, &mut Random(3));
    case.codes.as_mut().unwrap()[9] = PADDING;
    let carried = case.carried.as_ref().unwrap().each_ref().map(|part| wide(part));
    let [q, k, v] = case.qkv.each_ref().map(|x| wide(x));
    let inputs = [q, k, v, wide(&case.gates), carried[0].clone(), carried[1].clone()];
    let w = |x: &Option<Vec<f32>>| wide(x.as_ref().unwrap());
    let (d_h, weights) = (w(&case.d_h), case.d_last.each_ref().map(w));
    // Without the constant in the denominator, m does not affect the outputs at all.
    let run = |[q, k, v, gates, c0, n0]: [&[f64]; 6]| {
        let start = Start { c0: Some(c0), n0: Some(n0), m0: Some(&carried[2]), segments: case.start().segments };
        reference::forward(shape, 0.0, Inputs { heads: 2, qkv: [q, k, v], gates, start })
    };
    let scaled = |x: &[f64], m: &[f64]| -> Vec<f64> {
        let per_head = x.len() / m.len();
        x.iter().enumerate().map(|(i, x)| x * m[i / per_head].exp()).collect()
    };
    let loss = |arguments: [&[f64]; 6]| {
        let out = run(arguments);
        let [c, n, m] = &out.last;
        dot(&out.h, &d_h) + dot(&scaled(c, m), &weights[0]) + dot(&scaled(n, m), &weights[1])
    };
    let arguments: [&[f64]; 6] = std::array::from_fn(|i| inputs[i].as_slice());
    let out = run(arguments);
    let d_last = weights.each_ref().map(|w| scaled(w, &out.last[2]));
    let d_last = d_last.each_ref().map(|d| Some(d.as_slice()));
    let [q, k, v, gates, c0, n0] = arguments;
    let start = Start { c0: Some(c0), n0: Some(n0), m0: Some(&carried[2]), segments: case.start().segments };
    let inputs_now = Inputs { heads: 2, qkv: [q, k, v], gates, start };
    let d = reference::backward(shape, 0.0, inputs_now, Upstream { h: &out.h, d_h: Some(&d_h), d_last });
    let ([d_q, d_k, d_v], [d_c0, d_n0]) = (d.d_qkv, d.d_start);
    for (i, (name, analytic)) in GRADIENTS.iter().zip([d_q, d_k, d_v, d.d_gates, d_c0, d_n0]).enumerate() {
        let along = differences(&inputs[i], |x| {
            let mut arguments = arguments;
            arguments[i] = x;
            loss(arguments)
        });
        assert_gradient(name, &analytic, &along);
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    for (turn, shape) in shapes().enumerate().filter(|(_, shape)| shape.width <= 33 || shape.seq_len <= 65) {
        for kind in 0..KINDS {
            let forget_bias = [3.0, 0.0, -2.0, 6.0][(turn + kind) % 4];
            Case::full(shape, heads_of(shape.width), kind, forget_bias, &mut random).thinned(turn * KINDS + kind).check();
        }
    }
}

#[test]
fn any_cut_with_carried_memory_gives_the_same() {
    let shape = Shape { batch: 3, seq_len: 2 * CHUNK + 7, width: 8 };
    for (kind, at) in [0, 1, CHUNK, CHUNK + 1, 100].into_iter().enumerate() {
        let mut whole = Case::full(shape, 2, kind % KINDS, 2.0, &mut Random(5 + kind as u64));
        if kind == 0 {
            whole.carried = None;
        }
        let part = |range: std::ops::Range<usize>| Case {
            shape: Shape { seq_len: range.len(), ..shape },
            codes: whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone())),
            qkv: whole.qkv.each_ref().map(|x| cut(x, shape, 8, range.clone())),
            gates: cut(&whole.gates, shape, 4, range.clone()),
            d_h: whole.d_h.as_ref().map(|d| cut(d, shape, 8, range.clone())),
            ..whole.clone()
        };
        let (mut first, mut second) = (part(0..at), part(at..shape.seq_len));
        let out_first = first.forward();
        second.carried = Some([1, 2, 3].map(|i: usize| out_first[i].clone()));
        let out_second = second.forward();
        let d_second = second.backward(&out_second[0]);
        first.d_last = [4, 5].map(|i: usize| Some(d_second[i].clone()));
        let d_first = first.backward(&out_first[0]);
        let out = whole.forward();
        let d = whole.backward(&out[0]);
        close("h", &join([&out_first[0], &out_second[0]], 3), &wide(&out[0]), STATE);
        (1..4).for_each(|i| close(OUTPUTS[i], &out_second[i], &wide(&out[i]), STATE));
        (0..4).for_each(|i| close(GRADIENTS[i], &join([&d_first[i], &d_second[i]], 3), &wide(&d[i]), GRADIENT));
        (4..6).for_each(|i| close(GRADIENTS[i], &d_first[i], &wide(&d[i]), GRADIENT));
    }
}

#[test]
fn a_constant_added_to_all_input_gates_changes_nothing_where_the_normaliser_is_large() {
    let shape = Shape { batch: 1, seq_len: 90, width: 4 };
    let mut case = Case { carried: None, ..Case::full(shape, 1, 0, 3.0, &mut Random(6)) };
    // Queries and keys of one sign: |n·q| stays above e^−m.
    for x in &mut case.qkv[..2] {
        x.iter_mut().for_each(|x| *x = x.abs() + 0.5);
    }
    case.gates.chunks_exact_mut(2).for_each(|row| row[0] += 2.0);
    let before = case.forward();
    case.gates.chunks_exact_mut(2).for_each(|row| row[0] += 5.0);
    assert_close("h", &case.forward()[0], &wide(&before[0]), STATE);
}

#[test]
fn gates_of_forty_stay_finite_and_exact() {
    let shape = Shape { batch: 1, seq_len: 500, width: 4 };
    let mut case = Case::full(shape, 2, 0, 0.0, &mut Random(2));
    case.gates.iter_mut().for_each(|p| *p = 40.0 * p.signum());
    let out = case.forward();
    for x in out.iter().chain(&case.backward(&out[0])) {
        assert!(x.iter().all(|x| x.is_finite()));
    }
    close_in_rms("h", &out[0], &case.reference().0[0], OUTPUT_RMS, 0.0);
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let shape = Shape { batch: 3, seq_len: 20, width: 6 };
    let clean = Case::full(shape, 3, 3, 1.0, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == PADDING) {
        dirty.qkv.iter_mut().for_each(|x| x[step * 6..][..6].fill(f32::NAN));
        dirty.gates[step * 6..][..6].fill(f32::NAN);
        dirty.d_h.as_mut().unwrap()[step * 6..][..6].fill(f32::NAN);
    }
    let out = clean.forward();
    assert_eq!(out, dirty.forward());
    assert_eq!(clean.backward(&out[0]), dirty.backward(&out[0]));
}

#[test]
fn threads_change_nothing() {
    let case = Case::full(Shape { batch: 5, seq_len: 140, width: 16 }, 2, 3, 2.0, &mut Random(8));
    common::assert_threads_change_nothing(|| {
        let [h, c, n, m] = case.forward();
        let [q, k, v, gates, c0, n0] = case.backward(&h);
        [h, c, n, m, q, k, v, gates, c0, n0]
    });
}
