//! The references: minGRU and minLSTM against the equations of their paper (Feng et al. 2024, arXiv:2410.01201) as it writes them, gradients
//! against finite differences.

mod common;

use common::recurrence::cells;
use common::{Random, assert_gradient, differences, dot, wide};
use minrnn_kernels::recurrence::{Cell, Inputs, Upstream};
use minrnn_kernels::reference::bf16::to_bf16;
use minrnn_kernels::reference::recurrence::{backward, forward};
use minrnn_kernels::reference::scan;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};
use minrnn_kernels::{Candidate, Gates, Shape, Start};

fn near(name: &str, actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{name}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() < 6e-9, "{name}: {actual:?}, expected {expected:?}");
    }
}

/// Pre-activations without a bias or an extra input.
fn plain(preact: &[f64]) -> Inputs<'_, f64> {
    Inputs { preact, bias: None, extra: &[] }
}

/// Interleaves columns of one channel into rows.
fn rows<const N: usize>(columns: [&[f64]; N]) -> Vec<f64> {
    (0..columns[0].len()).flat_map(|t| columns.map(|c| c[t])).collect()
}

fn column(rows: &[f64], n: usize, j: usize) -> Vec<f64> {
    rows.iter().skip(j).step_by(n).copied().collect()
}

/// Away from 0, where the candidate's slope jumps.
const V: [f64; 4] = [1.0, -0.5, 0.25, -3.0];
const H0: f64 = 0.2;
const D_H: [f64; 4] = [1.0, -1.0, 0.5, 2.0];
const ONE_CHANNEL: Shape = Shape { batch: 1, seq_len: 4, width: 1 };

fn sigma(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// g of the paper's appendix B.
fn g(v: f64) -> f64 {
    if v >= 0.0 { v + 0.5 } else { sigma(v) }
}

/// minGRU, §3.1: z_t = σ(k_t), h_t = (1 − z_t) h_{t−1} + z_t h̃_t.
fn paper_min_gru([v, k]: [&[f64]; 2], h0: f64) -> Vec<f64> {
    let next = |h: &mut f64, (&v, &k): (&f64, &f64)| {
        let z = sigma(k);
        *h = (1.0 - z) * *h + z * g(v);
        Some(*h)
    };
    v.iter().zip(k).scan(h0, next).collect()
}

/// minLSTM, §3.2: f_t = σ(p_t), i_t = σ(q_t), both divided by f_t + i_t where they are normalised, h_t = f_t h_{t−1} + i_t h̃_t.
fn paper_min_lstm(gates: Gates, [v, p, q]: [&[f64]; 3], h0: f64) -> Vec<f64> {
    let next = |h: &mut f64, ((&v, &p), &q): ((&f64, &f64), &f64)| {
        let (f, i) = (sigma(p), sigma(q));
        let sum = if gates == Gates::Normalized { f + i } else { 1.0 };
        *h = f / sum * *h + i / sum * g(v);
        Some(*h)
    };
    v.iter().zip(p).zip(q).scan(h0, next).collect()
}

/// States and gradients of `cell` against those of the paper's equations, `paper`, the gradients by central differences.
#[track_caller]
fn check_paper<const N: usize>(cell: Cell, columns: [&[f64]; N], paper: impl Fn([&[f64]; N], f64) -> Vec<f64>) {
    let start = Start { h0: Some(&[H0][..]), ..Start::default() };
    let preact = rows(columns);
    let h = forward(ONE_CHANNEL, cell, plain(&preact), start).h;
    near("h", &h, &paper(columns, H0));
    let loss = |columns: [&[f64]; N], h0: f64| dot(&paper(columns, h0), &D_H);
    let d = backward(ONE_CHANNEL, cell, plain(&preact), start, Upstream { h: &h, d_h: Some(&D_H), d_h_last: None });
    for j in 0..N {
        let along = |column: &[f64]| loss(std::array::from_fn(|i| if i == j { column } else { columns[i] }), H0);
        near(["dv", "dk or dp", "dq"][j], &column(&d.d_preact, N, j), &differences(columns[j], along));
    }
    near("dh0", &d.d_h0, &differences(&[H0], |h0| loss(columns, h0[0])));
}

#[test]
fn min_gru_is_that_of_its_paper() {
    check_paper(Cell::MinGru(Candidate::Positive), [&V, &[0.5, -1.0, 2.0, 0.0]], paper_min_gru);
}

#[test]
fn min_lstm_is_that_of_its_paper_with_normalised_gates_and_without() {
    for gates in [Gates::Normalized, Gates::Unnormalized] {
        let columns: [&[f64]; 3] = [&V, &[1.0, 0.0, -2.0, 0.5], &[-1.0, 0.5, 1.0, 0.0]];
        check_paper(Cell::MinLstm(Candidate::Positive, gates), columns, |columns, h0| paper_min_lstm(gates, columns, h0));
    }
}

#[test]
fn the_positive_candidate_is_that_of_the_paper() {
    let at = [-2.0, -0.5, 0.0, 3.0];
    near("g", &at.map(|v| Candidate::Positive.value(v)), &at.map(g));
    // From 0 on it is a line, whose slope it also has at 0.
    near("g'", &at.map(|v| Candidate::Positive.slope(v)), &[sigma(-2.0) * sigma(2.0), sigma(-0.5) * sigma(0.5), 1.0, 1.0]);
}

/// A batch that has everything: carried and initial state, a padded row, resets (one on the first step).
struct Batch {
    shape: Shape,
    codes: Vec<i32>,
    h0: Vec<f64>,
    init: Vec<f64>,
    d_h: Vec<f64>,
    d_h_last: Vec<f64>,
    random: Random,
}

impl Batch {
    fn new() -> Self {
        let shape = Shape { batch: 3, seq_len: 6, width: 2 };
        let codes =
            [[CONTINUE; 6], [RESET, CONTINUE, CONTINUE, RESET, CONTINUE, CONTINUE], [CONTINUE, RESET, CONTINUE, PADDING, PADDING, PADDING]];
        let mut random = Random(7);
        let mut values = |n, low, high| wide(&random.between(n, low, high));
        let (h0, init) = (values(6, 0.1, 2.0), values(2, 0.1, 2.0));
        let (d_h, d_h_last) = (values(36, -1.0, 1.0), values(6, -1.0, 1.0));
        Self { shape, codes: codes.concat(), h0, init, d_h, d_h_last, random }
    }

    fn start<'a>(&'a self, h0: &'a [f64], init: &'a [f64]) -> Start<'a, f64> {
        Start { h0: Some(h0), init: Some(init), segments: Segments::new(&self.codes, self.shape.seq_len) }
    }

    fn loss(&self, out: &scan::Outputs<f64>) -> f64 {
        dot(&out.h, &self.d_h) + dot(&out.h_last, &self.d_h_last)
    }

    fn upstream<'a>(&'a self, h: &'a [f64]) -> Upstream<'a, f64> {
        Upstream { h, d_h: Some(&self.d_h), d_h_last: Some(&self.d_h_last) }
    }
}

#[test]
fn gradients_match_differences() {
    for cell in cells() {
        let mut batch = Batch::new();
        let (n, width) = (batch.shape.elements(), batch.shape.width);
        let bias = if cell.parts() > 1 { wide(&batch.random.normal(cell.parts() * width)) } else { vec![] };
        let (preact, extra) = match cell {
            Cell::LogSpace => (batch.random.between(n, -3.0, 0.0), batch.random.between(n, -3.0, 1.0)),
            Cell::Linear => (batch.random.between(n, -1.0, 1.0), batch.random.normal(n)),
            Cell::FlooredMinGru(_) => (batch.random.normal(2 * n), vec![0.9, 0.3]),
            Cell::RgLru => (batch.random.normal(3 * n), vec![0.2, 1.5]),
            _ => (batch.random.normal(cell.parts() * n), batch.random.between(cell.extra_len(batch.shape), 0.0, 2.0)),
        };
        let (preact, extra) = (wide(&preact), wide(&extra));
        fn inputs<'a>(preact: &'a [f64], bias: &'a [f64], extra: &'a [f64]) -> Inputs<'a, f64> {
            Inputs { preact, bias: (!bias.is_empty()).then_some(bias), extra }
        }
        let start = batch.start(&batch.h0, &batch.init);
        let loss = |inputs: Inputs<'_, f64>, start: Start<'_, f64>| batch.loss(&forward(batch.shape, cell, inputs, start));
        let h = forward(batch.shape, cell, inputs(&preact, &bias, &extra), start).h;
        let d = backward(batch.shape, cell, inputs(&preact, &bias, &extra), start, batch.upstream(&h));
        let check = |name: &str, d: &[f64], along: Vec<f64>| assert_gradient(&format!("{cell:?} {name}"), d, &along);
        check("preact", &d.d_preact, differences(&preact, |preact| loss(inputs(preact, &bias, &extra), start)));
        check("bias", &d.d_bias[..bias.len()], differences(&bias, |bias| loss(inputs(&preact, bias, &extra), start)));
        check("extra", &d.d_extra, differences(&extra, |extra| loss(inputs(&preact, &bias, extra), start)));
        let all = inputs(&preact, &bias, &extra);
        check("h0", &d.d_h0, differences(&batch.h0, |h0| loss(all, batch.start(h0, &batch.init))));
        check("init", &d.d_init, differences(&batch.init, |init| loss(all, batch.start(&batch.h0, init))));
    }
}

#[test]
fn log_space_equals_the_loop() {
    let mut batch = Batch::new();
    let (a, b) = (wide(&batch.random.between(36, -3.0, 0.0)), wide(&batch.random.between(36, -3.0, 1.0)));
    let start = batch.start(&batch.h0, &batch.init);
    let out = forward(batch.shape, Cell::LogSpace, Inputs { preact: &a, bias: None, extra: &b }, start);
    let exp = |x: &[f64]| x.iter().map(|x| x.exp()).collect::<Vec<_>>();
    near("h", &out.h, &scan::forward(batch.shape, &exp(&a), &exp(&b), start).h);
}

#[test]
fn log_space_knows_the_logarithm_of_zero() {
    let shape = Shape { batch: 1, seq_len: 3, width: 1 };
    let inputs = Inputs { preact: &[-1.0, f64::NEG_INFINITY, -1.0], bias: None, extra: &[f64::NEG_INFINITY, 0.0, 0.0] };
    let out = forward(shape, Cell::LogSpace, inputs, Start::default());
    near("h", &out.h, &[0.0, 1.0, 1.0 + (-1.0f64).exp()]);
}

#[test]
fn a_floored_min_gru_without_a_floor_is_a_min_gru() {
    let mut batch = Batch::new();
    let x = wide(&batch.random.normal(72));
    let start = batch.start(&batch.h0, &batch.init);
    let floored = Inputs { extra: &[1.0, 1.0], ..plain(&x) };
    let floored = forward(batch.shape, Cell::FlooredMinGru(Candidate::Positive), floored, start).h;
    near("h", &floored, &forward(batch.shape, Cell::MinGru(Candidate::Positive), plain(&x), start).h);
}

#[test]
fn a_decay_min_gru_forgets_by_the_time_that_passes() {
    // A closed gate: only time acts.
    let shape = Shape { batch: 1, seq_len: 2, width: 1 };
    let start = Start { h0: Some(&[2.0][..]), ..Start::default() };
    let inputs = Inputs { extra: &[0.5, 1.0], ..plain(&[0.0, -800.0, 0.0, -800.0]) };
    let out = forward(shape, Cell::DecayMinGru(Candidate::Identity), inputs, start);
    near("h", &out.h, &[2.0 * (-0.5f64).exp(), 2.0 * (-1.5f64).exp()]);
}

#[test]
fn a_signed_min_gru_turns_the_state_around() {
    let shape = Shape { batch: 1, seq_len: 2, width: 1 };
    let start = Start { h0: Some(&[1.0][..]), ..Start::default() };
    let out = forward(shape, Cell::SignedMinGru(Candidate::Identity), plain(&[0.0, -800.0, -1.0, 0.0, -800.0, -1.0]), start);
    near("h", &out.h, &[-(1.0f64.tanh()), 1.0f64.tanh().powi(2)]);
}

#[test]
fn an_rg_lru_forgets_all_where_its_gate_is_infinite() {
    let shape = Shape { batch: 1, seq_len: 2, width: 1 };
    let start = Start { h0: Some(&[5.0][..]), ..Start::default() };
    let inputs = Inputs { extra: &[0.7], ..plain(&[3.0, f64::INFINITY, 0.0, 3.0, 0.0, 0.0]) };
    let out = forward(shape, Cell::RgLru, inputs, start);
    let a = (-0.35f64).exp();
    near("h", &out.h, &[1.5, 1.5 * a + 1.5 * (1.0 - a * a).sqrt()]);
}

#[test]
fn rounding_to_bf16_takes_the_nearest_and_keeps_what_is_no_number() {
    let ulp = 1.0 / 128.0;
    assert_eq!([1.0 + ulp / 2.0, 1.0 + 1.5 * ulp, 1.001, -3.002].map(to_bf16), [1.0, 1.0 + 2.0 * ulp, 1.0, -3.0]);
    let kept = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
    assert_eq!(kept.map(|x| to_bf16(x).to_bits()), kept.map(f32::to_bits));
    assert_eq!([f32::MAX, f32::MIN].map(to_bf16), [f32::INFINITY, f32::NEG_INFINITY]);
    // Rounding their bits would turn the second into infinity, and the last one into 0.
    for nan in [f32::NAN, f32::from_bits(0x7f80_0001), -f32::NAN, f32::from_bits(0xffff_ffff)] {
        let rounded = to_bf16(nan);
        assert!(rounded.is_nan() && rounded.to_bits() & 0xffff == 0, "{:x} becomes {rounded}", nan.to_bits());
    }
}

#[test]
fn equal_gates_share_evenly_and_extreme_gates_stay_exact() {
    let gate = |p: f64, q: f64| {
        let start = Start { h0: Some(&[1.0][..]), ..Start::default() };
        let shape = Shape { batch: 1, seq_len: 1, width: 1 };
        forward(shape, Cell::MinLstm(Candidate::Identity, Gates::Normalized), plain(&[0.0, p, q]), start).h[0]
    };
    near("p = q", &[gate(0.3, 0.3), gate(-200.0, -200.0), gate(200.0, -200.0)], &[0.5, 0.5, 1.0]);
}
