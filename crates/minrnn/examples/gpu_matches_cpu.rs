//! Compares every operation with GPU kernels with the same on the CPU: outputs, and gradients of all inputs.
//!
//! ```text
//! cargo run --release -p minrnn --features vulkan --example gpu_matches_cpu -- [DEVICE [TEXT]]
//! ```
//!
//! DEVICE is a name listed by `minrnn devices`; without one, the first GPU. With TEXT, only checks whose line contains it. One line per
//! check; exit code 1 if one fails. Only these operations run on the device, so that software drivers which stumble over other kernels can
//! be used too.

use std::process::ExitCode;

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use minrnn::Segments;
use minrnn::device::{DeviceChoice, name_of};
use minrnn::model::Backbone;
use minrnn::nn::{Initializer, Mode};
use minrnn::ops::{
    self, AdamW, Candidate, Dropout, EMPTY_M, ForgetGate, Gates, Moments, Precision, SLstmMemory, SelectiveScan, Start, StepCodes, ToUpdate,
};
use minrnn::rng::{Purpose, stream};
use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig, NormKind};
use rand::Rng;

/// Maximum error relative to the largest value of a tensor (at least 1): of outputs, and of gradients.
const TOLERANCE: [f32; 2] = [1e-5, 1e-4];
/// The same with activations rounded to f16 or bf16, with 11 and 8 significant bits.
const SHORT_TOLERANCES: [(FloatDType, [f32; 2]); 2] = [(FloatDType::F16, [1e-3, 2e-3]), (FloatDType::BF16, [8e-3, 1.6e-2])];

fn main() -> ExitCode {
    a_comparison_fails_where_one_is_no_number();
    let name = std::env::args().nth(1).unwrap_or_else(|| "auto".to_owned());
    let device = match name.parse::<DeviceChoice>().and_then(DeviceChoice::open) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    println!("device: {}", name_of(&device));
    let mut checks = Checks { devices: [Device::flex(), device], only: std::env::args().nth(2).unwrap_or_default(), failed: 0, count: 0 };
    scans(&mut checks);
    cells(&mut checks);
    selective_scans(&mut checks);
    lstms(&mut checks);
    slstms(&mut checks);
    convolutions(&mut checks);
    norms(&mut checks);
    activations(&mut checks);
    products(&mut checks);
    dropout(&mut checks);
    ends(&mut checks);
    short_formats(&mut checks);
    println!("{} checks, {} failed", checks.count, checks.failed);
    ExitCode::from(u8::from(checks.failed > 0))
}

/// A form of an operation: from flat leaves, all outputs, flat.
type Form<'a> = &'a dyn Fn(Vec<Tensor<1>>, &Device) -> Vec<Tensor<1>>;

struct Checks {
    /// The CPU and the device to check.
    devices: [Device; 2],
    /// Only checks with this text.
    only: String,
    failed: usize,
    count: usize,
}

impl Checks {
    /// Runs `form` on random leaves of these lengths on both devices.
    fn check(&mut self, what: &str, lengths: &[usize], form: Form<'_>) {
        self.check_within(TOLERANCE, what, lengths, form);
    }

    /// The same with its own tolerances for outputs and gradients.
    fn check_within(&mut self, tolerances: [f32; 2], what: &str, lengths: &[usize], form: Form<'_>) {
        if !what.contains(&self.only) {
            return;
        }
        let [expected, found] = [0, 1].map(|i| evaluate(&self.devices[i], lengths, form));
        let errors = [(&expected.0, &found.0), (&expected.1, &found.1)].map(|(expected, found)| error_of_all(expected, found));
        let ok = errors.iter().zip(tolerances).all(|(&error, tolerance)| error <= tolerance);
        println!("{} {what}: outputs {:.1e}, gradients {:.1e}", if ok { "ok  " } else { "FAIL" }, errors[0], errors[1]);
        self.count += 1;
        self.failed += usize::from(!ok);
    }
}

/// The largest [`error`] of all tensors; infinite if one side has more of them.
fn error_of_all(expected: &[Vec<f32>], found: &[Vec<f32>]) -> f32 {
    if expected.len() != found.len() {
        return f32::INFINITY;
    }
    largest(expected.iter().zip(found).map(|(expected, found)| error(expected, found)))
}

/// The largest error relative to the largest value; infinite if one is NaN or lengths differ.
fn error(expected: &[f32], found: &[f32]) -> f32 {
    if expected.len() != found.len() {
        return f32::INFINITY;
    }
    let scale = expected.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
    largest(expected.iter().zip(found).map(|(a, b)| (a - b).abs() / scale))
}

/// The largest of `errors`, where NaN counts as infinite: a maximum would ignore it.
fn largest(errors: impl Iterator<Item = f32>) -> f32 {
    errors.map(|error| if error.is_nan() { f32::INFINITY } else { error }).fold(0.0, f32::max)
}

/// NaN is an error whatever comes before and after it, and so is a missing tensor.
fn a_comparison_fails_where_one_is_no_number() {
    let expected = vec![vec![1.0f32; 3]; 3];
    assert_eq!(error_of_all(&expected, &expected), 0.0);
    for (tensor, at) in (0..3).flat_map(|tensor| (0..3).map(move |at| (tensor, at))) {
        let mut found = expected.clone();
        found[tensor][at] = f32::NAN;
        assert_eq!([error_of_all(&expected, &found), error_of_all(&found, &expected)], [f32::INFINITY; 2]);
    }
    let short = vec![vec![1.0; 3], vec![1.0; 2], vec![1.0; 3]];
    assert_eq!([error_of_all(&expected, &short), error_of_all(&expected, &expected[1..])], [f32::INFINITY; 2]);
}

/// Outputs, and gradients of the leaves from a gradient of every output.
fn evaluate(device: &Device, lengths: &[usize], form: Form<'_>) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let device = device.clone().autodiff();
    let leaf = |(i, &len): (usize, &usize)| tensor(random(len, i as u64), [len], &device).require_grad();
    let leaves: Vec<Tensor<1>> = lengths.iter().enumerate().map(leaf).collect();
    let outputs = form(leaves.clone(), &device);
    let begin = |(i, y): (usize, &Tensor<1>)| {
        let shape = [1, 1, y.dims()[0]];
        ops::backward_from(y.clone().reshape(shape), tensor(random(shape[2], 100 + i as u64), shape, &device))
    };
    let loss = outputs.iter().enumerate().map(begin).reduce(|a, b| a + b).expect("an operation has outputs");
    let grads = loss.backward();
    let d_leaf = |leaf: &Tensor<1>| leaf.grad(&grads).map_or_else(Vec::new, values);
    let d_leaves = leaves.iter().map(d_leaf).collect();
    (outputs.into_iter().map(values).collect(), d_leaves)
}

/// Uniform in −2..2.
fn random(len: usize, index: u64) -> Vec<f32> {
    let mut rng = stream(7, Purpose::Bench, index);
    (0..len).map(|_| (rng.next_u32() >> 8) as f32 / (1 << 22) as f32 - 2.0).collect()
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn values(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let len = tensor.shape().num_elements();
    tensor.reshape([len])
}

/// Dense, and with padding and resets, for `batch` rows of `seq_len` steps.
fn segments(batch: usize, seq_len: usize) -> [(&'static str, StepCodes); 2] {
    let lengths = (0..batch).map(|b| seq_len - b * seq_len / (2 * batch)).collect();
    let resets = (0..batch).map(|b| if b == 1 { vec![] } else { vec![0, seq_len / 5, seq_len / 5 + 1, seq_len / 3] }).collect();
    let marked = Segments::from_lengths(lengths).with_resets(resets);
    [("dense", StepCodes::dense()), ("padded and reset", marked.steps(batch, seq_len).expect("they fit"))]
}

/// Small, of several tiles, and cut into chunks of time.
const SHAPES: [[usize; 3]; 3] = [[3, 13, 5], [2, 300, 40], [1, 6000, 33]];

fn start(leaves: &mut Vec<Tensor<1>>, batch: usize, width: usize) -> Start {
    let init = leaves.pop();
    Start { h0: leaves.pop().map(|h0| h0.reshape([batch, width])), init }
}

fn scans(checks: &mut Checks) {
    for [b, t, e] in SHAPES {
        for (kind, steps) in segments(b, t) {
            let n = b * t * e;
            let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let start = start(&mut leaves, b, e);
                let values = leaves.remove(1).reshape([b, t, e]);
                let (h, last) = ops::linear_scan(leaves.remove(0).mul_scalar(0.45).reshape([b, t, e]), values, start, &steps);
                vec![flat(h), flat(last)]
            };
            checks.check(&format!("linear_scan ({b}, {t}, {e}) {kind}"), &[n, n, b * e, e], &form);
            let bare = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let values = leaves.remove(1).reshape([b, t, e]);
                let coeffs = leaves.remove(0).mul_scalar(0.45).reshape([b, t, e]);
                vec![flat(ops::linear_scan(coeffs, values, Start::default(), &steps).0)]
            };
            checks.check(&format!("linear_scan ({b}, {t}, {e}) {kind}, from zero"), &[n, n], &bare);
        }
    }
}

fn cells(checks: &mut Checks) {
    for [b, t, e] in SHAPES {
        for (kind, steps) in segments(b, t) {
            // The candidates do not differ in anything that depends on the shape.
            let candidates = [Candidate::Positive, Candidate::Identity, Candidate::Tanh];
            for candidate in candidates.into_iter().take(if t < 20 { 3 } else { 1 }) {
                let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                    let start = start(&mut leaves, b, e);
                    let bias = leaves.pop();
                    let (h, last) = ops::min_gru(leaves.remove(0).reshape([b, t, 2 * e]), bias, candidate, start, &steps);
                    vec![flat(h), flat(last)]
                };
                checks.check(&format!("min_gru {candidate:?} ({b}, {t}, {e}) {kind}"), &[2 * b * t * e, 2 * e, b * e, e], &form);
                for gates in [Gates::Normalized, Gates::Unnormalized] {
                    let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                        let start = start(&mut leaves, b, e);
                        let bias = leaves.pop();
                        let preact = leaves.remove(0).reshape([b, t, 3 * e]);
                        let (h, last) = ops::min_lstm(preact, bias, candidate, gates, start, &steps);
                        vec![flat(h), flat(last)]
                    };
                    let what = format!("min_lstm {candidate:?} {gates:?} ({b}, {t}, {e}) {kind}");
                    checks.check(&what, &[3 * b * t * e, 3 * e, b * e, e], &form);
                }
            }
        }
    }
    // Gates of about 1e-7 over thousands of steps: what each step forgets is far below the last bit of a = 1 − z.
    let [b, t, e] = SHAPES[2];
    let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        let preact = leaves.remove(0).add_scalar(-14.0).reshape([b, t, 2 * e]);
        let start = Start::carried(leaves.remove(0).reshape([b, e]));
        vec![flat(ops::min_gru(preact, None, Candidate::Identity, start, &StepCodes::dense()).1)]
    };
    checks.check(&format!("min_gru ({b}, {t}, {e}) with slow gates"), &[2 * b * t * e, b * e], &form);
}

fn selective_scans(checks: &mut Checks) {
    // An even and an odd number of states, whole tiles and not, and time cut into chunks.
    for [b, t, e, n] in [[3, 13, 5, 3], [2, 120, 40, 16], [1, 3000, 33, 4]] {
        for (kind, steps) in segments(b, t) {
            let sizes = [b * t * e, b * t * e, e, e * n, b * t * 2 * n, e];
            let scan = |leaves: &[Tensor<1>]| SelectiveScan {
                u: leaves[0].clone().reshape([b, t, e]),
                delta: leaves[1].clone().sub_scalar(2.0).reshape([b, t, e]),
                delta_bias: leaves[2].clone(),
                a: -leaves[3].clone().exp().reshape([e, n]),
                bc: leaves[4].clone().reshape([b, t, 2 * n]),
                skip: leaves[5].clone(),
                z: None,
                h0: None,
            };
            let whole = |leaves: Vec<Tensor<1>>, _: &Device| {
                let (z, h0) = (leaves[6].clone().reshape([b, t, e]), leaves[7].clone().reshape([b, e, n]));
                let (y, last) = ops::selective_scan(SelectiveScan { z: Some(z), h0: Some(h0), ..scan(&leaves) }, &steps);
                vec![flat(y), flat(last)]
            };
            let lengths = [&sizes[..], &[b * t * e, b * e * n]].concat();
            checks.check(&format!("selective_scan ({b}, {t}, {e}) of {n} {kind}"), &lengths, &whole);
            let bare = |leaves: Vec<Tensor<1>>, _: &Device| vec![flat(ops::selective_scan(scan(&leaves), &steps).0)];
            checks.check(&format!("selective_scan ({b}, {t}, {e}) of {n} {kind}, from zero and without a gate"), &sizes, &bare);
        }
    }
}

/// More rows than a cube takes, and more channels than it has units.
const RECURRENT: [[usize; 3]; 2] = [[5, 13, 6], [2, 7, 300]];

fn lstms(checks: &mut Checks) {
    for [b, t, e] in RECURRENT {
        for (kind, steps) in segments(b, t) {
            let small = 1.0 / (e as f32).sqrt();
            let whole = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let mut state = || Start { init: leaves.pop(), h0: leaves.pop().map(|h0| h0.reshape([b, e])) };
                let (hidden, cell) = (state(), state());
                let recurrent_bias = leaves.pop();
                let bias = leaves.pop();
                let weight = leaves.pop().expect("given").mul_scalar(small).reshape([4 * e, e]);
                let preact = leaves.pop().expect("given").reshape([b, t, 4 * e]);
                let (h, h_last, c_last) = ops::lstm(preact, bias, weight, recurrent_bias, hidden, cell, &steps);
                vec![flat(h), flat(h_last), flat(c_last)]
            };
            let lengths = [4 * b * t * e, 4 * e * e, 4 * e, 4 * e, b * e, e, b * e, e];
            checks.check(&format!("lstm ({b}, {t}, {e}) {kind}"), &lengths, &whole);
            let bare = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let weight = leaves.remove(1).mul_scalar(small).reshape([4 * e, e]);
                let preact = leaves.remove(0).reshape([b, t, 4 * e]);
                vec![flat(ops::lstm(preact, None, weight, None, Start::default(), Start::default(), &steps).0)]
            };
            checks.check(&format!("lstm ({b}, {t}, {e}) {kind}, from zero"), &lengths[..2], &bare);
        }
    }
}

fn slstms(checks: &mut Checks) {
    for ([b, t, e], heads) in RECURRENT.into_iter().zip([2, 1]) {
        for (kind, steps) in segments(b, t) {
            for forget in [ForgetGate::Sigmoid, ForgetGate::Exponential] {
                let width = e / heads;
                let form = |mut leaves: Vec<Tensor<1>>, device: &Device| {
                    let m = Tensor::full([b, e], if kind == "dense" { 0.5 } else { EMPTY_M }, device);
                    let mut state = || leaves.pop().expect("given").reshape([b, e]);
                    // A normaliser is positive.
                    let memory = SLstmMemory { n: state().abs() + 0.5, c: state(), h: state(), m };
                    let bias = leaves.pop();
                    let weight = leaves.pop().expect("given").mul_scalar(1.0 / (width as f32).sqrt()).reshape([heads, 4 * width, width]);
                    let preact = leaves.pop().expect("given").reshape([b, t, 4 * e]);
                    let (h, memory) = ops::s_lstm(preact, weight, bias, forget, memory, &steps);
                    vec![flat(h), flat(memory.h), flat(memory.c), flat(memory.n)]
                };
                let lengths = [4 * b * t * e, 4 * e * width, 4 * e, b * e, b * e, b * e];
                checks.check(&format!("slstm {forget:?} ({b}, {t}, {e}) of {heads} heads {kind}"), &lengths, &form);
            }
        }
    }
}

fn convolutions(checks: &mut Checks) {
    for [b, t, d] in [[3, 2, 5], [3, 13, 5], [2, 300, 40]] {
        for (kind, steps) in segments(b, t) {
            for k in [1, 4] {
                let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                    let window = (k > 1).then(|| leaves.pop()).flatten().map(|window| window.reshape([b, k - 1, d]));
                    let bias = leaves.pop().expect("given");
                    let weight = leaves.pop().expect("given").reshape([d, 1, k]);
                    let x = leaves.remove(0).reshape([b, t, d]);
                    let (y, next, x) = ops::causal_conv_residual(x, weight, bias, window, &steps, FloatDType::F32);
                    let mut outputs = vec![flat(y), flat(x)];
                    outputs.extend((k > 1).then(|| flat(next)));
                    outputs
                };
                let lengths = [b * t * d, d * k, d, b * (k - 1) * d];
                checks.check(&format!("causal_conv of {k} ({b}, {t}, {d}) {kind}"), if k > 1 { &lengths } else { &lengths[..3] }, &form);
            }
            let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let weight = leaves.remove(1).reshape([d, 1, 4]);
                let (y, _) = ops::causal_conv(leaves.remove(0).reshape([b, t, d]), weight, leaves.remove(0), None, &steps);
                vec![flat(y)]
            };
            checks.check(&format!("causal_conv of 4 ({b}, {t}, {d}) {kind}, without a window"), &[b * t * d, 4 * d, d], &form);
        }
    }
}

fn norms(checks: &mut Checks) {
    for [b, t, d] in [[3, 7, 5], [4, 50, 384]] {
        let n = b * t * d;
        let layer = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let x = leaves.remove(0).reshape([b, t, d]);
            vec![flat(ops::layer_norm(x, leaves.remove(0), leaves.remove(0), 1e-5))]
        };
        checks.check(&format!("layer_norm ({b}, {t}, {d})"), &[n, d, d], &layer);
        let layer = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let x = leaves.remove(0).reshape([b, t, d]);
            let (y, x) = ops::layer_norm_residual(x, leaves.remove(0), leaves.remove(0), 1e-5, FloatDType::F32);
            vec![flat(y), flat(x)]
        };
        checks.check(&format!("layer_norm_residual ({b}, {t}, {d})"), &[n, d, d], &layer);
        let rms = |mut leaves: Vec<Tensor<1>>, _: &Device| vec![flat(ops::rms_norm(leaves.remove(0).reshape([b, t, d]), leaves.remove(0)))];
        checks.check(&format!("rms_norm ({b}, {t}, {d})"), &[n, d], &rms);
        let rms = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let (y, x) = ops::rms_norm_residual(leaves.remove(0).reshape([b, t, d]), leaves.remove(0), FloatDType::F32);
            vec![flat(y), flat(x)]
        };
        checks.check(&format!("rms_norm_residual ({b}, {t}, {d})"), &[n, d], &rms);
    }
}

fn activations(checks: &mut Checks) {
    for [n, m] in [[3, 5], [300, 128]] {
        let plain = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            vec![flat(ops::bias_gelu(leaves.remove(0).mul_scalar(3.0).reshape([n, m]), Some(leaves.remove(0))))]
        };
        checks.check(&format!("bias_gelu ({n}, {m})"), &[n * m, m], &plain);
        let gated = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let x = leaves.remove(0).reshape([n, 2 * m]);
            vec![flat(ops::bias_gated_gelu(x, Some(leaves.remove(0)), leaves.remove(0)))]
        };
        checks.check(&format!("bias_gated_gelu ({n}, {m})"), &[2 * n * m, 2 * m, m], &gated);
    }
}

/// In bf16 if the device multiplies it, otherwise in f32.
fn products(checks: &mut Checks) {
    for [n, d, m] in [[3, 5, 7], [300, 96, 64]] {
        // Values exact in bf16, so that outputs equal those of f32 and only the incoming gradients are rounded.
        let coarse = |x: Tensor<1>| x.clone() - x.clone().detach() + (x.detach() * 64.0).round() / 64.0;
        // One of them is enough where every kernel that is tried takes long.
        for transposed in [false, true].into_iter().take(if n < 10 { 2 } else { 1 }) {
            let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let (x, weight) = (coarse(leaves.remove(0)).reshape([n, d]), coarse(leaves.remove(0)));
                vec![flat(ops::with_precision(Precision::Bf16, || match transposed {
                    false => ops::matmul(x, weight.reshape([d, m])),
                    true => ops::matmul_transposed(x, weight.reshape([m, d])),
                }))]
            };
            let what = format!("product ({n}, {d}) by ({d}, {m}){}", if transposed { ", transposed" } else { "" });
            checks.check_within([1e-5, 1e-2], &what, &[n * d, d * m], &form);
        }
    }
}

fn dropout(checks: &mut Checks) {
    for [n, m] in [[3, 5], [300, 128]] {
        for (what, probability) in [("dropout", 0.2), ("no dropout", 0.0)] {
            let dropout = Dropout { probability, key: 0x0123_4567_89ab_cdef };
            let whole = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                let residual = leaves.pop().map(|residual| residual.reshape([n, m]));
                let bias = leaves.pop();
                vec![flat(ops::bias_dropout_residual(leaves.remove(0).reshape([n, m]), bias, residual, dropout))]
            };
            checks.check(&format!("bias_dropout_residual ({n}, {m}), {what}"), &[n * m, m, n * m], &whole);
            let bare = |mut leaves: Vec<Tensor<1>>, _: &Device| {
                vec![flat(ops::bias_dropout_residual(leaves.remove(0).reshape([n, m]), None, None, dropout))]
            };
            checks.check(&format!("{what} alone ({n}, {m})"), &[n * m], &bare);
        }
    }
}

/// Embedding, loss and optimiser.
fn ends(checks: &mut Checks) {
    let [rows, classes] = [75, 65];
    let targets: Vec<i32> = (0..rows).map(|i| (i * 7 % classes) as i32).collect();
    let mask: Vec<f32> = (0..rows).map(|i| if i % 3 == 0 { 0.0 } else { 1.0 }).collect();
    for mask in [None, Some(mask.into())] {
        let what = if mask.is_some() { ", masked" } else { "" };
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            vec![ops::cross_entropy(leaves.remove(0).reshape([rows, classes]), targets.clone().into(), mask.clone())]
        };
        checks.check(&format!("cross_entropy ({rows}, {classes}){what}"), &[rows * classes], &form);
    }
    let form = |mut leaves: Vec<Tensor<1>>, device: &Device| {
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(targets.clone(), [3, 25]), device);
        vec![flat(ops::embedding(tokens, leaves.remove(0).reshape([classes, 40])))]
    };
    checks.check("embedding (3, 25) of (65, 40)", &[classes * 40], &form);
    let settings = AdamW { lr: 1e-2, beta_1: 0.9, beta_2: 0.99, eps: 1e-8, weight_decay: 0.1, time: 3, gradient_scale: 0.5 };
    let form = |leaves: Vec<Tensor<1>>, device: &Device| {
        let [parameter, gradient, first, second] = [0, 1, 2, 3].map(|i: usize| leaves[i].clone().inner());
        let moments = Moments { first, second: second.clone() * second };
        let sums = ops::sums_of_squares(&[&parameter, &gradient]).into_iter().map(|sum| sum as f32).collect();
        let (updated, moments) = ops::adamw(settings, parameter, gradient, moments);
        let sums = tensor(sums, [2], device);
        // The leaves themselves only so that there is something to differentiate.
        [updated, moments.first, moments.second].map(Tensor::from_inner).into_iter().chain([sums, leaves[0].clone()]).collect()
    };
    checks.check("adamw and sums_of_squares", &[10_000; 4], &form);
    // Enough parameters for several launches, of all lengths.
    let lengths: Vec<usize> = (1..=40).map(|i| 1 + i * i / 2).collect();
    let total: usize = lengths.iter().sum();
    let form = |leaves: Vec<Tensor<1>>, device: &Device| {
        let ends: Vec<usize> = lengths.iter().scan(0, |end, length| Some(std::mem::replace(end, *end + length))).collect();
        let piece = |leaf: usize, i: usize| leaves[leaf].clone().inner().narrow(0, ends[i], lengths[i]);
        let updates: Vec<ToUpdate> = (0..lengths.len())
            .map(|i| {
                let settings = AdamW { lr: 1e-3 * i as f64, ..settings };
                (settings, piece(0, i), piece(1, i), Moments { first: piece(2, i), second: piece(3, i).square() })
            })
            .collect();
        let gradients: Vec<&Tensor<1>> = updates.iter().map(|(_, _, gradient, _)| gradient).collect();
        let sums: Vec<f32> = ops::sums_of_squares(&gradients).into_iter().map(|sum| sum as f32).collect();
        let updated = ops::adamw_together(&updates).unwrap_or_else(|| {
            updates.into_iter().map(|(settings, x, gradient, moments)| ops::adamw(settings, x, gradient, moments)).collect()
        });
        let outputs = updated.into_iter().flat_map(|(x, moments)| [x, moments.first, moments.second]).map(Tensor::from_inner);
        outputs.chain([tensor(sums, [40], device), leaves[0].clone()]).collect()
    };
    checks.check("adamw_together", &[total; 4], &form);
    checks.check("positive (777)", &[777], &|mut leaves, _| vec![ops::positive(leaves.remove(0))]);
}

/// 16-bit activations in every format the device stores, against f32 on the CPU with the same inputs and outputs rounded.
///
/// Only bf16 is for training; on devices without it, f16 shows that kernels read and write the format they are compiled for.
fn short_formats(checks: &mut Checks) {
    let device = checks.devices[1].clone();
    let bf16 = ops::with_precision(Precision::Bf16, || ops::activation_format(&device)) == FloatDType::BF16;
    for (format, tolerances) in SHORT_TOLERANCES {
        let is_there = match format {
            FloatDType::BF16 => bf16,
            other => device.supports_dtype(other),
        };
        if is_there {
            short_sequences(checks, format, tolerances);
            short_rows(checks, format, tolerances);
            backbones(checks, format, tolerances.map(|tolerance| 10.0 * tolerance));
        } else {
            println!("      the device has no activations in {format:?}");
        }
    }
}

/// `x` in `format` on a device; on the CPU rounded to it.
fn short<const D: usize>(x: Tensor<D>, format: FloatDType) -> Tensor<D> {
    let on_processor = x.device().inner() == Device::flex();
    let rounded = x.cast(format);
    if on_processor { rounded.cast(FloatDType::F32) } else { rounded }
}

/// Back to f32, with outputs of the CPU rounded like those of the device.
fn long<const D: usize>(y: Tensor<D>, format: FloatDType) -> Tensor<1> {
    flat(short(y, format).cast(FloatDType::F32))
}

fn short_sequences(checks: &mut Checks, format: FloatDType, tolerances: [f32; 2]) {
    let [b, t] = [2, 37];
    let widths = [40, 96];
    for (e, (kind, steps)) in widths.into_iter().flat_map(|e| segments(b, t).into_iter().map(move |segments| (e, segments))) {
        let what = |name: &str| format!("{name} ({b}, {t}, {e}) {kind}, {format:?}");
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let start = start(&mut leaves, b, e);
            let bias = leaves.pop();
            let preact = short(leaves.remove(0).reshape([b, t, 2 * e]), format);
            let (h, last) = ops::min_gru(preact, bias, Candidate::Positive, start, &steps);
            vec![long(h, format), flat(last)]
        };
        checks.check_within(tolerances, &what("min_gru"), &[2 * b * t * e, 2 * e, b * e, e], &form);
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let start = start(&mut leaves, b, e);
            let bias = leaves.pop();
            let preact = short(leaves.remove(0).reshape([b, t, 3 * e]), format);
            let (h, last) = ops::min_lstm(preact, bias, Candidate::Positive, Gates::Normalized, start, &steps);
            vec![long(h, format), flat(last)]
        };
        checks.check_within(tolerances, &what("min_lstm"), &[3 * b * t * e, 3 * e, b * e, e], &form);
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let weight = leaves.pop().expect("given").mul_scalar(1.0 / (e as f32).sqrt()).reshape([4 * e, e]);
            let bias = leaves.pop();
            let preact = short(leaves.remove(0).reshape([b, t, 4 * e]), format);
            let (h, h_last, c_last) = ops::lstm(preact, bias, weight, None, Start::default(), Start::default(), &steps);
            vec![long(h, format), flat(h_last), flat(c_last)]
        };
        checks.check_within(tolerances, &what("lstm"), &[4 * b * t * e, 4 * e, 4 * e * e], &form);
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let window = leaves.pop().map(|window| window.reshape([b, 3, e]));
            let bias = leaves.pop().expect("given");
            let weight = leaves.pop().expect("given").reshape([e, 1, 4]);
            let x = leaves.remove(0).reshape([b, t, e]);
            let (y, next, x) = ops::causal_conv_residual(x, weight, bias, window, &steps, format);
            vec![long(y, format), flat(next), flat(x)]
        };
        checks.check_within(tolerances, &what("causal_conv"), &[b * t * e, 4 * e, e, 3 * b * e], &form);
    }
    // Cut into chunks, whose states stay f32; the second by units that have two channels each.
    for [b, t, e] in [[1, 3000, 33], [1, 3000, 66]] {
        let form = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let bias = leaves.pop();
            let preact = short(leaves.remove(0).reshape([b, t, 2 * e]), format);
            vec![long(ops::min_gru(preact, bias, Candidate::Positive, Start::default(), &StepCodes::dense()).0, format)]
        };
        checks.check_within(tolerances, &format!("min_gru ({b}, {t}, {e}) dense, {format:?}"), &[2 * b * t * e, 2 * e], &form);
    }
}

fn short_rows(checks: &mut Checks, format: FloatDType, tolerances: [f32; 2]) {
    let [b, t, d] = [3, 25, 96];
    let n = b * t;
    let layer = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        let x = leaves.remove(0).reshape([b, t, d]);
        let (y, x) = ops::layer_norm_residual(x, leaves.remove(0), leaves.remove(0), 1e-5, format);
        vec![long(y, format), flat(x)]
    };
    checks.check_within(tolerances, &format!("layer_norm_residual ({b}, {t}, {d}), {format:?}"), &[n * d, d, d], &layer);
    let rms = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        let (y, x) = ops::rms_norm_residual(leaves.remove(0).reshape([b, t, d]), leaves.remove(0), format);
        vec![long(y, format), flat(x)]
    };
    checks.check_within(tolerances, &format!("rms_norm_residual ({b}, {t}, {d}), {format:?}"), &[n * d, d], &rms);
    let plain = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        let x = short(leaves.remove(0).mul_scalar(3.0).reshape([n, d]), format);
        vec![long(ops::bias_gelu(x, Some(leaves.remove(0))), format)]
    };
    checks.check_within(tolerances, &format!("bias_gelu ({n}, {d}), {format:?}"), &[n * d, d], &plain);
    let gated = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        let x = short(leaves.remove(0).reshape([n, 2 * d]), format);
        vec![long(ops::bias_gated_gelu(x, Some(leaves.remove(0)), leaves.remove(0)), format)]
    };
    checks.check_within(tolerances, &format!("bias_gated_gelu ({n}, {d}), {format:?}"), &[2 * n * d, 2 * d, d], &gated);
    for (what, probability) in [("dropout", 0.2), ("no dropout", 0.0)] {
        let dropout = Dropout { probability, key: 0x0123_4567_89ab_cdef };
        // The sum is in the residual's format, f32.
        let whole = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let residual = leaves.pop().map(|residual| residual.reshape([n, d]));
            let bias = leaves.pop();
            vec![flat(ops::bias_dropout_residual(short(leaves.remove(0).reshape([n, d]), format), bias, residual, dropout))]
        };
        checks.check_within(tolerances, &format!("bias_dropout_residual ({n}, {d}), {what}, {format:?}"), &[n * d, d, n * d], &whole);
        let sum = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let residual = leaves.pop().map(|residual| residual.reshape([n, d]));
            vec![flat(ops::bias_dropout_residual(short(leaves.remove(0).reshape([n, d]), format), None, residual, dropout))]
        };
        checks.check_within(tolerances, &format!("dropout_residual ({n}, {d}), {what}, {format:?}"), &[n * d, n * d], &sum);
        let bare = |mut leaves: Vec<Tensor<1>>, _: &Device| {
            let bias = leaves.pop();
            vec![long(ops::bias_dropout_residual(short(leaves.remove(0).reshape([n, d]), format), bias, None, dropout), format)]
        };
        checks.check_within(tolerances, &format!("bias_dropout ({n}, {d}), {what}, {format:?}"), &[n * d, d], &bare);
    }
    let [n, d, m] = [30, 24, 16];
    let small = 1.0 / (d as f32).sqrt();
    let product = |mut leaves: Vec<Tensor<1>>, _: &Device| {
        // The weight is kept in f32 and rounded for the matmul.
        let x = short(leaves.remove(0).reshape([n, d]), format);
        let weight = leaves.remove(0).mul_scalar(small).reshape([d, m]);
        let weight = if x.device().inner() == Device::flex() { short(weight, format) } else { weight };
        vec![long(ops::matmul(x, weight), format)]
    };
    checks.check_within(tolerances, &format!("product ({n}, {d}) by ({d}, {m}), {format:?}"), &[n * d, d * m], &product);
}

/// Stacks of blocks: every part takes the format of the part before it, and parts without kernels for short formats (SwiGLU) are given f32.
fn backbones(checks: &mut Checks, format: FloatDType, tolerances: [f32; 2]) {
    let [b, t, d] = [2, 19, 12];
    let stacks = [
        (MixerKind::MinGru, FeedForwardKind::Mlp, NormKind::Layer),
        (MixerKind::MinLstm, FeedForwardKind::Gated, NormKind::Rms),
        (MixerKind::Lstm, FeedForwardKind::SwiGlu, NormKind::Layer),
    ];
    for (mixer, ff, norm) in stacks {
        let config =
            ModelConfig { mixer, ff, norm, vocab_size: 2, d_model: d, n_layers: 2, conv: true, dropout: 0.2, ..Default::default() };
        let config = config.checked().expect("a valid configuration");
        let form = |mut leaves: Vec<Tensor<1>>, device: &Device| {
            let backbone = Backbone::new(&config, &mut Initializer::new(1, device));
            let (x, state) = (leaves.remove(0).reshape([b, t, d]), backbone.init_state(b));
            let run = || backbone.forward(x, state, &StepCodes::dense(), Mode::Train { dropout_key: 7 });
            vec![flat(ops::with_activations(format, run).0)]
        };
        checks.check_within(tolerances, &format!("two blocks of {mixer:?} and {ff:?} ({b}, {t}, {d}), {format:?}"), &[b * t * d], &form);
    }
}
