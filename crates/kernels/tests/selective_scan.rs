//! The selective scan: the reference's gradients against finite differences, the kernel against the reference.

mod common;
mod stepwise;

use common::{Random, all_bits, assert_gradient, differences, dot, outputs, wide, written_bits};
use minrnn_kernels::reference::selective_scan as reference;
use minrnn_kernels::selective_scan::{self, CHUNK, Gradients, Inputs, Outputs, boundaries_len};
use minrnn_kernels::simd::Level;
use minrnn_kernels::{Segments, Shape};
use stepwise::{GRADIENT, KINDS, STATE, close, codes, cut, join, segments, sum};

const GRADIENTS: [&str; 8] = ["d_u", "d_delta", "d_delta_bias", "d_a", "d_bc", "d_skip", "d_z", "d_h0"];

#[derive(Clone)]
struct Case {
    shape: Shape,
    d_state: usize,
    codes: Option<Vec<i32>>,
    u: Vec<f32>,
    delta: Vec<f32>,
    delta_bias: Vec<f32>,
    a: Vec<f32>,
    bc: Vec<f32>,
    skip: Vec<f32>,
    z: Option<Vec<f32>>,
    h0: Option<Vec<f32>>,
    d_y: Option<Vec<f32>>,
    d_h_last: Option<Vec<f32>>,
}

impl Case {
    /// Everything present.
    fn full(shape: Shape, d_state: usize, kind: usize, random: &mut Random) -> Self {
        let (elements, states) = (shape.elements(), shape.states() * d_state);
        Self {
            shape,
            d_state,
            codes: codes(shape, kind, random),
            u: random.normal(elements),
            delta: random.normal(elements),
            delta_bias: random.between(shape.width, -5.0, 0.0),
            a: (0..shape.width * d_state).map(|i| -((i % d_state.max(1)) as f32 + 0.5)).collect(),
            bc: random.normal(shape.batch * shape.seq_len * 2 * d_state),
            skip: random.normal(shape.width),
            z: Some(random.normal(elements)),
            h0: Some(random.normal(states)),
            d_y: Some(random.normal(elements)),
            d_h_last: Some(random.normal(states)),
        }
    }

    /// Leaves out what is optional, in turns.
    fn thinned(mut self, turn: usize) -> Self {
        let drop = |x: &mut Option<Vec<f32>>, when: bool| *x = x.take().filter(|_| !when);
        drop(&mut self.z, turn % 3 == 1);
        drop(&mut self.h0, turn % 4 == 1);
        drop(&mut self.d_y, turn % 5 == 2);
        drop(&mut self.d_h_last, turn % 5 == 3);
        self
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            u: &self.u,
            delta: &self.delta,
            delta_bias: &self.delta_bias,
            a: &self.a,
            bc: &self.bc,
            skip: &self.skip,
            z: self.z.as_deref(),
            h0: self.h0.as_deref(),
            segments: segments(&self.codes, self.shape.seq_len),
        }
    }

    /// y, the last state, the boundaries.
    fn forward(&self) -> [Vec<f32>; 3] {
        let lengths = [self.shape.elements(), self.shape.states() * self.d_state, boundaries_len(self.shape, self.d_state)];
        outputs(lengths, |[y, h_last, boundaries]| {
            selective_scan::forward(self.shape, self.d_state, &self.inputs(), Outputs { y, h_last, boundaries });
        })
    }

    fn backward(&self, boundaries: &[f32]) -> [Vec<f32>; 8] {
        let (elements, width) = (self.shape.elements(), self.shape.width);
        let d_z = if self.z.is_some() { elements } else { 0 };
        let lengths = [elements, elements, width, self.a.len(), self.bc.len(), width, d_z, self.shape.states() * self.d_state];
        outputs(lengths, |[d_u, d_delta, d_delta_bias, d_a, d_bc, d_skip, d_z, d_h0]| {
            let d_z = self.z.is_some().then_some(d_z);
            let out = Gradients { d_u, d_delta, d_delta_bias, d_a, d_bc, d_skip, d_z, d_h0 };
            let (d_y, d_h_last) = (self.d_y.as_deref(), self.d_h_last.as_deref());
            selective_scan::backward(self.shape, self.d_state, &self.inputs(), boundaries, d_y, d_h_last, out);
        })
    }

    fn wide(&self) -> Wide {
        let w = |x: &Option<Vec<f32>>| x.as_ref().map(|x| wide(x));
        Wide {
            tensors: [&self.u, &self.delta, &self.delta_bias, &self.a, &self.bc, &self.skip].map(|x| wide(x)),
            z: w(&self.z),
            h0: w(&self.h0),
            d_y: w(&self.d_y),
            d_h_last: w(&self.d_h_last),
        }
    }

    fn check(&self) {
        let wide = self.wide();
        let inputs = wide.inputs(self.inputs().segments);
        let expected = reference::forward(self.shape, self.d_state, &inputs);
        let mut d = wide.gradients(self.shape, self.d_state, &inputs);
        if self.z.is_none() {
            d[6].clear();
        }
        for level in Level::available() {
            let ([y, h_last, _], gradients) = level.scope(|| {
                let found = self.forward();
                let gradients = self.backward(&found[2]);
                (found, gradients)
            });
            let name = |what: &str| format!("{what} of {:?}, N = {} on {}", self.shape, self.d_state, level.name());
            close(&name("y"), &y, &expected.y, STATE);
            close(&name("h_last"), &h_last, &expected.h_last, STATE);
            for (i, what) in GRADIENTS.iter().enumerate() {
                close(&name(what), &gradients[i], &d[i], GRADIENT);
            }
        }
    }
}

/// The same in f64.
struct Wide {
    tensors: [Vec<f64>; 6],
    z: Option<Vec<f64>>,
    h0: Option<Vec<f64>>,
    d_y: Option<Vec<f64>>,
    d_h_last: Option<Vec<f64>>,
}

impl Wide {
    fn inputs<'a>(&'a self, segments: Segments<'a>) -> Inputs<'a, f64> {
        let [u, delta, delta_bias, a, bc, skip] = self.tensors.each_ref().map(Vec::as_slice);
        Inputs { u, delta, delta_bias, a, bc, skip, z: self.z.as_deref(), h0: self.h0.as_deref(), segments }
    }

    fn gradients(&self, shape: Shape, d_state: usize, inputs: &Inputs<'_, f64>) -> [Vec<f64>; 8] {
        let d = reference::backward(shape, d_state, inputs, self.d_y.as_deref(), self.d_h_last.as_deref());
        [d.d_u, d.d_delta, d.d_delta_bias, d.d_a, d.d_bc, d.d_skip, d.d_z, d.d_h0]
    }
}

fn shape(batch: usize, seq_len: usize, width: usize) -> Shape {
    Shape { batch, seq_len, width }
}

/// Mamba's recurrence (arXiv:2312.00752, §3.2) by hand: u, Δ, A, B, C and the skip of one channel with two states, without a gate.
#[test]
fn the_published_example_comes_out() {
    let inverse_softplus = |y: f64| y + (-(-y).exp()).ln_1p();
    let delta: Vec<f64> = [0.1, 0.5, 1.0].map(inverse_softplus).to_vec();
    let inputs = Inputs {
        u: &[1.0, -1.0, 0.5],
        delta: &delta,
        delta_bias: &[0.0],
        a: &[-1.0, -2.0],
        bc: &[1.0, 0.0, 1.0, 1.0, 0.5, 1.0, 0.0, 1.0, 0.0, -1.0, 1.0, -1.0],
        skip: &[0.3],
        z: None,
        h0: None,
        segments: Segments::DENSE,
    };
    let y = reference::forward(shape(1, 3, 1), 2, &inputs).y;
    for (y, expected) in y.iter().zip([0.4, -0.8, 0.648_010_8]) {
        assert!((y - expected).abs() < 1e-7, "{y}, expected {expected}");
    }
}

#[test]
fn reference_gradients_match_finite_differences() {
    let (shape, d_state) = (shape(2, 5, 3), 2);
    for kind in 0..KINDS {
        for gated in [true, false] {
            let mut case = Case::full(shape, d_state, kind, &mut Random(10 + kind as u64));
            if !gated {
                case.z = None;
            }
            let wide = case.wide();
            let loss = |change: &dyn Fn(&mut Wide)| {
                let mut changed = case.wide();
                change(&mut changed);
                let out = reference::forward(shape, d_state, &changed.inputs(case.inputs().segments));
                dot(&out.y, wide.d_y.as_ref().unwrap()) + dot(&out.h_last, wide.d_h_last.as_ref().unwrap())
            };
            let d = wide.gradients(shape, d_state, &wide.inputs(case.inputs().segments));
            for (i, tensor) in wide.tensors.iter().enumerate() {
                assert_gradient(GRADIENTS[i], &d[i], &differences(tensor, |x| loss(&|w| w.tensors[i] = x.to_vec())));
            }
            if let Some(z) = &wide.z {
                assert_gradient("d_z", &d[6], &differences(z, |x| loss(&|w| w.z = Some(x.to_vec()))));
            }
            assert_gradient("d_h0", &d[7], &differences(wide.h0.as_ref().unwrap(), |x| loss(&|w| w.h0 = Some(x.to_vec()))));
        }
    }
}

#[test]
fn kernel_matches_reference_at_awkward_sizes() {
    let mut random = Random(3);
    let mut turn = 0;
    let lengths = [0, 1, 2, 7, CHUNK - 1, CHUNK, CHUNK + 1, 257];
    for seq_len in lengths {
        for (width, d_state) in [(1, 1), (5, 3), (16, 16), (33, 4), (65, 5)] {
            for batch in [1, 3] {
                turn += 1;
                Case::full(shape(batch, seq_len, width), d_state, turn % KINDS, &mut random).thinned(turn).check();
            }
        }
    }
    for (sizes, d_state) in [(shape(0, 4, 3), 2), (shape(9, 5, 16), 16), (shape(1, 1000, 5), 3), (shape(1, 130, 200), 9)] {
        turn += 1;
        Case::full(sizes, d_state, turn % KINDS, &mut random).check();
    }
}

/// Step sizes and decays from next to nothing to far beyond f32's reach.
#[test]
fn extreme_step_sizes_stay_finite() {
    let mut case = Case::full(shape(2, 70, 20), 4, 2, &mut Random(4));
    case.delta.iter_mut().enumerate().for_each(|(i, x)| *x = [-100.0, -20.0, 0.0, 20.0, 200.0][i % 5]);
    let [y, h_last, boundaries] = case.forward();
    let gradients = case.backward(&boundaries);
    assert!([y, h_last].iter().chain(&gradients).flatten().all(|x| x.is_finite()));
}

#[test]
fn a_carried_cut_changes_nothing() {
    let (shape, d_state) = (shape(3, 150, 21), 5);
    for kind in [0, 2] {
        let case = Case::full(shape, d_state, kind, &mut Random(5));
        let [y, h_last, boundaries] = case.forward();
        let d = case.backward(&boundaries);
        for at in [1, 64, 100, 149] {
            let part = |range: std::ops::Range<usize>, h0: Option<Vec<f32>>, d_h_last: Option<Vec<f32>>| {
                let sequence = |x: &Vec<f32>, per_step: usize| cut(x, shape, per_step, range.clone());
                Case {
                    shape: Shape { seq_len: range.len(), ..shape },
                    codes: case.codes.as_ref().map(|codes| cut(codes, shape, 1, range.clone())),
                    u: sequence(&case.u, shape.width),
                    delta: sequence(&case.delta, shape.width),
                    bc: sequence(&case.bc, 2 * d_state),
                    z: case.z.as_ref().map(|z| sequence(z, shape.width)),
                    d_y: case.d_y.as_ref().map(|d| sequence(d, shape.width)),
                    h0,
                    d_h_last,
                    ..case.clone()
                }
            };
            let [y_first, carried, first_boundaries] = part(0..at, case.h0.clone(), None).forward();
            let second = part(at..shape.seq_len, Some(carried), case.d_h_last.clone());
            let [y_second, last, second_boundaries] = second.forward();
            let d_second = second.backward(&second_boundaries);
            let d_first = part(0..at, case.h0.clone(), Some(d_second[7].clone())).backward(&first_boundaries);
            close("y", &join([&y_first, &y_second], shape.batch), &wide(&y), STATE);
            close("h_last", &last, &wide(&h_last), STATE);
            for i in [0, 1, 4, 6] {
                close(GRADIENTS[i], &join([&d_first[i], &d_second[i]], shape.batch), &wide(&d[i]), GRADIENT);
            }
            for i in [2, 3, 5] {
                close(GRADIENTS[i], &sum(&d_first[i], &d_second[i]), &wide(&d[i]), GRADIENT);
            }
            close("d_h0", &d_first[7], &wide(&d[7]), GRADIENT);
        }
    }
}

/// Sums over channels and rows depend on how the work is cut; the rest does not.
#[test]
fn threads_change_nothing_but_the_last_bits_of_sums() {
    for (sizes, d_state) in [(shape(7, 70, 130), 4), (shape(1, 70, 300), 4)] {
        let case = Case::full(sizes, d_state, 3, &mut Random(6));
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
            pool.install(|| {
                let [y, h_last, boundaries] = case.forward();
                (case.backward(&boundaries), [y, h_last, boundaries])
            })
        };
        let (gradients, states) = on(1);
        for threads in [2, 5] {
            let (found, found_states) = on(threads);
            assert!(all_bits(&found_states) == all_bits(&states), "{threads} threads");
            let (twice, twice_states) = on(threads);
            let same = all_bits(&found) == all_bits(&twice) && all_bits(&states) == all_bits(&twice_states);
            assert!(same, "the same twice on {threads} threads");
            for (i, what) in GRADIENTS.iter().enumerate() {
                match i {
                    2..=5 => close(what, &found[i], &wide(&gradients[i]), 1e-5),
                    _ => assert!(written_bits(&found[i]) == written_bits(&gradients[i]), "{what} on {threads} threads"),
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "bc: expected 24 elements, found 23")]
fn a_short_input_is_refused() {
    let mut case = Case::full(shape(2, 3, 4), 2, 0, &mut Random(7));
    case.bc.pop();
    case.forward();
}

#[test]
fn gradients_vanish_without_subnormal_numbers() {
    let mut case = Case::full(shape(1, 600, 20), 16, 0, &mut Random(44));
    (case.d_y, case.z) = (None, None);
    case.delta_bias.fill(0.5);
    for level in Level::available() {
        let d = level.scope(|| case.backward(&case.forward()[2]));
        let rows = &d[0];
        assert!(rows[..320].iter().all(|&d| d == 0.0) && rows[rows.len() - 20..].iter().any(|&d| d.abs() > 1e-6), "{}", level.name());
        // A gradient of which a step keeps 1e-7 is gone before it is looked at again.
        let subnormal = rows.iter().filter(|d| d.is_subnormal()).count();
        assert!(subnormal <= 20, "{}: {subnormal} subnormal numbers of {}", level.name(), rows.len());
    }
}
