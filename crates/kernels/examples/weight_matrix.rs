//! Prints how fast products with stored weights run: GB/s of weights as they are stored, and GFLOP/s, on one thread.
//!
//! `cargo run --release -p minrnn-kernels --example weight_matrix -- [milliseconds per number]`. Each number is the best of many passes over the matrices
//! of a model with 6.7 M parameters (width 384, inner width 768, feed-forward 1536, 65 characters), cut to about 7 MB of stored weights.

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::{Scratch, WeightFormat, WeightMatrix};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Matrices of one block of layers, [outputs, inputs].
const SHAPES: [[usize; 2]; 4] = [[1536, 384], [384, 768], [1536, 384], [384, 1536]];

fn main() {
    let milliseconds = std::env::args().nth(1).map_or(300, |a| a.parse().expect("the argument is a number"));
    let wave = |n: usize| -> Vec<f32> { (0..n).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect() };
    println!("{:>7} {:>5} {:>5} {:>9} {:>10} {:>14}", "level", "type", "rows", "GB/s", "GFLOP/s", "ns per product");
    for level in Level::available() {
        for format in WeightFormat::ALL {
            let mut matrices = Vec::new();
            for [outputs, inputs] in SHAPES.into_iter().cycle() {
                matrices.push(WeightMatrix::new(format, outputs, inputs, &wave(outputs * inputs)));
                if matrices.iter().map(WeightMatrix::size_in_bytes).sum::<usize>() > 6_500_000 {
                    break;
                }
            }
            matrices.push(WeightMatrix::new(format, 65, 384, &wave(65 * 384)));
            let bytes: usize = matrices.iter().map(WeightMatrix::size_in_bytes).sum();
            let weights: usize = matrices.iter().map(|m| m.outputs() * m.inputs()).sum();
            for rows in [1, 2, 4, 8, 16, 64, 512] {
                let (x, mut y, mut scratch) = (wave(rows * 1536), vec![0.0; rows * 1536], Scratch::default());
                let mut pass = || {
                    let start = Instant::now();
                    for matrix in &matrices {
                        let (outputs, x) = (matrix.outputs(), &x[..rows * matrix.inputs()]);
                        matrix.multiply(level, rows, black_box(x), 0..outputs, &mut y, outputs, None, &mut scratch);
                        black_box(&mut y);
                    }
                    start.elapsed()
                };
                let begin = Instant::now();
                let mut best = pass();
                while begin.elapsed() < Duration::from_millis(milliseconds) {
                    best = best.min(pass());
                }
                let seconds = best.as_secs_f64();
                println!(
                    "{:>7} {:>5} {rows:>5} {:>9.1} {:>10.1} {:>14.0}",
                    level.name(),
                    format.name(),
                    bytes as f64 / seconds / 1e9,
                    2.0 * (rows * weights) as f64 / seconds / 1e9,
                    seconds * 1e9 / matrices.len() as f64
                );
            }
        }
    }
}
