//! Gradients by name, their clipping, and AdamW with parameter groups.
//!
//! Moments are kept by parameter name and stored that way: Burn's own records go by random ids, which no other process knows.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{AdamW, AdamWConfig, AdamWState, AdaptiveMomentumState, Optimizer as _};
use burn::tensor::{Gradients, Tensor, TensorData};

use super::train_config::{DecayGroups, TrainConfig};
use crate::{Error, Result, parameters};

/// Added to the norm before dividing by it, as PyTorch does.
const CLIP_EPS: f64 = 1e-6;

/// The gradient of every parameter, flat, in the order of names.
#[derive(Debug, Clone, Default)]
pub struct GradientMap {
    gradients: BTreeMap<String, Tensor<1>>,
}

impl GradientMap {
    /// The gradients that `gradients` holds for the parameters of `module`.
    pub fn new<M: Module>(module: &M, gradients: &Gradients) -> Self {
        let mut map = BTreeMap::new();
        parameters::visit_tensors(module, |place, tensor| {
            if let Some(gradient) = tensor.gradient(gradients) {
                map.insert(place.name, gradient);
            }
        });
        Self { gradients: map }
    }

    /// Adds the gradients of another micro-step.
    pub fn add(&mut self, other: Self) {
        for (name, gradient) in other.gradients {
            match self.gradients.remove(&name) {
                Some(sum) => self.gradients.insert(name, sum + gradient),
                None => self.gradients.insert(name, gradient),
            };
        }
    }

    /// The norm of all gradients together: an f64 sum over the names in order.
    ///
    /// # Errors
    /// When a gradient is not finite; the error names it.
    pub fn norm(&self, iteration: u64) -> Result<f64> {
        let mut total = 0.0;
        for (name, gradient) in &self.gradients {
            let data = gradient.clone().into_data();
            let values = data.as_slice::<f32>().expect("gradients are f32");
            let sum = sum_of_squares(values);
            if !sum.is_finite() {
                let value = values.iter().find(|x| !x.is_finite()).copied().unwrap_or(f32::INFINITY);
                return Err(Error::NonFinite { iteration, tensor: format!("the gradient of {name}"), value: f64::from(value) });
            }
            total += sum;
        }
        Ok(total.sqrt())
    }
}

/// In eight partial sums, so that the additions need not wait for each other.
fn sum_of_squares(values: &[f32]) -> f64 {
    let mut partial = [0.0f64; 8];
    let chunks = values.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    for chunk in chunks {
        for (sum, &x) in partial.iter_mut().zip(chunk) {
            *sum += f64::from(x) * f64::from(x);
        }
    }
    partial.iter().sum::<f64>() + rest
}

/// AdamW (models.md §13) whose decay acts on the groups of the configuration.
pub struct Optimizer {
    decayed: AdamW,
    undecayed: AdamW,
    groups: DecayGroups,
    clip_norm: f64,
    states: BTreeMap<String, AdamWState<1>>,
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Optimizer").field("groups", &self.groups).field("parameters", &self.states.len()).finish_non_exhaustive()
    }
}

/// Name and the values of a first or second moment.
pub type Moment = (String, Vec<f32>);

impl Optimizer {
    /// An optimiser without moments yet.
    pub fn new(config: &TrainConfig) -> Self {
        let adamw = |decay: f64| {
            let [beta_1, beta_2] = config.betas;
            AdamWConfig::new()
                .with_beta_1(beta_1 as f32)
                .with_beta_2(beta_2 as f32)
                .with_epsilon(1e-8)
                .with_weight_decay(decay as f32)
                .build()
        };
        Self {
            decayed: adamw(config.weight_decay),
            undecayed: adamw(0.0),
            groups: config.decay_groups,
            clip_norm: config.clip_norm,
            states: BTreeMap::new(),
        }
    }

    /// One update of `module`; `scale` is 1 over the number of micro-steps whose gradients were added. Gives the module and the norm
    /// of the scaled gradients before clipping.
    ///
    /// # Errors
    /// When a gradient is not finite; nothing has changed then.
    pub fn update<M: Module>(&mut self, module: M, mut gradients: GradientMap, scale: f64, lr: f64, iteration: u64) -> Result<(M, f64)> {
        let norm = gradients.norm(iteration)? * scale;
        let clip = if self.clip_norm > 0.0 && norm > self.clip_norm { self.clip_norm / (norm + CLIP_EPS) } else { 1.0 };
        let mut mapper =
            Update { optimizer: self, gradients: &mut gradients.gradients, factor: scale * clip, lr, path: parameters::Path::default() };
        Ok((module.map(&mut mapper), norm))
    }

    fn adamw(&self, name: &str, rank: usize) -> &AdamW {
        let projection = name.contains("in_proj");
        let decays = match self.groups {
            DecayGroups::Matrices => rank >= 2,
            DecayGroups::All => true,
            DecayGroups::Official => !projection,
            DecayGroups::None => false,
        };
        if decays { &self.decayed } else { &self.undecayed }
    }

    /// Updates made.
    pub fn updates(&self) -> u64 {
        self.states.values().map(|state| state.momentum.time as u64).max().unwrap_or(0)
    }

    /// First and second moments of every parameter, as stored for resuming: `<name>.moment_1`, `<name>.moment_2`.
    pub fn moments(&self) -> Vec<Moment> {
        let values = |tensor: &Tensor<1>| tensor.clone().into_data().try_to_vec::<f32>().expect("moments are f32");
        let pair = |(name, state): (&String, &AdamWState<1>)| {
            let momentum = &state.momentum;
            [(format!("{name}.moment_1"), values(&momentum.moment_1)), (format!("{name}.moment_2"), values(&momentum.moment_2))]
        };
        self.states.iter().flat_map(pair).collect()
    }

    /// Puts back the moments of every parameter of `module`, found by `take`, and the number of updates made.
    ///
    /// # Errors
    /// When `take` has no moment of a parameter.
    pub fn restore<M: Module>(&mut self, module: &M, updates: u64, mut take: impl FnMut(&str, usize) -> Result<Vec<f32>>) -> Result<()> {
        self.states.clear();
        if updates == 0 {
            return Ok(());
        }
        let mut problem = None;
        let mut names = Vec::new();
        parameters::visit_tensors(module, |place, tensor| {
            if tensor.is_trained() {
                names.push((place.name, tensor.len(), tensor.device()));
            }
        });
        for (name, len, device) in names {
            let mut moment = |which: &str| match take(&format!("{name}.{which}"), len) {
                Ok(values) => Some(Tensor::from_data(TensorData::new(values, [len]), &device)),
                Err(error) => {
                    problem.get_or_insert(error);
                    None
                }
            };
            if let (Some(moment_1), Some(moment_2)) = (moment("moment_1"), moment("moment_2")) {
                let mut momentum = AdaptiveMomentumState::new(updates as usize, moment_1, moment_2);
                momentum.max_moment_2 = None;
                self.states.insert(name, AdamWState::new(momentum));
            }
        }
        problem.map_or(Ok(()), Err)
    }
}

/// Applies an update to each parameter of a module.
struct Update<'a> {
    optimizer: &'a mut Optimizer,
    gradients: &'a mut BTreeMap<String, Tensor<1>>,
    factor: f64,
    lr: f64,
    path: parameters::Path,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.place().name;
        let Some(gradient) = self.gradients.remove(&name) else { return param };
        let state = self.optimizer.states.remove(&name);
        let adamw = self.optimizer.adamw(&name, D);
        let mut new_state = None;
        let param = param.map(|tensor| {
            let shape = tensor.dims();
            let inner = tensor.inner();
            let len = shape.iter().product::<usize>();
            let gradient = if self.factor == 1.0 { gradient } else { gradient * self.factor };
            let (updated, state) = adamw.step(self.lr, inner.reshape([len]), gradient, state);
            new_state = state;
            Tensor::from_inner(updated.reshape(shape)).require_grad()
        });
        if let Some(state) = new_state {
            self.optimizer.states.insert(name, state);
        }
        param
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }
}
