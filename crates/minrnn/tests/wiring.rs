//! Wirings around inner layers against the blocks they come from, and their gradients against finite differences.

mod common;

use burn::tensor::{Tensor, TensorData};
use common::configs::small;
use common::subject::{Subject, blocks};
use common::{OUTPUT, assert_close, device, parameter_gradients, random, saved, values, with_parameters};
use minrnn::nn::{AnyMixer, Block};
use minrnn::ops::StepCodes;
use minrnn_model::{Candidate, FeedForwardKind, MixerKind, ModelConfig, S4Init, WiringKind};

const BATCH_SIZE: usize = 2;
const SEQ_LEN: usize = 9;
const D_MODEL: usize = common::D_MODEL;

fn block(config: &ModelConfig) -> Block<AnyMixer> {
    blocks(vec![config.clone()]).next().expect("a block").1
}

fn plain(mixer: MixerKind) -> ModelConfig {
    ModelConfig { ff: FeedForwardKind::None, d_state: 6, ..small(mixer) }
}

fn outputs(block: &Block<AnyMixer>, x: &[f32]) -> Tensor<3> {
    let x = Tensor::from_data(TensorData::new(x.to_vec(), [BATCH_SIZE, SEQ_LEN, D_MODEL]), &device());
    Subject::forward(block, x, block.init_state(BATCH_SIZE), &StepCodes::dense()).0
}

/// Asserts that `wired` equals `whole` with the same parameters; the mixer of `whole` holds those of the wiring, `of_wiring`, and those of
/// the inner layer.
fn assert_equal_blocks(whole: &ModelConfig, wired: &ModelConfig, of_wiring: &[&str]) {
    let whole = block(whole);
    let weights = saved(&whole);
    let moved = weights.names().map(|name| {
        let part = name.strip_prefix("mixer.").filter(|part| of_wiring.iter().any(|own| part.starts_with(own)));
        let tensor = weights.get(name).expect("listed");
        (part.map_or(name.to_owned(), |part| format!("wiring.{part}")), tensor.shape().to_vec(), tensor.data().to_vec())
    });
    let directory = tempfile::tempdir().expect("a temporary directory");
    let wired = with_parameters(block(wired), &directory.path().join("weights.safetensors"), moved);
    let x = random(BATCH_SIZE * SEQ_LEN * D_MODEL, 1);
    assert_close("outputs", &values(outputs(&wired, &x)), &values(outputs(&whole, &x)), OUTPUT);
}

#[test]
fn mamba_is_its_wiring_around_s6() {
    let wired = ModelConfig { wiring: WiringKind::Mamba, ..plain(MixerKind::S6) };
    assert_equal_blocks(&plain(MixerKind::Mamba), &wired, &["in_proj", "conv1d", "out_proj"]);
}

#[test]
fn h3_is_its_wiring_around_s4d() {
    let wired = ModelConfig { wiring: WiringKind::H3, s4_init: S4Init::Lin, ..plain(MixerKind::S4d) };
    assert_equal_blocks(&plain(MixerKind::H3), &wired, &["in_proj", "shift_ssm", "out_proj"]);
}

/// Along a random direction of the input and of each parameter, by central differences.
#[test]
fn gradients_are_those_of_finite_differences() {
    const STEP: f32 = 5e-3;
    for wiring in [WiringKind::H3, WiringKind::Mamba] {
        for mixer in [MixerKind::MinGru, MixerKind::S6, MixerKind::S4, MixerKind::HyenaFilter] {
            // The positive candidate has a kink, where finite differences do not give the derivative.
            let block = block(&ModelConfig { wiring, max_seq_len: 7, candidate: Candidate::Tanh, ..plain(mixer) });
            let x = random(BATCH_SIZE * SEQ_LEN * D_MODEL, 1);
            let weigh = |y: Tensor<3>| {
                let weights = TensorData::new(random(y.shape().num_elements(), 2), y.dims());
                (y.clone() * Tensor::from_data(weights, &device())).sum()
            };
            let loss = |block: &Block<AnyMixer>, x: &[f32]| -> f64 {
                let (y, weights) = (values(outputs(block, x)), random(x.len(), 2));
                y.iter().zip(weights).map(|(&y, weight)| f64::from(y) * f64::from(weight)).sum()
            };
            let check = |what: &str, found: f64, [above, below]: [f64; 2]| {
                let expected = (above - below) / f64::from(2.0 * STEP);
                let limit = 2e-3 * expected.abs().max(1.0);
                assert!((found - expected).abs() <= limit, "{wiring} around {mixer}, {what}: {found}, expected {expected}");
            };
            let along = |gradient: &[f32], direction: &[f32]| -> f64 {
                gradient.iter().zip(direction).map(|(&g, &d)| f64::from(g) * f64::from(d)).sum()
            };

            let leaf = Tensor::<3>::from_data(TensorData::new(x.clone(), [BATCH_SIZE, SEQ_LEN, D_MODEL]), &device()).require_grad();
            let (y, _) = Subject::forward(&block, leaf.clone(), block.init_state(BATCH_SIZE), &StepCodes::dense());
            let gradients = weigh(y).backward();
            let direction = random(x.len(), 3);
            let moved = |sign: f32| x.iter().zip(&direction).map(|(x, d)| x + sign * STEP * d).collect::<Vec<_>>();
            let d_x = values(leaf.grad(&gradients).expect("the input has a gradient"));
            check("input", along(&d_x, &direction), [loss(&block, &moved(1.0)), loss(&block, &moved(-1.0))]);

            let weights = saved(&block);
            let directory = tempfile::tempdir().expect("a temporary directory");
            for (i, (name, gradient)) in parameter_gradients(&block, &gradients).into_iter().enumerate() {
                let direction = random(gradient.len(), 10 + i as u64);
                let losses = [1.0, -1.0].map(|sign| {
                    let moved = weights.names().map(|other| {
                        let tensor = weights.get(other).expect("listed");
                        let mut data = tensor.data().to_vec();
                        if other == name {
                            data.iter_mut().zip(&direction).for_each(|(value, d)| *value += sign * STEP * d);
                        }
                        (other.to_owned(), tensor.shape().to_vec(), data)
                    });
                    loss(&with_parameters(block.clone(), &directory.path().join("weights.safetensors"), moved), &x)
                });
                check(&name, along(&gradient, &direction), losses);
            }
        }
    }
}
