//! The bare recurrence h = a h + b on the kernels, with the machine's copy bandwidth beside it.
//!
//! Bandwidth counts every input read once and every output written once: 12 bytes per element forward (a, b, h) and 20 more backward (a, h
//! and ∂h in, ∂a and ∂b out). Copying moves 8; it is the faster of `memcpy` and of stores that bypass the caches. All passes take turns,
//! and bandwidths are those of the turn with the shortest total time: memory speed varies with the load of a rented machine's neighbours,
//! so only figures from one turn are comparable.

use std::hint::black_box;

use burn::tensor::{Device, Tensor, TensorData};
use minrnn::device::name_of;
use minrnn::ops::{Start as DeviceStart, StepCodes, backward_from, linear_scan};
use minrnn_kernels::recurrence::{self, Cell, Gradients, Inputs, Upstream};
use minrnn_kernels::{Out, Shape, Start, copy, grid};
use rayon::prelude::*;

use crate::case::expect_room;
use crate::line::{Bandwidth, Line, SCAN, round};
use crate::timing::{Plan, Times, milliseconds};
use crate::{Error, Place, Result};

const SHAPES: [[usize; 3]; 4] = [[64, 512, 128], [64, 4096, 128], [8, 16_384, 256], [1, 1_048_576, 64]];
/// The shapes of a GPU.
const DEVICE_SHAPES: [[usize; 3]; 3] = [[64, 4096, 128], [8, 8192, 1536], [1, 1_048_576, 64]];
/// Launches timed together on a GPU.
const LAUNCHES: usize = 10;
const COPY_BYTES: f64 = 8.0;
const FORWARD_BYTES: f64 = 12.0;
const BOTH_BYTES: f64 = 32.0;

/// The shapes measured on `device` by default.
pub fn default_scans(device: &Device) -> &'static [[usize; 3]] {
    if *device == Device::flex() { &SHAPES } else { &DEVICE_SHAPES }
}

/// Measures the recurrence of `shape` (B, T, E): the forward pass, and forward and backward together.
///
/// # Errors
/// When there is no memory for it, or the device fails.
pub fn measure_scan([batch, seq_len, width]: [usize; 3], plan: Plan, place: &Place) -> Result<[Line; 2]> {
    let shape = Shape { batch, seq_len, width };
    expect_room(6 * batch as u128 * seq_len as u128 * width as u128, &place.device)?;
    let turns = match place.device == Device::flex() {
        true => place.on_threads(|| measure(shape, plan))?,
        false => on_device(shape, plan, &place.device)?,
    };
    let best = turns.iter().copied().min_by(|x, y| x.total().total_cmp(&y.total())).unwrap_or_default();
    let gb_per_s = |bytes: f64, milliseconds: f64| round(bytes * shape.elements() as f64 / milliseconds / 1e6, 5);
    Ok([("forward", FORWARD_BYTES), ("forward+backward", BOTH_BYTES)].map(|(pass, bytes)| {
        let time = |turn: &Turn| if bytes == BOTH_BYTES { turn.forward + turn.backward } else { turn.forward };
        let copy_gb_per_s = gb_per_s(COPY_BYTES, best.copy);
        let bandwidth = Bandwidth { pass: pass.to_owned(), gb_per_s: gb_per_s(bytes, time(&best)), copy_gb_per_s };
        let times = Times::new(turns.iter().map(time).collect());
        Line { d_hidden: width, scan: Some(bandwidth), ..Line::timed(SCAN, batch, seq_len, place, &times) }
    }))
}

/// Milliseconds of the passes, one after the other.
#[derive(Clone, Copy, Default)]
struct Turn {
    copy: f64,
    forward: f64,
    backward: f64,
}

impl Turn {
    fn total(&self) -> f64 {
        self.copy + self.forward + self.backward
    }
}

fn measure(shape: Shape, plan: Plan) -> Vec<Turn> {
    let n = shape.elements();
    let wave = |scale: f32| -> Vec<f32> { (0..n).map(|i| scale * ((i * 7919) % 1009) as f32 / 1009.0).collect() };
    let (a, b, d_h) = (wave(0.9), wave(1.0), wave(0.5));
    // The backward pass has states of its own to read, so that the copy may overwrite those of the forward pass.
    let h = wave(2.0);
    // Not 0, so that the pages are mapped before the first turn.
    let [mut h_out, mut d_a, mut d_b] = [0, 1, 2].map(|_| vec![1.0_f32; n]);
    let (mut last, mut init) = (vec![1.0_f32; shape.states()], vec![1.0_f32; shape.width]);
    let start = Start::default();
    let inputs = Inputs { preact: &a, bias: None, extra: &b };
    let upstream = Upstream { h: &h, d_h: Some(&d_h), d_h_last: None };
    let turns = (0..plan.warmup + plan.iterations).map(|_| Turn {
        copy: milliseconds(|| memcpy(&a, &mut h_out)).min(milliseconds(|| copy::past_caches(&a, Out::from(&mut h_out)))),
        forward: milliseconds(|| recurrence::forward(shape, Cell::Linear, inputs, start, Out::from(&mut h_out), Out::from(&mut last))),
        backward: milliseconds(|| {
            let [d_preact, d_extra, d_h0, d_init] = [&mut d_a, &mut d_b, &mut last, &mut init].map(Out::from);
            let gradients = Gradients { d_preact, d_bias: None, d_extra, d_h0, d_init };
            recurrence::backward(shape, Cell::Linear, inputs, start, upstream, gradients);
        }),
    });
    let turns = turns.skip(plan.warmup).collect();
    black_box((&h_out, &d_a, &d_b));
    turns
}

/// The same on a GPU. A time is that of [`LAUNCHES`] launches, divided by their number: a kernel may take less time than the
/// host needs to notice its end. The copy is y = 1 · x by a kernel.
fn on_device(shape: Shape, plan: Plan, device: &Device) -> Result<Vec<Turn>> {
    let shape = [shape.batch, shape.seq_len, shape.width];
    let n: usize = shape.iter().product();
    let wave = |scale: f32| {
        let values: Vec<f32> = (0..n).map(|i| scale * ((i * 7919) % 1009) as f32 / 1009.0).collect();
        Tensor::<3>::from_data(TensorData::new(values, shape), device)
    };
    let (a, b, d_h) = (wave(0.9), wave(1.0), wave(0.5));
    let steps = StepCodes::dense();
    let time = |work: &dyn Fn()| -> Result<f64> {
        let failed = |error| Error::Device { device: name_of(device), problem: format!("{error}") };
        device.sync().map_err(failed)?;
        let mut outcome = Ok(());
        let time = milliseconds(|| {
            (0..LAUNCHES).for_each(|_| work());
            outcome = device.sync();
        });
        outcome.map_err(failed)?;
        Ok(time / LAUNCHES as f64)
    };
    let turn = || -> Result<Turn> {
        let copy = time(&|| drop(black_box(a.clone().mul_scalar(1.0))))?;
        let forward = time(&|| drop(black_box(linear_scan(a.clone(), b.clone(), DeviceStart::default(), &steps))))?;
        let both = time(&|| {
            let leaves = [&a, &b].map(|leaf| Tensor::from_inner(leaf.clone()).require_grad());
            let [a, b] = leaves.clone();
            let (h, _) = linear_scan(a, b, DeviceStart::default(), &steps);
            let gradients = backward_from(h, Tensor::from_inner(d_h.clone())).backward();
            black_box(leaves.map(|leaf| leaf.grad(&gradients)));
        })?;
        Ok(Turn { copy, forward, backward: (both - forward).max(0.0) })
    };
    (0..plan.warmup).try_for_each(|_| turn().map(drop))?;
    (0..plan.iterations).map(|_| turn()).collect()
}

fn memcpy(from: &[f32], to: &mut [f32]) {
    let piece = from.len().div_ceil(grid::threads()).max(1);
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| {
        to.copy_from_slice(from);
    });
}
