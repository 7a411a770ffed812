//! The bare recurrence h = a h + b on the kernels, with the machine's copy bandwidth beside it.
//!
//! Bandwidth counts every input read once and every output written once: 12 bytes an element forward (a, b, h) and 20 more backward
//! (a, h and ∂h in, ∂a and ∂b out). Copying moves 8; it is the faster of `memcpy` and of stores past the caches. All passes take turns, and
//! bandwidths are those of the turn that took the least time in all: memory speeds up and slows down with what the neighbours of a rented
//! machine do, and figures of one turn belong together.

use std::hint::black_box;
use std::mem::MaybeUninit;

use burn::tensor::{Device, Tensor, TensorData};
use minrnn::device::name_of;
use minrnn::ops::{Start as DeviceStart, StepCodes, backward_from, linear_scan};
use minrnn_kernels::recurrence::{self, Cell, Gradients, Inputs, Upstream};
use minrnn_kernels::{Shape, Start, copy, grid};
use rayon::prelude::*;

use super::case::{RunArgs, expect_room, size};
use super::report::{Bandwidth, Line, Report, round};
use super::timing::{Plan, Times, milliseconds};

const SHAPES: [[usize; 3]; 4] = [[64, 512, 128], [64, 4096, 128], [8, 16_384, 256], [1, 1_048_576, 64]];
/// The shapes of a GPU.
const DEVICE_SHAPES: [[usize; 3]; 3] = [[64, 4096, 128], [8, 8192, 1536], [1, 1_048_576, 64]];
const ITERATIONS: usize = 30;
/// Launches timed together on a GPU.
const LAUNCHES: usize = 10;
const COPY_BYTES: f64 = 8.0;
const FORWARD_BYTES: f64 = 12.0;
const BOTH_BYTES: f64 = 32.0;

/// Flags of `minrnn bench scan`.
#[derive(clap::Args)]
pub struct Args {
    /// Sequences side by side; with this or another size only one shape is measured
    #[arg(long, value_name = "B", value_parser = size())]
    batch_size: Option<usize>,
    /// Length
    #[arg(long, value_name = "T", value_parser = size())]
    seq_len: Option<usize>,
    /// Width of the recurrence
    #[arg(long, value_name = "E", value_parser = size())]
    d_hidden: Option<usize>,
    #[command(flatten)]
    run: RunArgs,
}

/// Measures one shape, or those of the documentation.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report::new("scan", args.run.json);
    if [args.batch_size, args.seq_len, args.d_hidden].iter().all(Option::is_none) {
        let shapes = if args.run.device.is_cpu()? { SHAPES.as_slice() } else { DEVICE_SHAPES.as_slice() };
        for shape in shapes {
            let sizes = ["--batch-size", "--seq-len", "--d-hidden"].iter().zip(shape);
            let flags: Vec<String> = sizes.flat_map(|(flag, size)| [(*flag).to_owned(), size.to_string()]).collect();
            super::in_own_process("scan", &flags, &args.run, &mut report)?;
        }
        return Ok(());
    }
    let [batch, seq_len, width] = SHAPES[0];
    let shape =
        Shape { batch: args.batch_size.unwrap_or(batch), seq_len: args.seq_len.unwrap_or(seq_len), width: args.d_hidden.unwrap_or(width) };
    let device = args.run.device.open()?;
    expect_room(6 * shape.batch as u128 * shape.seq_len as u128 * shape.width as u128, &device)?;
    let plan = args.run.plan(ITERATIONS);
    let turns = if device == Device::flex() { args.run.on_threads(|| measure(shape, plan))? } else { on_device(shape, plan, &device)? };
    let best = turns.iter().copied().min_by(|x, y| x.total().total_cmp(&y.total())).unwrap_or_default();
    let gb_per_s = |bytes: f64, milliseconds: f64| round(bytes * shape.elements() as f64 / milliseconds / 1e6, 2);
    for (pass, bytes) in [("forward", FORWARD_BYTES), ("forward+backward", BOTH_BYTES)] {
        let time = |turn: &Turn| if bytes == BOTH_BYTES { turn.forward + turn.backward } else { turn.forward };
        let bandwidth =
            Bandwidth { pass: pass.to_owned(), gb_per_s: gb_per_s(bytes, time(&best)), copy_gb_per_s: gb_per_s(COPY_BYTES, best.copy) };
        let times = Times::new(turns.iter().map(time).collect());
        let line = Line::timed("scan", shape.batch, shape.seq_len, args.run.threads(), &times);
        report.line(&Line { d_hidden: shape.width, scan: Some(bandwidth), ..line }.on(&device))?;
    }
    Ok(())
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
    // The backward pass reads states of its own, since an array that a kernel writes is not known to be initialised.
    let h = wave(2.0);
    let [mut h_out, mut d_a] = [0, 1].map(|_| vec![MaybeUninit::new(0.0); n]);
    let mut d_b = vec![MaybeUninit::new(0.0); n];
    let mut last = vec![MaybeUninit::new(0.0); shape.states()];
    let mut init = vec![MaybeUninit::new(0.0); shape.width];
    let start = Start::default();
    let inputs = Inputs { preact: &a, bias: None, extra: &b };
    let upstream = Upstream { h: &h, d_h: Some(&d_h), d_h_last: None };
    let turns = (0..plan.warmup + plan.iterations).map(|_| Turn {
        copy: milliseconds(|| memcpy(&a, &mut h_out)).min(milliseconds(|| copy::past_caches(&a, &mut h_out))),
        forward: milliseconds(|| recurrence::forward(shape, Cell::Linear, inputs, start, &mut h_out, &mut last)),
        backward: milliseconds(|| {
            let gradients = Gradients { d_preact: &mut d_a, d_bias: None, d_extra: &mut d_b, d_h0: &mut last, d_init: &mut init };
            recurrence::backward(shape, Cell::Linear, inputs, start, upstream, gradients);
        }),
    });
    let turns = turns.skip(plan.warmup).collect();
    black_box((&h_out, &d_a, &d_b));
    turns
}

/// The same on a GPU. A time is that of [`LAUNCHES`] launches, divided by their number: a kernel may take less time than the
/// host needs to see that it is done. The copy is y = 1 · x by a kernel.
fn on_device(shape: Shape, plan: Plan, device: &Device) -> anyhow::Result<Vec<Turn>> {
    let shape = [shape.batch, shape.seq_len, shape.width];
    let n: usize = shape.iter().product();
    let wave = |scale: f32| {
        let values: Vec<f32> = (0..n).map(|i| scale * ((i * 7919) % 1009) as f32 / 1009.0).collect();
        Tensor::<3>::from_data(TensorData::new(values, shape), device)
    };
    let (a, b, d_h) = (wave(0.9), wave(1.0), wave(0.5));
    let steps = StepCodes::dense();
    let time = |work: &dyn Fn()| -> anyhow::Result<f64> {
        let failed = |error| anyhow::anyhow!("{} failed: {error}", name_of(device));
        device.sync().map_err(failed)?;
        let mut outcome = Ok(());
        let time = milliseconds(|| {
            (0..LAUNCHES).for_each(|_| work());
            outcome = device.sync();
        });
        outcome.map_err(failed)?;
        Ok(time / LAUNCHES as f64)
    };
    let turn = || -> anyhow::Result<Turn> {
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

fn memcpy(from: &[f32], to: &mut [MaybeUninit<f32>]) {
    let piece = from.len().div_ceil(grid::threads()).max(1);
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| {
        to.write_copy_of_slice(from);
    });
}
