//! Computes a case and compares the results.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};

use super::case::Case;
use super::cell::Given;
use super::compare::{Comparison, Direction, Tolerance};

impl Case {
    /// Computes the case on `device` (one without autodiff) and compares everything expected: outputs of the parallel forward pass, the
    /// same step by step, then gradients.
    pub fn check(&self, tolerance: Tolerance, device: &Device) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        let mut compare = |name: &str, direction, found: &[f32], expected: &[f32]| {
            comparisons.push(Comparison::new(name, direction, found, expected, tolerance));
        };
        let computed = match &self.loss_weight {
            Some(loss_weight) if !self.gradients.is_empty() => self.forward_and_backward(loss_weight, &device.clone().autodiff()),
            _ => self.forward(self.sizes.seq_len, device),
        };
        // One call of the cell for each step, with nothing kept but the state.
        let stepped = if self.outputs.is_empty() { Computed::default() } else { self.forward(1, device) };
        for (direction, computed) in [(Direction::Forward, &computed), (Direction::Steps, &stepped)] {
            for (name, expected) in &self.outputs {
                compare(name, direction, &computed[*name], expected);
            }
        }
        for (name, expected) in &self.gradients {
            let name = format!("grad.{name}");
            compare(&name, Direction::Backward, &computed[&name], expected);
        }
        comparisons
    }

    fn forward(&self, per_call: usize, device: &Device) -> Computed {
        self.computed((self.cell.run)(&self.given(per_call, device)))
    }

    fn forward_and_backward(&self, loss_weight: &[f32], device: &Device) -> Computed {
        let given = self.given(self.sizes.seq_len, device);
        let outputs = (self.cell.run)(&given);
        let loss_weight = Tensor::<1>::from_data(TensorData::new(loss_weight.to_vec(), outputs[0].dims()), device);
        let grads = (outputs[0].clone() * loss_weight).sum().backward();
        let mut computed = self.computed(outputs);
        for (name, leaf) in &given.tensors {
            let gradient = leaf.grad(&grads).map_or_else(|| vec![0.0; leaf.dims()[0]], values);
            computed.insert(format!("grad.{name}"), gradient);
        }
        computed
    }

    /// The inputs on `device`, as leaves of the graph if there is one.
    fn given(&self, per_call: usize, device: &Device) -> Given {
        let leaf = |values: &Vec<f32>| {
            let leaf = Tensor::<1>::from_data(TensorData::new(values.clone(), [values.len()]), device);
            if device.is_autodiff() { leaf.require_grad() } else { leaf }
        };
        Given {
            sizes: self.sizes,
            settings: self.settings.clone(),
            shapes: (self.cell.inputs)(self.sizes).into_iter().collect(),
            tensors: self.inputs.iter().map(|(name, values)| (*name, leaf(values))).collect(),
            per_call,
        }
    }

    fn computed(&self, outputs: Vec<Tensor<1>>) -> Computed {
        let names = (self.cell.outputs)(self.sizes).into_iter().map(|(name, _)| name.to_owned());
        names.zip(outputs.into_iter().map(values)).collect()
    }
}

/// Values of outputs and gradients, by their expected names.
type Computed = BTreeMap<String, Vec<f32>>;

fn values(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("cells compute in f32")
}
