//! The recurrences and parts of the other mixers.

use super::*;

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
                    both(super::super::delta(x, memory, &steps))
                },
                |leaves| {
                    let (x, memory) = split(leaves);
                    both(super::super::delta::composed(x, memory, &steps))
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
            // Without steps and a carried state nothing depends on the leaves.
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
                    |leaves| both(super::super::selective_scan(scan(leaves), &steps)),
                    |leaves| both(super::super::selective_scan::composed(scan(leaves), &steps)),
                );
            }
        }
    }
}

#[test]
fn wkv_equals_its_composition() {
    for seq_len in [0, 1, 7] {
        for steps in segments(seq_len) {
            let split = |leaves: Vec<Tensor<1>>| {
                let [r, k, v, decay, bonus, mean, log_weight]: [Tensor<1>; 7] = leaves.try_into().unwrap();
                let memory = super::super::Rwkv4Memory { mean: shaped(mean, [B, E]), log_weight: shaped(log_weight, [B, E]) };
                ([r, k, v].map(|x| shaped(x, [B, seq_len, E])), decay, bonus, memory)
            };
            let all = |(y, memory): (Tensor<3>, super::super::Rwkv4Memory)| vec![flat(y), flat(memory.mean), flat(memory.log_weight)];
            let sequence = B * seq_len * E;
            compare(
                &format!("wkv, T = {seq_len}, {steps:?}"),
                &[sequence, sequence, sequence, E, E, B * E, B * E],
                |leaves| {
                    let (inputs, decay, bonus, memory) = split(leaves);
                    all(super::super::rwkv4(inputs, decay, bonus, memory, &steps))
                },
                |leaves| {
                    let (inputs, decay, bonus, memory) = split(leaves);
                    all(super::super::rwkv4::composed(inputs, decay, bonus, memory, &steps))
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
                let memory = super::super::PrefixMemory { mean: shaped(mean, [B, E]), log_weight: shaped(log_weight, [B, H]) };
                (shaped(scores, [B, seq_len, H]), shaped(values, [B, seq_len, E]), memory)
            };
            let all = |(y, memory): (Tensor<3>, super::super::PrefixMemory)| vec![flat(y), flat(memory.mean), flat(memory.log_weight)];
            compare(
                &format!("prefix_softmax, T = {seq_len}, {steps:?}"),
                &[B * seq_len * H, B * seq_len * E, B * E, B * H],
                |leaves| {
                    let (scores, values, memory) = split(leaves);
                    all(super::super::prefix_softmax(scores, values, memory, &steps))
                },
                |leaves| {
                    let (scores, values, memory) = split(leaves);
                    all(super::super::prefix_softmax::composed(scores, values, memory, &steps))
                },
            );
        }
    }
}

#[test]
fn retention_equals_its_composition() {
    use super::super::{Features, Retention, RetentionState};
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
                    // Keeps the sums that are divided by positive.
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
                        let (y, state) = super::super::retention(&form, q, k, v, state, &steps);
                        vec![flat(y), flat(state.state)]
                    },
                    |leaves| {
                        let (q, k, v, state) = split(leaves);
                        let (y, state) = super::super::retention::composed(&form, [q, k, v], state.state, state.position, &steps);
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
            for forget in [super::super::ForgetGate::Sigmoid, super::super::ForgetGate::Exponential] {
                let split = |mut leaves: Vec<Tensor<1>>| {
                    let state = |leaf: Option<Tensor<1>>| shaped(leaf.unwrap(), [B, e]);
                    let (m, n) = (state(leaves.pop()), state(leaves.pop()).abs() + 1.0);
                    let (c, h) = (state(leaves.pop()), state(leaves.pop()));
                    let bias = leaves.pop();
                    let weight = shaped(leaves.pop().unwrap(), [heads, 4 * width, width]);
                    (shaped(leaves.remove(0), [B, seq_len, 4 * e]), weight, bias, super::super::SLstmMemory { h, c, n, m })
                };
                let all = |(h, last): (Tensor<3>, super::super::SLstmMemory)| vec![flat(h), flat(last.h), flat(last.c), flat(last.n)];
                compare(
                    &format!("slstm {forget:?}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * 4 * e, 4 * e * width, 4 * e, B * e, B * e, B * e, B * e],
                    |leaves| {
                        let (preact, weight, bias, memory) = split(leaves);
                        all(super::super::s_lstm(preact, weight, bias, forget, memory, &steps))
                    },
                    |leaves| {
                        let (preact, weight, bias, memory) = split(leaves);
                        all(super::super::s_lstm::composed(preact, weight, bias, forget, memory, &steps))
                    },
                );
            }
        }
    }
}

#[test]
fn mlstm_equals_its_composition() {
    let (heads, width) = (2, 3);
    for seq_len in [0, 1, 7, 130] {
        for steps in segments(seq_len) {
            let split = |mut leaves: Vec<Tensor<1>>| {
                let m = shaped(leaves.pop().unwrap(), [B, heads]);
                let n = shaped(leaves.pop().unwrap(), [B, heads, width]);
                let c = shaped(leaves.pop().unwrap(), [B, heads, width, width]);
                let gates = shaped(leaves.pop().unwrap(), [B, seq_len, 2 * heads]);
                let mut sequence = || shaped(leaves.remove(0), [B, seq_len, heads * width]);
                ([sequence(), sequence(), sequence()], gates, super::super::MLstmMemory { c, n, m })
            };
            let all = |(h, last): (Tensor<3>, super::super::MLstmMemory)| vec![flat(h), flat(last.c), flat(last.n)];
            let (sequence, memory) = (B * seq_len * heads * width, B * heads * width);
            compare(
                &format!("mlstm, T = {seq_len}, {steps:?}"),
                &[sequence, sequence, sequence, B * seq_len * 2 * heads, memory * width, memory, B * heads],
                |leaves| {
                    let ([q, k, v], gates, memory) = split(leaves);
                    all(super::super::m_lstm(q, k, v, gates, memory, &steps))
                },
                |leaves| {
                    let ([q, k, v], gates, memory) = split(leaves);
                    all(super::super::m_lstm::composed(q, k, v, gates, memory, &steps))
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
        |mut leaves| vec![flat(super::super::head_norm(three(&mut leaves), leaves.remove(0), 2, 1e-5))],
        |mut leaves| vec![flat(super::super::head_norm::composed(three(&mut leaves), leaves.remove(0), 2, 1e-5))],
    );
    compare(
        "block_diagonal",
        &[36, 24],
        |mut leaves| vec![flat(super::super::block_diagonal(three(&mut leaves), shaped(leaves.remove(0), [2, 4, 3])))],
        |mut leaves| vec![flat(super::super::block_diagonal::composed(three(&mut leaves), shaped(leaves.remove(0), [2, 4, 3])))],
    );
    let gate = |mut leaves: Vec<Tensor<1>>| (three(&mut leaves), three(&mut leaves), leaves.remove(1), three(&mut leaves));
    compare(
        "skip_gate",
        &[36, 36, 36, 6],
        |leaves| {
            let (y, c, skip, z) = gate(leaves);
            vec![flat(super::super::skip_gate(y, c, skip, z))]
        },
        |leaves| {
            let (y, c, skip, z) = gate(leaves);
            vec![flat(super::super::skip_gate::composed_skip_gate(y, c, skip, z))]
        },
    );
    compare(
        "silu",
        &[36],
        |mut leaves| vec![flat(super::super::silu(three(&mut leaves)))],
        |mut leaves| vec![flat(burn::tensor::activation::silu(three(&mut leaves)))],
    );
    compare(
        "gelu_gate",
        &[14 * E],
        |mut leaves| vec![flat(super::super::gelu_gate(shaped(leaves.remove(0), [7, 2 * E])))],
        |mut leaves| vec![flat(super::super::gelu::composed_gelu_gate(shaped(leaves.remove(0), [7, 2 * E])))],
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
                    let (y, next) = super::super::attention(qkv, past, plan(), &steps);
                    both((real(y, &steps), next))
                },
                |leaves| {
                    let (qkv, past) = split(leaves);
                    let (y, next) = super::super::attention::composed(qkv, past, &plan(), &steps);
                    both((real(y, &steps), next))
                },
            );
        }
    }
}

/// Sets outputs at padding, which are meaningless, to zero.
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
            |leaves| vec![flat(super::super::rotary(x(leaves), places.clone(), 4, turned))],
            |leaves| vec![flat(super::super::rotary::composed(x(leaves), &places, layout))],
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
                    // Small enough for the state not to grow.
                    let parameters = shaped(leaves.remove(1), [planes, N, E]) * 0.25;
                    (shaped(leaves.remove(0), [B, seq_len, E]), parameters, leaves.remove(0), x0)
                };
                let both = |(y, x_last)| vec![flat(y), flat(x_last)];
                compare(
                    &what,
                    &lengths,
                    |leaves| {
                        let (u, parameters, skip, x0) = split(leaves);
                        both(super::super::state_space(u, parameters, skip, x0, &steps))
                    },
                    |leaves| {
                        let (u, parameters, skip, x0) = split(leaves);
                        both(super::super::state_space::composed(u, parameters, skip, x0, &steps))
                    },
                );
            }
        }
    }
}
