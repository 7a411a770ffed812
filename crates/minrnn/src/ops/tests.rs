//! Every fused operation against its composed form: outputs, and the gradient of every input through every subset of the outputs.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;

use super::recurrence::Start;
use super::{AttentionPlan, Candidate, Dropout, Gates, GruForm, SelectiveScan, StepCodes};
use crate::Segments;
use crate::rng::{Purpose, stream};

/// Largest |fused − composed| relative to the largest magnitude of the composed tensor (at least 1).
const TOLERANCE: f32 = 2e-5;

fn random(len: usize, index: u64) -> Vec<f32> {
    let mut rng = stream(7, Purpose::Bench, index);
    (0..len).map(|_| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 * 2.0 - 2.0).collect()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    match tensor.shape().num_elements() {
        0 => Tensor::zeros([0], &tensor.device()),
        len => tensor.reshape([len]),
    }
}

/// Burn's reshape reads a 0 as "as before".
fn shaped<const D: usize>(tensor: Tensor<1>, shape: [usize; D]) -> Tensor<D> {
    if shape.contains(&0) { Tensor::zeros(shape, &tensor.device()) } else { tensor.reshape(shape) }
}

fn close(what: &str, fused: &[f32], composed: &[f32]) {
    assert_eq!(fused.len(), composed.len(), "{what}");
    let scale = composed.iter().fold(1.0f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in fused.iter().zip(composed).enumerate() {
        assert!((a - b).abs() <= TOLERANCE * scale, "{what}[{i}]: fused {a}, composed {b}");
    }
}

/// Runs both forms on the same leaves (flat, of the given lengths) and compares everything.
fn compare(
    what: &str,
    lengths: &[usize],
    fused: impl Fn(Vec<Tensor<1>>) -> Vec<Tensor<1>>,
    composed: impl Fn(Vec<Tensor<1>>) -> Vec<Tensor<1>>,
) {
    let device = Device::flex().autodiff();
    let leaf = |(i, &len): (usize, &usize)| Tensor::<1>::from_data(TensorData::new(random(len, i as u64), [len]), &device).require_grad();
    let run = |form: &dyn Fn(Vec<Tensor<1>>) -> Vec<Tensor<1>>, scored: usize| {
        let leaves: Vec<Tensor<1>> = lengths.iter().enumerate().map(leaf).collect();
        let outputs = form(leaves.clone());
        let weigh = |(i, y): (usize, &Tensor<1>)| {
            let len = y.dims()[0];
            (y.clone() * Tensor::from_data(TensorData::new(random(len, 100 + i as u64), [len]), &device)).sum()
        };
        let chosen = outputs.iter().enumerate().filter(|(i, y)| scored >> i & 1 == 1 && y.dims()[0] > 0).map(weigh);
        let grads = chosen.reduce(|a, b| a + b).map(|loss| loss.backward());
        let d_leaf = |leaf: &Tensor<1>| grads.as_ref().and_then(|grads| leaf.grad(grads)).map(values);
        let d_leaves: Vec<Option<Vec<f32>>> = leaves.iter().map(d_leaf).collect();
        (outputs.into_iter().map(values).collect::<Vec<_>>(), d_leaves)
    };
    let outputs = fused(lengths.iter().enumerate().map(leaf).collect()).len();
    for scored in 1..1 << outputs {
        let (y, d) = run(&fused, scored);
        let (y_composed, d_composed) = run(&composed, scored);
        for (i, (a, b)) in y.iter().zip(&y_composed).enumerate() {
            close(&format!("{what}: output {i}"), a, b);
        }
        for (i, (a, b)) in d.iter().zip(&d_composed).enumerate() {
            let zeros = vec![0.0; lengths[i]];
            let what = format!("{what}: gradient of input {i} with outputs {scored:b} scored");
            close(&what, a.as_ref().unwrap_or(&zeros), b.as_ref().unwrap_or(&zeros));
        }
    }
}

/// Dense, padded, reset, and both, for a batch of 3 rows.
fn segments(seq_len: usize) -> Vec<StepCodes> {
    let lengths = vec![seq_len, seq_len / 2, 0];
    let resets = vec![vec![0, seq_len / 3], vec![seq_len / 4], vec![]];
    let resets: Vec<Vec<usize>> = resets.into_iter().map(|row: Vec<usize>| row.into_iter().filter(|&t| t < seq_len).collect()).collect();
    [
        Segments::dense(),
        Segments::from_lengths(lengths.clone()),
        Segments::dense().with_resets(resets.clone()),
        Segments::from_lengths(lengths).with_resets(resets),
    ]
    .iter()
    .map(|s| s.steps(3, seq_len).unwrap())
    .collect()
}

const B: usize = 3;
const E: usize = 5;

fn start(leaves: &mut Vec<Tensor<1>>) -> Start {
    let init = leaves.pop();
    let h0 = leaves.pop().map(|h0| shaped(h0, [B, E]));
    Start { h0, init }
}

fn recurrence(
    what: &str,
    parts: usize,
    fused: impl Fn(Vec<Tensor<1>>, usize, &StepCodes) -> (Tensor<3>, Tensor<2>),
    composed: impl Fn(Vec<Tensor<1>>, usize, &StepCodes) -> (Tensor<3>, Tensor<2>),
) {
    for seq_len in [0, 1, 2, 13] {
        for steps in segments(seq_len) {
            let lengths = [B * seq_len * parts * E, parts * E, B * E, E];
            let both = |(h, h_last)| vec![flat(h), flat(h_last)];
            let what = format!("{what} with T = {seq_len}, {steps:?}");
            compare(&what, &lengths, |leaves| both(fused(leaves, seq_len, &steps)), |leaves| both(composed(leaves, seq_len, &steps)));
        }
    }
}

#[test]
fn min_gru_equals_its_composition() {
    for candidate in [Candidate::Positive, Candidate::Identity, Candidate::Tanh] {
        let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
            let start = start(&mut leaves);
            let bias = leaves.pop();
            (shaped(leaves.remove(0), [B, t, 2 * E]), bias, start)
        };
        recurrence(
            &format!("min_gru {candidate:?}"),
            2,
            |leaves, t, steps| {
                let (preact, bias, start) = split(leaves, t);
                super::min_gru(preact, bias, candidate, start, steps)
            },
            |leaves, t, steps| {
                let (preact, bias, start) = split(leaves, t);
                let (a, b) = super::min_gru::coefficients(preact, bias, candidate);
                super::recurrence::composed(a, b, start, steps)
            },
        );
    }
}

#[test]
fn min_lstm_equals_its_composition() {
    for gates in [Gates::Normalized, Gates::Independent] {
        let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
            let start = start(&mut leaves);
            let bias = leaves.pop();
            (shaped(leaves.remove(0), [B, t, 3 * E]), bias, start)
        };
        recurrence(
            &format!("min_lstm {gates:?}"),
            3,
            |leaves, t, steps| {
                let (preact, bias, start) = split(leaves, t);
                super::min_lstm(preact, bias, Candidate::Positive, gates, start, steps)
            },
            |leaves, t, steps| {
                let (preact, bias, start) = split(leaves, t);
                let (a, b) = super::min_lstm::coefficients(preact, bias, Candidate::Positive, gates);
                super::recurrence::composed(a, b, start, steps)
            },
        );
    }
}

#[test]
fn signed_min_gru_equals_its_composition() {
    let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
        let start = start(&mut leaves);
        let bias = leaves.pop();
        (shaped(leaves.remove(0), [B, t, 3 * E]), bias, start)
    };
    recurrence(
        "signed_min_gru",
        3,
        |leaves, t, steps| {
            let (preact, bias, start) = split(leaves, t);
            super::signed_min_gru(preact, bias, Candidate::Tanh, start, steps)
        },
        |leaves, t, steps| {
            let (preact, bias, start) = split(leaves, t);
            let (a, b) = super::signed_min_gru::coefficients(preact, bias, Candidate::Tanh);
            super::recurrence::composed(a, b, start, steps)
        },
    );
}

#[test]
fn decay_min_gru_equals_its_composition() {
    let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
        let start = start(&mut leaves);
        let bias = leaves.pop().map(|bias| bias.narrow(0, 0, 2 * E));
        let both = shaped(leaves.remove(0), [B, t, 3 * E]);
        (both.clone().narrow(2, 0, 2 * E), both.narrow(2, 2 * E, E).abs(), bias, start)
    };
    recurrence(
        "decay_min_gru",
        3,
        |leaves, t, steps| {
            let (preact, exponent, bias, start) = split(leaves, t);
            super::decay_min_gru(preact, exponent, bias, Candidate::Positive, start, steps)
        },
        |leaves, t, steps| {
            let (preact, exponent, bias, start) = split(leaves, t);
            let (a, b) = super::decay_min_gru::coefficients(preact, exponent, bias, Candidate::Positive);
            super::recurrence::composed(a, b, start, steps)
        },
    );
}

#[test]
fn floored_min_gru_equals_its_composition() {
    let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
        let start = start(&mut leaves);
        let both = leaves.pop().expect("there is one");
        let share = burn::tensor::activation::sigmoid(both.clone().narrow(0, 2 * E, E));
        (shaped(leaves.remove(0), [B, t, 3 * E]).narrow(2, 0, 2 * E), both.narrow(0, 0, 2 * E), share, start)
    };
    recurrence(
        "floored_min_gru",
        3,
        |leaves, t, steps| {
            let (preact, bias, share, start) = split(leaves, t);
            super::floored_min_gru(preact, Some(bias), share, Candidate::Positive, start, steps)
        },
        |leaves, t, steps| {
            let (preact, bias, share, start) = split(leaves, t);
            let (a, b) = super::floored_min_gru::coefficients(preact, Some(bias), share, Candidate::Positive);
            super::recurrence::composed(a, b, start, steps)
        },
    );
}

#[test]
fn delta_equals_its_composition() {
    const H: usize = 2;
    for seq_len in [0, 1, 2, 19] {
        for steps in segments(seq_len) {
            let split = |mut leaves: Vec<Tensor<1>>| {
                (shaped(leaves.remove(0), [B, seq_len, 3 * H * E + H]), shaped(leaves.remove(0), [B, H, E, E]))
            };
            let both = |(y, memory): (Tensor<3>, Tensor<4>)| vec![flat(y), flat(memory)];
            compare(
                &format!("delta, T = {seq_len}, {steps:?}"),
                &[B * seq_len * (3 * H * E + H), B * H * E * E],
                |leaves| {
                    let (x, memory) = split(leaves);
                    both(super::delta(x, memory, &steps))
                },
                |leaves| {
                    let (x, memory) = split(leaves);
                    both(super::delta::composed(x, memory, &steps))
                },
            );
        }
    }
}

#[test]
fn highway_equals_its_composition() {
    for biased in [true, false] {
        let split = |mut leaves: Vec<Tensor<1>>| {
            let [gate, value, x] = [0; 3].map(|_| shaped::<2>(leaves.remove(0), [7, E]));
            let [gate_bias, value_bias] = [0; 2].map(|_| Some(leaves.remove(0)).filter(|_| biased));
            (gate, gate_bias, value, value_bias, x)
        };
        compare(
            "highway",
            &[7 * E, 7 * E, 7 * E, E, E],
            |leaves| {
                let (gate, gate_bias, value, value_bias, x) = split(leaves);
                vec![flat(super::highway(gate, gate_bias, value, value_bias, x))]
            },
            |leaves| {
                let (gate, gate_bias, value, value_bias, x) = split(leaves);
                vec![flat(super::highway::composed(gate, gate_bias, value, value_bias, x))]
            },
        );
    }
}

#[test]
fn scans_equal_their_composition() {
    let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
        let start = start(&mut leaves);
        let positive = Start { h0: start.h0.map(Tensor::abs), init: start.init.map(Tensor::abs) };
        leaves.pop();
        let both = shaped(leaves.remove(0), [B, t, 2 * E]);
        (both.clone().narrow(2, 0, E), both.narrow(2, E, E), positive)
    };
    let composed = |leaves, t, steps: &StepCodes| {
        let (a, b, start) = split(leaves, t);
        super::recurrence::composed(a.exp(), b.exp(), start, steps)
    };
    recurrence(
        "linear_scan",
        2,
        |leaves, t, steps| {
            let (a, b, start) = split(leaves, t);
            super::linear_scan(a.exp(), b.exp(), start, steps)
        },
        composed,
    );
    recurrence(
        "log_space_scan",
        2,
        |leaves, t, steps| {
            let (a, b, start) = split(leaves, t);
            super::log_space_scan(a, b, start, steps)
        },
        composed,
    );
}

#[test]
fn the_log_space_cells_equal_the_linear_ones() {
    let steps = &segments(13)[3];
    let positive = |mut leaves: Vec<Tensor<1>>, parts: usize| {
        let start = start(&mut leaves);
        let start = Start { h0: start.h0.map(Tensor::abs), init: start.init.map(Tensor::abs) };
        let bias = leaves.pop();
        (shaped(leaves.remove(0), [B, 13, parts * E]), bias, start)
    };
    let both = |(h, h_last)| vec![flat::<3>(h), flat::<2>(h_last)];
    let lengths = |parts: usize| [B * 13 * parts * E, parts * E, B * E, E];
    compare(
        "minGRU in log space",
        &lengths(2),
        |leaves| {
            let (preact, bias, start) = positive(leaves, 2);
            let (a, b) = super::min_gru_log_coefficients(preact, bias);
            both(super::log_space_scan(a, b, start, steps))
        },
        |leaves| {
            let (preact, bias, start) = positive(leaves, 2);
            both(super::min_gru(preact, bias, Candidate::Positive, start, steps))
        },
    );
    for gates in [Gates::Normalized, Gates::Independent] {
        compare(
            "minLSTM in log space",
            &lengths(3),
            |leaves| {
                let (preact, bias, start) = positive(leaves, 3);
                let (a, b) = super::min_lstm_log_coefficients(preact, bias, gates);
                both(super::log_space_scan(a, b, start, steps))
            },
            |leaves| {
                let (preact, bias, start) = positive(leaves, 3);
                both(super::min_lstm(preact, bias, Candidate::Positive, gates, start, steps))
            },
        );
    }
}

#[test]
fn gru_equals_its_composition() {
    for form in [GruForm::Paper, GruForm::Torch] {
        for seq_len in [0, 1, 7] {
            for steps in segments(seq_len) {
                let split = |mut leaves: Vec<Tensor<1>>| {
                    let start = start(&mut leaves);
                    let (recurrent_bias, bias) = (leaves.pop(), leaves.pop());
                    let weight = shaped(leaves.pop().unwrap(), [3 * E, E]);
                    (shaped(leaves.remove(0), [B, seq_len, 3 * E]), bias, weight, recurrent_bias, start)
                };
                let both = |(h, h_last)| vec![flat::<3>(h), flat::<2>(h_last)];
                compare(
                    &format!("gru {form:?}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * 3 * E, 3 * E * E, 3 * E, 3 * E, B * E, E],
                    |leaves| {
                        let (preact, bias, weight, recurrent_bias, start) = split(leaves);
                        both(super::gru(form, preact, bias, weight, recurrent_bias, start, &steps))
                    },
                    |leaves| {
                        let (preact, bias, weight, recurrent_bias, start) = split(leaves);
                        both(super::gru::composed(form, preact, bias, weight, recurrent_bias, start, &steps))
                    },
                );
            }
        }
    }
}

#[test]
fn lstm_equals_its_composition() {
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            let split = |mut leaves: Vec<Tensor<1>>| {
                let (cell, hidden) = (start(&mut leaves), start(&mut leaves));
                let (recurrent_bias, bias) = (leaves.pop(), leaves.pop());
                let weight = shaped(leaves.pop().unwrap(), [4 * E, E]);
                (shaped(leaves.remove(0), [B, seq_len, 4 * E]), bias, weight, recurrent_bias, hidden, cell)
            };
            let all = |(h, h_last, c_last): super::LstmOutputs| vec![flat(h), flat(h_last), flat(c_last)];
            compare(
                &format!("lstm, T = {seq_len}, {steps:?}"),
                &[B * seq_len * 4 * E, 4 * E * E, 4 * E, 4 * E, B * E, E, B * E, E],
                |leaves| {
                    let (preact, bias, weight, recurrent_bias, hidden, cell) = split(leaves);
                    all(super::lstm(preact, bias, weight, recurrent_bias, hidden, cell, &steps))
                },
                |leaves| {
                    let (preact, bias, weight, recurrent_bias, hidden, cell) = split(leaves);
                    all(super::lstm::composed(preact, bias, weight, recurrent_bias, hidden, cell, &steps))
                },
            );
        }
    }
}

#[test]
fn selective_scan_equals_its_composition() {
    const N: usize = 3;
    for seq_len in [0, 1, 9] {
        for steps in segments(seq_len) {
            // Without a step and a carried state nothing depends on the leaves.
            for optional in if seq_len == 0 { 2..3 } else { 0..3 } {
                let scan = |leaves: Vec<Tensor<1>>| {
                    let sequence = |i: usize| shaped(leaves[i].clone(), [B, seq_len, E]);
                    SelectiveScan {
                        u: sequence(0),
                        delta: sequence(1),
                        delta_bias: leaves[2].clone(),
                        a: -shaped(leaves[3].clone(), [E, N]).abs(),
                        bc: shaped(leaves[4].clone(), [B, seq_len, 2 * N]),
                        skip: leaves[5].clone(),
                        z: (optional > 0).then(|| sequence(6)),
                        h0: (optional > 1).then(|| shaped(leaves[7].clone(), [B, E, N])),
                    }
                };
                let sequence = B * seq_len * E;
                let both = |(y, h_last)| vec![flat::<3>(y), flat::<3>(h_last)];
                compare(
                    &format!("selective_scan, T = {seq_len}, {steps:?}"),
                    &[sequence, sequence, E, E * N, B * seq_len * 2 * N, E, sequence, B * E * N],
                    |leaves| both(super::selective_scan(scan(leaves), &steps)),
                    |leaves| both(super::selective_scan::composed(scan(leaves), &steps)),
                );
            }
        }
    }
}

#[test]
fn silu_for_two_readers_equals_its_composition() {
    for rows in [0, 7] {
        compare(
            "silu_twice",
            &[rows * E],
            |leaves| {
                let (y, same) = super::silu_twice(shaped(leaves[0].clone(), [1, rows, E]));
                vec![flat(y), flat(same)]
            },
            |leaves| vec![super::silu::composed(leaves[0].clone()), super::silu::composed(leaves[0].clone())],
        );
    }
}

#[test]
fn split_equals_its_composition() {
    for rows in [0, 7] {
        for at in [1, 2, E - 1] {
            let both = |(left, right)| vec![flat::<2>(left), flat::<2>(right)];
            compare(
                &format!("split at {at} of {E}, {rows} rows"),
                &[rows * E],
                |leaves| both(super::split(shaped(leaves[0].clone(), [rows, E]), at)),
                |leaves| both(super::split::composed(shaped(leaves[0].clone(), [rows, E]), at)),
            );
        }
    }
}

#[test]
fn causal_conv_equals_its_composition() {
    for kernel_size in [1, 2, 4] {
        for seq_len in [0, 1, 2, 9] {
            for steps in segments(seq_len) {
                let split = |mut leaves: Vec<Tensor<1>>| {
                    let window = leaves.pop().map(|window| shaped(window, [B, kernel_size - 1, E]));
                    let bias = leaves.pop().unwrap();
                    let weight = shaped(leaves.pop().unwrap(), [E, 1, kernel_size]);
                    (shaped(leaves.remove(0), [B, seq_len, E]), weight, bias, window)
                };
                let both = |(y, window)| vec![flat::<3>(y), flat::<3>(window)];
                compare(
                    &format!("causal_conv, K = {kernel_size}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * E, E * kernel_size, E, B * (kernel_size - 1) * E],
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        both(super::causal_conv(x, weight, bias, window, &steps))
                    },
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        both(super::conv::composed(x, weight, bias, window, &steps))
                    },
                );
                compare(
                    &format!("causal_conv_and_input, K = {kernel_size}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * E, E * kernel_size, E, B * (kernel_size - 1) * E],
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        let (y, window, x) = super::causal_conv_and_input(x, weight, bias, window, &steps);
                        vec![flat(y), flat(window), flat(x)]
                    },
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        let (y, window) = super::conv::composed(x.clone(), weight, bias, window, &steps);
                        vec![flat(y), flat(window), flat(x)]
                    },
                );
            }
        }
    }
}

#[test]
fn norms_equal_their_composition() {
    let three = |leaves: &mut Vec<Tensor<1>>| shaped(leaves.remove(0), [2, 3, E]);
    compare(
        "layer_norm",
        &[6 * E, E, E],
        |mut leaves| vec![flat(super::layer_norm(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5))],
        |mut leaves| vec![flat(super::norm::composed_layer_norm(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5))],
    );
    compare(
        "rms_norm",
        &[6 * E, E],
        |mut leaves| vec![flat(super::rms_norm(three(&mut leaves), leaves.remove(0)))],
        |mut leaves| vec![flat(super::norm::composed_rms_norm(three(&mut leaves), leaves.remove(0)))],
    );
    let both = |(y, x)| vec![flat::<3>(y), flat::<3>(x)];
    compare(
        "layer_norm_and_input",
        &[6 * E, E, E],
        |mut leaves| both(super::layer_norm_and_input(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5)),
        |mut leaves| {
            let x = three(&mut leaves);
            both((super::norm::composed_layer_norm(x.clone(), leaves.remove(0), leaves.remove(0), 1e-5), x))
        },
    );
    compare(
        "rms_norm_and_input",
        &[6 * E, E],
        |mut leaves| both(super::rms_norm_and_input(three(&mut leaves), leaves.remove(0))),
        |mut leaves| {
            let x = three(&mut leaves);
            both((super::norm::composed_rms_norm(x.clone(), leaves.remove(0)), x))
        },
    );
}

#[test]
fn embedding_equals_its_composition() {
    let tokens = || Tensor::from_data(TensorData::new(vec![0i64, 3, 1, 3, 3, 2], [2, 3]), &Device::flex().autodiff());
    compare(
        "embedding",
        &[4 * E],
        |mut leaves| vec![flat(super::embedding(tokens(), shaped(leaves.remove(0), [4, E])))],
        |mut leaves| vec![flat(super::embedding::composed(tokens(), shaped(leaves.remove(0), [4, E])))],
    );
}

#[test]
fn adamw_equals_its_composition() {
    let leaf = |index| Tensor::<1>::from_data(TensorData::new(random(40, index), [40]), &Device::flex());
    let settings = super::AdamW { lr: 1e-2, beta_1: 0.9, beta_2: 0.99, eps: 1e-8, weight_decay: 0.1, time: 3, gradient_scale: 0.5 };
    let moments = || super::Moments { first: leaf(2), second: leaf(3).abs() };
    let (fused, fused_moments) = super::adamw(settings, leaf(0), leaf(1), moments());
    let (composed, composed_moments) = super::adamw::composed(settings, leaf(0), leaf(1), moments());
    close("parameter", &values(fused), &values(composed));
    close("first moment", &values(fused_moments.first), &values(composed_moments.first));
    close("second moment", &values(fused_moments.second), &values(composed_moments.second));
    let expected: f64 = random(40, 1).iter().map(|&x| f64::from(x).powi(2)).sum();
    assert!((super::sums_of_squares(&[&leaf(1)])[0] - expected).abs() < 1e-5 * expected);
}

#[test]
fn products_equal_their_composition() {
    for n in [0, 1, 7] {
        let two = |mut leaves: Vec<Tensor<1>>, shape| (shaped(leaves.remove(0), [n, 3]), leaves.remove(0).reshape(shape));
        let composed = |x: Tensor<2>, weight: Tensor<2>| match n {
            0 => vec![Tensor::zeros([0], &x.device())],
            _ => vec![flat(x.matmul(weight))],
        };
        let straight = |leaves| two(leaves, [3, E]);
        let fused = |(x, weight)| vec![flat(super::product(x, weight))];
        compare(
            "product",
            &[3 * n, 3 * E],
            |leaves| fused(straight(leaves)),
            |leaves| {
                let (x, weight) = straight(leaves);
                composed(x, weight)
            },
        );
        let across = |leaves| two(leaves, [E, 3]);
        let fused = |(x, weight)| vec![flat(super::product_transposed(x, weight))];
        compare(
            "product_transposed",
            &[3 * n, 3 * E],
            |leaves| fused(across(leaves)),
            |leaves| {
                let (x, weight) = across(leaves);
                composed(x, weight.transpose())
            },
        );
    }
}

#[test]
fn activations_equal_their_composition() {
    compare(
        "bias_gelu",
        &[7 * E, E],
        |mut leaves| vec![flat(super::bias_gelu(shaped(leaves.remove(0), [7, E]), Some(leaves.remove(0))))],
        |mut leaves| vec![flat(super::gelu::composed_bias_gelu(shaped(leaves.remove(0), [7, E]), Some(leaves.remove(0))))],
    );
    compare(
        "bias_gated_gelu",
        &[14 * E, 2 * E, E],
        |mut leaves| vec![flat(super::bias_gated_gelu(shaped(leaves.remove(0), [7, 2 * E]), Some(leaves.remove(0)), leaves.remove(0)))],
        |mut leaves| {
            vec![flat(super::gelu::composed_bias_gated_gelu(
                shaped(leaves.remove(0), [7, 2 * E]),
                Some(leaves.remove(0)),
                leaves.remove(0),
            ))]
        },
    );
}

#[test]
fn activations_with_their_product_equal_their_composition() {
    const D: usize = 5;
    compare(
        "bias_gelu_product",
        &[7 * E, E, E * D],
        |mut leaves| {
            let (x, bias, weight) = (shaped(leaves.remove(0), [7, E]), leaves.remove(0), shaped(leaves.remove(0), [E, D]));
            vec![flat(super::bias_gelu_product(x, Some(bias), weight))]
        },
        |mut leaves| {
            let (x, bias, weight) = (shaped(leaves.remove(0), [7, E]), leaves.remove(0), shaped(leaves.remove(0), [E, D]));
            vec![flat(super::gelu::composed_bias_gelu(x, Some(bias)).matmul(weight))]
        },
    );
    let gated = |mut leaves: Vec<Tensor<1>>| {
        (shaped::<2>(leaves.remove(0), [7, 2 * E]), leaves.remove(0), leaves.remove(0), shaped::<2>(leaves.remove(0), [E, D]))
    };
    compare(
        "bias_gated_gelu_product",
        &[14 * E, 2 * E, E, E * D],
        |leaves| {
            let (x, bias, scale, weight) = gated(leaves);
            vec![flat(super::bias_gated_gelu_product(x, Some(bias), scale, weight))]
        },
        |leaves| {
            let (x, bias, scale, weight) = gated(leaves);
            vec![flat(super::gelu::composed_bias_gated_gelu(x, Some(bias), scale).matmul(weight))]
        },
    );
}

#[test]
fn dropout_equals_its_composition() {
    for probability in [0.0, 0.3] {
        let dropout = Dropout { probability, key: 17 };
        compare(
            "bias_dropout_residual",
            &[40 * E, E, 40 * E],
            |mut leaves| {
                let (x, bias, residual) = (leaves.remove(0), leaves.remove(0), leaves.remove(0));
                vec![flat(super::bias_dropout_residual(x.reshape([40, E]), Some(bias), Some(residual.reshape([40, E])), dropout))]
            },
            |mut leaves| {
                let (x, bias, residual) = (leaves.remove(0), leaves.remove(0), leaves.remove(0));
                vec![flat(super::dropout::composed(x.reshape([40, E]), Some(bias), Some(residual.reshape([40, E])), dropout))]
            },
        );
        compare(
            "dropout alone",
            &[40 * E],
            |mut leaves| vec![flat(super::bias_dropout_residual(shaped(leaves.remove(0), [40, E]), None, None, dropout))],
            |mut leaves| vec![flat(super::dropout::composed(shaped(leaves.remove(0), [40, E]), None, None, dropout))],
        );
    }
}

#[test]
fn cross_entropy_equals_its_composition() {
    let targets: Arc<[i32]> = vec![0, 4, 2, 2, 1, 3, 0].into();
    let mask: Arc<[f32]> = vec![1.0, 0.0, 0.5, 1.0, 1.0, 0.0, 2.0].into();
    for mask in [None, Some(mask)] {
        compare(
            "cross_entropy",
            &[7 * E],
            |mut leaves| vec![super::cross_entropy(shaped(leaves.remove(0), [7, E]), targets.clone(), mask.clone())],
            |mut leaves| vec![super::cross_entropy::composed(shaped(leaves.remove(0), [7, E]), &targets, mask.as_deref())],
        );
    }
}

#[test]
fn bf16_products_round_their_inputs_forward_and_backward_and_nothing_else() {
    use minrnn_kernels::product::bf16::has_bf16;
    use minrnn_kernels::reference::product::to_bf16;
    let (n, d, m) = (5, 33, 17);
    let run = |precision, rounded: bool| {
        let device = Device::flex().autodiff();
        let leaf = |rows: usize, columns: usize, index| {
            let values = random(rows * columns, index);
            let values: Vec<f32> = if rounded { values.into_iter().map(to_bf16).collect() } else { values };
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), &device).require_grad()
        };
        let (x, weight) = (leaf(n, d, 1), leaf(d, m, 2));
        // The upstream gradient is 1, which is exact in bf16.
        let y = super::with_precision(precision, || super::product(x.clone(), weight.clone()));
        let grads = y.clone().sum().backward();
        [values(y), values(x.grad(&grads).unwrap()), values(weight.grad(&grads).unwrap())]
    };
    let found = run(super::Precision::Bf16, false);
    let expected = run(super::Precision::F32, has_bf16());
    let plain = run(super::Precision::F32, false);
    for (i, name) in ["y", "d_x", "d_weight"].into_iter().enumerate() {
        close(name, &found[i], &expected[i]);
        assert_eq!(has_bf16(), found[i] != plain[i], "{name}: rounding shows exactly where there is bf16");
    }
    assert_eq!(run(super::Precision::F32, false)[0], plain[0], "the precision ends with its scope");
}

#[test]
fn wkv_equals_its_composition() {
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            let split = |leaves: Vec<Tensor<1>>| {
                let [r, k, v, decay, bonus, mean, log_weight]: [Tensor<1>; 7] = leaves.try_into().unwrap();
                let memory = super::WkvMemory { mean: shaped(mean, [B, E]), log_weight: shaped(log_weight, [B, E]) };
                ([r, k, v].map(|x| shaped(x, [B, seq_len, E])), decay, bonus, memory)
            };
            let all = |(y, memory): (Tensor<3>, super::WkvMemory)| vec![flat(y), flat(memory.mean), flat(memory.log_weight)];
            let sequence = B * seq_len * E;
            compare(
                &format!("wkv, T = {seq_len}, {steps:?}"),
                &[sequence, sequence, sequence, E, E, B * E, B * E],
                |leaves| {
                    let (inputs, decay, bonus, memory) = split(leaves);
                    all(super::wkv(inputs, decay, bonus, memory, &steps))
                },
                |leaves| {
                    let (inputs, decay, bonus, memory) = split(leaves);
                    all(super::wkv::composed(inputs, decay, bonus, memory, &steps))
                },
            );
        }
    }
}

#[test]
fn prefix_softmax_equals_its_composition() {
    const H: usize = 2;
    const E: usize = 6;
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            let split = |leaves: Vec<Tensor<1>>| {
                let [scores, values, mean, log_weight]: [Tensor<1>; 4] = leaves.try_into().unwrap();
                let memory = super::PrefixMemory { mean: shaped(mean, [B, E]), log_weight: shaped(log_weight, [B, H]) };
                (shaped(scores, [B, seq_len, H]), shaped(values, [B, seq_len, E]), memory)
            };
            let all = |(y, memory): (Tensor<3>, super::PrefixMemory)| vec![flat(y), flat(memory.mean), flat(memory.log_weight)];
            compare(
                &format!("prefix_softmax, T = {seq_len}, {steps:?}"),
                &[B * seq_len * H, B * seq_len * E, B * E, B * H],
                |leaves| {
                    let (scores, values, memory) = split(leaves);
                    all(super::prefix_softmax(scores, values, memory, &steps))
                },
                |leaves| {
                    let (scores, values, memory) = split(leaves);
                    all(super::prefix_softmax::composed(scores, values, memory, &steps))
                },
            );
        }
    }
}

#[test]
fn retention_equals_its_composition() {
    use super::{Features, Retention, RetentionState};
    const H: usize = 2;
    const K: usize = 4;
    const V: usize = 3;
    for (features, normalized) in [(Features::Rotary, false), (Features::EluPlusOne, true)] {
        let columns = V + usize::from(normalized);
        let form = Retention { features, decays: vec![0.75, 1.0], key_scale: 0.5, normalized };
        for seq_len in [0, 1, 7] {
            for steps in segments(seq_len) {
                let split = |leaves: Vec<Tensor<1>>| {
                    let [queries, keys, values, state]: [Tensor<1>; 4] = leaves.try_into().unwrap();
                    let position = Tensor::from_floats([[3.0], [0.0], [100.0]], &state.device());
                    // Sums of what is divided are positive.
                    let state = RetentionState { state: shaped(state.abs(), [B, H, K, columns]), position };
                    let keyed = |x| shaped(x, [B, seq_len, H * K]);
                    (keyed(queries), keyed(keys), shaped(values, [B, seq_len, H * V]), state)
                };
                let sequence = B * seq_len * H;
                compare(
                    &format!("retention, {features:?}, T = {seq_len}, {steps:?}"),
                    &[sequence * K, sequence * K, sequence * V, B * H * K * columns],
                    |leaves| {
                        let (q, k, v, state) = split(leaves);
                        let (y, state) = super::retention(&form, q, k, v, state, &steps);
                        vec![flat(y), flat(state.state)]
                    },
                    |leaves| {
                        let (q, k, v, state) = split(leaves);
                        let (y, state) = super::retention::composed(&form, [q, k, v], state.state, state.position, &steps);
                        vec![flat(y), flat(state)]
                    },
                );
            }
        }
    }
}

#[test]
fn slstm_equals_its_composition() {
    let (heads, width) = (2, 3);
    let e = heads * width;
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            for forget in [super::ForgetGate::Sigmoid, super::ForgetGate::Exponential] {
                let split = |mut leaves: Vec<Tensor<1>>| {
                    let state = |leaf: Option<Tensor<1>>| shaped(leaf.unwrap(), [B, e]);
                    let (m, n) = (state(leaves.pop()), state(leaves.pop()).abs() + 1.0);
                    let (c, h) = (state(leaves.pop()), state(leaves.pop()));
                    let bias = leaves.pop();
                    let weight = shaped(leaves.pop().unwrap(), [heads, 4 * width, width]);
                    (shaped(leaves.remove(0), [B, seq_len, 4 * e]), weight, bias, super::SLstmMemory { h, c, n, m })
                };
                let all = |(h, last): (Tensor<3>, super::SLstmMemory)| vec![flat(h), flat(last.h), flat(last.c), flat(last.n)];
                compare(
                    &format!("slstm {forget:?}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * 4 * e, 4 * e * width, 4 * e, B * e, B * e, B * e, B * e],
                    |leaves| {
                        let (preact, weight, bias, memory) = split(leaves);
                        all(super::slstm(preact, weight, bias, forget, memory, &steps))
                    },
                    |leaves| {
                        let (preact, weight, bias, memory) = split(leaves);
                        all(super::slstm::composed(preact, weight, bias, forget, memory, &steps))
                    },
                );
            }
        }
    }
}

#[test]
fn mlstm_equals_its_composition() {
    let (heads, width) = (2, 3);
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            let split = |mut leaves: Vec<Tensor<1>>| {
                let m = shaped(leaves.pop().unwrap(), [B, heads]);
                let n = shaped(leaves.pop().unwrap(), [B, heads, width]);
                let c = shaped(leaves.pop().unwrap(), [B, heads, width, width]);
                let gates = shaped(leaves.pop().unwrap(), [B, seq_len, 2 * heads]);
                let mut sequence = || shaped(leaves.remove(0), [B, seq_len, heads * width]);
                ([sequence(), sequence(), sequence()], gates, super::MLstmMemory { c, n, m })
            };
            let all = |(h, last): (Tensor<3>, super::MLstmMemory)| vec![flat(h), flat(last.c), flat(last.n)];
            let (sequence, memory) = (B * seq_len * heads * width, B * heads * width);
            compare(
                &format!("mlstm, T = {seq_len}, {steps:?}"),
                &[sequence, sequence, sequence, B * seq_len * 2 * heads, memory * width, memory, B * heads],
                |leaves| {
                    let ([q, k, v], gates, memory) = split(leaves);
                    all(super::mlstm(q, k, v, gates, memory, &steps))
                },
                |leaves| {
                    let ([q, k, v], gates, memory) = split(leaves);
                    all(super::mlstm::composed(q, k, v, gates, memory, &steps))
                },
            );
        }
    }
}

#[test]
fn the_other_parts_of_an_xlstm_block_equal_their_composition() {
    let three = |leaves: &mut Vec<Tensor<1>>| shaped(leaves.remove(0), [2, 3, 6]);
    compare(
        "head_norm",
        &[36, 6],
        |mut leaves| vec![flat(super::head_norm(three(&mut leaves), leaves.remove(0), 2, 1e-5))],
        |mut leaves| vec![flat(super::head_norm::composed(three(&mut leaves), leaves.remove(0), 2, 1e-5))],
    );
    compare(
        "block_diagonal",
        &[36, 24],
        |mut leaves| vec![flat(super::block_diagonal(three(&mut leaves), shaped(leaves.remove(0), [2, 4, 3])))],
        |mut leaves| vec![flat(super::block_diagonal::composed(three(&mut leaves), shaped(leaves.remove(0), [2, 4, 3])))],
    );
    let gate = |mut leaves: Vec<Tensor<1>>| (three(&mut leaves), three(&mut leaves), leaves.remove(1), three(&mut leaves));
    compare(
        "skip_gate",
        &[36, 36, 36, 6],
        |leaves| {
            let (y, c, skip, z) = gate(leaves);
            vec![flat(super::skip_gate(y, c, skip, z))]
        },
        |leaves| {
            let (y, c, skip, z) = gate(leaves);
            vec![flat(super::skip_gate::composed_skip_gate(y, c, skip, z))]
        },
    );
    compare(
        "silu",
        &[36],
        |mut leaves| vec![flat(super::silu(three(&mut leaves)))],
        |mut leaves| vec![flat(burn::tensor::activation::silu(three(&mut leaves)))],
    );
    compare(
        "gelu_gate",
        &[14 * E],
        |mut leaves| vec![flat(super::gelu_gate(shaped(leaves.remove(0), [7, 2 * E])))],
        |mut leaves| vec![flat(super::gelu::composed_gelu_gate(shaped(leaves.remove(0), [7, 2 * E])))],
    );
}

#[test]
fn attention_equals_its_composition() {
    const D: usize = 6;
    for (seq_len, past, next, window) in [(0, 2, 2, 9), (1, 1, 2, 9), (13, 4, 9, 99), (13, 3, 3, 3), (70, 1, 30, 17)] {
        for steps in segments(seq_len) {
            let plan = || AttentionPlan { heads: 2, window, lengths: vec![past, past / 2, 0], next };
            let split =
                |leaves: Vec<Tensor<1>>| (shaped(leaves[0].clone(), [B, seq_len, 3 * D]), shaped(leaves[1].clone(), [B, past, 2 * D]));
            let both = |(y, next)| vec![flat::<3>(y), flat::<3>(next)];
            compare(
                &format!("attention, T = {seq_len}, {:?}, {steps:?}", plan()),
                &[B * seq_len * 3 * D, B * past * 2 * D],
                |leaves| {
                    let (qkv, past) = split(leaves);
                    let (y, next) = super::attention(qkv, past, plan(), &steps);
                    both((real(y, &steps), next))
                },
                |leaves| {
                    let (qkv, past) = split(leaves);
                    let (y, next) = super::attention::composed(qkv, past, &plan(), &steps);
                    both((real(y, &steps), next))
                },
            );
        }
    }
}

/// Zeros at padding, whose outputs mean nothing.
fn real(y: Tensor<3>, steps: &StepCodes) -> Tensor<3> {
    match steps.padding_mask(&y.device()) {
        Some(padding) => y * (-padding + 1.0),
        None => y,
    }
}

#[test]
fn rotary_equals_its_composition() {
    let places: std::sync::Arc<[u32]> = (0..21).map(|i| i * i % 17).collect();
    for (turned, width) in [(8, 12), (12, 12), (0, 4)] {
        let layout = minrnn_kernels::rotary::Layout { head_width: 4, turned, width };
        let x = |leaves: Vec<Tensor<1>>| shaped(leaves[0].clone(), [B, 7, width]);
        compare(
            "rotary",
            &[21 * width],
            |leaves| vec![flat(super::rotary(x(leaves), places.clone(), 4, turned))],
            |leaves| vec![flat(super::rotary::composed(x(leaves), &places, layout))],
        );
    }
}

#[test]
fn state_space_equals_its_composition() {
    const N: usize = 3;
    for planes in [6, 10] {
        for seq_len in [0, 1, 2, 13] {
            for steps in segments(seq_len) {
                let lengths = [B * seq_len * E, planes * N * E, E, B * 2 * N * E];
                let what = format!("state_space of {planes} planes with T = {seq_len}, {steps:?}");
                let split = |mut leaves: Vec<Tensor<1>>| {
                    let x0 = shaped(leaves.remove(3), [B, 2 * N, E]);
                    // Small enough not to grow.
                    let parameters = shaped(leaves.remove(1), [planes, N, E]) * 0.25;
                    (shaped(leaves.remove(0), [B, seq_len, E]), parameters, leaves.remove(0), x0)
                };
                let both = |(y, x_last)| vec![flat(y), flat(x_last)];
                compare(
                    &what,
                    &lengths,
                    |leaves| {
                        let (u, parameters, skip, x0) = split(leaves);
                        both(super::state_space(u, parameters, skip, x0, &steps))
                    },
                    |leaves| {
                        let (u, parameters, skip, x0) = split(leaves);
                        both(super::state_space::composed(u, parameters, skip, x0, &steps))
                    },
                );
            }
        }
    }
}
