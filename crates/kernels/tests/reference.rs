//! The references: the specification's test vectors, gradients against finite differences, parallel scans against the loop.

mod common;

use common::recurrence::CELLS;
use common::{Random, assert_gradient, differences, wide};
use minrnn_kernels::recurrence::{Cell, Inputs, Upstream};
use minrnn_kernels::reference::recurrence::{backward, forward};
use minrnn_kernels::reference::{parallel_scans, scan};
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

const V: [f64; 4] = [1.0, -0.5, 0.0, -3.0];
const D_H: [f64; 4] = [1.0, -1.0, 0.5, 2.0];
const ONE_CHANNEL: Shape = Shape { batch: 1, seq_len: 4, width: 1 };

#[test]
fn min_gru_matches_the_specification() {
    let start = Start { h0: Some(&[0.2][..]), ..Start::default() };
    let preact = rows([&V, &[0.5, -1.0, 2.0, 0.0]]);
    let cell = Cell::MinGru(Candidate::Positive);
    let h = forward(ONE_CHANNEL, cell, plain(&preact), start).h;
    near("h", &h, &[1.00919713, 0.83931854, 0.54044776, 0.29393682]);
    let d = backward(ONE_CHANNEL, cell, plain(&preact), start, Upstream { h: &h, d_h: Some(&D_H), d_h_last: None });
    near("dv", &column(&d.d_preact, 2, 0), &[0.24877079, -0.0519014, 1.32119562, 0.04517666]);
    near("dk", &column(&d.d_preact, 2, 1), &[0.12209742, 0.10198527, -0.05343941, -0.24651094]);
    near("dh0", &d.d_h0, &[0.15088711]);
}

#[test]
fn min_lstm_matches_the_specification() {
    let start = Start { h0: Some(&[0.2][..]), ..Start::default() };
    let preact = rows([&V, &[1.0, 0.0, -2.0, 0.5], &[-1.0, 0.5, 1.0, 0.0]]);
    let cell = |gates| Cell::MinLstm(Candidate::Positive, gates);
    let h = forward(ONE_CHANNEL, cell(Gates::Normalized), plain(&preact), start).h;
    near("h", &h, &[0.54962385, 0.4541952, 0.49357837, 0.29483954]);
    let upstream = Upstream { h: &h, d_h: Some(&D_H), d_h_last: None };
    let d = backward(ONE_CHANNEL, cell(Gates::Normalized), plain(&preact), start, upstream);
    near("dv", &column(&d.d_preact, 3, 0), &[0.17616688, -0.10092222, 1.38351051, 0.04024793]);
    near("dp", &column(&d.d_preact, 3, 1), &[-0.04502746, -0.01645962, -0.00782535, 0.08321791]);
    near("dq", &column(&d.d_preact, 3, 2), &[0.12239734, 0.01242835, 0.00238938, -0.11021053]);
    near("dh0", &d.d_h0, &[0.47887123]);
    let h = forward(ONE_CHANNEL, cell(Gates::Unnormalized), plain(&preact), start).h;
    near("unnormalised h", &h, &[0.54962385, 0.50981564, 0.4263008, 0.28906785]);
}

#[test]
fn candidate_matches_the_specification() {
    let at = [-2.0, -0.5, 0.0, 3.0];
    near("g", &at.map(|v| Candidate::Positive.value(v)), &[0.11920292, 0.37754067, 0.5, 3.5]);
    near("g'", &at.map(|v| Candidate::Positive.slope(v)), &[0.10499359, 0.23500371, 1.0, 1.0]);
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
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        dot(&out.h, &self.d_h) + dot(&out.h_last, &self.d_h_last)
    }

    fn upstream<'a>(&'a self, h: &'a [f64]) -> Upstream<'a, f64> {
        Upstream { h, d_h: Some(&self.d_h), d_h_last: Some(&self.d_h_last) }
    }
}

#[test]
fn gradients_match_differences() {
    for cell in CELLS {
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
fn parallel_scans_equal_the_loop() {
    let mut random = Random(3);
    for seq_len in [0, 1, 2, 3, 7, 8, 64, 65, 200] {
        let shape = Shape { batch: 2, seq_len, width: 3 };
        let (a, b) = (wide(&random.between(shape.elements(), -1.0, 1.0)), wide(&random.normal(shape.elements())));
        let (h0, init) = (wide(&random.normal(6)), wide(&random.normal(3)));
        let codes: Vec<i32> = (0..2 * seq_len).map(|i| [CONTINUE, CONTINUE, RESET][random.below(3) * usize::from(i % 2 == 0)]).collect();
        for segments in [Segments::DENSE, Segments::new(&codes, seq_len)] {
            let start = Start { h0: Some(&h0[..]), init: Some(&init[..]), segments };
            let expected = scan::forward(shape, &a, &b, start);
            let check = |name: &str, found: scan::Outputs<f64>| {
                near(name, &found.h, &expected.h);
                near(name, &found.h_last, &expected.h_last);
            };
            check("Hillis–Steele", parallel_scans::forward(shape, &a, &b, start, parallel_scans::hillis_steele));
            check("Blelloch", parallel_scans::forward(shape, &a, &b, start, parallel_scans::blelloch));
            for chunk in [1, 7, 64] {
                check("chunked", parallel_scans::forward(shape, &a, &b, start, |pairs| parallel_scans::chunked(pairs, chunk)));
            }
        }
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
