//! Gated linear attention: the reference against its parallel form and finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, assert_close_above, assert_gradient, differences, dot, on_every_level, outputs, wide};
use minrnn_kernels::reference::retention as reference;
use minrnn_kernels::retention::{self, Features, Form, Gradients, Inputs, Sizes, Start};
use minrnn_kernels::{Shape, segments::PADDING};
use stepwise::{GRADIENT, KINDS, STATE, codes, cut, join, segments};

const NAMES: [&str; 4] = ["queries", "keys", "values", "state"];
/// Below this, outputs and gradients are sums whose terms cancel.
const NOISE: f64 = 1e-2;

#[derive(Clone)]
struct Case {
    sizes: Sizes,
    features: Features,
    normalized: bool,
    decays: Vec<f64>,
    codes: Option<Vec<i32>>,
    /// As named above.
    inputs: [Vec<f32>; 4],
    positions: Vec<f32>,
    carries: bool,
    d_y: Option<Vec<f32>>,
    d_last: Option<Vec<f32>>,
}

impl Case {
    fn new(sizes: Sizes, features: Features, normalized: bool, kind: usize, random: &mut Random) -> Self {
        let decays = (0..sizes.heads).map(|h| if features == Features::Rotary { 1.0 - 0.5f64.powi(5 + h as i32) } else { 1.0 }).collect();
        let shape = Shape { batch: sizes.batch, seq_len: sizes.seq_len, width: 1 };
        let states = sizes.batch * sizes.heads * sizes.key * (sizes.value + usize::from(normalized));
        let mut inputs = [sizes.keys(), sizes.keys(), sizes.values(), states].map(|n| random.normal(n));
        if normalized {
            // A normalised attention keeps sums of positive numbers.
            inputs[3].iter_mut().for_each(|x| *x = x.abs());
        }
        Self {
            sizes,
            features,
            normalized,
            decays,
            codes: codes(shape, kind, random),
            inputs,
            positions: (0..sizes.batch).map(|b| 1000.0 * b as f32).collect(),
            carries: true,
            d_y: Some(random.normal(sizes.values())),
            d_last: Some(random.normal(states)),
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        self.carries = turn % 3 != 1;
        self.d_y = self.d_y.filter(|_| turn % 5 != 2);
        self.d_last = self.d_last.filter(|_| turn % 4 != 1);
        self
    }

    fn form(&self) -> Form<'_> {
        let key_scale = if self.features == Features::Rotary { (self.sizes.key as f64).powf(-0.5) } else { 1.0 };
        Form { features: self.features, decays: &self.decays, key_scale, normalized: self.normalized }
    }

    fn arguments<'a, T>(&'a self, [queries, keys, values, state]: &'a [Vec<T>; 4]) -> Inputs<'a, T> {
        let positions = self.carries.then_some(&self.positions[..]);
        let start = Start { state: self.carries.then_some(state), positions, segments: segments(&self.codes, self.sizes.seq_len) };
        Inputs { queries, keys, values, start }
    }

    fn forward(&self) -> [Vec<f32>; 2] {
        let [_, _, values, state] = &self.inputs;
        outputs([values.len(), state.len()], |[y, last]| {
            retention::forward(self.sizes, self.form(), self.arguments(&self.inputs), y, last);
        })
    }

    fn backward(&self) -> [Vec<f32>; 4] {
        outputs(self.inputs.each_ref().map(Vec::len), |[d_queries, d_keys, d_values, d_state]| {
            let (d_y, d_last) = (self.d_y.as_deref(), self.d_last.as_deref());
            let d = Gradients { d_queries, d_keys, d_values, d_state };
            retention::backward(self.sizes, self.form(), self.arguments(&self.inputs), d_y, d_last, d);
        })
    }

    fn reference(&self) -> ([Vec<f64>; 2], [Vec<f64>; 4]) {
        let wide_inputs = self.inputs.each_ref().map(|x| wide(x));
        let (form, inputs) = (self.form(), self.arguments(&wide_inputs));
        let out = reference::forward(self.sizes, form, inputs);
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        let (d_y, d_last) = (w(&self.d_y), w(&self.d_last));
        let d = reference::backward(self.sizes, form, inputs, d_y.as_deref(), d_last.as_deref());
        ([out.y, out.state_last], [d.d_queries, d.d_keys, d.d_values, d.d_state])
    }

    fn check(&self) {
        let (expected, expected_gradients) = self.reference();
        on_every_level(|level| {
            let what = |name: &str| format!("{name} of {:?}, {:?} on {level}", self.sizes, self.features);
            let found = self.forward();
            for (i, name) in ["y", "state_last"].iter().enumerate() {
                assert_close_above(&what(name), &found[i], &expected[i], STATE, NOISE);
            }
            let gradients = self.backward();
            for (i, name) in NAMES.iter().enumerate() {
                assert_close_above(&what(name), &gradients[i], &expected_gradients[i], GRADIENT, NOISE);
            }
        });
    }
}

/// Both attentions, and a third combination of features and normalisation.
const KINDS_OF_ATTENTION: [(Features, bool); 3] = [(Features::Rotary, false), (Features::EluPlusOne, true), (Features::EluPlusOne, false)];

fn sizes(batch: usize, seq_len: usize, heads: usize, key: usize, value: usize) -> Sizes {
    Sizes { batch, seq_len, heads, key, value }
}

/// RetNet (arXiv:2307.08621, §2) and linear attention (arXiv:2006.16236): o_t = Σ_{s ≤ t} γ^{t−s} (q_t · k_s) v_s, rotated by the distance
/// alone; linear attention's is divided by the same sum with v = 1.
#[test]
fn the_reference_equals_the_parallel_form() {
    for (features, normalized) in KINDS_OF_ATTENTION {
        let sizes = sizes(1, 7, 2, 4, 3);
        let case = Case { carries: false, ..Case::new(sizes, features, normalized, 0, &mut Random(1)) };
        let ([y, _], _) = case.reference();
        let [q, k, v] = [0, 1, 2].map(|i: usize| wide(&case.inputs[i]));
        let feature = |x: f64| if x > 0.0 { x + 1.0 } else { x.exp() };
        let score = |t: usize, s: usize, h: usize| -> f64 {
            let (q, k) = (&q[(t * 2 + h) * 4..][..4], &k[(s * 2 + h) * 4..][..4]);
            match features {
                Features::EluPlusOne => q.iter().zip(k).map(|(q, k)| feature(*q) * feature(*k)).sum(),
                Features::Rotary => {
                    let pair = |j: usize| {
                        let angle = (t - s) as f64 * 10_000f64.powf(-(j as f64));
                        let (q, k) = (&q[2 * j..][..2], &k[2 * j..][..2]);
                        (q[0] * k[0] + q[1] * k[1]) * angle.cos() + (q[1] * k[0] - q[0] * k[1]) * -angle.sin()
                    };
                    0.5 * (pair(0) + pair(1)) * case.decays[h].powi((t - s) as i32)
                }
            }
        };
        for t in 0..7 {
            for h in 0..2 {
                let whole = if normalized { (0..=t).map(|s| score(t, s, h)).sum::<f64>() + 1e-6 } else { 1.0 };
                for c in 0..3 {
                    let expected = (0..=t).map(|s| score(t, s, h) * v[(s * 2 + h) * 3 + c]).sum::<f64>() / whole;
                    let found = y[(t * 2 + h) * 3 + c];
                    assert!((found - expected).abs() < 1e-12, "{features:?}, {t}: {found}, expected {expected}");
                }
            }
        }
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    for (features, normalized) in KINDS_OF_ATTENTION {
        let mut case = Case::new(sizes(2, 5, 2, 4, 3), features, normalized, 2, &mut Random(3));
        case.codes.as_mut().unwrap()[9] = PADDING;
        let (_, gradients) = case.reference();
        let inputs = case.inputs.each_ref().map(|x| wide(x));
        let (d_y, d_last) = (wide(case.d_y.as_ref().unwrap()), wide(case.d_last.as_ref().unwrap()));
        for (i, name) in NAMES.iter().enumerate() {
            let along = differences(&inputs[i], |x| {
                let mut inputs = inputs.clone();
                inputs[i] = x.to_vec();
                let out = reference::forward(case.sizes, case.form(), case.arguments(&inputs));
                dot(&out.y, &d_y) + dot(&out.state_last, &d_last)
            });
            assert_gradient(name, &gradients[i], &along);
        }
    }
}

#[test]
fn kernel_matches_reference_on_awkward_sizes() {
    let mut random = Random(11);
    let lengths = [0, 1, 2, 7, 63, 64, 65, 130].map(|seq_len| sizes(3, seq_len, 2, 4, 5));
    let others = [sizes(1, 257, 1, 2, 1), sizes(2, 70, 3, 16, 33), sizes(0, 4, 2, 2, 2), sizes(1, 1000, 4, 8, 3)];
    for (turn, sizes) in lengths.into_iter().chain(others).enumerate() {
        for (i, (features, normalized)) in KINDS_OF_ATTENTION.into_iter().enumerate() {
            for kind in 0..KINDS {
                Case::new(sizes, features, normalized, kind, &mut random).thinned(turn * KINDS + kind + i).check();
            }
        }
    }
}

#[test]
fn any_cut_with_carried_state_gives_the_same() {
    let sizes = sizes(3, 70, 2, 4, 3);
    let shape = Shape { batch: 3, seq_len: 70, width: 1 };
    for (turn, at) in [0, 1, 30, 64, 69].into_iter().enumerate() {
        for (features, normalized) in KINDS_OF_ATTENTION {
            let whole = Case::new(sizes, features, normalized, turn % 2, &mut Random(5 + turn as u64));
            let part = |range: std::ops::Range<usize>| {
                let mut part = whole.clone();
                part.sizes.seq_len = range.len();
                part.codes = whole.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone()));
                for (x, width) in part.inputs.iter_mut().zip([8, 8, 6]).chain(part.d_y.as_mut().map(|d| (d, 6))) {
                    *x = cut(x, shape, width, range.clone());
                }
                part
            };
            let (mut first, mut second) = (part(0..at), part(at..70));
            let [y_first, state] = first.forward();
            second.inputs[3] = state;
            for (b, position) in second.positions.iter_mut().enumerate() {
                *position += segments(&first.codes, at).length(b, at) as f32;
            }
            let ([y_second, last], [y, whole_last]) = (second.forward(), whole.forward());
            let close = |name: &str, found: &[f32], expected: &[f32]| assert_close_above(name, found, &wide(expected), GRADIENT, NOISE);
            close("y", &join([&y_first, &y_second], 3), &y);
            close("state", &last, &whole_last);
            let d_second = second.backward();
            first.d_last = Some(d_second[3].clone());
            let (d_first, d) = (first.backward(), whole.backward());
            for i in 0..3 {
                close(NAMES[i], &join([&d_first[i], &d_second[i]], 3), &d[i]);
            }
            close("d_state", &d_first[3], &d[3]);
        }
    }
}

#[test]
fn garbage_in_padding_reaches_nothing() {
    let clean = Case::new(sizes(3, 20, 2, 4, 3), Features::Rotary, false, 3, &mut Random(4));
    let mut dirty = clean.clone();
    for (step, _) in clean.codes.as_ref().unwrap().iter().enumerate().filter(|(_, code)| **code == PADDING) {
        for (x, width) in dirty.inputs.iter_mut().zip([8, 8, 6]).chain(dirty.d_y.as_mut().map(|d| (d, 6))) {
            x[step * width..][..width].fill(f32::NAN);
        }
    }
    assert_eq!(clean.forward(), dirty.forward());
    assert_eq!(clean.backward(), dirty.backward());
}

#[test]
fn threads_change_nothing() {
    let case = Case::new(sizes(5, 80, 3, 8, 6), Features::EluPlusOne, true, 3, &mut Random(8));
    common::assert_threads_change_nothing(|| {
        let ([y, last], [queries, keys, values, state]) = (case.forward(), case.backward());
        [y, last, queries, keys, values, state]
    });
}
