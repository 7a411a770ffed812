//! The recurrences behind one face, so that every claim is checked on all of them.

use super::{Random, outputs};
use minrnn_kernels::reference;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};
use minrnn_kernels::{Candidate, Gates, Shape, Start, decay_min_gru, floored_min_gru, log_space, min_gru, min_lstm, scan, signed_min_gru};

/// A recurrence with its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    Scan,
    LogSpace,
    MinGru(Candidate),
    MinLstm(Candidate, Gates),
    SignedMinGru(Candidate),
    DecayMinGru(Candidate),
    FlooredMinGru(Candidate),
}

/// The largest shares of a candidate in a floored minGRU of this width.
fn shares(width: usize) -> Vec<f32> {
    (0..width).map(|c| 1.0 - c as f32 / width as f32).collect()
}

/// All of them.
pub const CELLS: [Cell; 18] = [
    Cell::Scan,
    Cell::LogSpace,
    Cell::MinGru(Candidate::Positive),
    Cell::MinGru(Candidate::Identity),
    Cell::MinGru(Candidate::Tanh),
    Cell::MinLstm(Candidate::Positive, Gates::Normalized),
    Cell::MinLstm(Candidate::Identity, Gates::Normalized),
    Cell::MinLstm(Candidate::Tanh, Gates::Normalized),
    Cell::MinLstm(Candidate::Positive, Gates::Unnormalized),
    Cell::MinLstm(Candidate::Identity, Gates::Unnormalized),
    Cell::MinLstm(Candidate::Tanh, Gates::Unnormalized),
    Cell::SignedMinGru(Candidate::Positive),
    Cell::SignedMinGru(Candidate::Identity),
    Cell::SignedMinGru(Candidate::Tanh),
    Cell::DecayMinGru(Candidate::Positive),
    Cell::DecayMinGru(Candidate::Tanh),
    Cell::FlooredMinGru(Candidate::Positive),
    Cell::FlooredMinGru(Candidate::Tanh),
];

/// What a recurrence works on. Cells with two inputs in one tensor use `x` alone, the others `x` and `y`.
#[derive(Debug, Clone)]
pub struct Batch {
    pub shape: Shape,
    pub x: Vec<f32>,
    pub y: Vec<f32>,
    pub bias: Option<Vec<f32>>,
    pub h0: Option<Vec<f32>>,
    pub init: Option<Vec<f32>>,
    pub codes: Option<Vec<i32>>,
    pub d_h: Option<Vec<f32>>,
    pub d_h_last: Option<Vec<f32>>,
}

/// Outputs and gradients by name. Names that a cell does not have are empty.
pub type Named<T> = Vec<(&'static str, Vec<T>)>;

impl Cell {
    /// Elements of `x` per element of h.
    pub fn columns(self) -> usize {
        match self {
            Cell::Scan | Cell::LogSpace => 1,
            Cell::MinGru(_) | Cell::DecayMinGru(_) | Cell::FlooredMinGru(_) => 2,
            Cell::MinLstm(..) | Cell::SignedMinGru(_) => 3,
        }
    }

    /// A random batch with h0 and init.
    pub fn batch(self, shape: Shape, random: &mut Random) -> Batch {
        let n = shape.elements();
        let (x, y) = match self {
            Cell::Scan => (random.between(n, -1.0, 1.0), random.normal(n)),
            Cell::LogSpace => (random.between(n, -3.0, 0.0), random.between(n, -4.0, 1.0)),
            Cell::DecayMinGru(_) => (random.normal(n * 2), random.between(n, 0.0, 1.0)),
            _ => (random.normal(n * self.columns()), Vec::new()),
        };
        let mut states = |n| Some(random.between(n, if self == Cell::LogSpace { 0.1 } else { -1.0 }, 1.5));
        let (h0, init) = (states(shape.states()), states(shape.width));
        let (d_h, d_h_last) = (Some(random.normal(n)), Some(random.normal(shape.states())));
        let bias = (self.columns() > 1).then(|| random.normal(self.columns() * shape.width));
        Batch { shape, x, y, bias, h0, init, codes: None, d_h, d_h_last }
    }

    /// Runs the kernels; every output is poisoned with NaN first.
    pub fn run(self, batch: &Batch) -> Named<f32> {
        let Batch { shape, x, y, .. } = batch;
        let (shape, bias, start) = (*shape, batch.bias.as_deref(), batch.start());
        let [h, h_last] = outputs([shape.elements(), shape.states()], |[h, h_last]| match self {
            Cell::Scan => scan::forward(shape, x, y, start, h, h_last),
            Cell::LogSpace => log_space::forward(shape, x, y, start, h, h_last),
            Cell::MinGru(candidate) => min_gru::forward(shape, candidate, x, bias, start, h, h_last),
            Cell::MinLstm(candidate, gates) => min_lstm::forward(shape, candidate, gates, x, bias, start, h, h_last),
            Cell::SignedMinGru(candidate) => signed_min_gru::forward(shape, candidate, x, bias, start, h, h_last),
            Cell::DecayMinGru(candidate) => decay_min_gru::forward(shape, candidate, x, y, bias, start, h, h_last),
            Cell::FlooredMinGru(candidate) => {
                floored_min_gru::forward(shape, candidate, x, bias, &shares(shape.width), start, h, h_last);
            }
        });
        let (d_h, d_h_last) = (batch.d_h.as_deref(), batch.d_h_last.as_deref());
        let d_bias_len = bias.map_or(0, <[f32]>::len);
        let d_y_len = if let Cell::FlooredMinGru(_) = self { shape.width } else { y.len() };
        let lengths = [x.len(), d_y_len, d_bias_len, shape.states(), shape.width];
        let [d_x, d_y, d_bias, d_h0, d_init] = outputs(lengths, |[d_x, d_y, d_bias, d_h0, d_init]| {
            let d_bias = bias.map(|_| d_bias);
            match self {
                Cell::Scan => scan::backward(shape, x, start, &h, d_h, d_h_last, d_x, d_y, d_h0, d_init),
                Cell::LogSpace => log_space::backward(shape, x, y, start, &h, d_h, d_h_last, d_x, d_y, d_h0, d_init),
                Cell::MinGru(candidate) => {
                    min_gru::backward(shape, candidate, x, bias, start, &h, d_h, d_h_last, d_x, d_bias, d_h0, d_init);
                }
                Cell::MinLstm(candidate, gates) => {
                    min_lstm::backward(shape, candidate, gates, x, bias, start, &h, d_h, d_h_last, d_x, d_bias, d_h0, d_init);
                }
                Cell::SignedMinGru(candidate) => {
                    signed_min_gru::backward(shape, candidate, x, bias, start, &h, d_h, d_h_last, d_x, d_bias, d_h0, d_init);
                }
                Cell::DecayMinGru(candidate) => {
                    decay_min_gru::backward(shape, candidate, x, y, bias, start, &h, d_h, d_h_last, d_x, d_y, d_bias, d_h0, d_init);
                }
                Cell::FlooredMinGru(candidate) => {
                    let share = shares(shape.width);
                    floored_min_gru::backward(shape, candidate, x, bias, &share, start, &h, d_h, d_h_last, d_x, d_bias, d_y, d_h0, d_init);
                }
            }
        });
        let mut named = named([h, h_last, d_x, d_y, d_bias, d_h0, d_init]);
        self.rename(&mut named);
        named
    }

    /// Runs the references in f64.
    pub fn run_reference(self, batch: &Batch) -> Named<f64> {
        use reference::{decay_min_gru, floored_min_gru, log_space, min_gru, min_lstm, scan, signed_min_gru};
        let wide = |x: &Option<Vec<f32>>| x.as_deref().map(super::wide);
        let (x, y, bias, h0, init) = (super::wide(&batch.x), super::wide(&batch.y), wide(&batch.bias), wide(&batch.h0), wide(&batch.init));
        let (d_h, d_h_last) = (wide(&batch.d_h), wide(&batch.d_h_last));
        let (d_h, d_h_last, bias) = (d_h.as_deref(), d_h_last.as_deref(), bias.as_deref());
        let (shape, start) = (batch.shape, Start { h0: h0.as_deref(), init: init.as_deref(), segments: batch.start().segments });
        let mut named = match self {
            Cell::Scan => {
                let scan::Outputs { h, h_last } = scan::forward(shape, &x, &y, start);
                let d = scan::backward(shape, &x, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_coeffs, d.d_values, vec![], d.d_h0, d.d_init])
            }
            Cell::LogSpace => {
                let scan::Outputs { h, h_last } = log_space::forward(shape, &x, &y, start);
                let d = log_space::backward(shape, &x, &y, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_log_coeffs, d.d_log_values, vec![], d.d_h0, d.d_init])
            }
            Cell::MinGru(candidate) => {
                let scan::Outputs { h, h_last } = min_gru::forward(shape, candidate, &x, bias, start);
                let d = min_gru::backward(shape, candidate, &x, bias, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_preact, vec![], bias.map_or(vec![], |_| d.d_bias), d.d_h0, d.d_init])
            }
            Cell::MinLstm(candidate, gates) => {
                let scan::Outputs { h, h_last } = min_lstm::forward(shape, candidate, gates, &x, bias, start);
                let d = min_lstm::backward(shape, candidate, gates, &x, bias, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_preact, vec![], bias.map_or(vec![], |_| d.d_bias), d.d_h0, d.d_init])
            }
            Cell::SignedMinGru(candidate) => {
                let scan::Outputs { h, h_last } = signed_min_gru::forward(shape, candidate, &x, bias, start);
                let d = signed_min_gru::backward(shape, candidate, &x, bias, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_preact, vec![], bias.map_or(vec![], |_| d.d_bias), d.d_h0, d.d_init])
            }
            Cell::DecayMinGru(candidate) => {
                let scan::Outputs { h, h_last } = decay_min_gru::forward(shape, candidate, &x, &y, bias, start);
                let (d, d_y) = decay_min_gru::backward(shape, candidate, &x, &y, bias, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_preact, d_y, bias.map_or(vec![], |_| d.d_bias), d.d_h0, d.d_init])
            }
            Cell::FlooredMinGru(candidate) => {
                let share = super::wide(&shares(shape.width));
                let scan::Outputs { h, h_last } = floored_min_gru::forward(shape, candidate, &x, bias, &share, start);
                let (d, d_share) = floored_min_gru::backward(shape, candidate, &x, bias, &share, start, &h, d_h, d_h_last);
                named([h, h_last, d.d_preact, d_share, bias.map_or(vec![], |_| d.d_bias), d.d_h0, d.d_init])
            }
        };
        self.rename(&mut named);
        named
    }

    /// Calls the gradient of the shares by a name of its own: it is a sum over steps.
    fn rename<T>(self, named: &mut Named<T>) {
        if let Cell::FlooredMinGru(_) = self {
            let d_share = std::mem::replace(&mut named[3], ("d_y", vec![])).1;
            named.push(("d_share", d_share));
        }
    }
}

fn named<T>(values: [Vec<T>; 7]) -> Named<T> {
    ["h", "h_last", "d_x", "d_y", "d_bias", "d_h0", "d_init"].into_iter().zip(values).collect()
}

impl Batch {
    pub fn start(&self) -> Start<'_> {
        let segments = self.codes.as_deref().map_or(Segments::DENSE, |codes| Segments::new(codes, self.shape.seq_len));
        Start { h0: self.h0.as_deref(), init: self.init.as_deref(), segments }
    }

    /// Random resets and, for every second row, padding from a random step on.
    pub fn with_segments(mut self, resets: bool, lengths: bool, random: &mut Random) -> Self {
        let Shape { batch, seq_len, .. } = self.shape;
        let mut codes = vec![CONTINUE; batch * seq_len];
        for (b, row) in codes.chunks_mut(seq_len.max(1)).enumerate() {
            let real = if lengths && b % 2 == 0 { random.below(seq_len + 1) } else { seq_len };
            row.iter_mut().for_each(|code| *code = if resets && random.below(9) == 0 { RESET } else { CONTINUE });
            row[real..].fill(PADDING);
        }
        self.codes = Some(codes);
        self
    }
}
