//! The table: every public function that takes sizes or slices, with ordinary sizes and the lengths that its slices then have.

use super::Slices;
use minrnn_kernels::adamw::{self, AdamW};
use minrnn_kernels::block_diagonal::{self, Blocks};
use minrnn_kernels::gated_gelu::{self, Halves};
use minrnn_kernels::matmul::{self, Matrix, Precision, Write};
use minrnn_kernels::recurrence::{self, Cell, Gradients, StepInputs, Upstream};
use minrnn_kernels::s_lstm::ForgetGate;
use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::{Inputs, Scratch, WeightFormat, WeightMatrix};
use minrnn_kernels::*;

/// A function of the crate as the test calls it.
pub struct Function {
    pub name: &'static str,
    /// Names and ordinary values of its sizes.
    pub sizes: &'static [(&'static str, usize)],
    /// The factors of every slice's length, in the order in which `call` takes the slices.
    pub lengths: fn(&[usize]) -> Vec<Vec<usize>>,
    pub call: fn(&[usize], &mut Slices),
    /// Whether it derives a size from its slices, or accepts slices that are longer than needed.
    pub lenient: bool,
}

/// `name: sizes { size = ordinary value, … } slices { [factors], … } call |a| …`, where the call sees the sizes by their names.
macro_rules! table {
    ($($name:literal $($lenient:ident)? { $($size:ident = $value:literal),* } [$([$($factor:expr),*]),* $(,)?] |$a:ident| $call:expr;)*) => {
        vec![$(Function {
            name: $name,
            sizes: &[$((stringify!($size), $value)),*],
            #[allow(unused_variables, reason = "not every length depends on every size")]
            lengths: |sizes| {
                let [$($size),*] = *sizes else { unreachable!("one value for each size") };
                vec![$(vec![$($factor),*]),*]
            },
            #[allow(unused_variables, reason = "sizes that a function takes from its slices")]
            call: |sizes, $a| {
                let [$($size),*] = *sizes else { unreachable!("one value for each size") };
                $call
            },
            lenient: [$(stringify!($lenient)),*].contains(&"lenient"),
        }),*]
    };
}

/// h0 `[B, E]`, init `[E]` and codes `[B, T]`.
fn start<'a>(a: &mut Slices<'a>, seq_len: usize) -> Start<'a> {
    Start { h0: Some(a.input()), init: Some(a.input()), segments: segments(a, seq_len) }
}

fn segments<'a>(a: &mut Slices<'a>, seq_len: usize) -> Segments<'a> {
    let made_for = a.steps_of_segments(seq_len);
    Segments::new(a.zeros(), made_for)
}

/// Pre-activations, bias and extra input, as far as the cell has them.
fn recurrence_inputs<'a>(a: &mut Slices<'a>, cell: Cell) -> recurrence::Inputs<'a> {
    recurrence::Inputs {
        preact: a.input(),
        bias: (cell.parts() > 1).then(|| a.input()),
        extra: if has_extra(cell) { a.input() } else { &[] },
    }
}

fn has_extra(cell: Cell) -> bool {
    cell.extra_len(Shape { batch: 1, seq_len: 1, width: 1 }) > 0
}

fn forward(a: &mut Slices, cell: Cell, [batch, seq_len, width]: [usize; 3]) {
    let (inputs, start) = (recurrence_inputs(a, cell), start(a, seq_len));
    recurrence::forward(Shape { batch, seq_len, width }, cell, inputs, start, a.out(), a.out());
}

fn backward(a: &mut Slices, cell: Cell, [batch, seq_len, width]: [usize; 3]) {
    let (inputs, start) = (recurrence_inputs(a, cell), start(a, seq_len));
    let upstream = Upstream { h: a.input(), d_h: Some(a.input()), d_h_last: Some(a.input()) };
    let d_preact = a.out();
    let d_bias = inputs.bias.map(|_| a.out());
    let d_extra = if has_extra(cell) { a.out() } else { Out::default() };
    let gradients = Gradients { d_preact, d_bias, d_extra, d_h0: a.out(), d_init: a.out() };
    recurrence::backward(Shape { batch, seq_len, width }, cell, inputs, start, upstream, gradients);
}

fn step(a: &mut Slices, cell: Cell, width: usize) {
    let preact: Vec<&[f32]> = (0..cell.parts()).map(|_| a.input()).collect();
    let bias: Vec<&[f32]> = if preact.len() > 1 { preact.iter().map(|_| a.input()).collect() } else { vec![] };
    let extra = if has_extra(cell) { a.input() } else { &[] };
    let (h, out) = (a.f32(), a.f32());
    minrnn_kernels::shape::expect_len("h", h, width);
    recurrence::step(Level::current(), cell, StepInputs { preact: &preact, bias: &bias, extra }, h, out);
}

fn gru<'a>(a: &mut Slices<'a>, form: GruForm, seq_len: usize) -> gru::Inputs<'a> {
    let (preact, bias, weight, recurrent_bias) = (a.input(), Some(a.input()), a.input(), Some(a.input()));
    gru::Inputs { form, preact, bias, weight, recurrent_bias, start: start(a, seq_len) }
}

fn lstm<'a>(a: &mut Slices<'a>, seq_len: usize) -> lstm::Inputs<'a> {
    let (preact, bias, weight, recurrent_bias) = (a.input(), Some(a.input()), a.input(), Some(a.input()));
    let start = lstm::Start { h: start(a, seq_len), c0: Some(a.input()), init_c: Some(a.input()) };
    lstm::Inputs { preact, bias, weight, recurrent_bias, start }
}

fn s_lstm<'a>(a: &mut Slices<'a>, heads: usize, forget: ForgetGate, seq_len: usize) -> s_lstm::Inputs<'a> {
    let (preact, weight, bias) = (a.input(), a.input(), Some(a.input()));
    let [h0, c0, n0, m0] = [(); 4].map(|()| Some(a.input()));
    s_lstm::Inputs { heads, forget, preact, weight, bias, start: s_lstm::Start { h0, c0, n0, m0, segments: segments(a, seq_len) } }
}

fn m_lstm<'a>(a: &mut Slices<'a>, heads: usize, seq_len: usize) -> m_lstm::Inputs<'a> {
    let (qkv, gates) = ([a.input(), a.input(), a.input()], a.input());
    let [c0, n0, m0] = [(); 3].map(|()| Some(a.input()));
    m_lstm::Inputs { heads, qkv, gates, start: m_lstm::Start { c0, n0, m0, segments: segments(a, seq_len) } }
}

fn retention<'a>(a: &mut Slices<'a>, seq_len: usize) -> retention::Inputs<'a> {
    let (queries, keys, values, state, positions) = (a.input(), a.input(), a.input(), Some(a.input()), Some(a.input()));
    retention::Inputs { queries, keys, values, start: retention::Start { state, positions, segments: segments(a, seq_len) } }
}

fn conv<'a>(a: &mut Slices<'a>, seq_len: usize) -> conv::Inputs<'a> {
    conv::Inputs { x: a.input(), weight: a.input(), window: Some(a.input()), segments: segments(a, seq_len) }
}

fn gated<'a>(a: &mut Slices<'a>, halves: Halves) -> gated_gelu::Inputs<'a> {
    gated_gelu::Inputs { halves, x: a.input(), bias: Some(a.input()), scale: Some(a.input()) }
}

fn skip_gate<'a>(a: &mut Slices<'a>) -> skip_gate::Inputs<'a> {
    skip_gate::Inputs { y: a.input(), c: a.input(), skip: a.input(), z: a.input() }
}

fn adamw() -> AdamW {
    AdamW { lr: 1e-3, beta_1: 0.9, beta_2: 0.99, eps: 1e-8, weight_decay: 0.1, time: 1, gradient_scale: 1.0 }
}

fn weight_matrix(format: WeightFormat) -> WeightMatrix {
    WeightMatrix::new(format, 70, 9, &[0.5; 70 * 9])
}

fn multiply(format: WeightFormat, [rows, from, until, stride]: [usize; 4], a: &mut Slices) {
    let scratch = &mut Scratch::default();
    let (x, y, bias) = (a.input(), a.f32(), Some(a.input()));
    weight_matrix(format).multiply(Level::current(), Inputs { rows, x, bias }, from..until, y, stride, scratch);
}

#[rustfmt::skip]
pub fn functions() -> Vec<Function> {
    table! {
        // Sizes.
        "Shape::elements" { b = 2, t = 3, e = 4 } [] |_a| _ = std::hint::black_box(Shape { batch: b, seq_len: t, width: e }.elements());
        "Shape::states" { b = 2, e = 4 } [] |_a| _ = std::hint::black_box(Shape { batch: b, seq_len: 0, width: e }.states());
        "Shape::steps" { b = 2, t = 4 } [] |_a| _ = std::hint::black_box(Shape { batch: b, seq_len: t, width: 0 }.steps());
        "grid::piece" { rows = 7, pieces = 3, i = 2 } [] |_a| {
            let piece = grid::piece(rows, pieces, i);
            assert!(piece.start <= piece.end && piece.end <= rows, "a piece outside its rows");
        };
        "Segments::new" lenient { b = 2, t = 3 } [[b, t]] |a| assert!(!segments(a, t).is_dense(), "codes were given");

        // Linear recurrences.
        "recurrence::forward linear" { b = 2, t = 3, e = 5 } [[b, t, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::Linear, [b, t, e]);
        "recurrence::backward linear" { b = 2, t = 3, e = 5 }
            [[b, t, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [b, t, e], [b, t, e], [b, e], [e]]
            |a| backward(a, Cell::Linear, [b, t, e]);
        "recurrence::step linear" { e = 5 } [[e], [e], [e], [e]]
            |a| step(a, Cell::Linear, e);
        "recurrence::forward log space" { b = 2, t = 3, e = 5 } [[b, t, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::LogSpace, [b, t, e]);
        "recurrence::backward log space" { b = 2, t = 3, e = 5 }
            [[b, t, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [b, t, e], [b, t, e], [b, e], [e]]
            |a| backward(a, Cell::LogSpace, [b, t, e]);
        "recurrence::step log space" { e = 5 } [[e], [e], [e], [e]]
            |a| step(a, Cell::LogSpace, e);
        "recurrence::forward minGRU" { b = 2, t = 3, e = 5 } [[2, b, t, e], [2, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::MinGru(Candidate::Positive), [b, t, e]);
        "recurrence::backward minGRU" { b = 2, t = 3, e = 5 }
            [[2, b, t, e], [2, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [2, b, t, e], [2, e], [b, e], [e]]
            |a| backward(a, Cell::MinGru(Candidate::Positive), [b, t, e]);
        "recurrence::step minGRU" { e = 5 } [[e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::MinGru(Candidate::Positive), e);
        "recurrence::forward minLSTM" { b = 2, t = 3, e = 5 } [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::MinLstm(Candidate::Positive, Gates::Normalized), [b, t, e]);
        "recurrence::backward minLSTM" { b = 2, t = 3, e = 5 }
            [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [3, b, t, e], [3, e], [b, e], [e]]
            |a| backward(a, Cell::MinLstm(Candidate::Positive, Gates::Normalized), [b, t, e]);
        "recurrence::step minLSTM" { e = 5 } [[e], [e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::MinLstm(Candidate::Positive, Gates::Normalized), e);
        "recurrence::forward unnormalised minLSTM" { b = 2, t = 3, e = 5 } [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::MinLstm(Candidate::Positive, Gates::Unnormalized), [b, t, e]);
        "recurrence::backward unnormalised minLSTM" { b = 2, t = 3, e = 5 }
            [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [3, b, t, e], [3, e], [b, e], [e]]
            |a| backward(a, Cell::MinLstm(Candidate::Positive, Gates::Unnormalized), [b, t, e]);
        "recurrence::step unnormalised minLSTM" { e = 5 } [[e], [e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::MinLstm(Candidate::Positive, Gates::Unnormalized), e);
        "recurrence::forward signed minGRU" { b = 2, t = 3, e = 5 } [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::SignedMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::backward signed minGRU" { b = 2, t = 3, e = 5 }
            [[3, b, t, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [3, b, t, e], [3, e], [b, e], [e]]
            |a| backward(a, Cell::SignedMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::step signed minGRU" { e = 5 } [[e], [e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::SignedMinGru(Candidate::Positive), e);
        "recurrence::forward decaying minGRU" { b = 2, t = 3, e = 5 } [[2, b, t, e], [2, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::DecayMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::backward decaying minGRU" { b = 2, t = 3, e = 5 }
            [[2, b, t, e], [2, e], [b, t, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [2, b, t, e], [2, e], [b, t, e], [b, e], [e]]
            |a| backward(a, Cell::DecayMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::step decaying minGRU" { e = 5 } [[e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::DecayMinGru(Candidate::Positive), e);
        "recurrence::forward floored minGRU" { b = 2, t = 3, e = 5 } [[2, b, t, e], [2, e], [e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::FlooredMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::backward floored minGRU" { b = 2, t = 3, e = 5 }
            [[2, b, t, e], [2, e], [e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [2, b, t, e], [2, e], [e], [b, e], [e]]
            |a| backward(a, Cell::FlooredMinGru(Candidate::Positive), [b, t, e]);
        "recurrence::step floored minGRU" { e = 5 } [[e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::FlooredMinGru(Candidate::Positive), e);
        "recurrence::forward RG-LRU" { b = 2, t = 3, e = 5 } [[3, b, t, e], [3, e], [e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| forward(a, Cell::RgLru, [b, t, e]);
        "recurrence::backward RG-LRU" { b = 2, t = 3, e = 5 }
            [[3, b, t, e], [3, e], [e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e], [3, b, t, e], [3, e], [e], [b, e], [e]]
            |a| backward(a, Cell::RgLru, [b, t, e]);
        "recurrence::step RG-LRU" { e = 5 } [[e], [e], [e], [e], [e], [e], [e], [e], [e]]
            |a| step(a, Cell::RgLru, e);

        // Cells with a recurrent product.
        "gru::forward" { b = 2, t = 3, e = 5 } [[3, b, t, e], [3, e], [3, e, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, e]]
            |a| gru::forward(Shape { batch: b, seq_len: t, width: e }, gru(a, GruForm::Paper, t), a.out(), a.out());
        "gru::backward" { b = 2, t = 3, e = 5 }
            [[3, b, t, e], [3, e], [3, e, e], [3, e], [b, e], [e], [b, t], [b, t, e], [b, t, e], [b, e],
             [3, b, t, e], [3, e], [3, e, e], [3, e], [b, e], [e]]
            |a| gru::backward(Shape { batch: b, seq_len: t, width: e }, gru(a, GruForm::Torch, t),
                gru::Upstream { h: a.input(), d_h: Some(a.input()), d_h_last: Some(a.input()) },
                gru::Gradients { d_preact: a.out(), d_bias: Some(a.out()), d_weight: a.out(), d_recurrent_bias: Some(a.out()), d_h0: a.out(), d_init: a.out() });
        "lstm::forward" { b = 2, t = 3, e = 5 }
            [[4, b, t, e], [4, e], [4, e, e], [4, e], [b, e], [e], [b, t], [b, e], [e], [b, t, e], [b, t, e], [b, e], [b, e]]
            |a| lstm::forward(Shape { batch: b, seq_len: t, width: e }, lstm(a, t), a.out(), a.out(), a.out(), a.out());
        "lstm::backward" { b = 2, t = 3, e = 5 }
            [[4, b, t, e], [4, e], [4, e, e], [4, e], [b, e], [e], [b, t], [b, e], [e], [b, t, e], [b, t, e], [b, t, e], [b, e], [b, e],
             [4, b, t, e], [4, e], [4, e, e], [4, e], [b, e], [b, e], [e], [e]]
            |a| lstm::backward(Shape { batch: b, seq_len: t, width: e }, lstm(a, t),
                lstm::Upstream { h: a.input(), c: a.input(), d_h: Some(a.input()), d_h_last: Some(a.input()), d_c_last: Some(a.input()) },
                lstm::Gradients { d_preact: a.out(), d_bias: Some(a.out()), d_weight: a.out(), d_recurrent_bias: Some(a.out()), d_h0: a.out(), d_c0: a.out(),
                    d_init_h: a.out(), d_init_c: a.out() });
        "s_lstm::forward" { b = 2, t = 3, heads = 2, e = 6 }
            [[4, b, t, e], [4, e, e / heads.max(1)], [4, e], [b, e], [b, e], [b, e], [b, e], [b, t],
             [b, t, e], [b, t, e], [b, t, e], [b, t, e], [b, e], [b, e], [b, e], [b, e]]
            |a| s_lstm::forward(Shape { batch: b, seq_len: t, width: e }, s_lstm(a, heads, ForgetGate::Sigmoid, t),
                [a.out(), a.out(), a.out(), a.out()], [a.out(), a.out(), a.out(), a.out()]);
        "s_lstm::backward" { b = 2, t = 3, heads = 2, e = 6 }
            [[4, b, t, e], [4, e, e / heads.max(1)], [4, e], [b, e], [b, e], [b, e], [b, e], [b, t],
             [b, t, e], [b, t, e], [b, t, e], [b, t, e], [b, t, e], [b, e], [b, e], [b, e],
             [4, b, t, e], [4, e, e / heads.max(1)], [4, e], [b, e], [b, e], [b, e]]
            |a| s_lstm::backward(Shape { batch: b, seq_len: t, width: e }, s_lstm(a, heads, ForgetGate::Exponential, t),
                s_lstm::Upstream { states: [a.input(), a.input(), a.input(), a.input()], d_h: Some(a.input()),
                    d_last: [Some(a.input()), Some(a.input()), Some(a.input())] },
                s_lstm::Gradients { d_preact: a.out(), d_weight: a.out(), d_bias: Some(a.out()), d_start: [a.out(), a.out(), a.out()] });
        "s_lstm::step" lenient { heads = 2, e = 6 } [[4, e], [4, e], [4, e], [e], [e], [e], [e]]
            |a| s_lstm::step(Level::current(), heads, ForgetGate::Sigmoid, a.input(), a.input(), a.input(), [a.f32(), a.f32(), a.f32(), a.f32()]);

        // Memories.
        "m_lstm::forward" { b = 2, t = 3, heads = 2, e = 6 }
            [[b, t, e], [b, t, e], [b, t, e], [b, t, 2, heads], [b, heads, e / heads.max(1), e / heads.max(1)], [b, heads, e / heads.max(1)],
             [b, heads], [b, t], [b, t, e], [b, heads, e / heads.max(1), e / heads.max(1)], [b, heads, e / heads.max(1)], [b, heads]]
            |a| m_lstm::forward(Shape { batch: b, seq_len: t, width: e }, m_lstm(a, heads, t), a.out(), [a.out(), a.out(), a.out()]);
        "m_lstm::backward" { b = 2, t = 3, heads = 2, e = 6 }
            [[b, t, e], [b, t, e], [b, t, e], [b, t, 2, heads], [b, heads, e / heads.max(1), e / heads.max(1)], [b, heads, e / heads.max(1)],
             [b, heads], [b, t], [b, t, e], [b, t, e], [b, heads, e / heads.max(1), e / heads.max(1)], [b, heads, e / heads.max(1)],
             [b, t, e], [b, t, e], [b, t, e], [b, t, 2, heads], [b, heads, e / heads.max(1), e / heads.max(1)], [b, heads, e / heads.max(1)]]
            |a| m_lstm::backward(Shape { batch: b, seq_len: t, width: e }, m_lstm(a, heads, t),
                m_lstm::Upstream { h: a.input(), d_h: Some(a.input()), d_last: [Some(a.input()), Some(a.input())] },
                m_lstm::Gradients { d_qkv: [a.out(), a.out(), a.out()], d_gates: a.out(), d_start: [a.out(), a.out()] });
        "m_lstm::step" lenient { e = 5 } [[e], [e], [e], [e, e], [e], [e]]
            |a| m_lstm::step(Level::current(), [a.input(), a.input(), a.input()], [0.5, 0.5], a.f32(), a.f32(), &mut 0.0, a.f32());
        "delta::forward" { b = 2, t = 3, heads = 2, n = 5 }
            [[b, t, heads, n.wrapping_mul(3).wrapping_add(1)], [b, heads, n, n], [b, t], [b, t, heads, n], [b, heads, n, n]]
            |a| delta::forward(delta::Sizes { batch: b, seq_len: t, heads, head_width: n },
                delta::Inputs { x: a.input(), memory: Some(a.input()), segments: segments(a, t) }, a.out(), a.out());
        "delta::backward" { b = 2, t = 3, heads = 2, n = 5 }
            [[b, t, heads, n.wrapping_mul(3).wrapping_add(1)], [b, heads, n, n], [b, t], [b, t, heads, n], [b, heads, n, n],
             [b, t, heads, n.wrapping_mul(3).wrapping_add(1)], [b, heads, n, n]]
            |a| delta::backward(delta::Sizes { batch: b, seq_len: t, heads, head_width: n },
                delta::Inputs { x: a.input(), memory: Some(a.input()), segments: segments(a, t) }, Some(a.input()), Some(a.input()), a.out(), a.out());
        "delta::step" lenient { n = 5 } [[n], [n], [n], [n, n], [n]]
            |a| delta::step(Level::current(), [a.input(), a.input(), a.input()], 0.5, a.f32(), a.f32());
        "retention::forward" { b = 2, t = 3, heads = 2, key = 4, value = 5 }
            [[heads], [b, t, heads, key], [b, t, heads, key], [b, t, heads, value], [b, heads, key, value], [b], [b, t],
             [b, t, heads, value], [b, heads, key, value]]
            |a| {
                let form = retention::Form { features: retention::Features::Rotary, decays: a.zeros(), key_scale: 1.0, normalized: false };
                retention::forward(retention::Sizes { batch: b, seq_len: t, heads, key, value }, form, retention(a, t), a.out(), a.out());
            };
        "retention::backward" { b = 2, t = 3, heads = 2, key = 4, value = 5 }
            [[heads], [b, t, heads, key], [b, t, heads, key], [b, t, heads, value], [b, heads, key, value.wrapping_add(1)], [b], [b, t],
             [b, t, heads, value], [b, heads, key, value.wrapping_add(1)], [b, t, heads, key], [b, t, heads, key], [b, t, heads, value],
             [b, heads, key, value.wrapping_add(1)]]
            |a| {
                let form = retention::Form { features: retention::Features::EluPlusOne, decays: a.zeros(), key_scale: 1.0, normalized: true };
                retention::backward(retention::Sizes { batch: b, seq_len: t, heads, key, value }, form, retention(a, t), Some(a.input()), Some(a.input()),
                    retention::Gradients { d_queries: a.out(), d_keys: a.out(), d_values: a.out(), d_state: a.out() });
            };
        "rwkv4::kept_len" { b = 2, t = 3, e = 5 } [] |_a| assert!(rwkv4::kept_len(Shape { batch: b, seq_len: t, width: e }) < usize::MAX, "a length");
        "rwkv4::forward" { b = 2, t = 3, e = 5 }
            [[b, t, e], [b, t, e], [b, t, e], [e], [e], [b, e], [b, e], [b, t], [b, t, e], [b, e], [b, e], [b, t.div_ceil(128), 2, e]]
            |a| rwkv4::forward(Shape { batch: b, seq_len: t, width: e },
                rwkv4::Inputs { receptance: a.input(), key: a.input(), value: a.input(), decay: a.input(), bonus: a.input() },
                rwkv4::Start { memory: Some([a.input(), a.input()]), segments: segments(a, t) }, a.out(), a.out(), a.out(), a.out());
        "rwkv4::backward" { b = 2, t = 3, e = 5 }
            [[b, t, e], [b, t, e], [b, t, e], [e], [e], [b, e], [b, e], [b, t], [b, t.div_ceil(128), 2, e], [b, t, e], [b, e], [b, e],
             [b, t, e], [b, t, e], [b, t, e], [e], [e], [b, e], [b, e]]
            |a| rwkv4::backward(Shape { batch: b, seq_len: t, width: e },
                rwkv4::Inputs { receptance: a.input(), key: a.input(), value: a.input(), decay: a.input(), bonus: a.input() },
                rwkv4::Start { memory: Some([a.input(), a.input()]), segments: segments(a, t) },
                rwkv4::Upstream { kept: a.input(), d_y: Some(a.input()), d_last: [Some(a.input()), Some(a.input())] },
                rwkv4::Gradients { d_receptance: a.out(), d_key: a.out(), d_value: a.out(), d_decay: a.out(), d_bonus: a.out(), d_memory: [a.out(), a.out()] });
        "rwkv4::step" lenient { e = 5 } [[e], [e], [e], [e], [e], [e], [e], [e], [e]]
            |a| rwkv4::step(Level::current(), [a.input(), a.input(), a.input()], [a.input(), a.input()], [a.f32(), a.f32(), a.f32()], a.f32());
        "prefix_softmax::forward" { b = 2, t = 3, heads = 2, e = 6 }
            [[b, t, heads], [b, t, e], [b, e], [b, heads], [b, t], [b, t, e], [b, e], [b, heads], [b, t, heads]]
            |a| prefix_softmax::forward(Shape { batch: b, seq_len: t, width: e },
                prefix_softmax::Inputs { heads, scores: a.input(), values: a.input() },
                prefix_softmax::Start { memory: Some([a.input(), a.input()]), segments: segments(a, t) }, a.out(), a.out(), a.out(), a.out());
        "prefix_softmax::backward" { b = 2, t = 3, heads = 2, e = 6 }
            [[b, t, heads], [b, t, e], [b, e], [b, heads], [b, t], [b, t, e], [b, t, heads], [b, t, e], [b, e], [b, heads],
             [b, t, heads], [b, t, e], [b, e], [b, heads]]
            |a| prefix_softmax::backward(Shape { batch: b, seq_len: t, width: e },
                prefix_softmax::Inputs { heads, scores: a.input(), values: a.input() },
                prefix_softmax::Start { memory: Some([a.input(), a.input()]), segments: segments(a, t) },
                prefix_softmax::Upstream { y: a.input(), shares: a.input(), d_y: Some(a.input()), d_mean_last: Some(a.input()),
                    d_log_weight_last: Some(a.input()) },
                prefix_softmax::Gradients { d_scores: a.out(), d_values: a.out(), d_mean: a.out(), d_log_weight: a.out() });
        "attention::forward" { b = 2, t = 3, past = 2, next = 4, heads = 2, width = 5, window = 3 }
            [[b, t, 3, heads, width], [b, past, 2, heads, width], [b], [b, t], [b, t, heads, width], [b, heads, t], [b, next, 2, heads, width]]
            |a| attention::forward(attention::Sizes { batch: b, seq_len: t, past, next, heads, head_width: width, window }, a.input(),
                attention::Start { past: a.input(), lengths: a.zeros(), segments: segments(a, t) }, a.out(), a.out(), a.out());
        "attention::backward" { b = 2, t = 3, past = 2, next = 4, heads = 2, width = 5, window = 3 }
            [[b, t, 3, heads, width], [b, past, 2, heads, width], [b], [b, t], [b, t, heads, width], [b, heads, t], [b, t, heads, width],
             [b, next, 2, heads, width], [b, t, 3, heads, width], [b, past, 2, heads, width]]
            |a| attention::backward(attention::Sizes { batch: b, seq_len: t, past, next, heads, head_width: width, window }, a.input(),
                attention::Start { past: a.input(), lengths: a.zeros(), segments: segments(a, t) },
                attention::Upstream { y: a.input(), log_sums: a.input(), d_y: Some(a.input()), d_next: Some(a.input()) }, a.out(), a.out());

        // State spaces and convolutions.
        "state_space::forward" { b = 2, t = 3, n = 4, d = 5 }
            [[b, t, d], [6, n, d], [d], [b, 2, n, d], [b, t], [b, t, d], [b, 2, n, d]]
            |a| state_space::forward(state_space::Inputs { shape: Shape { batch: b, seq_len: t, width: d },
                form: state_space::Form { states: n, planes: state_space::SIMPLE }, u: a.input(), parameters: a.input(), skip: a.input(),
                x0: Some(a.input()), segments: segments(a, t) }, a.out(), a.out());
        "state_space::backward" { b = 2, t = 3, n = 4, d = 5 }
            [[b, t, d], [10, n, d], [d], [b, 2, n, d], [b, t], [b, t, d], [b, 2, n, d], [b, t, d], [10, n, d], [d], [b, 2, n, d]]
            |a| state_space::backward(state_space::Inputs { shape: Shape { batch: b, seq_len: t, width: d },
                form: state_space::Form { states: n, planes: state_space::RANK_ONE }, u: a.input(), parameters: a.input(), skip: a.input(),
                x0: Some(a.input()), segments: segments(a, t) }, Some(a.input()), Some(a.input()), a.out(), a.out(), a.out(), a.out());
        "selective_scan::boundaries_len" { b = 2, t = 3, n = 4, d = 5 } []
            |_a| assert!(selective_scan::boundaries_len(Shape { batch: b, seq_len: t, width: d }, n) < usize::MAX, "a length");
        "selective_scan::forward" { b = 2, t = 3, n = 4, d = 5 }
            [[b, t, d], [b, t, d], [d], [d, n], [b, t, 2, n], [d], [b, t, d], [b, d, n], [b, t], [b, t, d], [b, d, n], [b, t.div_ceil(64), n, d]]
            |a| selective_scan::forward(Shape { batch: b, seq_len: t, width: d }, n,
                &selective_scan::Inputs { u: a.input(), delta: a.input(), delta_bias: a.input(), a: a.input(), bc: a.input(), skip: a.input(),
                    z: Some(a.input()), h0: Some(a.input()), segments: segments(a, t) },
                selective_scan::Outputs { y: a.out(), h_last: a.out(), boundaries: a.out() });
        "selective_scan::backward" { b = 2, t = 3, n = 4, d = 5 }
            [[b, t, d], [b, t, d], [d], [d, n], [b, t, 2, n], [d], [b, t, d], [b, d, n], [b, t], [b, t.div_ceil(64), n, d], [b, t, d], [b, d, n],
             [b, t, d], [b, t, d], [d], [d, n], [b, t, 2, n], [d], [b, t, d], [b, d, n]]
            |a| selective_scan::backward(Shape { batch: b, seq_len: t, width: d }, n,
                &selective_scan::Inputs { u: a.input(), delta: a.input(), delta_bias: a.input(), a: a.input(), bc: a.input(), skip: a.input(),
                    z: Some(a.input()), h0: Some(a.input()), segments: segments(a, t) },
                a.input(), Some(a.input()), Some(a.input()),
                selective_scan::Gradients { d_u: a.out(), d_delta: a.out(), d_delta_bias: a.out(), d_a: a.out(), d_bc: a.out(), d_skip: a.out(),
                    d_z: Some(a.out()), d_h0: a.out() });
        "conv::forward" { b = 2, t = 3, k = 4, d = 5 }
            [[b, t, d], [d, k], [b, k.wrapping_sub(1), d], [b, t], [d], [b, t, d], [b, k.wrapping_sub(1), d]]
            |a| conv::forward(Shape { batch: b, seq_len: t, width: d }, k, conv(a, t), a.input(), a.out(), a.out());
        "conv::backward" { b = 2, t = 3, k = 4, d = 5 }
            [[b, t, d], [d, k], [b, k.wrapping_sub(1), d], [b, t], [b, t, d], [b, k.wrapping_sub(1), d], [b, t, d], [b, t, d], [d, k], [d],
             [b, k.wrapping_sub(1), d]]
            |a| conv::backward(Shape { batch: b, seq_len: t, width: d }, k, conv(a, t),
                conv::Upstream { d_y: Some(a.input()), d_window_last: Some(a.input()), d_residual: Some(a.input()) },
                conv::Gradients { d_x: a.out(), d_weight: a.out(), d_bias: a.out(), d_window: a.out() });
        "conv::forward of long filters" { b = 1, t = 260, k = 200, d = 2 }
            [[b, t, d], [d, k], [b, k.wrapping_sub(1), d], [b, t], [d], [b, t, d], [b, k.wrapping_sub(1), d]]
            |a| conv::forward(Shape { batch: b, seq_len: t, width: d }, k, conv(a, t), a.input(), a.out(), a.out());
        "conv::backward of long filters" { b = 1, t = 260, k = 200, d = 2 }
            [[b, t, d], [d, k], [b, k.wrapping_sub(1), d], [b, t], [b, t, d], [b, k.wrapping_sub(1), d], [b, t, d], [b, t, d], [d, k], [d],
             [b, k.wrapping_sub(1), d]]
            |a| conv::backward(Shape { batch: b, seq_len: t, width: d }, k, conv(a, t),
                conv::Upstream { d_y: Some(a.input()), d_window_last: Some(a.input()), d_residual: Some(a.input()) },
                conv::Gradients { d_x: a.out(), d_weight: a.out(), d_bias: a.out(), d_window: a.out() });

        "Continuous::discrete" lenient { channels = 2, half = 3 }
            [[channels], [channels, half], [channels, half], [channels, half, 2], [channels, half, 2], [channels, half, 2]]
            |a| drop(state_space::Continuous { log_dt: a.input(), log_a_real: a.input(), a_imag: a.input(), c: a.input(),
                low_rank: Some([a.input(), a.input()]) }.discrete(2));

        // Rows of a matrix.
        "layer_norm::forward" { rows = 3, width = 5 } [[rows, width], [width], [width], [rows, width]]
            |a| layer_norm::forward(rows, width, layer_norm::Inputs { x: a.input(), gamma: a.input(), eps: 1e-5 }, a.input(), a.out());
        "layer_norm::backward" { rows = 3, width = 5 }
            [[rows, width], [width], [rows, width], [rows, width], [rows, width], [width], [width]]
            |a| layer_norm::backward(rows, width, layer_norm::Inputs { x: a.input(), gamma: a.input(), eps: 1e-5 }, a.input(), Some(a.input()),
                layer_norm::Gradients { d_x: a.out(), d_gamma: a.out(), d_beta: a.out() });
        "rms_norm::forward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width]]
            |a| rms_norm::forward(rows, width, rms_norm::Inputs { x: a.input(), gamma: a.input() }, a.out());
        "rms_norm::backward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width], [rows, width], [rows, width], [width]]
            |a| rms_norm::backward(rows, width, rms_norm::Inputs { x: a.input(), gamma: a.input() }, a.input(), Some(a.input()),
                rms_norm::Gradients { d_x: a.out(), d_gamma: a.out() });
        "head_norm::forward" lenient { rows = 3, heads = 2, width = 6 } [[rows, width], [width], [rows, width]]
            |a| head_norm::forward(rows, heads, head_norm::Inputs { x: a.input(), weight: a.input(), eps: 1e-5 }, a.out());
        "head_norm::backward" lenient { rows = 3, heads = 2, width = 6 } [[rows, width], [width], [rows, width], [rows, width], [width]]
            |a| head_norm::backward(rows, heads, head_norm::Inputs { x: a.input(), weight: a.input(), eps: 1e-5 }, a.input(),
                head_norm::Gradients { d_x: a.out(), d_weight: a.out() });
        "gelu::forward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width]]
            |a| gelu::forward(rows, width, a.input(), Some(a.input()), a.out());
        "gelu::backward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width], [rows, width], [width]]
            |a| gelu::backward(rows, width, a.input(), Some(a.input()), a.input(), a.out(), Some(a.out()));
        "gated_gelu::forward" { rows = 3, width = 5 } [[rows, 2, width], [2, width], [width], [rows, width]]
            |a| gated_gelu::forward(rows, width, gated(a, Halves::ValueGate), a.out());
        "gated_gelu::backward" { rows = 3, width = 5 }
            [[rows, 2, width], [2, width], [width], [rows, width], [rows, 2, width], [2, width], [width]]
            |a| gated_gelu::backward(rows, width, gated(a, Halves::GateValue), a.input(),
                gated_gelu::Gradients { d_x: a.out(), d_bias: Some(a.out()), d_scale: Some(a.out()) });
        "swi_glu::forward" { rows = 3, width = 5 } [[rows, 2, width], [rows, width]]
            |a| swi_glu::forward(rows, width, a.input(), a.out());
        "swi_glu::backward" { rows = 3, width = 5 } [[rows, 2, width], [rows, width], [rows, 2, width]]
            |a| swi_glu::backward(rows, width, a.input(), a.input(), a.out());
        "silu::forward" lenient { len = 300 } [[len], [len]] |a| silu::forward(a.input(), a.out());
        "silu::backward" lenient { len = 300 } [[len], [len], [len]] |a| silu::backward(a.input(), [Some(a.input()), None], a.out());
        "highway::forward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width], [width], [rows, width], [rows, width]]
            |a| highway::forward(rows, width, highway::Inputs { gate: a.input(), gate_bias: Some(a.input()), value: a.input(),
                value_bias: Some(a.input()), x: a.input() }, a.out());
        "highway::backward" { rows = 3, width = 5 }
            [[rows, width], [width], [rows, width], [width], [rows, width], [rows, width], [rows, width], [width], [rows, width], [width], [rows, width]]
            |a| highway::backward(rows, width, highway::Inputs { gate: a.input(), gate_bias: Some(a.input()), value: a.input(),
                value_bias: Some(a.input()), x: a.input() }, a.input(), highway::Gradients { d_gate: a.out(), d_gate_bias: Some(a.out()),
                d_value: a.out(), d_value_bias: Some(a.out()), d_x: a.out() });
        "skip_gate::forward" lenient { rows = 3, width = 5 } [[rows, width], [rows, width], [width], [rows, width], [rows, width]]
            |a| skip_gate::forward(rows, skip_gate(a), a.out());
        "skip_gate::backward" lenient { rows = 3, width = 5 }
            [[rows, width], [rows, width], [width], [rows, width], [rows, width], [rows, width], [rows, width], [rows, width], [width]]
            |a| skip_gate::backward(rows, skip_gate(a), a.input(), skip_gate::Gradients { d_y: a.out(), d_c: a.out(), d_z: a.out(), d_skip: a.out() });
        "dropout::forward" { rows = 3, width = 5 } [[rows, width], [width], [rows, width], [rows, width]]
            |a| dropout::forward(rows, width, dropout::Inputs { x: a.input(), bias: Some(a.input()), residual: Some(a.input()) }, 0.5, 7, a.out());
        "dropout::backward" { rows = 3, width = 5 } [[rows, width], [rows, width], [width]]
            |a| dropout::backward(rows, width, a.input(), 0.5, 7, a.out(), Some(a.out()));
        "split::split" { rows = 3, left = 2, right = 4 } [[rows, left.wrapping_add(right)], [rows, left], [rows, right]]
            |a| split::split(rows, [left, right], a.input(), a.out(), a.out());
        "split::join" { rows = 3, left = 2, right = 4 } [[rows, left], [rows, right], [rows, left.wrapping_add(right)]]
            |a| split::join(rows, [left, right], Some(a.input()), Some(a.input()), a.out());
        "split::join of nothing" { rows = 3, left = 2, right = 4 } [[rows, left.wrapping_add(right)]]
            |a| split::join(rows, [left, right], None, None, a.out());
        "embedding::forward" lenient { rows = 3, width = 5 } [[rows], [2, width], [rows, width]]
            |a| embedding::forward(width, a.zeros(), a.input(), a.out());
        "embedding::backward" lenient { rows = 3, width = 5 } [[rows], [rows, width], [2, width]]
            |a| embedding::backward(width, a.zeros(), a.input(), a.out());
        "cross_entropy::forward" { rows = 3, classes = 5 } [[rows, classes], [rows], [rows]]
            |a| assert!(!cross_entropy::forward(rows, classes, a.input(), a.zeros(), Some(a.input())).0.is_nan(), "the loss of zeros");
        "cross_entropy::backward" { rows = 3, classes = 5 } [[rows, classes], [rows], [rows], [rows, classes]]
            |a| cross_entropy::backward(rows, classes, a.input(), a.zeros(), Some(a.input()), 1.0, a.out());
        "cross_entropy::backward without a mask" { rows = 3, classes = 5 } [[rows, classes], [rows], [rows, classes]]
            |a| cross_entropy::backward(rows, classes, a.input(), a.zeros(), None, 1.0, a.out());
        "rotary::forward" lenient { rows = 3, head = 4, turned = 8, width = 12 } [[rows, width], [rows], [rows, width]]
            |a| rotary::forward(rotary::Layout { head_width: head, turned, width }, a.input(), a.zeros(), a.out());
        "rotary::backward" lenient { rows = 3, head = 4, turned = 8, width = 12 } [[rows, width], [rows], [rows, width]]
            |a| rotary::backward(rotary::Layout { head_width: head, turned, width }, a.input(), a.zeros(), a.out());
        "block_diagonal::forward of fours" { rows = 3, count = 2, outputs = 4, inputs = 4 }
            [[rows, count, inputs], [count, outputs, inputs], [rows, count, outputs]]
            |a| block_diagonal::forward(rows, Blocks { count, outputs, inputs }, a.input(), a.input(), a.out());
        "block_diagonal::backward of fours" { rows = 3, count = 2, outputs = 4, inputs = 4 }
            [[rows, count, inputs], [count, outputs, inputs], [rows, count, outputs], [rows, count, inputs], [count, outputs, inputs]]
            |a| block_diagonal::backward(rows, Blocks { count, outputs, inputs }, a.input(), a.input(), a.input(), a.out(), a.out());
        "block_diagonal::forward" { rows = 3, count = 2, outputs = 3, inputs = 5 }
            [[rows, count, inputs], [count, outputs, inputs], [rows, count, outputs]]
            |a| block_diagonal::forward(rows, Blocks { count, outputs, inputs }, a.input(), a.input(), a.out());
        "block_diagonal::backward" { rows = 3, count = 2, outputs = 3, inputs = 5 }
            [[rows, count, inputs], [count, outputs, inputs], [rows, count, outputs], [rows, count, inputs], [count, outputs, inputs]]
            |a| block_diagonal::backward(rows, Blocks { count, outputs, inputs }, a.input(), a.input(), a.input(), a.out(), a.out());

        // Products.
        "matmul::multiply" lenient { rows = 3, depth = 4, columns = 5, left_stride = 4, right_stride = 5, stride = 5 }
            [[rows, left_stride], [depth, right_stride], [rows, stride]]
            |a| matmul::multiply(Level::current(), [rows, depth, columns], Matrix::new(a.input(), left_stride),
                Matrix::new(a.input(), right_stride), Write::Store, a.f32(), stride);
        "matmul::multiply of transposed sides" lenient { rows = 3, depth = 4, columns = 5, left_stride = 3, right_stride = 4, stride = 5 }
            [[depth, left_stride], [columns, right_stride], [rows, stride]]
            |a| matmul::multiply(Level::current(), [rows, depth, columns], Matrix::new(a.input(), left_stride).transpose(),
                Matrix::new(a.input(), right_stride).transpose(), Write::Add, a.f32(), stride);
        "matmul::multiply of a row" lenient { depth = 4, columns = 5, stride = 5 } [[depth], [depth, stride], [columns]]
            |a| matmul::multiply(Level::current(), [1, depth, columns], Matrix::new(a.input(), depth), Matrix::new(a.input(), stride),
                Write::Add, a.f32(), columns);
        "matmul::product" lenient { rows = 3, depth = 4, columns = 5 } [[rows, depth], [depth, columns], [columns], [rows, columns]]
            |a| matmul::matmul(Precision::Bf16, [rows, depth, columns], Matrix::new(a.input(), depth), Matrix::new(a.input(), columns),
                Some(a.input()), a.out());
        "matmul::product of f32" lenient { rows = 3, depth = 4, columns = 5 } [[rows, depth], [depth, columns], [columns], [rows, columns]]
            |a| matmul::matmul(Precision::F32, [rows, depth, columns], Matrix::new(a.input(), depth), Matrix::new(a.input(), columns),
                Some(a.input()), a.out());
        "matmul::transposed" lenient { rows = 3, columns = 5 } [[rows, columns]] |a| drop(matmul::transposed(a.input(), rows, columns));
        "WeightMatrix::new, f32" { outputs = 3, inputs = 5 } [[outputs, inputs]]
            |a| drop(WeightMatrix::new(WeightFormat::F32, outputs, inputs, a.input()));
        "WeightMatrix::new, bf16" { outputs = 3, inputs = 5 } [[outputs, inputs]]
            |a| drop(WeightMatrix::new(WeightFormat::Bf16, outputs, inputs, a.input()));
        "WeightMatrix::new, int8" { outputs = 3, inputs = 5 } [[outputs, inputs]]
            |a| drop(WeightMatrix::new(WeightFormat::Int8, outputs, inputs, a.input()));
        "WeightMatrix::new, int4" { outputs = 3, inputs = 5 } [[outputs, inputs]]
            |a| drop(WeightMatrix::new(WeightFormat::Int4, outputs, inputs, a.input()));
        "WeightMatrix::byte_len" { outputs = 3, inputs = 5 } []
            |_a| assert!(WeightFormat::ALL.iter().all(|&format| WeightMatrix::byte_len(format, outputs, inputs) != Some(1)), "whole lines");
        "WeightMatrix::from_bytes" lenient { outputs = 3, inputs = 5 } [[256]]
            |a| drop({ let bytes = a.zeros::<u8>(); WeightFormat::ALL.iter().map(|&format| WeightMatrix::from_bytes(format, outputs, inputs, bytes)).collect::<Vec<_>>() });
        "WeightMatrix::row" { i = 69 } [[9]] |a| weight_matrix(WeightFormat::Int4).row(i, a.f32());
        "WeightMatrix::multiply, f32" lenient { rows = 2, from = 3, until = 68, stride = 65 } [[rows, 9], [rows, stride], [70]]
            |a| multiply(WeightFormat::F32, [rows, from, until, stride], a);
        "WeightMatrix::multiply, bf16" lenient { rows = 2, from = 3, until = 68, stride = 65 } [[rows, 9], [rows, stride], [70]]
            |a| multiply(WeightFormat::Bf16, [rows, from, until, stride], a);
        "WeightMatrix::multiply, int8" lenient { rows = 2, from = 3, until = 68, stride = 65 } [[rows, 9], [rows, stride], [70]]
            |a| multiply(WeightFormat::Int8, [rows, from, until, stride], a);
        "WeightMatrix::multiply, int4" lenient { rows = 2, from = 3, until = 68, stride = 65 } [[rows, 9], [rows, stride], [70]]
            |a| multiply(WeightFormat::Int4, [rows, from, until, stride], a);

        // Training.
        "AdamW::update" lenient { len = 5 } [[len], [len], [len], [len], [len], [len], [len]]
            |a| adamw().update(a.input(), a.input(), [a.input(), a.input()], a.out(), [a.out(), a.out()]);
        "adamw::sum_of_squares" lenient { len = 5 } [[len]] |a| assert!(adamw::sum_of_squares(a.input()) == 0.0, "a sum of zeros");
        "copy::past_caches" lenient { len = 5 } [[len], [len]] |a| copy::past_caches(a.input(), a.out());
    }
}
