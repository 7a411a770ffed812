//! What follows the backward pass: clipping by the global norm and AdamW.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Gradients, Tensor};
use minrnn::model::LanguageModel;

const LEARNING_RATE: f64 = 1e-3;
const CLIP_NORM: f64 = 0.25;

/// AdamW with the settings of the peers.
pub struct Optimizer(ModuleOptimizer);

impl Optimizer {
    /// Before the first iteration.
    pub fn new() -> Self {
        Self(AdamWConfig::new().with_beta_1(0.9).with_beta_2(0.99).with_epsilon(1e-8).with_weight_decay(0.1).init())
    }

    /// The model after one step against `gradients`.
    pub fn update(&mut self, model: LanguageModel, gradients: Gradients) -> LanguageModel {
        let mut gradients = GradientsParams::from_grads(gradients, &model);
        let mut norm = SumOfSquares { gradients: &gradients, total: 0.0 };
        model.visit(&mut norm);
        let norm = norm.total.sqrt();
        if norm > CLIP_NORM {
            model.visit(&mut Scale { gradients: &mut gradients, factor: CLIP_NORM / (norm + 1e-6) });
        }
        self.0.step(LEARNING_RATE, model, gradients)
    }
}

struct SumOfSquares<'a> {
    gradients: &'a GradientsParams,
    total: f64,
}

impl ModuleVisitor for SumOfSquares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return };
        let values: Vec<f32> = gradient.into_data().try_to_vec().expect("gradients are f32");
        self.total += values.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    }
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register(param.id, gradient.mul_scalar(self.factor));
        }
    }
}
