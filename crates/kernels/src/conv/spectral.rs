//! Long filters by Fourier transforms.
//!
//! A row is split at its resets; each piece, with the window before it if there is one, is a product of spectra:
//!
//! ```text
//! y = F⁻¹(F h ⊙ F s)      d_s = F⁻¹(conj(F h) ⊙ F d_y)      d_h = F⁻¹(Σ conj(F s) ⊙ F d_y)
//! ```
//!
//! where: s are the positions of a piece, d_y is at its steps, h_l = w_{K−1−l}. Transforms are as long as the longest piece needs so that
//! nothing wraps around into what is read: the window's K − 1 positions and the piece's n steps, or n steps and the min(n, K) taps they use
//! if no window has anything in it. Each channel is a task; the spectrum of a filter serves all rows, and the sum over rows in d_h is taken
//! before its single inverse transform.

use super::{Adjoint, Gradients, Positions};
use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::segments::RESET;
use alloc::{vec, vec::Vec};
use core::ops::Range;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::{Arc, Mutex};

/// Fewest taps, and fewest steps of a row, for which transforms pay off.
const SHORTEST: usize = 128;
/// Channels of one task: they share the cache lines that one of them reads.
const CHANNELS: usize = 8;

/// Whether transforms are cheaper than the sum over taps.
pub(super) fn pays(seq_len: usize, kernel_size: usize) -> bool {
    seq_len >= SHORTEST && kernel_size >= SHORTEST
}

/// Steps of a row between resets.
struct Piece {
    row: usize,
    steps: Range<usize>,
    /// Whether the positions of the window come before its steps.
    window: bool,
}

/// The pieces of all rows and the transforms that are long enough for them.
struct Plan {
    pieces: Vec<Piece>,
    /// Number of taps that meet an input.
    taps: usize,
    to_spectrum: Arc<dyn RealToComplex<f32>>,
    from_spectrum: Arc<dyn ComplexToReal<f32>>,
}

impl Plan {
    /// `carries(row)`: whether the window of a row counts.
    fn new(positions: &Positions<'_>, carries: impl Fn(usize) -> bool) -> Self {
        let (k, mut pieces) = (positions.past + 1, Vec::new());
        for (row, &length) in positions.lengths.iter().enumerate() {
            let codes = positions.segments.row(row, positions.shape.seq_len);
            let mut start = 0;
            let mut window = carries(row);
            for t in (0..=length).filter(|&t| t == length || codes.is_some_and(|codes| codes[t] == RESET)) {
                if t > start {
                    pieces.push(Piece { row, steps: start..t, window });
                }
                (start, window) = (t, false);
            }
        }
        let longest = pieces.iter().map(|piece| piece.steps.len()).max().unwrap_or(0);
        let taps = if pieces.iter().any(|piece| piece.window) { k } else { longest.min(k) };
        let (to_spectrum, from_spectrum) = transforms(transform_len((longest + taps).max(2) - 1));
        Self { pieces, taps, to_spectrum, from_spectrum }
    }
}

/// The smallest 2ⁿ or 3 · 2ⁿ that is at least `len`.
fn transform_len(len: usize) -> usize {
    let power = len.next_power_of_two().max(4);
    if power / 4 * 3 >= len { power / 4 * 3 } else { power }
}

type Transforms = (Arc<dyn RealToComplex<f32>>, Arc<dyn ComplexToReal<f32>>);

/// Plans are made once for each length.
fn transforms(len: usize) -> Transforms {
    static PLANNER: Mutex<Option<RealFftPlanner<f32>>> = Mutex::new(None);
    let mut planner = PLANNER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let planner = planner.get_or_insert_with(RealFftPlanner::new);
    (planner.plan_fft_forward(len), planner.plan_fft_inverse(len))
}

/// Memory of a task.
struct Workspace<'a> {
    plan: &'a Plan,
    values: Vec<f32>,
    scratch: Vec<Complex<f32>>,
}

impl<'a> Workspace<'a> {
    fn new(plan: &'a Plan) -> Self {
        let scratch = plan.to_spectrum.get_scratch_len().max(plan.from_spectrum.get_scratch_len());
        Self { plan, values: plan.to_spectrum.make_input_vec(), scratch: vec![Complex::default(); scratch] }
    }

    fn spectrum(&self) -> Vec<Complex<f32>> {
        self.plan.to_spectrum.make_output_vec()
    }

    /// The spectrum of what `fill` writes over zeros.
    fn transform(&mut self, spectrum: &mut [Complex<f32>], fill: impl FnOnce(&mut [f32])) {
        self.values.fill(0.0);
        fill(&mut self.values);
        let plan = &self.plan.to_spectrum;
        plan.process_with_scratch(&mut self.values, spectrum, &mut self.scratch).expect("lengths are the plan's");
    }

    /// The values of a spectrum, which is overwritten; its first and last elements are real except for rounding.
    fn inverse(&mut self, spectrum: &mut [Complex<f32>]) -> &[f32] {
        let last = spectrum.len() - 1;
        (spectrum[0].im, spectrum[last].im) = (0.0, 0.0);
        let plan = &self.plan.from_spectrum;
        plan.process_with_scratch(spectrum, &mut self.values, &mut self.scratch).expect("lengths are the plan's");
        let scale = 1.0 / self.values.len() as f32;
        self.values.iter_mut().for_each(|x| *x *= scale);
        &self.values
    }

    /// The spectrum of the filter of channel `c`.
    fn filter(&mut self, weight: &[f32], kernel_size: usize, c: usize, spectrum: &mut [Complex<f32>]) {
        let taps = self.plan.taps;
        let newest_first = weight[c * kernel_size..(c + 1) * kernel_size].iter().rev();
        self.transform(spectrum, |values| values.iter_mut().zip(newest_first.take(taps)).for_each(|(x, &w)| *x = w));
    }

    /// The spectrum of the positions of a piece, channel `c`.
    fn positions(&mut self, positions: &Positions<'_>, piece: &Piece, c: usize, spectrum: &mut [Complex<f32>]) {
        let past = positions.past;
        let first = if piece.window { 0 } else { past + piece.steps.start };
        self.transform(spectrum, |values| {
            for (x, p) in values.iter_mut().zip(first..past + piece.steps.end) {
                *x = positions.at(piece.row, p).map_or(0.0, |row| row[c]);
            }
        });
    }
}

/// y of [`super::forward`].
pub(super) fn forward(positions: &Positions<'_>, weight: &[f32], bias: &[f32], y: Out) {
    let (width, seq_len) = (positions.shape.width, positions.shape.seq_len);
    let per_row = positions.past * width;
    let plan =
        Plan::new(positions, |row| positions.window.is_some_and(|window| window[row * per_row..][..per_row].iter().any(|&x| x != 0.0)));
    let y = SharedOut::new(y);
    grid::for_each(width.div_ceil(CHANNELS), |task| {
        let mut workspace = Workspace::new(&plan);
        let (mut filter, mut product) = (workspace.spectrum(), workspace.spectrum());
        for (c, bias) in bias.iter().enumerate().take((task + 1) * CHANNELS).skip(task * CHANNELS) {
            // SAFETY: tasks have channels of their own.
            let write = |row: usize, t: usize, value: f32| _ = unsafe { y.slice((row * seq_len + t) * width + c, 1) }[0].write(value);
            workspace.filter(weight, positions.past + 1, c, &mut filter);
            for piece in &plan.pieces {
                workspace.positions(positions, piece, c, &mut product);
                product.iter_mut().zip(&filter).for_each(|(x, h)| *x *= h);
                let values = &workspace.inverse(&mut product)[if piece.window { positions.past } else { 0 }..];
                piece.steps.clone().zip(values).for_each(|(t, value)| write(piece.row, t, bias + value));
            }
            for (row, &length) in positions.lengths.iter().enumerate() {
                (length..seq_len).for_each(|t| write(row, t, 0.0));
            }
        }
    });
}

/// Gradients of [`super::backward`].
pub(super) fn backward(adjoint: &Adjoint<'_>, weight: &[f32], gradients: Gradients<'_>) {
    let positions = adjoint.positions;
    let (width, seq_len, past) = (positions.shape.width, positions.shape.seq_len, positions.past);
    let plan = Plan::new(positions, |_| true);
    let outputs = [gradients.d_x, gradients.d_weight, gradients.d_bias, gradients.d_window].map(SharedOut::new);
    grid::for_each(width.div_ceil(CHANNELS), |task| {
        let mut workspace = Workspace::new(&plan);
        let mut spectra: [_; 4] = core::array::from_fn(|_| workspace.spectrum());
        let mut d_positions = vec![0.0; past + seq_len];
        for c in task * CHANNELS..((task + 1) * CHANNELS).min(width) {
            // SAFETY: tasks have channels of their own.
            let write = |output: usize, at: usize, value: f32| _ = unsafe { outputs[output].slice(at, 1) }[0].write(value);
            let [filter, seen, d_y, d_filter] = &mut spectra;
            workspace.filter(weight, past + 1, c, filter);
            d_filter.fill(Complex::default());
            let mut pieces = plan.pieces.iter().peekable();
            let mut d_bias = 0.0;
            for (row, &length) in positions.lengths.iter().enumerate() {
                d_positions.fill(0.0);
                while let Some(piece) = pieces.next_if(|piece| piece.row == row) {
                    let Some(upstream) = adjoint.upstream.d_y else { continue };
                    let before = if piece.window { past } else { 0 };
                    let first = past + piece.steps.start - before;
                    workspace.positions(positions, piece, c, seen);
                    workspace.transform(d_y, |values| {
                        for (x, t) in values[before..].iter_mut().zip(piece.steps.clone()) {
                            *x = upstream[(row * seq_len + t) * width + c];
                            d_bias += f64::from(*x);
                        }
                    });
                    d_filter.iter_mut().zip(seen.iter().zip(d_y.iter())).for_each(|(sum, (s, d))| *sum += s.conj() * d);
                    d_y.iter_mut().zip(filter.iter()).for_each(|(d, h)| *d *= h.conj());
                    let values = workspace.inverse(d_y);
                    d_positions[first..past + piece.steps.end].iter_mut().zip(values).for_each(|(d, value)| *d = *value);
                }
                adjoint.add_carried(row, length, c, &mut d_positions);
                for (p, &d) in d_positions.iter().enumerate() {
                    match p.checked_sub(past) {
                        None => write(3, (row * past + p) * width + c, d),
                        Some(t) => {
                            let at = (row * seq_len + t) * width + c;
                            write(0, at, d + adjoint.upstream.d_residual.map_or(0.0, |residual| residual[at]));
                        }
                    }
                }
            }
            let d_taps = &workspace.inverse(d_filter)[..plan.taps];
            for (l, at) in (c * (past + 1)..(c + 1) * (past + 1)).rev().enumerate() {
                write(1, at, d_taps.get(l).copied().unwrap_or(0.0));
            }
            write(2, c, d_bias as f32);
        }
    });
}

impl Adjoint<'_> {
    /// Adds the gradients that reach the positions of a row through the window after it.
    fn add_carried(&self, row: usize, length: usize, c: usize, d_positions: &mut [f32]) {
        let (positions, width) = (self.positions, self.positions.shape.width);
        let Some(d_last) = self.upstream.d_window_last else { return };
        let oldest = if length == 0 { 0 } else { positions.oldest(row, length - 1) };
        for slot in (0..positions.past).filter(|slot| length + slot >= oldest) {
            d_positions[length + slot] += d_last[(row * positions.past + slot) * width + c];
        }
    }
}
