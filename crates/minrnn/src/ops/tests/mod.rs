//! Every fused operation against its composed form: outputs, and the gradient of every input through every subset of the outputs.

mod layers;
mod mixers;
mod recurrences;

use std::fs;
use std::path::{Path, PathBuf};
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

/// Reshapes; Burn's own reshape reads a 0 as "unchanged".
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

/// Fails if an operation was added without a comparison.
#[test]
fn every_composed_form_is_compared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops");
    let sources = |folder: &Path| -> Vec<(String, String)> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let read = |path: PathBuf| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap());
        files.map(read).collect()
    };
    let tests: String = sources(&folder.join("tests")).into_iter().map(|(_, text)| text).collect();
    let mut found = 0;
    // If the CPU has no kernel either, there is nothing to compare.
    for (module, text) in sources(&folder).iter().filter(|(module, _)| module != "positive") {
        for definition in text.split("fn composed").skip(1) {
            let rest: String = definition.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
            let path = format!("super::super::{module}::composed{rest}(");
            assert!(tests.contains(&path), "{path}…) is in no test of this folder");
            found += 1;
        }
    }
    assert!(found > 25, "{found} composed forms are found");
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
