//! What surrounds a recurrence: convolution, norms, activations, matmuls, loss, optimiser.

use burn::tensor::FloatDType;

use super::*;

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
                vec![flat(super::super::highway(gate, gate_bias, value, value_bias, x))]
            },
            |leaves| {
                let (gate, gate_bias, value, value_bias, x) = split(leaves);
                vec![flat(super::super::highway::composed(gate, gate_bias, value, value_bias, x))]
            },
        );
    }
}

#[test]
fn silu_for_two_readers_equals_its_composition() {
    for rows in [0, 7] {
        compare(
            "silu_shared",
            &[rows * E],
            |leaves| {
                let (y, same) = super::super::silu_shared(shaped(leaves[0].clone(), [1, rows, E]));
                vec![flat(y), flat(same)]
            },
            |leaves| vec![super::super::silu::composed(leaves[0].clone()), super::super::silu::composed(leaves[0].clone())],
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
                |leaves| both(super::super::split(shaped(leaves[0].clone(), [rows, E]), at)),
                |leaves| both(super::super::split::composed(shaped(leaves[0].clone(), [rows, E]), at)),
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
                        both(super::super::causal_conv(x, weight, bias, window, &steps))
                    },
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        both(super::super::conv::composed(x, weight, bias, window, &steps))
                    },
                );
                compare(
                    &format!("causal_conv_residual, K = {kernel_size}, T = {seq_len}, {steps:?}"),
                    &[B * seq_len * E, E * kernel_size, E, B * (kernel_size - 1) * E],
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        let (y, window, x) = super::super::causal_conv_residual(x, weight, bias, window, &steps, FloatDType::F32);
                        vec![flat(y), flat(window), flat(x)]
                    },
                    |leaves| {
                        let (x, weight, bias, window) = split(leaves);
                        let (y, window) = super::super::conv::composed(x.clone(), weight, bias, window, &steps);
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
        |mut leaves| vec![flat(super::super::layer_norm(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5))],
        |mut leaves| vec![flat(super::super::norm::composed_layer_norm(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5))],
    );
    compare(
        "rms_norm",
        &[6 * E, E],
        |mut leaves| vec![flat(super::super::rms_norm(three(&mut leaves), leaves.remove(0)))],
        |mut leaves| vec![flat(super::super::norm::composed_rms_norm(three(&mut leaves), leaves.remove(0)))],
    );
    let both = |(y, x)| vec![flat::<3>(y), flat::<3>(x)];
    compare(
        "layer_norm_residual",
        &[6 * E, E, E],
        |mut leaves| both(super::super::layer_norm_residual(three(&mut leaves), leaves.remove(0), leaves.remove(0), 1e-5, FloatDType::F32)),
        |mut leaves| {
            let x = three(&mut leaves);
            both((super::super::norm::composed_layer_norm(x.clone(), leaves.remove(0), leaves.remove(0), 1e-5), x))
        },
    );
    compare(
        "rms_norm_residual",
        &[6 * E, E],
        |mut leaves| both(super::super::rms_norm_residual(three(&mut leaves), leaves.remove(0), FloatDType::F32)),
        |mut leaves| {
            let x = three(&mut leaves);
            both((super::super::norm::composed_rms_norm(x.clone(), leaves.remove(0)), x))
        },
    );
}

/// 1e20 squared overflows f32.
#[test]
fn what_is_divided_by_a_root_that_overflowed_is_no_number_in_every_form() {
    let device = Device::flex();
    let row = || Tensor::<3>::from_floats([[[1e20, 1.0, -1e20, 2.0]]], &device);
    let ones = || Tensor::<1>::ones([4], &device);
    let all_nan = |name: &str, y: Tensor<3>| assert!(values(y).iter().all(|y| y.is_nan()), "{name}");
    all_nan("rms_norm", super::super::rms_norm(row(), ones()));
    all_nan("rms_norm, composed", super::super::norm::composed_rms_norm(row(), ones()));
    all_nan("layer_norm", super::super::layer_norm(row(), ones(), ones(), 1e-5));
    all_nan("layer_norm, composed", super::super::norm::composed_layer_norm(row(), ones(), ones(), 1e-5));
    all_nan("head_norm", super::super::head_norm(row(), ones(), 1, 1e-5));
    all_nan("head_norm, composed", super::super::head_norm::composed(row(), ones(), 1, 1e-5));
    let squares = row().powi_scalar(2).mean_dim(2);
    all_nan("over_root", super::super::over_root(row(), squares, 1e-5));
    // And nothing else is NaN.
    let small = Tensor::<3>::from_floats([[[1e18, 1.0, -1e18, 2.0]]], &device);
    let y = values(super::super::norm::composed_rms_norm(small, ones()));
    assert!(y.iter().all(|y| y.is_finite()), "{y:?}");
}

#[test]
fn embedding_equals_its_composition() {
    let tokens = || Tensor::from_data(TensorData::new(vec![0i64, 3, 1, 3, 3, 2], [2, 3]), &Device::flex().autodiff());
    compare(
        "embedding",
        &[4 * E],
        |mut leaves| vec![flat(super::super::embedding(tokens(), shaped(leaves.remove(0), [4, E])))],
        |mut leaves| vec![flat(super::super::embedding::composed(tokens(), shaped(leaves.remove(0), [4, E])))],
    );
}

#[test]
fn adamw_equals_its_composition() {
    let leaf = |index| Tensor::<1>::from_data(TensorData::new(random(40, index), [40]), &Device::flex());
    let settings = super::super::AdamW { lr: 1e-2, beta_1: 0.9, beta_2: 0.99, eps: 1e-8, weight_decay: 0.1, time: 3, gradient_scale: 0.5 };
    let moments = || super::super::Moments { first: leaf(2), second: leaf(3).abs() };
    let (fused, fused_moments) = super::super::adamw(settings, leaf(0), leaf(1), moments());
    let (composed, composed_moments) = super::super::adamw::composed(settings, leaf(0), leaf(1), moments());
    close("parameter", &values(fused), &values(composed));
    close("first moment", &values(fused_moments.first), &values(composed_moments.first));
    close("second moment", &values(fused_moments.second), &values(composed_moments.second));
    let expected: f64 = random(40, 1).iter().map(|&x| f64::from(x).powi(2)).sum();
    assert!((super::super::sums_of_squares(&[&leaf(1)])[0] - expected).abs() < 1e-5 * expected);
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
        let fused = |(x, weight)| vec![flat(super::super::matmul(x, weight))];
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
        let fused = |(x, weight)| vec![flat(super::super::matmul_transposed(x, weight))];
        compare(
            "matmul_transposed",
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
        |mut leaves| vec![flat(super::super::bias_gelu(shaped(leaves.remove(0), [7, E]), Some(leaves.remove(0))))],
        |mut leaves| vec![flat(super::super::gelu::composed_bias_gelu(shaped(leaves.remove(0), [7, E]), Some(leaves.remove(0))))],
    );
    compare(
        "bias_gated_gelu",
        &[14 * E, 2 * E, E],
        |mut leaves| {
            vec![flat(super::super::bias_gated_gelu(shaped(leaves.remove(0), [7, 2 * E]), Some(leaves.remove(0)), leaves.remove(0)))]
        },
        |mut leaves| {
            vec![flat(super::super::gelu::composed_bias_gated_gelu(
                shaped(leaves.remove(0), [7, 2 * E]),
                Some(leaves.remove(0)),
                leaves.remove(0),
            ))]
        },
    );
}

#[test]
fn swi_glu_equals_its_composition() {
    compare(
        "swi_glu",
        &[14 * E],
        |mut leaves| vec![flat(super::super::swi_glu(shaped(leaves.remove(0), [7, 2 * E])))],
        |mut leaves| vec![flat(super::super::swi_glu::composed(shaped(leaves.remove(0), [7, 2 * E])))],
    );
}

#[test]
fn activations_with_their_product_equal_their_composition() {
    const D: usize = 5;
    compare(
        "gelu_matmul",
        &[7 * E, E, E * D],
        |mut leaves| {
            let (x, bias, weight) = (shaped(leaves.remove(0), [7, E]), leaves.remove(0), shaped(leaves.remove(0), [E, D]));
            vec![flat(super::super::gelu_matmul(x, Some(bias), weight))]
        },
        |mut leaves| {
            let (x, bias, weight) = (shaped(leaves.remove(0), [7, E]), leaves.remove(0), shaped(leaves.remove(0), [E, D]));
            vec![flat(super::super::gelu::composed_bias_gelu(x, Some(bias)).matmul(weight))]
        },
    );
    let gated = |mut leaves: Vec<Tensor<1>>| {
        (shaped::<2>(leaves.remove(0), [7, 2 * E]), leaves.remove(0), leaves.remove(0), shaped::<2>(leaves.remove(0), [E, D]))
    };
    compare(
        "gated_gelu_matmul",
        &[14 * E, 2 * E, E, E * D],
        |leaves| {
            let (x, bias, scale, weight) = gated(leaves);
            vec![flat(super::super::gated_gelu_matmul(x, Some(bias), scale, weight))]
        },
        |leaves| {
            let (x, bias, scale, weight) = gated(leaves);
            vec![flat(super::super::gelu::composed_bias_gated_gelu(x, Some(bias), scale).matmul(weight))]
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
                vec![flat(super::super::bias_dropout_residual(x.reshape([40, E]), Some(bias), Some(residual.reshape([40, E])), dropout))]
            },
            |mut leaves| {
                let (x, bias, residual) = (leaves.remove(0), leaves.remove(0), leaves.remove(0));
                vec![flat(super::super::dropout::composed(x.reshape([40, E]), Some(bias), Some(residual.reshape([40, E])), dropout))]
            },
        );
        compare(
            "dropout alone",
            &[40 * E],
            |mut leaves| vec![flat(super::super::bias_dropout_residual(shaped(leaves.remove(0), [40, E]), None, None, dropout))],
            |mut leaves| vec![flat(super::super::dropout::composed(shaped(leaves.remove(0), [40, E]), None, None, dropout))],
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
            |mut leaves| vec![super::super::cross_entropy(shaped(leaves.remove(0), [7, E]), targets.clone(), mask.clone())],
            |mut leaves| vec![super::super::cross_entropy::composed(shaped(leaves.remove(0), [7, E]), &targets, mask.as_deref())],
        );
    }
}

#[test]
fn bf16_products_round_their_inputs_forward_and_backward_and_nothing_else() {
    use minrnn_kernels::matmul::bf16::has_bf16;
    use minrnn_kernels::reference::bf16::to_bf16;
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
        let y = super::super::with_precision(precision, || super::super::matmul(x.clone(), weight.clone()));
        let grads = y.clone().sum().backward();
        [values(y), values(x.grad(&grads).unwrap()), values(weight.grad(&grads).unwrap())]
    };
    let found = run(super::super::Precision::Bf16, false);
    let expected = run(super::super::Precision::F32, has_bf16());
    let plain = run(super::super::Precision::F32, false);
    for (i, name) in ["y", "d_x", "d_weight"].into_iter().enumerate() {
        close(name, &found[i], &expected[i]);
        assert_eq!(has_bf16(), found[i] != plain[i], "{name}: rounding shows exactly where there is bf16");
    }
    assert_eq!(run(super::super::Precision::F32, false)[0], plain[0], "the precision ends with its scope");
}
