//! Gradients by name, their clipping, and AdamW with parameter groups.
//!
//! Moments are stored by parameter name, since Burn's own records use random ids that no other process knows.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use rayon::prelude::*;

use super::train_config::{DecayGroups, TrainConfig};
use crate::ops::{AdamW, Moments, adamw, adamw_together, is_on_cpu, sums_of_squares};
use crate::{Error, Result, parameters};

/// Added to the norm before dividing by it, as PyTorch does.
const CLIP_EPS: f64 = 1e-6;
/// ε of AdamW.
const EPS: f64 = 1e-8;

/// Parts of mixers and wirings without weight decay, and the largest learning rate that each is trained with (those of the released code of
/// S4, H3 and Hyena).
const LR_CAPS: [(&[&str], f64); 4] = [(&["ssm"], 1e-3), (&["shift_ssm"], 1e-3), (&["filter", "features"], 1e-5), (&["filter"], 1e-3)];

/// The largest learning rate of the parameter `name`, if it has one. Names of parts have a meaning only inside the mixer and the wiring of a
/// block; elsewhere they are the user's.
fn lr_cap(name: &str) -> Option<f64> {
    let path: Vec<&str> = name.split('.').collect();
    let of_block = |parts: &[&str]| matches!(parts, ["backbone", "blocks", _, "mixer" | "wiring"]);
    let inside = path.windows(4).position(of_block).map(|at| &path[at + 4..])?;
    LR_CAPS.iter().find(|(part, _)| inside.windows(part.len()).any(|window| window == *part)).map(|&(_, most)| most)
}

/// The gradient of every parameter, flat, in the order of names.
#[derive(Debug, Clone, Default)]
pub struct GradientMap {
    gradients: BTreeMap<String, Tensor<1>>,
}

impl GradientMap {
    /// The gradients in `gradients` of the parameters of `module`.
    pub fn new<M: Module>(module: &M, gradients: &Gradients) -> Self {
        let mut map = BTreeMap::new();
        parameters::visit_tensors(module, |place, tensor| {
            if let Some(gradient) = tensor.gradient(gradients) {
                map.insert(place.name, gradient);
            }
        });
        Self { gradients: map }
    }

    /// The values by name, in the memory order of the parameters.
    pub fn values(&self) -> BTreeMap<String, Vec<f32>> {
        let values = |tensor: &Tensor<1>| tensor.to_data().try_to_vec::<f32>().expect("gradients are f32");
        self.gradients.iter().map(|(name, gradient)| (name.clone(), values(gradient))).collect()
    }

    /// Adds the gradients of another micro-step.
    pub fn add(&mut self, other: Self) {
        let terms = other.gradients.into_iter().map(|(name, gradient)| {
            let sum = self.gradients.remove(&name);
            (name, sum, gradient)
        });
        let terms: Vec<_> = terms.collect();
        let add = |(name, sum, gradient): (String, Option<Tensor<1>>, Tensor<1>)| match sum {
            Some(sum) => (name, sum + gradient),
            None => (name, gradient),
        };
        // The CPU adds tensors of such sizes on one thread each; on other devices every thread would open its own queue.
        let on_cpu = terms.iter().all(|(_, _, gradient)| is_on_cpu(&gradient.device()));
        let sums: Vec<_> = if on_cpu { terms.into_par_iter().map(add).collect() } else { terms.into_iter().map(add).collect() };
        self.gradients.extend(sums);
    }

    /// The sum with the gradients of another micro-step.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    /// Total number of gradient values.
    pub fn len(&self) -> usize {
        self.gradients.values().map(|gradient| gradient.dims()[0]).sum()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.gradients.is_empty()
    }

    /// Passes all values, concatenated in the order of names, through `change`.
    #[must_use]
    pub fn through(self, change: impl FnOnce(&mut [f32])) -> Self {
        let (mut flat, mut names) = (Vec::with_capacity(self.len()), Vec::with_capacity(self.gradients.len()));
        for (name, gradient) in self.gradients {
            names.push((name, gradient.dims()[0], gradient.device()));
            flat.extend_from_slice(gradient.into_data().as_slice::<f32>().expect("gradients are f32"));
        }
        change(&mut flat);
        let mut rest = &flat[..];
        let taken = names.into_iter().map(|(name, len, device)| {
            let (values, left) = rest.split_at(len);
            rest = left;
            (name, Tensor::from_data(TensorData::new(values.to_vec(), [len]), &device))
        });
        Self { gradients: taken.collect() }
    }

    /// The global norm of the gradients: an f64 sum over the names in order.
    ///
    /// # Errors
    /// When a gradient is not finite; the error names it.
    pub fn norm(&self, iteration: u64) -> Result<f64> {
        let mut total = 0.0;
        let sums = sums_of_squares(&self.gradients.values().collect::<Vec<_>>());
        for ((name, gradient), sum) in self.gradients.iter().zip(sums) {
            if !sum.is_finite() {
                let data = gradient.to_data();
                let values = data.as_slice::<f32>().expect("gradients are f32");
                let value = values.iter().find(|x| !x.is_finite()).copied().unwrap_or(f32::INFINITY);
                return Err(Error::NonFinite { iteration, tensor: format!("the gradient of {name}"), value: f64::from(value) });
            }
            total += sum;
        }
        Ok(total.sqrt())
    }
}

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with weight decay on the parameter groups of the configuration.
///
/// In the blocks of a model, state spaces (S4, S4D, H3) and Hyena's filters learn with a rate of at most 1e-3, the features of a filter
/// with at most 1e-5, and all of them without weight decay, as in their authors' code. Elsewhere in your own module every parameter has the
/// same rate, and decays unless it is called `A_log` or `D`, like Mamba's rates and skips.
///
/// Updates are counted for all parameters together, and the bias of moments is corrected by that count: a parameter whose first gradient
/// comes late has different first steps from PyTorch, which counts per parameter.
pub struct Optimizer {
    betas: [f64; 2],
    weight_decay: f64,
    groups: DecayGroups,
    clip_norm: f64,
    /// Updates made.
    time: u64,
    moments: BTreeMap<String, Moments>,
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Optimizer").field("groups", &self.groups).field("parameters", &self.moments.len()).finish_non_exhaustive()
    }
}

/// Name and values of a first or second moment.
pub type Moment = (String, Vec<f32>);

impl Optimizer {
    /// A new optimiser.
    pub fn new(config: &TrainConfig) -> Self {
        Self {
            betas: config.betas,
            weight_decay: config.weight_decay,
            groups: config.decay_groups,
            clip_norm: config.clip_norm,
            time: 0,
            moments: BTreeMap::new(),
        }
    }

    /// One update of `module` with the learning rate `lr`, or a lower one as described for [`Optimizer`]; `scale` is 1 over the number of
    /// micro-steps whose gradients were added. Returns the module and the norm of the scaled gradients before clipping.
    ///
    /// # Errors
    /// When a gradient is not finite; nothing has then changed.
    pub fn update<M: Module>(&mut self, module: M, mut gradients: GradientMap, scale: f64, lr: f64, iteration: u64) -> Result<(M, f64)> {
        let norm = gradients.norm(iteration)? * scale;
        let clip = if self.clip_norm > 0.0 && norm > self.clip_norm { self.clip_norm / (norm + CLIP_EPS) } else { 1.0 };
        self.time += 1;
        let together = self.together(&module, &gradients, scale * clip, lr);
        let mut mapper = Update {
            optimizer: self,
            gradients: &mut gradients.gradients,
            together,
            factor: scale * clip,
            lr,
            path: parameters::Path::default(),
        };
        Ok((module.map(&mut mapper), norm))
    }

    /// New values and moments of all parameters on a GPU, where they are computed together; empty elsewhere.
    fn together<M: Module>(&self, module: &M, gradients: &GradientMap, factor: f64, lr: f64) -> BTreeMap<String, (Tensor<1>, Moments)> {
        if gradients.gradients.values().next().is_none_or(|gradient| gradient.device() == Device::flex()) {
            return BTreeMap::new();
        }
        let (mut names, mut updates) = (Vec::new(), Vec::new());
        parameters::visit_tensors(module, |place, tensor| {
            if let Some(gradient) = gradients.gradients.get(&place.name) {
                let settings = self.settings(&place.name, tensor.rank(), lr, factor);
                let moments = self.moments.get(&place.name).cloned().unwrap_or_else(|| no_moments(gradient));
                updates.push((settings, tensor.flat(), gradient.clone(), moments));
                names.push(place.name);
            }
        });
        adamw_together(&updates).map(|updated| names.into_iter().zip(updated).collect()).unwrap_or_default()
    }

    fn settings(&self, name: &str, rank: usize, lr: f64, gradient_scale: f64) -> AdamW {
        let projection = name.contains("in_proj");
        let cap = lr_cap(name);
        let lr = cap.map_or(lr, |most| lr.min(most));
        // Rates and skips of state space models, for which values near 0 are no better.
        let exempt = [".A_log", ".D"].iter().any(|end| name.ends_with(end)) || cap.is_some();
        let decays = !exempt
            && match self.groups {
                DecayGroups::Matrices => rank >= 2,
                DecayGroups::All => true,
                DecayGroups::Official => !projection,
                DecayGroups::None => false,
            };
        let [beta_1, beta_2] = self.betas;
        let weight_decay = if decays { self.weight_decay } else { 0.0 };
        AdamW { lr, beta_1, beta_2, eps: EPS, weight_decay, time: self.time, gradient_scale }
    }

    /// Number of updates.
    pub fn updates(&self) -> u64 {
        self.time
    }

    /// First and second moments of every parameter, as stored for resuming: `<name>.moment_1`, `<name>.moment_2`.
    pub fn moments(&self) -> Vec<Moment> {
        let values = |tensor: &Tensor<1>| tensor.clone().into_data().try_to_vec::<f32>().expect("moments are f32");
        let pair = |(name, moments): (&String, &Moments)| {
            [(format!("{name}.moment_1"), values(&moments.first)), (format!("{name}.moment_2"), values(&moments.second))]
        };
        self.moments.iter().flat_map(pair).collect()
    }

    /// Restores the moments of every parameter of `module`, obtained from `take`, and the number of updates.
    ///
    /// # Errors
    /// When `take` does not have a parameter's moment.
    pub fn restore<M: Module>(&mut self, module: &M, updates: u64, mut take: impl FnMut(&str, usize) -> Result<Vec<f32>>) -> Result<()> {
        self.moments.clear();
        self.time = updates;
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
            if let (Some(first), Some(second)) = (moment("moment_1"), moment("moment_2")) {
                self.moments.insert(name, Moments { first, second });
            }
        }
        problem.map_or(Ok(()), Err)
    }
}

/// The moments of a parameter before its first update.
fn no_moments(gradient: &Tensor<1>) -> Moments {
    let zeros = || Tensor::zeros(gradient.dims(), &gradient.device());
    Moments { first: zeros(), second: zeros() }
}

/// Applies an update to each parameter of a module.
struct Update<'a> {
    optimizer: &'a mut Optimizer,
    gradients: &'a mut BTreeMap<String, Tensor<1>>,
    /// What was computed together.
    together: BTreeMap<String, (Tensor<1>, Moments)>,
    factor: f64,
    lr: f64,
    path: parameters::Path,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.place().name;
        let Some(gradient) = self.gradients.remove(&name) else { return param };
        let settings = self.optimizer.settings(&name, D, self.lr, self.factor);
        let moments = self.optimizer.moments.remove(&name).unwrap_or_else(|| no_moments(&gradient));
        let made = self.together.remove(&name);
        let mut updated_moments = None;
        let param = param.map(|tensor| {
            let shape = tensor.dims();
            let inner = tensor.inner();
            let (updated, moments) =
                made.clone().unwrap_or_else(|| adamw(settings, inner.reshape(gradient.dims()), gradient.clone(), moments.clone()));
            updated_moments = Some(moments);
            Tensor::from_inner(updated.reshape(shape)).require_grad()
        });
        self.optimizer.moments.insert(name, updated_moments.unwrap_or(moments));
        param
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::{MixerKind, ModelConfig, WiringKind};

    use super::*;

    #[test]
    fn the_state_spaces_and_filters_of_every_model_are_held_back() {
        let mut held_back = Vec::new();
        for &mixer in MixerKind::ALL {
            for wiring in [WiringKind::None, WiringKind::Mamba, WiringKind::H3] {
                let Ok(config) = (ModelConfig { mixer, wiring, vocab_size: 11, ..ModelConfig::default() }).checked() else { continue };
                for name in config.tensors().into_iter().map(|tensor| tensor.name) {
                    let expected = [("ssm.", 1e-3), ("filter.features", 1e-5), ("filter.", 1e-3)];
                    let expected = expected.iter().find(|(part, _)| name.contains(part)).map(|&(_, most)| most);
                    assert_eq!(lr_cap(&name), expected, "{name}");
                    if expected.is_some() {
                        held_back.push((mixer, wiring));
                    }
                }
            }
        }
        for mixer in [MixerKind::S4, MixerKind::S4d, MixerKind::H3, MixerKind::Hyena, MixerKind::HyenaFilter] {
            assert!(held_back.contains(&(mixer, WiringKind::None)), "{mixer:?}");
        }
        assert!(held_back.iter().any(|&(_, wiring)| wiring == WiringKind::H3));
    }

    #[test]
    fn names_of_a_users_own_modules_mean_nothing() {
        for name in ["filter.weight", "ssm.weight", "net.filter.features", "head.ssm.weight", "backbone.blocks.0.ff.filter.weight"] {
            assert_eq!(lr_cap(name), None, "{name}");
        }
        assert_eq!(lr_cap("net.backbone.blocks.3.mixer.ssm.c"), Some(1e-3));
    }
}
