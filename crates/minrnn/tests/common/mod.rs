//! Shared by the library's integration tests: the tolerance table, reproducible values, parameters and gradients by name.
//!
//! Letters: B batch, T time, D d_model, V vocabulary.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub mod configs;
pub mod laws;
pub mod subject;

use std::path::Path;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use minrnn::checkpoint::{load_weights, save_weights};
use minrnn::rng::{Purpose, stream};
use minrnn_model::Weights;
use rand::Rng;

/// Outputs, final states and losses: |error| ≤ this · max(1, rms, |expected|).
pub const OUTPUT: f64 = 1e-5;
/// Gradients, by the same measure.
pub const GRADIENT: f64 = 1e-4;

/// Width D of every small model.
pub const D_MODEL: usize = 8;
/// Vocabulary V of every small model.
pub const VOCAB_SIZE: usize = 11;

/// Values by name.
pub type Named = Vec<(String, Vec<f32>)>;

/// The CPU, with gradients.
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// `len` values uniform in [−1, 1), the same for the same `index`.
pub fn random(len: usize, index: u64) -> Vec<f32> {
    let mut rng = stream(7, Purpose::Bench, index);
    (0..len).map(|_| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// A tensor of such values.
pub fn random_tensor<const D: usize>(shape: [usize; D], index: u64, device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(random(shape.iter().product(), index), shape), device)
}

/// `len` numbers below `n`.
pub fn random_below(n: usize, len: usize, index: u64) -> Vec<usize> {
    let mut rng = stream(8, Purpose::Bench, index);
    (0..len).map(|_| rng.next_u32() as usize % n).collect()
}

/// `[B, T]` tokens below V.
pub fn random_tokens(batch_size: usize, seq_len: usize, index: u64, device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i64> = random_below(VOCAB_SIZE, batch_size * seq_len, index).into_iter().map(|token| token as i64).collect();
    Tensor::from_data(TensorData::new(tokens, [batch_size, seq_len]), device)
}

/// The elements of a tensor.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// The bits of `values`: those of 0 and −0 differ. None may be NaN, which unwritten buffers contain.
#[track_caller]
pub fn bits(values: &[f32]) -> Vec<u32> {
    assert!(!values.iter().any(|x| x.is_nan()), "some are no numbers: {values:?}");
    values.iter().map(|x| x.to_bits()).collect()
}

/// Largest |found − expected| / max(1, largest |expected|); infinite if one is NaN.
#[track_caller]
pub fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len(), "number of values");
    let largest = expected.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
    let errors = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    errors.map(|error| if error.is_nan() { f32::INFINITY } else { error }).fold(0.0, f32::max)
}

/// Asserts |actual − expected| ≤ `tolerance` · max(1, rms(expected)) everywhere.
#[track_caller]
pub fn assert_close(what: &str, actual: &[f32], expected: &[f32], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}: number of values");
    let mean_square = expected.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / expected.len().max(1) as f64;
    for (i, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        let limit = tolerance * mean_square.sqrt().max(1.0).max(f64::from(e).abs());
        let error = (f64::from(a) - f64::from(e)).abs();
        assert!(error <= limit, "{what}[{i}]: found {a}, expected {e}, tolerance {limit:.1e}");
    }
}

/// The same for values by name; the names must agree too.
#[track_caller]
pub fn assert_all_close(what: &str, actual: &Named, expected: &Named, tolerance: f64) {
    let names = |named: &Named| named.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(actual), names(expected), "{what}");
    for ((name, actual), (_, expected)) in actual.iter().zip(expected) {
        assert_close(&format!("{what}: {name}"), actual, expected, tolerance);
    }
}

/// The gradient of every parameter, named and laid out as in files; zeros where none arrived.
pub fn parameter_gradients<M: Module>(module: &M, gradients: &Gradients) -> Named {
    struct Collect<'a> {
        path: Vec<(String, String)>,
        gradients: &'a Gradients,
        found: Named,
    }
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let name = self.path.iter().filter(|(_, container)| !container.starts_with("Enum:"));
            let name = name.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
            if name.contains("running_") {
                return;
            }
            let value = param.val();
            let gradient = value.grad(self.gradients).unwrap_or_else(|| value.inner().zeros_like());
            let linear = self.path.last().is_some_and(|(name, container)| name == "weight" && container == "Struct:Linear");
            self.found.push((name, values(if linear { gradient.transpose() } else { gradient })));
        }

        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.push((name.to_owned(), container.to_owned()));
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
    }
    let mut collect = Collect { path: Vec::new(), gradients, found: Vec::new() };
    module.visit(&mut collect);
    collect.found
}

/// Every parameter and running statistic, by name.
pub fn parameters<M: Module>(module: &M) -> Named {
    let weights = saved(module);
    weights.names().map(|name| (name.to_owned(), weights.get(name).expect("listed").data().to_vec())).collect()
}

/// What `save_weights` writes for a module.
pub fn saved<M: Module>(module: &M) -> Weights {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("weights.safetensors");
    save_weights(module, &path).expect("the weights are written");
    Weights::read(&path).expect("the weights are read back")
}

/// `module` with the parameters `named`, whose shapes are the module's own.
pub fn with_parameters<M: Module>(module: M, path: &Path, named: impl IntoIterator<Item = (String, Vec<usize>, Vec<f32>)>) -> M {
    let tensors = named.into_iter().map(|(name, shape, data)| (name, shape, data.into()));
    minrnn_model::write_safetensors(path, tensors, None).expect("the weights are written");
    let mut weights = Weights::read(path).expect("the weights are read back");
    let module = load_weights(module, &mut weights).expect("every parameter is there");
    weights.expect_empty().expect("nothing is left over");
    module
}

/// `module` with noise on every parameter and running statistic, so that none has a neutral value such as 0 or 1.
pub fn perturbed<M: Module>(module: M) -> M {
    struct Noise(u64);
    impl ModuleMapper for Noise {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            let old = param.val();
            let (shape, device, required) = (old.dims(), old.device(), old.is_require_grad());
            let noise = random(shape.iter().product(), 1000 + self.0);
            let new = values(old).into_iter().zip(noise).map(|(x, noise)| x + 0.2 * noise).collect::<Vec<_>>();
            let new = Tensor::from_data(TensorData::new(new, shape), &device);
            param.map(|_| new.set_require_grad(required))
        }
    }
    module.map(&mut Noise(0))
}
