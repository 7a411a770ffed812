//! Times the passes of a cell's recurrence: `cargo run --release -p minrnn-kernels --example recurrence_speed -- CELL B T E THREADS ROUNDS [all|last] [SHIFT]`.
//!
//! Prints the minimum and the median time of each pass in milliseconds. With `last` only the last state has a gradient. SHIFT is added to all inputs:
//! below 0 gates forget slowly.

use minrnn_kernels::recurrence::{Cell, Gradients, Inputs, Upstream, backward, forward};
use minrnn_kernels::{Candidate, Gates, Out, Shape, Start};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| arguments.get(i).map_or(default, |text| text.parse().expect("a whole number"));
    let cell = match arguments.first().map_or("min-gru", String::as_str) {
        "linear" => Cell::Linear,
        "min-gru" => Cell::MinGru(Candidate::Positive),
        "min-lstm" => Cell::MinLstm(Candidate::Positive, Gates::Normalized),
        "signed-min-gru" => Cell::SignedMinGru(Candidate::Positive),
        "rg-lru" => Cell::RgLru,
        other => panic!("no cell '{other}': linear, min-gru, min-lstm, signed-min-gru, rg-lru"),
    };
    let shape = Shape { batch: number(1, 1), seq_len: number(2, 1 << 20), width: number(3, 64) };
    let (threads, rounds) = (number(4, 2), number(5, 5).max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let n = shape.elements();
    let wave = |len: usize, scale: f32| -> Vec<f32> { (0..len).map(|i| scale * (((i * 7919) % 2017) as f32 / 1009.0 - 0.7)).collect() };
    let shift = arguments.get(7).map_or(0.0, |text| text.parse::<f32>().expect("a number"));
    let (mut preact, extra) = (wave(cell.parts() * n, 2.0), vec![0.5; cell.extra_len(shape)]);
    preact.iter_mut().for_each(|x| *x += shift);
    let (h, d_h, d_h_last) = (wave(n, 1.0), wave(n, 0.5), vec![1.0; shape.states()]);
    let upstream = match arguments.get(6).is_some_and(|word| word == "last") {
        true => Upstream { h: &h, d_h: None, d_h_last: Some(&d_h_last) },
        false => Upstream { h: &h, d_h: Some(&d_h), d_h_last: None },
    };
    // Large outputs bypass the caches if they begin at a cache line, as those of most allocators do.
    let room = |len: usize| vec![0.0f32; len + 16];
    let aligned = |room: &[f32]| room.as_ptr().align_offset(64);
    let (mut h_out, mut d_preact, mut d_extra) = (room(n), room(preact.len()), room(extra.len()));
    let from = [&h_out, &d_preact, &d_extra].map(|room| aligned(room));
    let h_out = &mut h_out[from[0]..][..n];
    let d_preact = &mut d_preact[from[1]..][..preact.len()];
    let d_extra = &mut d_extra[from[2]..][..extra.len()];
    let (mut last, mut d_init) = (vec![0.0; shape.states()], vec![0.0; shape.width]);
    let inputs = Inputs { preact: &preact, bias: None, extra: &extra };
    let mut times = [(); 2].map(|()| Vec::new());
    for _ in 0..=rounds {
        let began = Instant::now();
        pool.install(|| forward(shape, cell, inputs, Start::default(), Out::new(h_out), Out::new(&mut last)));
        times[0].push(began.elapsed());
        let began = Instant::now();
        let gradients = Gradients {
            d_preact: Out::new(d_preact),
            d_bias: None,
            d_extra: Out::new(d_extra),
            d_h0: Out::new(&mut last),
            d_init: Out::new(&mut d_init),
        };
        pool.install(|| backward(shape, cell, inputs, Start::default(), upstream, gradients));
        times[1].push(began.elapsed());
    }
    for (pass, mut times) in ["forward", "backward"].into_iter().zip(times) {
        times.remove(0);
        times.sort();
        let milliseconds = |i: usize| times[i].as_secs_f64() * 1e3;
        println!("{pass}: {:.1} ms least, {:.1} median", milliseconds(0), milliseconds(times.len() / 2));
    }
}
