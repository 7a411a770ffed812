//! Prints how fast products with stored weights run on one thread: GB/s of weights as they are stored, and GFLOP/s.
//!
//! `cargo run --release -p minrnn-kernels --example weight_matrix -- [milliseconds per number]`. Each number is the best of many passes
//! over matrices of a model with 6.7 M parameters (width 384, inner width 768, feed-forward 1536, 65 characters), as many as fill about
//! 7 MB. The lines `gemm` are f32 products by `matmul::multiply`, with weights transposed beforehand.

use minrnn_kernels::matmul::{self, Matrix, Write};
use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::{Inputs, Scratch, WeightFormat, WeightMatrix};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Matrices of one block of layers, [outputs, inputs].
const SHAPES: [[usize; 2]; 4] = [[1536, 384], [384, 768], [1536, 384], [384, 1536]];
const ROWS: [usize; 8] = [1, 2, 4, 8, 16, 64, 512, 2048];

fn wave(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect()
}

/// Seconds of the fastest of the passes that fit the given time.
fn fastest(budget: Duration, mut pass: impl FnMut()) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while best.is_infinite() || begin.elapsed() < budget {
        let start = Instant::now();
        pass();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn line(level: &str, format: &str, rows: usize, bytes: usize, weights: usize, seconds: f64) {
    let (gigabytes, gigaflops) = (bytes as f64 / seconds / 1e9, 2.0 * (rows * weights) as f64 / seconds / 1e9);
    println!("{level:>7} {format:>5} {rows:>5} {gigabytes:>8.1} {gigaflops:>8.1}");
}

fn main() {
    let budget = Duration::from_millis(std::env::args().nth(1).map_or(300, |a| a.parse().expect("the argument is a number")));
    println!("{:>7} {:>5} {:>5} {:>8} {:>8}", "level", "type", "rows", "GB/s", "GFLOP/s");
    for level in Level::available() {
        for &format in WeightFormat::ALL {
            let mut matrices = vec![WeightMatrix::new(format, 65, 384, &wave(65 * 384))];
            let size = |matrices: &[WeightMatrix]| matrices.iter().map(WeightMatrix::size_in_bytes).sum::<usize>();
            for [outputs, inputs] in SHAPES.into_iter().cycle() {
                matrices.push(WeightMatrix::new(format, outputs, inputs, &wave(outputs * inputs)));
                if size(&matrices) > 6_500_000 {
                    break;
                }
            }
            let weights: usize = matrices.iter().map(|m| m.outputs() * m.inputs()).sum();
            for rows in ROWS {
                let (x, mut y, mut scratch) = (wave(rows * 1536), vec![0.0; rows * 1536], Scratch::default());
                let seconds = fastest(budget, || {
                    for matrix in &matrices {
                        let (outputs, x) = (matrix.outputs(), &x[..rows * matrix.inputs()]);
                        matrix.multiply(level, Inputs { rows, x: black_box(x), bias: None }, 0..outputs, &mut y, outputs, &mut scratch);
                        black_box(&mut y);
                    }
                });
                line(level.name(), format.name(), rows, size(&matrices), weights, seconds);
            }
        }
    }
    let level = Level::current();
    let matrices: Vec<_> = SHAPES.map(|[outputs, inputs]| (outputs, inputs, wave(outputs * inputs))).to_vec();
    let weights: usize = matrices.iter().map(|(_, _, values)| values.len()).sum();
    for rows in ROWS {
        let (x, mut y) = (wave(rows * 1536), vec![0.0; rows * 1536]);
        let seconds = fastest(budget, || {
            for (outputs, inputs, values) in &matrices {
                let (x, weights) = (Matrix::new(black_box(&x), *inputs), Matrix::new(values, *outputs));
                matmul::multiply(level, [rows, *inputs, *outputs], x, weights, Write::Store, &mut y, *outputs);
                black_box(&mut y);
            }
        });
        line(level.name(), "gemm", rows, 4 * weights, weights, seconds);
    }
}
