//! The linear recurrences and the traditional cells.

use super::*;

/// Compares a fused cell with the composed form of its `coefficients`, on inputs `[B, T, parts·E]` and `[parts·E]`.
fn equals_its_composition(
    what: &str,
    parts: usize,
    fused: impl Fn(Tensor<3>, Tensor<1>, Start, &StepCodes) -> (Tensor<3>, Tensor<2>),
    coefficients: impl Fn(Tensor<3>, Tensor<1>) -> (Tensor<3>, Tensor<3>),
) {
    let split = |mut leaves: Vec<Tensor<1>>, t: usize| {
        let start = start(&mut leaves);
        let bias = leaves.pop().expect("there is one");
        (shaped(leaves.remove(0), [B, t, parts * E]), bias, start)
    };
    recurrence(
        what,
        parts,
        |leaves, t, steps| {
            let (x, bias, start) = split(leaves, t);
            fused(x, bias, start, steps)
        },
        |leaves, t, steps| {
            let (x, bias, start) = split(leaves, t);
            let (a, b) = coefficients(x, bias);
            super::super::recurrence::composed(a, b, start, steps)
        },
    );
}

#[test]
fn min_gru_equals_its_composition() {
    for candidate in [Candidate::Positive, Candidate::Identity, Candidate::Tanh] {
        equals_its_composition(
            &format!("min_gru {candidate:?}"),
            2,
            |x, bias, start, steps| super::super::min_gru(x, Some(bias), candidate, start, steps),
            |x, bias| super::super::min_gru::coefficients(x, Some(bias), candidate),
        );
    }
}

#[test]
fn min_lstm_equals_its_composition() {
    for gates in [Gates::Normalized, Gates::Unnormalized] {
        equals_its_composition(
            &format!("min_lstm {gates:?}"),
            3,
            |x, bias, start, steps| super::super::min_lstm(x, Some(bias), Candidate::Positive, gates, start, steps),
            |x, bias| super::super::min_lstm::coefficients(x, Some(bias), Candidate::Positive, gates),
        );
    }
}

#[test]
fn signed_min_gru_equals_its_composition() {
    equals_its_composition(
        "signed_min_gru",
        3,
        |x, bias, start, steps| super::super::signed_min_gru(x, Some(bias), Candidate::Tanh, start, steps),
        |x, bias| super::super::signed_min_gru::coefficients(x, Some(bias), Candidate::Tanh),
    );
}

#[test]
fn decay_min_gru_equals_its_composition() {
    let exponent = |x: &Tensor<3>| x.clone().narrow(2, 2 * E, E).abs();
    let preact = |x: Tensor<3>, bias: Tensor<1>| (x.narrow(2, 0, 2 * E), Some(bias.narrow(0, 0, 2 * E)));
    equals_its_composition(
        "decay_min_gru",
        3,
        |x, bias, start, steps| {
            let (exponent, (x, bias)) = (exponent(&x), preact(x, bias));
            super::super::decay_min_gru(x, exponent, bias, Candidate::Positive, start, steps)
        },
        |x, bias| {
            let (exponent, (x, bias)) = (exponent(&x), preact(x, bias));
            super::super::decay_min_gru::coefficients(x, exponent, bias, Candidate::Positive)
        },
    );
}

#[test]
fn floored_min_gru_equals_its_composition() {
    let share = |bias: &Tensor<1>| burn::tensor::activation::sigmoid(bias.clone().narrow(0, 2 * E, E));
    let preact = |x: Tensor<3>, bias: Tensor<1>| (x.narrow(2, 0, 2 * E), Some(bias.narrow(0, 0, 2 * E)));
    equals_its_composition(
        "floored_min_gru",
        3,
        |x, bias, start, steps| {
            let (share, (x, bias)) = (share(&bias), preact(x, bias));
            super::super::floored_min_gru(x, bias, share, Candidate::Positive, start, steps)
        },
        |x, bias| {
            let (share, (x, bias)) = (share(&bias), preact(x, bias));
            super::super::floored_min_gru::coefficients(x, bias, share, Candidate::Positive)
        },
    );
}

#[test]
fn rg_lru_equals_its_composition() {
    let rate = |bias: &Tensor<1>| bias.clone().narrow(0, 0, E).abs() * 2.0;
    // No step is at position 0: the composition has no positions.
    let position = Tensor::ones([B, 1], &Device::flex().autodiff());
    let part = |x: &Tensor<3>, j: usize| x.clone().narrow(2, j * E, E);
    recurrence(
        "rg_lru",
        3,
        |mut leaves, t, steps| {
            let h = start(&mut leaves).h0.expect("there is one");
            let bias = leaves.pop().expect("there is one");
            let x = shaped(leaves.remove(0), [B, t, 3 * E]);
            let inputs = super::super::RgLru {
                x: part(&x, 0),
                recurrence_gate: part(&x, 1),
                input_gate: part(&x, 2),
                rate: rate(&bias),
                bias: bias.narrow(0, E, 2 * E),
            };
            let memory = super::super::RgLruMemory { h, position: position.clone() };
            let (h, memory) = super::super::rg_lru(inputs, memory, steps);
            (h, memory.h)
        },
        |mut leaves, t, steps| {
            let h0 = start(&mut leaves).h0;
            let bias = leaves.pop().expect("there is one");
            let x = shaped(leaves.remove(0), [B, t, 3 * E]);
            let rate = rate(&bias);
            let bias = Tensor::cat(vec![bias.clone().narrow(0, 0, E) * 0.0, bias.narrow(0, E, 2 * E)], 0);
            let endless = |mask: Tensor<3>| mask.zeros_like().mask_fill(mask.greater_scalar(0.0), f32::INFINITY);
            let x = match steps.reset_mask(&x.device()) {
                Some(reset) => Tensor::cat(vec![part(&x, 0), part(&x, 1) + endless(reset), part(&x, 2)], 2),
                None => x,
            };
            let (a, b) = super::super::rg_lru::coefficients(x, bias, rate);
            super::super::recurrence::composed(a, b, Start { h0, init: None }, steps)
        },
    );
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
        super::super::recurrence::composed(a.exp(), b.exp(), start, steps)
    };
    recurrence(
        "linear_scan",
        2,
        |leaves, t, steps| {
            let (a, b, start) = split(leaves, t);
            super::super::linear_scan(a.exp(), b.exp(), start, steps)
        },
        composed,
    );
    recurrence(
        "log_space_scan",
        2,
        |leaves, t, steps| {
            let (a, b, start) = split(leaves, t);
            super::super::log_space_scan(a, b, start, steps)
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
            let (a, b) = super::super::min_gru_log_coefficients(preact, bias);
            both(super::super::log_space_scan(a, b, start, steps))
        },
        |leaves| {
            let (preact, bias, start) = positive(leaves, 2);
            both(super::super::min_gru(preact, bias, Candidate::Positive, start, steps))
        },
    );
    for gates in [Gates::Normalized, Gates::Unnormalized] {
        compare(
            "minLSTM in log space",
            &lengths(3),
            |leaves| {
                let (preact, bias, start) = positive(leaves, 3);
                let (a, b) = super::super::min_lstm_log_coefficients(preact, bias, gates);
                both(super::super::log_space_scan(a, b, start, steps))
            },
            |leaves| {
                let (preact, bias, start) = positive(leaves, 3);
                both(super::super::min_lstm(preact, bias, Candidate::Positive, gates, start, steps))
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
                        both(super::super::gru(form, preact, bias, weight, recurrent_bias, start, &steps))
                    },
                    |leaves| {
                        let (preact, bias, weight, recurrent_bias, start) = split(leaves);
                        both(super::super::gru::composed(form, preact, bias, weight, recurrent_bias, start, &steps))
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
            let all = |(h, h_last, c_last): super::super::LstmOutputs| vec![flat(h), flat(h_last), flat(c_last)];
            compare(
                &format!("lstm, T = {seq_len}, {steps:?}"),
                &[B * seq_len * 4 * E, 4 * E * E, 4 * E, 4 * E, B * E, E, B * E, E],
                |leaves| {
                    let (preact, bias, weight, recurrent_bias, hidden, cell) = split(leaves);
                    all(super::super::lstm(preact, bias, weight, recurrent_bias, hidden, cell, &steps))
                },
                |leaves| {
                    let (preact, bias, weight, recurrent_bias, hidden, cell) = split(leaves);
                    all(super::super::lstm::composed(preact, bias, weight, recurrent_bias, hidden, cell, &steps))
                },
            );
        }
    }
}
