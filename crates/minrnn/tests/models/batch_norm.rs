//! BatchNorm: statistics over real steps only, running statistics by PyTorch's formula.

use crate::common::{OUTPUT, assert_close, parameters, random, random_tensor, values};
use burn::tensor::{Device, Tensor, TensorData};
use minrnn::Segments;
use minrnn::nn::{Initializer, Mode, Norm};
use minrnn::ops::StepCodes;
use minrnn_model::NormKind;

const TRAIN: Mode = Mode::Train { dropout_key: 0 };
const WIDTH: usize = 3;

fn norm() -> Norm {
    crate::common::perturbed(Norm::new(NormKind::Batch, WIDTH, &mut Initializer::new(0, &Device::flex())))
}

/// The values of a parameter or running statistic.
fn named(norm: &Norm, name: &str) -> Vec<f32> {
    parameters(norm).into_iter().find(|(found, _)| found == name).expect("a tensor of the norm").1
}

/// Mean and biased variance of each channel of `[N, D]`, in f64.
fn statistics(x: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let n = (x.len() / WIDTH) as f64;
    let column = |c: usize| x.iter().skip(c).step_by(WIDTH).map(|&x| f64::from(x));
    let mean: Vec<f64> = (0..WIDTH).map(|c| column(c).sum::<f64>() / n).collect();
    let var = (0..WIDTH).map(|c| column(c).map(|x| (x - mean[c]).powi(2)).sum::<f64>() / n).collect();
    (mean, var)
}

#[test]
fn training_normalises_by_the_batch() {
    let norm = norm();
    let x = random_tensor([2, 5, WIDTH], 1, &Device::flex());
    let (mean, var) = statistics(&values(x.clone()));
    let (gain, bias) = (named(&norm, "weight"), named(&norm, "bias"));
    let each = |(i, x): (usize, f32)| {
        let c = i % WIDTH;
        ((f64::from(x) - mean[c]) / (var[c] + 1e-5).sqrt()) as f32 * gain[c] + bias[c]
    };
    let expected: Vec<f32> = values(x.clone()).into_iter().enumerate().map(each).collect();
    assert_close("y", &values(norm.forward(x, &StepCodes::dense(), TRAIN)), &expected, OUTPUT);
}

#[test]
fn running_statistics_follow_the_formula_of_pytorch() {
    let norm = norm();
    for iteration in 0..3 {
        let x = random_tensor([2, 5, WIDTH], 10 + iteration, &Device::flex());
        let (mean, var) = statistics(&values(x.clone()));
        let blend = |running: Vec<f32>, batch: Vec<f64>| -> Vec<f32> {
            running.into_iter().zip(batch).map(|(running, batch)| (0.1 * f64::from(running) + 0.9 * batch) as f32).collect()
        };
        // The variance kept is the unbiased one: 10 values, 9 degrees of freedom.
        let expected_mean = blend(named(&norm, "running_mean"), mean);
        let expected_var = blend(named(&norm, "running_var"), var.into_iter().map(|var| var * 10.0 / 9.0).collect());
        norm.forward(x, &StepCodes::dense(), TRAIN);
        assert_close("running mean as saved", &named(&norm, "running_mean"), &expected_mean, OUTPUT);
        assert_close("running variance as saved", &named(&norm, "running_var"), &expected_var, OUTPUT);
    }
}

#[test]
fn evaluation_uses_the_running_statistics_and_leaves_them() {
    let norm = norm();
    norm.forward(random_tensor([2, 5, WIDTH], 1, &Device::flex()), &StepCodes::dense(), TRAIN);
    let before = parameters(&norm);
    let [gain, bias, mean, var] = ["weight", "bias", "running_mean", "running_var"].map(|name| named(&norm, name));
    let x = random_tensor([1, 4, WIDTH], 2, &Device::flex());
    let each = |(i, x): (usize, f32)| {
        let c = i % WIDTH;
        (x - mean[c]) / (var[c] + 1e-5).sqrt() * gain[c] + bias[c]
    };
    let expected: Vec<f32> = values(x.clone()).into_iter().enumerate().map(each).collect();
    assert_close("y", &values(norm.forward(x, &StepCodes::dense(), Mode::Evaluate)), &expected, OUTPUT);
    assert_eq!(parameters(&norm), before);
}

#[test]
fn padding_does_not_count() {
    let lengths = [4, 0, 2];
    let seq_len = 5;
    let real = random(6 * WIDTH, 3);
    let mut padded = vec![1e4; 3 * seq_len * WIDTH];
    padded[..4 * WIDTH].copy_from_slice(&real[..4 * WIDTH]);
    padded[2 * seq_len * WIDTH..][..2 * WIDTH].copy_from_slice(&real[4 * WIDTH..]);
    let tensor = |x: Vec<f32>, batch, seq_len| Tensor::<3>::from_data(TensorData::new(x, [batch, seq_len, WIDTH]), &Device::flex());

    let (alone, together) = (norm(), norm());
    let expected = values(alone.forward(tensor(real, 1, 6), &StepCodes::dense(), TRAIN));
    let steps = Segments::from_lengths(lengths.to_vec()).steps(3, seq_len).unwrap();
    let y = values(together.forward(tensor(padded, 3, seq_len), &steps, TRAIN));
    let found = [&y[..4 * WIDTH], &y[2 * seq_len * WIDTH..][..2 * WIDTH]].concat();
    assert_close("y", &found, &expected, OUTPUT);
    for name in ["running_mean", "running_var"] {
        assert_close(name, &named(&together, name), &named(&alone, name), OUTPUT);
    }
}

#[test]
fn a_batch_of_nothing_but_padding_changes_no_statistic() {
    let norm = norm();
    let before = parameters(&norm);
    let steps = Segments::from_lengths(vec![0, 0]).steps(2, 3).unwrap();
    norm.forward(random_tensor([2, 3, WIDTH], 1, &Device::flex()), &steps, TRAIN);
    assert_eq!(parameters(&norm), before);
}
