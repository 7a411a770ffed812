//! Prints the machine's copy bandwidth beside that of the recurrences, best of many alternating repetitions.
//!
//! `cargo run --release -p minrnn-kernels --example bandwidth -- [threads] [repetitions]`. Every input counts once as read and every
//! output once as written: the scan moves 12 bytes per element forward and 32 forward and backward.

use minrnn_kernels::recurrence::{self, Cell, Gradients, Inputs, Upstream};
use minrnn_kernels::{Candidate, Gates, Out, Shape, Start};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// A buffer of floats that begins at a multiple of 64 bytes and whose pages are in memory.
struct Buffer(Vec<[f32; 16]>);

impl Buffer {
    fn new(len: usize, value: impl Fn(usize) -> f32) -> Self {
        let mut buffer = Self(vec![[0.0; 16]; len / 16 + 2]);
        buffer.get().iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
        Self(buffer.0)
    }

    fn get(&mut self) -> &mut [f32] {
        let flat = self.0.as_flattened_mut();
        let skip = flat.as_ptr().align_offset(64);
        let len = (flat.len() - 32) / 16 * 16;
        &mut flat[skip..skip + len]
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("arguments are numbers"));
    let threads = arguments.next().unwrap_or(2);
    let repetitions = arguments.next().unwrap_or(15);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    println!("{threads} threads, best of {repetitions}; GB/s (and share of copying)");
    println!(
        "{:>18} {:>7} {:>16} {:>16} {:>16} {:>16} {:>16} {:>16}",
        "(B, T, E)", "copy", "scan", "scan + back", "min_gru", "+ back", "min_lstm", "+ back"
    );
    for (batch, seq_len, width) in [(64, 512, 128), (64, 4096, 128), (8, 16384, 256), (1, 1 << 20, 64)] {
        let shape = Shape { batch, seq_len, width };
        pool.install(|| row(shape, repetitions));
    }
}

const CELLS: [Cell; 3] = [Cell::Linear, Cell::MinGru(Candidate::Positive), Cell::MinLstm(Candidate::Positive, Gates::Normalized)];

fn row(shape: Shape, repetitions: usize) {
    let n = shape.elements();
    let wave = |i: usize| ((i * 7919) % 1009) as f32 / 1009.0;
    let mut x = Buffer::new(3 * n + 64, |i| 4.0 * wave(i) - 2.0);
    let mut a = Buffer::new(n + 64, |i| 0.9 * wave(i));
    let mut d_h = Buffer::new(n + 64, wave);
    let (mut h, mut d_x) = (Buffer::new(n + 64, |_| 0.0), Buffer::new(3 * n + 64, |_| 0.0));
    let (x, a, d_h) = (&*x.get(), &a.get()[..n], &d_h.get()[..n]);
    let mut last = vec![0.0f32; shape.states()];
    let mut init = vec![0.0f32; shape.width];
    let mut d_bias = vec![0.0f32; 3 * shape.width];
    let start = Start::default();
    let mut best = [f64::INFINITY; 7];
    let mut note = |i: usize, s: f64| best[i] = best[i].min(s);
    for _ in 0..repetitions {
        note(
            0,
            seconds(|| {
                let piece = n.div_ceil(rayon::current_num_threads() * 8);
                h.get()[..n].par_chunks_mut(piece).zip(a.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
            }),
        );
        for (cell, at) in CELLS.into_iter().zip([1, 3, 5]) {
            let parts = cell.parts();
            let (preact, extra) = if cell == Cell::Linear { (a, &x[..n]) } else { (&x[..parts * n], &x[..0]) };
            let inputs = Inputs { preact, bias: None, extra };
            note(at, seconds(|| recurrence::forward(shape, cell, inputs, start, Out::new(&mut h.get()[..n]), Out::new(&mut last))));
            let (d_preact, d_extra) = d_x.get()[..parts * n + extra.len()].split_at_mut(parts * n);
            let gradients = Gradients {
                d_preact: d_preact.into(),
                d_bias: (parts > 1).then(|| Out::new(&mut d_bias[..parts * shape.width])),
                d_extra: d_extra.into(),
                d_h0: Out::new(&mut last),
                d_init: Out::new(&mut init),
            };
            let upstream = Upstream { h: &h.get()[..n], d_h: Some(d_h), d_h_last: None };
            note(at + 1, seconds(|| recurrence::backward(shape, cell, inputs, start, upstream, gradients)));
        }
    }
    black_box((&h.0, &d_x.0));
    let gigabytes = |floats: usize, seconds: f64| (floats * n * 4) as f64 / seconds / 1e9;
    let copy = gigabytes(2, best[0]);
    let share = |speed: f64| format!("{speed:8.1} ({:4.0} %)", 100.0 * speed / copy);
    println!(
        "{:>18} {copy:7.1} {:>16} {:>16} {:>16} {:>16} {:>16} {:>16}",
        format!("({}, {}, {})", shape.batch, shape.seq_len, shape.width),
        share(gigabytes(3, best[1])),
        share(gigabytes(8, best[1] + best[2])),
        share(gigabytes(3, best[3])),
        share(gigabytes(9, best[3] + best[4])),
        share(gigabytes(4, best[5])),
        share(gigabytes(12, best[5] + best[6])),
    );
}
