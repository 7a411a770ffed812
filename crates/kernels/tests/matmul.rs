#![allow(clippy::excessive_precision, reason = "exact ties between two bf16")]
mod common;
use common::*;
use minrnn_kernels::Out;
use minrnn_kernels::matmul::bf16::has_bf16;
use minrnn_kernels::matmul::{Matrix, Precision, matmul, transposed};
use minrnn_kernels::reference::bf16::to_bf16;
use minrnn_kernels::reference::matmul::matmul as reference;
use minrnn_kernels::simd::Level;

fn f32_product(sizes: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: Out) {
    matmul(Precision::F32, sizes, left, right, None, out);
}

fn bf16_product(sizes: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: Out) {
    matmul(Precision::Bf16, sizes, left, right, None, out);
}

/// |error| of an f32 sum ≤ this · Σ |left · right|.
const SUM: f64 = 2e-6;

/// A matrix and the same elements in storage of either orientation with gaps between its runs, which hold NaN.
struct Stored {
    dense: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Stored {
    fn new(rows: usize, columns: usize, random: &mut Random) -> Self {
        Self { dense: random.normal(rows * columns), rows, columns }
    }

    fn runs(&self, transpose: bool, gap: usize) -> (Vec<f32>, usize) {
        let (data, run) = match transpose {
            false => (self.dense.clone(), self.columns),
            true => (transposed(&self.dense, self.rows, self.columns), self.rows),
        };
        let mut spread = Vec::new();
        for run in data.chunks_exact(run.max(1)) {
            spread.extend_from_slice(run);
            spread.extend(std::iter::repeat_n(f32::NAN, gap));
        }
        // No element may be read past the last one.
        spread.truncate(spread.len().saturating_sub(gap));
        (spread, run + gap)
    }

    fn rounded(&self, precision: Precision) -> Vec<f64> {
        let rounds = precision == Precision::Bf16 && has_bf16();
        self.dense.iter().map(|&x| f64::from(if rounds { to_bf16(x) } else { x })).collect()
    }
}

fn matrix(stored: &(Vec<f32>, usize), transpose: bool) -> Matrix<'_> {
    let matrix = Matrix::new(&stored.0, stored.1);
    if transpose { matrix.transpose() } else { matrix }
}

/// Whether a product's sums are taken in the order of depth, whatever the threads and the layout of its inputs.
fn packs(precision: Precision, [rows, depth, columns]: [usize; 3]) -> bool {
    let large = rows >= 64 && rows * depth * columns >= 1 << 22;
    (precision == Precision::Bf16 && has_bf16()) || (large && matches!(Level::current().name(), "avx2" | "avx512"))
}

/// Every layout of both sides, with and without bias, against the f64 product of the rounded inputs.
fn check(precision: Precision, sizes: [usize; 3], random: &mut Random) {
    let [rows, depth, columns] = sizes;
    let (left, right) = (Stored::new(rows, depth, random), Stored::new(depth, columns, random));
    let bias = random.normal(columns);
    let (a, b) = (left.rounded(precision), right.rounded(precision));
    let plain = reference(sizes, &a, &b, None);
    let biased = reference(sizes, &a, &b, Some(&wide(&bias)));
    let absolute = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<f64>>();
    let scale = reference(sizes, &absolute(&a), &absolute(&b), Some(&absolute(&wide(&bias))));
    let mut first: Option<Vec<u32>> = None;
    for layout in 0..16 {
        let (left_t, right_t, gap) = (layout & 1 > 0, layout & 2 > 0, if layout & 4 > 0 { 5 } else { 0 });
        let bias = (layout & 8 > 0).then_some(&bias[..]);
        let expected = if bias.is_some() { &biased } else { &plain };
        let (left, right) = (left.runs(left_t, gap), right.runs(right_t, gap));
        let (left, right) = (matrix(&left, left_t), matrix(&right, right_t));
        let [out] = outputs([rows * columns], |[out]| matmul(precision, sizes, left, right, bias, out));
        for (i, ((&found, &expected), &scale)) in out.iter().zip(expected).zip(&scale).enumerate() {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= SUM * scale, "{precision:?} {sizes:?} layout {layout} element {i}: {found}, expected {expected}");
        }
        if bias.is_none() && packs(precision, sizes) {
            assert!(
                *first.get_or_insert_with(|| written_bits(&out)) == written_bits(&out),
                "{sizes:?} layout {layout}: how inputs lie changes the result"
            );
        }
    }
}

#[test]
fn products_match_the_f64_product_of_rounded_inputs_around_every_tile_edge() {
    let mut random = Random(1);
    for rows in [1, 7, 8, 9, 16, 17, 32, 33] {
        for depth in [0, 1, 2, 3, 31, 32, 33, 65] {
            for columns in [1, 5, 15, 16, 17, 33, 47, 48, 49, 65] {
                check(Precision::Bf16, [rows, depth, columns], &mut random);
            }
        }
    }
}

#[test]
fn products_match_the_f64_product_of_rounded_inputs_around_every_block_edge() {
    let mut random = Random(2);
    for sizes in [
        [95, 64, 383],
        [96, 383, 64],
        [97, 384, 63],
        [193, 385, 65],
        [6, 767, 16],
        [300, 769, 50],
        [1, 1153, 100],
        [257, 65, 384],
        // The right side is too large to be packed whole.
        [24, 5500, 384],
        [9, 1400, 1601],
    ] {
        check(Precision::Bf16, sizes, &mut random);
    }
}

#[test]
fn large_f32_products_match_the_f64_product() {
    let mut random = Random(8);
    for level in Level::available() {
        level.scope(|| {
            // The right side of the last one is too large to be packed whole.
            for sizes in [[97, 384, 130], [64, 383, 193], [300, 769, 50], [1001, 65, 65], [65, 2731, 401]] {
                check(Precision::F32, sizes, &mut random);
            }
        });
    }
}

#[test]
fn large_f32_products_match_the_f64_product_at_every_edge_of_a_tile() {
    let mut random = Random(9);
    for level in Level::available() {
        level.scope(|| {
            for (rows, columns) in (64..72).zip([65, 66, 71, 72, 73, 79, 80, 81]) {
                check(Precision::F32, [rows, 1009, columns], &mut random);
            }
        });
    }
}

#[test]
fn empty_results_are_left_alone_and_empty_depth_gives_the_bias() {
    bf16_product([0, 3, 4], Matrix::new(&[], 3), Matrix::new(&[1.0; 12], 4), Out::default());
    bf16_product([3, 4, 0], Matrix::new(&[1.0; 12], 4), Matrix::new(&[], 0), Out::default());
    let [out] = outputs([4], |[out]| {
        matmul(Precision::Bf16, [2, 0, 2], Matrix::new(&[], 0), Matrix::new(&[], 2), Some(&[1.0, 2.0]), out);
    });
    assert_eq!(out, [1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn inputs_are_rounded_to_the_nearest_bf16_and_ties_to_even() {
    let ties = [1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
    assert_eq!(ties.map(to_bf16), [1.0, 1.0 + 4.0 / 256.0]);
    assert_eq!([1.001, -3.002].map(to_bf16), [1.0, -3.0]);
    if !has_bf16() {
        return;
    }
    let mut random = Random(3);
    let mut values = random.normal(1000);
    values.extend(ties);
    values.extend([f32::MAX, f32::MIN, f32::MIN_POSITIVE, 0.0, -0.0]);
    let n = values.len();
    let [left] = outputs([n], |[out]| bf16_product([n, 1, 1], Matrix::new(&values, 1), Matrix::new(&[1.0], 1), out));
    let [right] = outputs([n], |[out]| bf16_product([1, 1, n], Matrix::new(&[1.0], 1), Matrix::new(&values, n), out));
    for (i, &x) in values.iter().enumerate() {
        assert_eq!([left[i], right[i]], [to_bf16(x); 2], "{x}");
    }
}

#[test]
fn nan_and_infinity_reach_their_row_or_column_and_nothing_else() {
    let sizes = [19, 37, 53];
    let [rows, depth, columns] = sizes;
    let spoiled = |n: usize, at: usize, value: f32| (0..n).map(|i| if i == at { value } else { 1.0 }).collect::<Vec<f32>>();
    let run = |left: &[f32], right: &[f32]| {
        let [out] = outputs([rows * columns], |[out]| bf16_product(sizes, Matrix::new(left, depth), Matrix::new(right, columns), out));
        out
    };
    let (ones_left, ones_right) = (vec![1.0; rows * depth], vec![1.0; depth * columns]);
    let same = |found: f32, value: f32| if value.is_nan() { found.is_nan() } else { found == value };
    // A signalling NaN whose payload does not survive the rounding must not become infinite.
    for value in [f32::NAN, f32::from_bits(0x7f80_0001), f32::INFINITY, f32::NEG_INFINITY] {
        for [i, j, k] in [[3, 20, 4], [rows - 1, columns - 1, depth - 1]] {
            let out = run(&spoiled(rows * depth, i * depth + k, value), &ones_right);
            let expected = |at: usize| if at / columns == i { value } else { depth as f32 };
            assert!(out.iter().enumerate().all(|(at, &x)| same(x, expected(at))), "{value} in row {i}");
            let out = run(&ones_left, &spoiled(depth * columns, k * columns + j, value));
            let expected = |at: usize| if at % columns == j { value } else { depth as f32 };
            assert!(out.iter().enumerate().all(|(at, &x)| same(x, expected(at))), "{value} in column {j}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_the_result() {
    let mut random = Random(4);
    // Rows spread over the threads, and regions of a deep product.
    for sizes in [[1000, 390, 130], [7, 400, 2500], [200, 9000, 300]] {
        let [rows, depth, columns] = sizes;
        let (left, right) = (random.normal(rows * depth), random.normal(depth * columns));
        for transpose in [false, true] {
            let left = Matrix::new(&left, if transpose { rows } else { depth });
            let left = if transpose { left.transpose() } else { left };
            for precision in [Precision::F32, Precision::Bf16] {
                let run = || outputs([rows * columns], |[out]| matmul(precision, sizes, left, Matrix::new(&right, columns), None, out));
                if packs(precision, sizes) {
                    assert_threads_change_nothing(run);
                }
                assert!(all_bits(&run()) == all_bits(&run()), "{precision:?} {sizes:?}: the same product twice gives two results");
            }
        }
    }
}

#[test]
fn without_bf16_instructions_products_are_those_of_f32() {
    let mut random = Random(5);
    let sizes = [33, 70, 50];
    let [rows, depth, columns] = sizes;
    let (left, right, bias) = (random.normal(rows * depth), random.normal(depth * columns), random.normal(columns));
    let (left, right) = (Matrix::new(&left, depth), Matrix::new(&right, columns));
    Level::Plain.scope(|| {
        assert!(!has_bf16());
        let [f32s] = outputs([rows * columns], |[out]| f32_product(sizes, left, right, out));
        let [bf16] = outputs([rows * columns], |[out]| bf16_product(sizes, left, right, out));
        assert!(written_bits(&f32s) == written_bits(&bf16));
        let [biased] = outputs([rows * columns], |[out]| matmul(Precision::F32, sizes, left, right, Some(&bias), out));
        for (at, (biased, plain)) in biased.iter().zip(&f32s).enumerate() {
            assert!((biased - plain - bias[at % columns]).abs() < 1e-4);
        }
        check(Precision::Bf16, [9, 33, 17], &mut Random(6));
        check(Precision::Bf16, [1, 33, 70], &mut Random(7));
    });
}

#[test]
#[should_panic(expected = "right side of a product: expected at least 12 elements, found 11")]
fn a_short_side_is_refused() {
    let [_] = outputs([8], |[out]| bf16_product([2, 3, 4], Matrix::new(&[0.0; 6], 3), Matrix::new(&[0.0; 11], 4), out));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn subnormal_inputs_of_a_large_product_count_as_zero_and_others_stay() {
    let sizes = [200, 300, 100];
    let [least, above] = [f32::MIN_POSITIVE * 0.9, f32::MIN_POSITIVE];
    for level in Level::available().into_iter().filter(|level| level.name() != "plain") {
        level.scope(|| {
            for (value, expected) in [(least, 0.0), (-least, 0.0), (above, 300.0), (-above, -300.0)] {
                let (tiny, large) = (vec![value; 300 * 200], vec![1.0 / f32::MIN_POSITIVE; 300 * 200]);
                let of = |left: Matrix<'_>, right: Matrix<'_>| {
                    let [product] = outputs([200 * 100], |[out]| f32_product(sizes, left, right, out));
                    assert!(product.iter().all(|&x| x == expected), "{}: {value}: {:?}", level.name(), &product[..3]);
                };
                of(Matrix::new(&tiny, 300), Matrix::new(&large, 100));
                of(Matrix::new(&large, 300), Matrix::new(&tiny, 100));
                of(Matrix::new(&tiny, 200).transpose(), Matrix::new(&large, 300).transpose());
                of(Matrix::new(&large, 200).transpose(), Matrix::new(&tiny, 300).transpose());
                let odd = [vec![f32::NAN; 300 * 200], vec![f32::INFINITY; 300 * 200]];
                for odd in &odd {
                    let [product] = outputs([200 * 100], |[out]| f32_product(sizes, Matrix::new(odd, 300), Matrix::new(&large, 100), out));
                    assert!(product.iter().all(|x| !x.is_finite()), "{}", level.name());
                }
            }
        });
    }
}
