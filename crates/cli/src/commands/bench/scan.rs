//! The bare recurrence h = a h + b on the kernels, with the machine's copy bandwidth beside it.
//!
//! Bandwidth counts every input read once and every output written once: 12 bytes an element forward (a, b, h) and 20 more backward
//! (a, h and ∂h in, ∂a and ∂b out). Copying moves 8; it is the faster of `memcpy` and of stores past the caches. All passes take turns, and
//! bandwidths are those of the turn that took the least time in all: memory speeds up and slows down with what the neighbours of a rented
//! machine do, and figures of one turn belong together.

use std::hint::black_box;
use std::mem::MaybeUninit;

use minrnn_kernels::{Shape, Start, copy, grid, scan};
use rayon::prelude::*;

use super::case::{RunArgs, expect_room, size};
use super::report::{Bandwidth, Line, Report, round};
use super::timing::{Plan, Times, milliseconds};

const SHAPES: [[usize; 3]; 4] = [[64, 512, 128], [64, 4096, 128], [8, 16_384, 256], [1, 1_048_576, 64]];
const ITERATIONS: usize = 30;
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

/// Measures one shape, or the four of the documentation.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report::new("scan", args.run.json);
    if [args.batch_size, args.seq_len, args.d_hidden].iter().all(Option::is_none) {
        for shape in SHAPES {
            let sizes = ["--batch-size", "--seq-len", "--d-hidden"].iter().zip(shape);
            let flags: Vec<String> = sizes.flat_map(|(flag, size)| [(*flag).to_owned(), size.to_string()]).collect();
            super::in_own_process("scan", &flags, &args.run, &mut report)?;
        }
        return Ok(());
    }
    let [batch, seq_len, width] = SHAPES[0];
    let shape =
        Shape { batch: args.batch_size.unwrap_or(batch), seq_len: args.seq_len.unwrap_or(seq_len), width: args.d_hidden.unwrap_or(width) };
    expect_room(6 * shape.batch as u128 * shape.seq_len as u128 * shape.width as u128)?;
    let plan = args.run.plan(ITERATIONS);
    let turns = args.run.on_threads(|| measure(shape, plan))?;
    let best = turns.iter().copied().min_by(|x, y| x.total().total_cmp(&y.total())).unwrap_or_default();
    let gb_per_s = |bytes: f64, milliseconds: f64| round(bytes * shape.elements() as f64 / milliseconds / 1e6, 2);
    for (pass, bytes) in [("forward", FORWARD_BYTES), ("forward+backward", BOTH_BYTES)] {
        let time = |turn: &Turn| if bytes == BOTH_BYTES { turn.forward + turn.backward } else { turn.forward };
        let bandwidth =
            Bandwidth { pass: pass.to_owned(), gb_per_s: gb_per_s(bytes, time(&best)), copy_gb_per_s: gb_per_s(COPY_BYTES, best.copy) };
        let times = Times::new(turns.iter().map(time).collect());
        let line = Line::timed("scan", shape.batch, shape.seq_len, args.run.threads(), &times);
        report.line(&Line { d_hidden: shape.width, scan: Some(bandwidth), ..line })?;
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
    let turns = (0..plan.warmup + plan.iterations).map(|_| Turn {
        copy: milliseconds(|| memcpy(&a, &mut h_out)).min(milliseconds(|| copy::past_caches(&a, &mut h_out))),
        forward: milliseconds(|| scan::forward(shape, &a, &b, start, &mut h_out, &mut last)),
        backward: milliseconds(|| scan::backward(shape, &a, start, &h, Some(&d_h), None, &mut d_a, &mut d_b, &mut last, &mut init)),
    });
    let turns = turns.skip(plan.warmup).collect();
    black_box((&h_out, &d_a, &d_b));
    turns
}

fn memcpy(from: &[f32], to: &mut [MaybeUninit<f32>]) {
    let piece = from.len().div_ceil(grid::threads()).max(1);
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| {
        to.write_copy_of_slice(from);
    });
}
