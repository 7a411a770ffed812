mod common;
use common::*;
use minrnn_kernels::reference::bf16::to_bf16;
use minrnn_kernels::reference::weight_matrix as reference;
use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::{AlignedBytes, Inputs, Scratch, WeightFormat, WeightMatrix};

const INPUTS: [usize; 8] = [1, 31, 32, 33, 64, 101, 384, 385];
const OUTPUTS: [usize; 5] = [1, 3, 16, 65, 130];
const ROWS: [usize; 8] = [1, 2, 3, 5, 8, 11, 17, 70];

/// The weights that products use, `[outputs, inputs]`.
fn weights_of(matrix: &WeightMatrix) -> Vec<f32> {
    let mut weights = vec![f32::NAN; matrix.outputs() * matrix.inputs()];
    for (i, row) in weights.chunks_exact_mut(matrix.inputs().max(1)).enumerate() {
        matrix.row(i, row);
    }
    weights
}

/// The whole product, dense.
fn matmul(level: Level, matrix: &WeightMatrix, rows: usize, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let mut y = vec![f32::NAN; rows * matrix.outputs()];
    matrix.multiply(level, Inputs { rows, x, bias }, 0..matrix.outputs(), &mut y, matrix.outputs(), &mut Scratch::default());
    y
}

/// The rows as a product on this level takes them.
fn taken(level: Level, matrix: &WeightMatrix, x: &[f32]) -> Vec<f64> {
    match matrix.format() {
        WeightFormat::Bf16 if level.multiplies_bf16() => x.iter().map(|&x| f64::from(to_bf16(x))).collect(),
        WeightFormat::F32 | WeightFormat::Bf16 => wide(x),
        WeightFormat::Int8 | WeightFormat::Int4 => x.chunks(matrix.inputs().max(1)).flat_map(reference::rounded_to_16_bits).collect(),
    }
}

#[test]
fn products_match_the_stored_weights_on_every_level() {
    let mut random = Random(1);
    for &format in WeightFormat::ALL {
        for inputs in INPUTS {
            for outputs in OUTPUTS {
                let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
                let (weights, bias) = (wide(&weights_of(&matrix)), random.normal(outputs));
                let x = random.normal(ROWS[7] * inputs);
                for rows in ROWS {
                    let x = &x[..rows * inputs];
                    for bias in [None, Some(bias.as_slice())] {
                        let wide_bias = bias.map(wide);
                        // A lone sum may cancel; its terms are of order 1.
                        let floor = (inputs as f64).sqrt();
                        for level in Level::available() {
                            let taken = taken(level, &matrix, x);
                            let expected = reference::multiply(rows, outputs, inputs, &weights, &taken, wide_bias.as_deref());
                            let name = format!("{} {} {rows}x{inputs}x{outputs}", level.name(), format.name());
                            assert_close_above(&name, &matmul(level, &matrix, rows, x, bias), &expected, OUTPUT, floor);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sums_of_many_parts_match_and_have_the_same_bits_in_any_batch() {
    let mut random = Random(14);
    let (inputs, outputs, rows) = (1501, 50, 150);
    let (values, x) = (random.normal(outputs * inputs), random.normal(rows * inputs));
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, outputs, inputs, &values);
        let weights = wide(&weights_of(&matrix));
        for level in Level::available() {
            let name = format!("{} {}", level.name(), format.name());
            let found = matmul(level, &matrix, rows, &x, None);
            let expected = reference::multiply(rows, outputs, inputs, &weights, &taken(level, &matrix, &x), None);
            assert_close_above(&name, &found, &expected, OUTPUT, (inputs as f64).sqrt());
            for rows in [1, 2, 4, 6, 7, 109] {
                let first = matmul(level, &matrix, rows, &x[..rows * inputs], None);
                assert_eq!(bits(&first), bits(&found[..rows * outputs]), "{name} {rows} rows");
            }
        }
    }
}

#[test]
fn rounding_inputs_to_bf16_changes_an_output_by_2_to_the_minus_9_of_its_terms() {
    let mut random = Random(15);
    let (inputs, outputs) = (384, 64);
    let matrix = WeightMatrix::new(WeightFormat::Bf16, outputs, inputs, &random.normal(outputs * inputs));
    let (weights, x) = (wide(&weights_of(&matrix)), random.normal(inputs));
    let expected = reference::multiply(1, outputs, inputs, &weights, &wide(&x), None);
    let sizes = |values: &[f64]| values.iter().map(|x| x.abs()).collect::<Vec<_>>();
    let terms = reference::multiply(1, outputs, inputs, &sizes(&weights), &sizes(&wide(&x)), None);
    for level in Level::available() {
        for ((found, expected), terms) in matmul(level, &matrix, 1, &x, None).into_iter().zip(&expected).zip(&terms) {
            assert!((f64::from(found) - expected).abs() <= terms / 500.0, "{}: {found}, expected {expected}", level.name());
        }
    }
}

#[test]
fn rounding_inputs_to_16_bits_changes_them_by_half_a_step_at_most() {
    let mut random = Random(17);
    let (inputs, outputs) = (384, 64);
    let mut x = random.normal(inputs);
    x[100] = 50.0;
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
        let weights = wide(&weights_of(&matrix));
        let expected = reference::multiply(1, outputs, inputs, &weights, &wide(&x), None);
        for level in Level::available() {
            for ((found, expected), row) in matmul(level, &matrix, 1, &x, None).into_iter().zip(&expected).zip(weights.chunks(inputs)) {
                let bound = row.iter().map(|w| w.abs()).sum::<f64>() * 50.0 / 32639.0 / 2.0;
                assert!((f64::from(found) - expected).abs() <= 1.01 * bound, "{}: {found}, expected {expected}", level.name());
            }
        }
    }
}

#[test]
fn integers_give_the_same_bits_on_every_level() {
    let mut random = Random(18);
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        for inputs in INPUTS.into_iter().chain([1501]) {
            for outputs in OUTPUTS {
                let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
                let bias = random.normal(outputs);
                for rows in ROWS {
                    let mut x = random.normal(rows * inputs);
                    // The largest input is the largest integer, of either sign, and its neighbours are next to the border of two bytes.
                    let last = x.len() - 1;
                    (x[0], x[last]) = (-40.0, 40.0);
                    x[last / 2] = 40.0 * 32_512.0 / 32_639.0;
                    let expected = matmul(Level::Plain, &matrix, rows, &x, Some(&bias));
                    for level in Level::available() {
                        let found = matmul(level, &matrix, rows, &x, Some(&bias));
                        assert_eq!(bits(&found), bits(&expected), "{} {} {rows}x{inputs}x{outputs}", level.name(), format.name());
                    }
                }
            }
        }
    }
}

#[test]
fn sums_of_the_largest_integers_do_not_overflow() {
    let (inputs, outputs) = (1100, 17);
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        let mut bytes = WeightMatrix::new(format, outputs, inputs, &vec![1.0; outputs * inputs]).to_bytes();
        // Weights of -128 and -8, the second kind of which a file may hold and the first should not.
        let words = 2 * inputs.div_ceil(if format == WeightFormat::Int8 { 4 } else { 8 }) * 64;
        bytes[..words].fill(0);
        let matrix = WeightMatrix::from_bytes(format, outputs, inputs, &bytes).expect("the bytes are whole");
        let weights = wide(&weights_of(&matrix));
        for value in [1.0, -3.0] {
            let x = vec![value; 13 * inputs];
            let expected = reference::multiply(13, outputs, inputs, &weights, &wide(&x), None);
            for level in Level::available() {
                assert_close(level.name(), &matmul(level, &matrix, 13, &x, None), &expected, OUTPUT);
            }
        }
    }
}

#[test]
fn inputs_that_are_not_finite_reach_their_own_row_alone() {
    let mut random = Random(16);
    let (inputs, outputs) = (40, 33);
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
        let mut x = random.normal(5 * inputs);
        (x[inputs + 3], x[3 * inputs + 39]) = (f32::NAN, f32::INFINITY);
        for level in Level::available() {
            for (row, y) in matmul(level, &matrix, 5, &x, None).chunks_exact(outputs).enumerate() {
                // An infinity may meet a weight of 0, which gives NaN.
                assert!(y.iter().all(|y| if row == 1 { y.is_nan() } else { (row == 3) != y.is_finite() }), "{} {row}", level.name());
            }
        }
    }
}

#[test]
fn a_range_of_outputs_has_the_bits_of_the_whole() {
    let mut random = Random(2);
    let (inputs, outputs, stride) = (77, 200, 211);
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
        let bias = random.normal(outputs);
        for rows in ROWS {
            let x = random.normal(rows * inputs);
            for level in Level::available() {
                let whole = matmul(level, &matrix, rows, &x, Some(&bias));
                for range in [0..1, 0..64, 64..200, 3..17, 16..144, 15..16, 31..97, 199..200, 5..5] {
                    let mut y = vec![7.0; rows * stride];
                    matrix.multiply(
                        level,
                        Inputs { rows, x: &x, bias: Some(&bias) },
                        range.clone(),
                        &mut y,
                        stride,
                        &mut Scratch::default(),
                    );
                    for (found, whole) in y.chunks_exact(stride).zip(whole.chunks_exact(outputs)) {
                        assert_eq!(bits(&found[..range.len()]), bits(&whole[range.clone()]), "{range:?} of {}", format.name());
                        assert!(found[range.len()..].iter().all(|&y| y == 7.0), "wrote past a row");
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_batch() {
    let mut random = Random(3);
    let (inputs, outputs, rows) = (161, 150, 260);
    let x = random.normal(rows * inputs);
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
        for level in Level::available() {
            let alone: Vec<f32> = x.chunks_exact(inputs).flat_map(|x| matmul(level, &matrix, 1, x, None)).collect();
            for rows in (2..=30).chain([64, 239, 240, 241, 260]) {
                let batch = matmul(level, &matrix, rows, &x[..rows * inputs], None);
                assert_eq!(bits(&batch), bits(&alone[..rows * outputs]), "{} {} {rows} rows", level.name(), format.name());
            }
        }
    }
}

#[test]
fn scratch_serves_matrices_of_any_size_in_turn() {
    let mut random = Random(5);
    let mut scratch = Scratch::default();
    for (outputs, inputs, rows) in [(20, 33, 20), (40, 500, 70), (3, 7, 1), (64, 9, 12)] {
        for &format in WeightFormat::ALL {
            let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
            let x = random.normal(rows * inputs);
            let mut y = vec![f32::NAN; rows * outputs];
            matrix.multiply(Level::current(), Inputs { rows, x: &x, bias: None }, 0..outputs, &mut y, outputs, &mut scratch);
            assert_eq!(bits(&y), bits(&matmul(Level::current(), &matrix, rows, &x, None)));
        }
    }
}

#[test]
fn f32_keeps_every_bit() {
    let values = [0.0, -0.0, 1.5, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 8.0, f32::MAX, -3.25, 1e-30];
    let matrix = WeightMatrix::new(WeightFormat::F32, 3, 3, &values);
    assert_eq!(bits(&weights_of(&matrix)), bits(&values));
}

#[test]
fn bf16_rounds_to_the_nearest_and_ties_to_even() {
    let mut random = Random(6);
    let near_ties = (0..2000).map(|_| f32::from_bits((random.bits() as u32 & 0xffff_0000) | (0x7fff + random.below(3) as u32)));
    let special = [0.0, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-40, -1e-45, 1.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 3.39e38];
    let odd = [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff), f32::INFINITY, f32::NEG_INFINITY];
    let values: Vec<f32> = near_ties.chain(special).chain(odd).collect();
    let matrix = WeightMatrix::new(WeightFormat::Bf16, 1, values.len(), &values);
    for (found, x) in weights_of(&matrix).into_iter().zip(values) {
        assert_eq!(found.to_bits(), to_bf16(x).to_bits(), "{x} becomes {found}");
    }
}

#[test]
fn int8_errs_by_half_a_scale_at_most() {
    let mut random = Random(7);
    let (outputs, inputs) = (37, 75);
    let mut values = random.normal(outputs * inputs);
    for (row, values) in values.chunks_exact_mut(inputs).enumerate() {
        values.iter_mut().for_each(|w| *w *= 10f32.powi(row as i32 * 2 - 36));
    }
    let found = weights_of(&WeightMatrix::new(WeightFormat::Int8, outputs, inputs, &values));
    for (found, values) in found.chunks_exact(inputs).zip(values.chunks_exact(inputs)) {
        let (scale, levels) = reference::int8(values);
        for ((&found, &w), level) in found.iter().zip(values).zip(levels) {
            assert!((f64::from(found) - f64::from(w)).abs() <= 0.500_01 * scale, "{w} becomes {found}, scale {scale}");
            assert!((f64::from(found) - scale * level).abs() <= 1.001 * scale, "{w} becomes {found}, expected {level} · {scale}");
        }
    }
}

/// Root of the mean square.
fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), x| (sum + x * x, count + 1));
    (sum / f64::from(count)).sqrt()
}

#[test]
fn int4_errs_by_a_fourteenth_of_the_largest_in_every_group_and_by_less_on_average() {
    let mut random = Random(8);
    let (outputs, inputs) = (50, 32 * 9 + 5);
    let values = random.normal(outputs * inputs);
    let found = weights_of(&WeightMatrix::new(WeightFormat::Int4, outputs, inputs, &values));
    for (found, values) in found.chunks_exact(inputs).zip(values.chunks_exact(inputs)) {
        for (found, values) in found.chunks(32).zip(values.chunks(32)) {
            let largest = values.iter().fold(0.0, |max, w| f32::max(max, w.abs()));
            let error = rms(found.iter().zip(values).map(|(a, b)| f64::from(a - b)));
            assert!(error <= f64::from(largest) / 14.0 * 1.01, "error {error} where the largest weight is {largest}");
        }
    }
    let error = rms(found.iter().zip(&values).map(|(a, b)| f64::from(a - b))) / rms(values.iter().map(|&w| f64::from(w)));
    assert!(error < 0.082, "{error}");
}

#[test]
fn zeros_and_equal_weights_survive() {
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, 18, 70, &[0.0; 18 * 70]);
        assert!(weights_of(&matrix).iter().all(|&w| w == 0.0));
        assert!(matmul(Level::current(), &matrix, 2, &[3.0; 140], None).iter().all(|&y| y == 0.0));
        for value in [0.75, -0.75] {
            let found = weights_of(&WeightMatrix::new(format, 18, 70, &[value; 18 * 70]));
            assert!(found.iter().all(|&w| (w - value).abs() <= 0.004 * value.abs()), "{}: {value} becomes {}", format.name(), found[0]);
        }
    }
}

#[test]
fn numbers_that_are_not_finite_reach_no_other_scale_and_no_other_output() {
    let (outputs, inputs) = (20, 96);
    let clean = Random(9).normal(outputs * inputs);
    let mut values = clean.clone();
    // Output 2 with NaN and infinities in its second group of 32, output 5 with nothing else.
    values[2 * inputs + 40] = f32::NAN;
    values[2 * inputs + 41] = f32::INFINITY;
    values[2 * inputs + 42] = f32::NEG_INFINITY;
    values[5 * inputs..6 * inputs].fill(f32::INFINITY);
    let x = Random(10).normal(3 * inputs);
    for &format in WeightFormat::ALL {
        let (dirty, clean) = (WeightMatrix::new(format, outputs, inputs, &values), WeightMatrix::new(format, outputs, inputs, &clean));
        let (weights, expected) = (weights_of(&dirty), weights_of(&clean));
        let keeps = matches!(format, WeightFormat::F32 | WeightFormat::Bf16);
        for i in (0..outputs).filter(|&i| i != 2 && i != 5) {
            assert_eq!(bits(&weights[i * inputs..][..inputs]), bits(&expected[i * inputs..][..inputs]));
        }
        let row = &weights[2 * inputs..][..inputs];
        if keeps {
            assert!(row[40].is_nan() && row[41] == f32::INFINITY && row[42] == f32::NEG_INFINITY);
        } else {
            let range = if format == WeightFormat::Int4 { 32..64 } else { 0..inputs };
            let largest = values[2 * inputs..][range].iter().map(|w| w.abs()).filter(|w| w.is_finite()).fold(0.0, f32::max);
            assert!(row[40] == 0.0 && (row[41] - largest).abs() < 0.2 * largest && (row[42] + largest).abs() < 0.2 * largest);
            assert!(weights[5 * inputs..6 * inputs].iter().all(|&w| w == 0.0));
        }
        if format == WeightFormat::Int4 {
            assert_eq!(bits(&row[..32]), bits(&expected[2 * inputs..][..32]));
        }
        for level in Level::available() {
            let (y, expected) = (matmul(level, &dirty, 3, &x, None), matmul(level, &clean, 3, &x, None));
            for (at, (y, expected)) in y.iter().zip(expected).enumerate() {
                let touched = [2, 5].contains(&(at % outputs));
                assert!(if touched { keeps != y.is_finite() } else { y.to_bits() == expected.to_bits() }, "{} {at}", format.name());
            }
        }
    }
}

#[test]
fn extreme_magnitudes_stay_finite() {
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        for largest in [f32::MAX, -f32::MAX, f32::MIN_POSITIVE, 1e-45, 1e-38, -3e38] {
            let mut values = [largest / 3.0; 64];
            values[9] = largest;
            let found = weights_of(&WeightMatrix::new(format, 1, 64, &values));
            for (found, w) in found.into_iter().zip(values) {
                assert!((found - w).abs() <= 0.13 * largest.abs() + 1.6e-36, "{}: {w} becomes {found}", format.name());
            }
        }
    }
}

#[test]
fn bytes_come_back_bit_for_bit() {
    let mut random = Random(11);
    for &format in WeightFormat::ALL {
        for (outputs, inputs) in [(0, 0), (0, 5), (5, 0), (1, 1), (65, 385), (16, 32), (70, 33)] {
            let matrix = WeightMatrix::new(format, outputs, inputs, &random.normal(outputs * inputs));
            let bytes = matrix.to_bytes();
            assert_eq!(Some(bytes.len()), WeightMatrix::byte_len(format, outputs, inputs));
            assert_eq!(bytes.len(), matrix.size_in_bytes());
            let back = WeightMatrix::from_bytes(format, outputs, inputs, &bytes).expect("the bytes are whole");
            assert_eq!((back.format(), back.outputs(), back.inputs()), (format, outputs, inputs));
            assert_eq!(back.to_bytes(), bytes);
            assert_eq!(bits(&weights_of(&back)), bits(&weights_of(&matrix)));
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_documented_layout() {
    // Output 17 is lane 1 of block 1; two blocks make no panel, so its words come after all of block 0.
    let mut values = vec![0.0; 18 * 3];
    values[17 * 3..].copy_from_slice(&[127.0, -3.0, 5.0]);
    let bytes = WeightMatrix::new(WeightFormat::Int8, 18, 3, &values).to_bytes();
    assert_eq!(bytes.len(), 4 * 64);
    assert_eq!(bytes[64 + 4..64 + 8], [255, 125, 133, 128]);
    assert_eq!(bytes[192 + 4..192 + 8], 1.0f32.to_le_bytes());
    let bytes = WeightMatrix::new(WeightFormat::Bf16, 64, 4, &[[1.0, 2.0, 3.0, 4.0]; 64].concat()).to_bytes();
    // Four blocks lie side by side: the second word of every output follows the first of all 64.
    assert!(bytes[..256].chunks_exact(4).all(|word| word == [0x80, 0x3f, 0x00, 0x40]));
    assert!(bytes[256..].chunks_exact(4).all(|word| word == [0x40, 0x40, 0x80, 0x40]));
}

#[test]
fn bytes_that_do_not_fit_are_refused() {
    let mut random = Random(12);
    for &format in WeightFormat::ALL {
        let bytes = WeightMatrix::new(format, 20, 70, &random.normal(1400)).to_bytes();
        for len in [0, 1, bytes.len() - 1] {
            assert!(WeightMatrix::from_bytes(format, 20, 70, &bytes[..len]).is_none());
        }
        assert!(WeightMatrix::from_bytes(format, 20, 70, &[&bytes[..], &[0]].concat()).is_none());
        // More elements than can be counted, and just more bytes than memory can have.
        let [many, half] = [8, -1].map(|more: i32| 1 << (usize::BITS / 2).saturating_add_signed(more));
        for (outputs, inputs) in
            [(usize::MAX, usize::MAX), (usize::MAX, 1), (1, usize::MAX), (many, many), (usize::MAX, 0), (0, usize::MAX)]
        {
            let refused = WeightMatrix::from_bytes(format, outputs, inputs, &bytes);
            assert!(refused.is_none(), "{} {outputs}x{inputs}", format.name());
        }
        assert_eq!(WeightMatrix::byte_len(format, usize::MAX, 2), None);
        assert_eq!(WeightMatrix::byte_len(format, half, half).is_none(), matches!(format, WeightFormat::F32 | WeightFormat::Bf16));
    }
}

#[test]
fn scales_that_are_not_finite_are_refused() {
    for (format, at, number) in
        [(WeightFormat::Int8, 5 * 18 * 64 + 4, [0, 0, 0x80, 0x7f]), (WeightFormat::Int4, 5 * 9 * 64 + 4, [0, 0, 0x80, 0x7f])]
    {
        let mut bytes = WeightMatrix::new(format, 80, 72, &[1.0; 80 * 72]).to_bytes();
        bytes[at..at + 4].copy_from_slice(&number);
        assert!(WeightMatrix::from_bytes(format, 80, 72, &bytes).is_none());
    }
}

#[test]
fn any_bytes_of_the_right_length_multiply_without_a_panic() {
    let mut random = Random(13);
    for &format in WeightFormat::ALL {
        for _ in 0..50 {
            let len = WeightMatrix::byte_len(format, 33, 37).expect("small");
            let bytes: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
            // Scales made finite, so that most are accepted.
            let scales = len
                - match format {
                    WeightFormat::Int8 | WeightFormat::Int4 => 3 * 64,
                    _ => 0,
                };
            let bytes: Vec<u8> = bytes.iter().enumerate().map(|(i, &b)| if i >= scales { b & 0x3f } else { b }).collect();
            let matrix = WeightMatrix::from_bytes(format, 33, 37, &bytes).expect("the length fits and scales are finite");
            for level in Level::available() {
                for rows in [1, 9] {
                    matmul(level, &matrix, rows, &vec![1.0; rows * 37], None);
                }
            }
        }
    }
}

#[test]
fn empty_sums_are_the_bias() {
    for &format in WeightFormat::ALL {
        let matrix = WeightMatrix::new(format, 3, 0, &[]);
        for level in Level::available() {
            for rows in [1, 20] {
                let y = matmul(level, &matrix, rows, &[], Some(&[1.0, 2.0, 3.0]));
                assert!(y.chunks_exact(3).all(|y| y == [1.0, 2.0, 3.0]));
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_named() {
    let matrix = WeightMatrix::new(WeightFormat::Int8, 4, 3, &[1.0; 12]);
    let message = |work: &(dyn Fn() + std::panic::RefUnwindSafe)| {
        let panic = std::panic::catch_unwind(work).expect_err("it panics");
        panic.downcast_ref::<String>().expect("a sentence").clone()
    };
    let matrix = std::panic::AssertUnwindSafe(matrix);
    let multiply = |x: usize, outputs: std::ops::Range<usize>, y: usize, stride: usize, bias: usize| {
        let (x, mut y, bias) = (vec![0.0; x], vec![0.0; y], vec![0.0; bias]);
        matrix.multiply(Level::Plain, Inputs { rows: 2, x: &x, bias: Some(&bias) }, outputs, &mut y, stride, &mut Scratch::default());
    };
    multiply(6, 0..4, 8, 4, 4);
    assert!(message(&|| multiply(5, 0..4, 8, 4, 4)).contains("x: expected 6 elements, found 5"));
    assert!(message(&|| multiply(6, 2..5, 8, 4, 4)).contains("outputs 2..5"));
    assert!(message(&|| multiply(6, 0..4, 7, 4, 4)).contains("expected at least 8 elements, found 7"));
    assert!(message(&|| multiply(6, 0..4, 8, 3, 4)).contains("lie 3 apart"));
    assert!(message(&|| multiply(6, 0..4, 8, 4, 3)).contains("bias: expected 4 elements, found 3"));
}

/// Static bytes that begin at a multiple of 64, and the same beginning one byte later.
fn constants(bytes: &[u8]) -> [&'static [u8]; 2] {
    let buffer: &'static mut [u8] = vec![0; 2 * bytes.len() + 192].leak();
    let at = buffer.as_ptr().addr().next_multiple_of(64) - buffer.as_ptr().addr();
    let (first, second) = buffer.split_at_mut(at + bytes.len());
    first[at..].copy_from_slice(bytes);
    let next = second.as_ptr().addr().next_multiple_of(64) - second.as_ptr().addr() + 1;
    second[next..next + bytes.len()].copy_from_slice(bytes);
    [&first[at..], &second[next..next + bytes.len()]]
}

#[test]
fn a_matrix_in_memory_of_others_is_the_one_in_its_own() {
    for &format in WeightFormat::ALL {
        for (outputs, inputs) in [(1, 1), (17, 3), (70, 65), (64, 33)] {
            let values: Vec<f32> = (0..outputs * inputs).map(|i| (i as f32 * 0.37).sin()).collect();
            let mut bytes = WeightMatrix::new(format, outputs, inputs, &values).to_bytes();
            for dirty in [false, true] {
                if dirty && format == WeightFormat::Bf16 && inputs % 2 == 1 {
                    // Padding that is not 0, as in a file made by another program.
                    bytes.iter_mut().skip((inputs / 2) * 64 * 4.min(outputs.div_ceil(16)) + 2).step_by(4).for_each(|byte| *byte |= 0x7f);
                }
                let own = WeightMatrix::from_bytes(format, outputs, inputs, &bytes).unwrap();
                let x: Vec<f32> = (0..2 * inputs).map(|i| (i as f32 * 0.11).cos()).collect();
                let product = |matrix: &WeightMatrix| {
                    let mut y = vec![f32::NAN; 2 * outputs];
                    let inputs = Inputs { rows: 2, x: &x, bias: None };
                    matrix.multiply(Level::current(), inputs, 0..outputs, &mut y, outputs, &mut Scratch::default());
                    (written_bits(&y), matrix.to_bytes())
                };
                let file = AlignedBytes::copied(&[&[7; 64], &bytes[..], &[9]].concat()).unwrap();
                let inside = WeightMatrix::from_shared(format, outputs, inputs, &file, 64..64 + bytes.len()).unwrap();
                let shifted = AlignedBytes::copied(&[&[7; 3], &bytes[..]].concat()).unwrap();
                let copied = WeightMatrix::from_shared(format, outputs, inputs, &shifted, 3..3 + bytes.len()).unwrap();
                let [aligned, moved] = constants(&bytes).map(|bytes| WeightMatrix::from_constant(format, outputs, inputs, bytes).unwrap());
                drop((file, shifted));
                for matrix in [inside, copied, aligned, moved] {
                    assert!(product(&matrix) == product(&own), "{format}, {outputs} × {inputs}");
                }
            }
        }
    }
    let file = AlignedBytes::copied(&[0; 128]).unwrap();
    assert!(WeightMatrix::from_shared(WeightFormat::F32, 16, 1, &file, 0..128).is_none(), "twice as many bytes");
}
