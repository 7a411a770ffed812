//! The recurrences behind one interface, so that every claim is checked on all of them.

use super::{Random, outputs};
pub use minrnn_kernels::recurrence::Cell;
use minrnn_kernels::recurrence::{Gradients, Inputs, Upstream, backward, forward};
use minrnn_kernels::reference::recurrence as reference;
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET, Segments};
use minrnn_kernels::{Candidate, Gates, Shape, Start};

/// Defines the list of all cells from the variants of [`Cell`] and what they hold. It does not compile if one is missing.
macro_rules! list_cells {
    ($($variant:ident $(($($choice:ident),+))?,)+) => {
        /// Every cell, with every candidate and all gates that it may have.
        pub fn cells() -> Vec<Cell> {
            // The compiler knows the variants, and refuses a match that lacks one.
            let is_listed = |cell: &Cell| match cell {
                $(Cell::$variant { .. } => true,)+
            };
            let cells = [$(every_cell!($variant $($($choice)+)?)),+].concat();
            assert!(cells.iter().all(is_listed));
            cells
        }
    };
}

/// One variant of [`Cell`] with everything that it may hold.
macro_rules! every_cell {
    ($variant:ident) => {
        vec![Cell::$variant]
    };
    ($variant:ident Candidate) => {
        Candidate::ALL.iter().map(|&candidate| Cell::$variant(candidate)).collect::<Vec<_>>()
    };
    ($variant:ident Candidate Gates) => {
        all_gates().into_iter().flat_map(|gates| Candidate::ALL.iter().map(move |&candidate| Cell::$variant(candidate, gates))).collect()
    };
}

list_cells! {
    Linear,
    LogSpace,
    MinGru(Candidate),
    MinLstm(Candidate, Gates),
    SignedMinGru(Candidate),
    DecayMinGru(Candidate),
    FlooredMinGru(Candidate),
    RgLru,
}

/// Both; with a third one this does not compile.
fn all_gates() -> [Gates; 2] {
    let other = match Gates::default() {
        Gates::Normalized => Gates::Unnormalized,
        Gates::Unnormalized => Gates::Normalized,
    };
    [Gates::default(), other]
}

/// What a recurrence works on: `x` the pre-activations, `y` the extra input.
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

/// Outputs and gradients by name.
pub type Named<T> = Vec<(&'static str, Vec<T>)>;

/// What the tests do with a cell.
pub trait Tested {
    /// A random batch with h0 and init.
    fn batch(self, shape: Shape, random: &mut Random) -> Batch;

    /// Runs the kernels; every output is poisoned with NaN first.
    fn run(self, batch: &Batch) -> Named<f32>;

    /// Runs the reference in f64.
    fn run_reference(self, batch: &Batch) -> Named<f64>;
}

impl Tested for Cell {
    fn batch(self, shape: Shape, random: &mut Random) -> Batch {
        let n = shape.elements();
        let (x, y) = match self {
            Cell::Linear => (random.between(n, -1.0, 1.0), random.normal(n)),
            Cell::LogSpace => (random.between(n, -3.0, 0.0), random.between(n, -4.0, 1.0)),
            Cell::DecayMinGru(_) => (random.normal(n * 2), random.between(n, 0.0, 1.0)),
            // The largest shares of a candidate, 1 among them.
            Cell::FlooredMinGru(_) => (random.normal(n * 2), (0..shape.width).map(|c| 1.0 - c as f32 / shape.width as f32).collect()),
            // Rates from that of a slow channel upwards, and now and then a step that forgets everything.
            Cell::RgLru => {
                let mut x = random.normal(n * 3);
                let forgets = |row: &mut [f32], random: &mut Random| {
                    if random.below(20) == 0 {
                        row[shape.width..2 * shape.width].fill(f32::INFINITY);
                    }
                };
                x.chunks_exact_mut((3 * shape.width).max(1)).for_each(|row| forgets(row, random));
                (x, (0..shape.width).map(|c| 0.01 + 2.0 * c as f32 / shape.width as f32).collect())
            }
            _ => (random.normal(n * self.parts()), Vec::new()),
        };
        let mut states = |n| Some(random.between(n, if self == Cell::LogSpace { 0.1 } else { -1.0 }, 1.5));
        let (h0, init) = (states(shape.states()), states(shape.width));
        let (d_h, d_h_last) = (Some(random.normal(n)), Some(random.normal(shape.states())));
        let bias = (self.parts() > 1).then(|| random.normal(self.parts() * shape.width));
        Batch { shape, x, y, bias, h0, init, codes: None, d_h, d_h_last }
    }

    fn run(self, batch: &Batch) -> Named<f32> {
        let Batch { shape, x, y, .. } = batch;
        let (shape, start) = (*shape, batch.start());
        let inputs = Inputs { preact: x, bias: batch.bias.as_deref(), extra: y };
        let [h, h_last] = outputs([shape.elements(), shape.states()], |[h, h_last]| forward(shape, self, inputs, start, h, h_last));
        let upstream = Upstream { h: &h, d_h: batch.d_h.as_deref(), d_h_last: batch.d_h_last.as_deref() };
        let lengths = [x.len(), y.len(), inputs.bias.map_or(0, <[f32]>::len), shape.states(), shape.width];
        let [d_x, d_y, d_bias, d_h0, d_init] = outputs(lengths, |[d_preact, d_extra, d_bias, d_h0, d_init]| {
            let d_bias = inputs.bias.map(|_| d_bias);
            backward(shape, self, inputs, start, upstream, Gradients { d_preact, d_bias, d_extra, d_h0, d_init });
        });
        named(self, [h, h_last, d_x, d_y, d_bias, d_h0, d_init])
    }

    fn run_reference(self, batch: &Batch) -> Named<f64> {
        let wide = |x: &Option<Vec<f32>>| x.as_deref().map(super::wide);
        let (x, y, bias, h0, init) = (super::wide(&batch.x), super::wide(&batch.y), wide(&batch.bias), wide(&batch.h0), wide(&batch.init));
        let (d_h, d_h_last) = (wide(&batch.d_h), wide(&batch.d_h_last));
        let start = Start { h0: h0.as_deref(), init: init.as_deref(), segments: batch.start().segments };
        let inputs = Inputs { preact: &x, bias: bias.as_deref(), extra: &y };
        let out = reference::forward(batch.shape, self, inputs, start);
        let upstream = Upstream { h: &out.h, d_h: d_h.as_deref(), d_h_last: d_h_last.as_deref() };
        let d = reference::backward(batch.shape, self, inputs, start, upstream);
        let d_bias = inputs.bias.map_or(vec![], |_| d.d_bias);
        named(self, [out.h, out.h_last, d.d_preact, d.d_extra, d_bias, d.d_h0, d.d_init])
    }
}

/// Names of what a run gives, in order. The gradient of a number per channel is a sum over steps and has a name of its own.
fn named<T>(cell: Cell, values: [Vec<T>; 7]) -> Named<T> {
    let mut named: Named<T> = ["h", "h_last", "d_x", "d_y", "d_bias", "d_h0", "d_init"].into_iter().zip(values).collect();
    if is_shared(cell) {
        let d_share = std::mem::take(&mut named[3].1);
        named.push(("d_share", d_share));
    }
    named
}

/// Whether the extra input is one number per channel.
pub fn is_shared(cell: Cell) -> bool {
    matches!(cell, Cell::FlooredMinGru(_) | Cell::RgLru)
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
