//! Prints the speed of matrix products beside this machine's arithmetic peak, best of many alternating repetitions.
//!
//! `cargo run --release -p minrnn-kernels --example matmul_speed -- [threads] [repetitions] [tokens]`. Shapes are those of a language
//! model's layers: `tokens` rows through a weight [K, N] forward (y = x W), and both gradients (d_x = d_y Wᵀ, d_W = xᵀ d_y).

use minrnn_kernels::Out;
#[cfg(target_arch = "x86_64")]
use minrnn_kernels::matmul::bf16::has_bf16;
use minrnn_kernels::matmul::bf16::has_tiles;
use minrnn_kernels::matmul::{Matrix, Precision, matmul};
use minrnn_kernels::simd::{Level, Simd, WithSimd};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Inputs and outputs of the layers' weights.
const WEIGHTS: [[usize; 2]; 6] = [[384, 384], [384, 1536], [768, 384], [1536, 384], [384, 65], [384, 2304]];

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("arguments are numbers"));
    let threads = arguments.next().unwrap_or(2);
    let repetitions = arguments.next().unwrap_or(10);
    let tokens = arguments.next().unwrap_or(16384);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let tiles = if has_tiles() { " and AMX" } else { "" };
    println!("{}, {threads} threads, {}{tiles}, best of {repetitions}", machine(), Level::current().name());
    pool.install(|| table(threads, repetitions, tokens));
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("unknown CPU".into(), |(_, name)| name.trim().into())
}

fn table(threads: usize, repetitions: usize, tokens: usize) {
    let best = |work: &(dyn Fn() -> f64 + Sync)| (0..repetitions).map(|_| work()).fold(0.0, f64::max);
    let peaks = [best(&|| peak(threads, |rounds| Level::current().run(MultiplyAdds(rounds)))), best(&|| peak(threads, bf16_peak))];
    println!("registers only: f32 {:.0} GFLOP/s, bf16 {:.0} GFLOP/s", peaks[0], peaks[1]);
    println!("{:>35} {:>14} {:>18}", "rows × depth × columns", "f32 (of peak)", "bf16 (of peak)");
    let mut totals = [0.0; 3];
    for [k, n] in WEIGHTS {
        let wave = |len: usize| (0..len).map(|i| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5).collect::<Vec<f32>>();
        let (x, weight, d_y) = (wave(tokens * k), wave(k * n), wave(tokens * n));
        let (x, weight, d_y) = (Matrix::new(&x, k), Matrix::new(&weight, n), Matrix::new(&d_y, n));
        row("y = x W", [tokens, k, n], x, weight, peaks, repetitions, &mut totals);
        row("d_x = d_y Wᵀ", [tokens, n, k], d_y, weight.transpose(), peaks, repetitions, &mut totals);
        row("d_W = xᵀ d_y", [k, tokens, n], x.transpose(), d_y, peaks, repetitions, &mut totals);
    }
    let [flops, f32_seconds, bf16_seconds] = totals;
    println!("{:>35} {:>14} {:>18}", "together", speed(flops, f32_seconds, peaks[0]), speed(flops, bf16_seconds, peaks[1]));
}

/// GFLOP/s and their share of the peak; "none" if there is no peak.
fn speed(flops: f64, seconds: f64, peak: f64) -> String {
    let speed = flops / seconds / 1e9;
    if peak == 0.0 { "none".into() } else { format!("{speed:.0} ({:.0} %)", 100.0 * speed / peak) }
}

fn row(name: &str, sizes: [usize; 3], left: Matrix, right: Matrix, peaks: [f64; 2], repetitions: usize, totals: &mut [f64; 3]) {
    let [rows, depth, columns] = sizes;
    let mut out = vec![0.0; rows * columns];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..repetitions {
        for (best, precision) in best.iter_mut().zip([Precision::F32, Precision::Bf16]) {
            *best = best.min(seconds(|| matmul(precision, sizes, left, right, None, Out::new(&mut out))));
        }
    }
    black_box(&out);
    let flops = 2.0 * (rows * depth * columns) as f64;
    let [f32_speed, bf16_speed] = [0, 1].map(|i| speed(flops, best[i], peaks[i]));
    println!("{name:<12} {:>22} {f32_speed:>14} {bf16_speed:>18}", format!("{rows} × {depth} × {columns}"));
    *totals = [totals[0] + flops, totals[1] + best[0], totals[2] + best[1]];
}

/// GFLOP/s of `work`, which returns its operations per round, on every thread at once.
fn peak(threads: usize, work: impl Fn(usize) -> usize + Sync) -> f64 {
    const ROUNDS: usize = 2_000_000;
    let mut flops = 0;
    let time = seconds(|| flops = (0..threads).into_par_iter().with_max_len(1).map(|_| work(ROUNDS)).sum());
    (flops * ROUNDS) as f64 / time / 1e9
}

/// Enough to hide the latency of two multiply-adds per cycle, and few enough for sixteen registers.
const SUMS: usize = 12;

/// This many rounds of independent f32 multiply-adds.
struct MultiplyAdds(usize);

impl WithSimd for MultiplyAdds {
    type Output = usize;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let (a, b) = (simd.splat_f32s(black_box(0.5)), simd.splat_f32s(black_box(0.25)));
        let mut sums = [simd.splat_f32s(0.0); SUMS];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = simd.mul_add_e_f32s(a, b, *sum);
            }
        }
        black_box(sums);
        2 * SUMS * S::F32_LANES
    }
}

/// The same with bf16 inputs; 0 if the CPU cannot multiply them.
fn bf16_peak(rounds: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if has_tiles() {
        // SAFETY: the CPU has AMX, and the operating system permits it.
        return unsafe { tile_multiply_adds(rounds / 16) / 16 };
    }
    #[cfg(target_arch = "x86_64")]
    if has_bf16() {
        // SAFETY: the CPU has the instructions.
        return unsafe { bf16_multiply_adds(rounds) };
    }
    let _ = rounds;
    0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
fn bf16_multiply_adds(rounds: usize) -> usize {
    use std::arch::x86_64::*;
    let half = _mm512_cvtne2ps_pbh(_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(0.25)));
    let mut sums = [_mm512_setzero_ps(); SUMS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbf16_ps(*sum, half, half);
        }
    }
    black_box(sums);
    4 * SUMS * 16
}

/// Multiplies whole AMX tiles into four tiles of sums, `rounds` times; returns the operations per round.
///
/// # Safety
/// The process may use AMX.
#[cfg(target_arch = "x86_64")]
unsafe fn tile_multiply_adds(rounds: usize) -> usize {
    /// Palette 1, and eight tiles of 16 rows of 64 bytes.
    static CONFIGURATION: [u8; 64] = {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        let mut i = 0;
        while i < 8 {
            (bytes[16 + 2 * i], bytes[48 + i]) = (64, 16);
            i += 1;
        }
        bytes
    };
    // SAFETY: touches nothing but tiles, which are given back.
    unsafe {
        std::arch::asm!(
            "ldtilecfg [{configuration}]",
            "2:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "dec {rounds}",
            "jnz 2b",
            "tilerelease",
            configuration = in(reg) &raw const CONFIGURATION,
            rounds = inout(reg) rounds.max(1) => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
    4 * 2 * 16 * 16 * 32
}
