//! The norms available to a block.

use burn::module::{Module, Param, RunningState};
use burn::tensor::{FloatDType, Tensor};
use minrnn_kernels::layer_norm::EPS;
use minrnn_model::{CheckedConfig, NormKind};

use super::init::Initializer;
use super::mode::Mode;
use crate::memory::activations::{Activations, Op};
use crate::ops::{StepCodes, layer_norm, layer_norm_residual, over_root, rms_norm, rms_norm_residual};

/// Share of the batch in the running statistics (PyTorch's meaning of momentum).
const MOMENTUM: f32 = 0.9;

/// LayerNorm, RMSNorm or BatchNorm over `[B, T, D]`.
#[derive(Module, Debug)]
pub enum Norm {
    /// γ ⊙ (x − mean) / √(variance + 1e−5) + β over channels.
    Layer(LayerNorm),
    /// (1 + γ) ⊙ x √D / ‖x‖ over channels; weight decay then pulls the gain towards 1.
    Rms(RmsNorm),
    /// As LayerNorm, but per channel over batch and time.
    Batch(BatchNorm),
}

/// Gain and bias of a LayerNorm.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// γ `[D]`.
    pub weight: Param<Tensor<1>>,
    /// β `[D]`, if there is one.
    pub bias: Option<Param<Tensor<1>>>,
}

impl LayerNorm {
    fn bias(&self) -> Tensor<1> {
        self.bias.as_ref().map_or_else(|| Tensor::zeros(self.weight.dims(), &self.weight.device()), Param::val)
    }
}

/// Gain offset of an RMSNorm.
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// γ `[D]`; the gain is 1 + γ.
    pub gamma: Param<Tensor<1>>,
    #[module(skip)]
    eps: f64,
}

impl RmsNorm {
    /// With ε, which the kernel does not support: (1 + γ) ⊙ x / √(mean x² + ε) from tensor operations.
    fn with_eps(&self, x: Tensor<3>) -> Tensor<3> {
        if x.shape().num_elements() == 0 {
            return x;
        }
        let mean_square = x.clone().powi_scalar(2).mean_dim(2);
        over_root(x, mean_square, self.eps) * (self.gamma.val() + 1.0).unsqueeze()
    }
}

/// Gain, bias and running statistics of a BatchNorm; padding does not count.
///
/// A clone shares the running statistics: a training pass of one, or loading weights into it, changes those of both. For a model with its
/// own statistics, build a new one and load the weights into it.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// γ `[D]`.
    pub weight: Param<Tensor<1>>,
    /// β `[D]`.
    pub bias: Param<Tensor<1>>,
    /// Mean of past batches `[D]`.
    pub running_mean: RunningState<Tensor<1>>,
    /// Variance of past batches `[D]`.
    pub running_var: RunningState<Tensor<1>>,
}

impl Norm {
    /// A new norm as described by `config`.
    pub fn for_model(config: &CheckedConfig, init: &mut Initializer) -> Self {
        match Self::new(config.norm, config.d_model, init) {
            Self::Layer(norm) if !config.bias => Self::Layer(LayerNorm { bias: None, ..norm }),
            Self::Rms(norm) => Self::Rms(RmsNorm { eps: config.rms_eps, ..norm }),
            norm => norm,
        }
    }

    /// A new norm of width `d_model`.
    pub fn new(kind: NormKind, d_model: usize, init: &mut Initializer) -> Self {
        match kind {
            NormKind::Layer => Self::Layer(LayerNorm { weight: init.constant([d_model], 1.0), bias: Some(init.constant([d_model], 0.0)) }),
            NormKind::Rms => Self::Rms(RmsNorm { gamma: init.constant([d_model], 0.0), eps: 0.0 }),
            NormKind::Batch => Self::Batch(BatchNorm {
                weight: init.constant([d_model], 1.0),
                bias: init.constant([d_model], 0.0),
                running_mean: RunningState::new(Tensor::zeros([d_model], init.device())),
                running_var: RunningState::new(Tensor::ones([d_model], init.device())),
            }),
        }
    }

    /// What the norm described by `config` keeps.
    pub(crate) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let d = config.d_model as u128;
        let keeps = match config.norm {
            // Composed of operations of Burn: x, and what the last products read.
            NormKind::Rms if config.rms_eps > 0.0 => 3,
            NormKind::Rms | NormKind::Layer => 1,
            // The masked x, the centred one with its mask and its square, and what the last products read.
            NormKind::Batch => 5,
        };
        list.op(Op { keeps: &[d; 5][..keeps], reads: d, gives: d, ..Op::default() });
    }

    /// Normalises `x` `[B, T, D]`.
    pub fn forward(&self, x: Tensor<3>, steps: &StepCodes, mode: Mode) -> Tensor<3> {
        match self {
            Self::Layer(norm) => layer_norm(x, norm.weight.val(), norm.bias(), EPS),
            Self::Rms(norm) if norm.eps > 0.0 => norm.with_eps(x),
            Self::Rms(norm) => rms_norm(x, norm.gamma.val()),
            Self::Batch(norm) => norm.forward(x, steps, mode),
        }
    }

    /// As [`forward`](Self::forward), but also returns `x` itself for the residual connection around what follows. If a kernel normalises,
    /// the first result is in `format`.
    pub fn forward_and_input(&self, x: Tensor<3>, steps: &StepCodes, mode: Mode, format: FloatDType) -> (Tensor<3>, Tensor<3>) {
        match self {
            Self::Layer(norm) => layer_norm_residual(x, norm.weight.val(), norm.bias(), EPS, format),
            Self::Rms(norm) if norm.eps > 0.0 => (norm.with_eps(x.clone()), x),
            Self::Rms(norm) => rms_norm_residual(x, norm.gamma.val(), format),
            Self::Batch(norm) => (norm.forward(x.clone(), steps, mode), x),
        }
    }
}

impl BatchNorm {
    fn forward(&self, x: Tensor<3>, steps: &StepCodes, mode: Mode) -> Tensor<3> {
        let (mean, var) = if mode.is_train() {
            let (mean, var, count) = batch_statistics(x.clone(), steps);
            if count > 0.0 {
                // The running variance is the unbiased one, as in PyTorch.
                let unbiased = var.clone() * (count / (count - 1.0).max(1.0));
                blend(&self.running_mean, mean.clone());
                blend(&self.running_var, unbiased);
            }
            (mean, var)
        } else {
            (self.running_mean.value_sync(), self.running_var.value_sync())
        };
        let scale = over_root(self.weight.val(), var, f64::from(EPS));
        (x - mean.unsqueeze()) * scale.unsqueeze() + self.bias.val().unsqueeze()
    }
}

/// running ← (1 − momentum) · running + momentum · batch.
fn blend(running: &RunningState<Tensor<1>>, batch: Tensor<1>) {
    running.update(running.value_sync() * (1.0 - MOMENTUM) + batch.detach() * MOMENTUM);
    // An update stays pending until the next read, and neither saving nor loading would see it.
    running.value_sync();
}

/// Mean and biased variance per channel over the real steps (0 where there is none), and their number.
fn batch_statistics(x: Tensor<3>, steps: &StepCodes) -> (Tensor<1>, Tensor<1>, f32) {
    let [batch, seq_len, width] = x.dims();
    let device = x.device();
    let real = steps.padding_mask(&device).map_or_else(|| Tensor::ones([batch, seq_len, 1], &device), |padding| -padding + 1.0);
    let count = real.clone().sum().into_scalar::<f32>();
    let over_steps = |x: Tensor<3>| x.sum_dim(1).sum_dim(0).reshape([width]) / count.max(1.0);
    let mean = over_steps(x.clone() * real.clone());
    let centred = (x - mean.clone().unsqueeze()) * real;
    (mean, over_steps(centred.powi_scalar(2)), count)
}
