//! Computing a case and comparing.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};

use super::case::{Case, Sizes};
use super::cell::Cell;
use super::compare::{Comparison, Direction, Tolerance};
use super::layer::{Carried, Layer};
use super::{attention, channels, xlstm};

impl Case {
    /// Computes the case on `device` (one without autodiff) and compares everything that is expected: outputs of the parallel
    /// forward pass, the same step by step, then gradients.
    pub fn check(&self, tolerance: Tolerance, device: &Device) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        let mut compare = |name: &str, direction, found: &[f32], expected: &[f32]| {
            comparisons.push(Comparison::new(name, direction, found, expected, tolerance));
        };
        let computed = match &self.loss_weight {
            Some(loss_weight) if !self.gradients.is_empty() => self.forward_and_backward(loss_weight, &device.clone().autodiff()),
            _ => self.forward(device),
        };
        let stepped = if self.outputs.is_empty() { Computed::default() } else { self.step_by_step(device) };
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

    fn forward(&self, device: &Device) -> Computed {
        let (output, last) = Leaves::new(self, device).forward();
        self.outputs(values(output), last)
    }

    fn forward_and_backward(&self, loss_weight: &[f32], device: &Device) -> Computed {
        let leaves = Leaves::new(self, device);
        let (output, last) = leaves.forward();
        let loss_weight = Tensor::<1>::from_data(TensorData::new(loss_weight.to_vec(), output.dims()), device);
        let grads = (output.clone() * loss_weight).sum().backward();
        let mut computed = self.outputs(values(output), last);
        for (name, leaf) in &leaves.inputs {
            let gradient = leaf.grad(&grads).map_or_else(|| vec![0.0; leaf.dims()[0]], values);
            computed.insert(format!("grad.{name}"), gradient);
        }
        computed
    }

    /// One call of the cell for each step, with nothing kept but the state.
    fn step_by_step(&self, device: &Device) -> Computed {
        let leaves = Leaves::new(self, device);
        if let Some(output) = leaves.ready(1) {
            return self.outputs(values(output), Carried::States(None));
        }
        let layer = leaves.layer();
        let mut carried = layer.start();
        let Sizes { batch_size, seq_len, .. } = self.sizes;
        let width = self.cell.outputs(self.sizes)[0].1[2];
        let mut output = vec![0.0; batch_size * seq_len * width];
        for t in 0..seq_len {
            let (step, next) = layer.forward(t..t + 1, carried);
            carried = next;
            for (b, row) in values(step).chunks_exact(width).enumerate() {
                let at = (b * seq_len + t) * width;
                output[at..at + width].copy_from_slice(row);
            }
        }
        self.outputs(output, carried)
    }

    fn outputs(&self, output: Vec<f32>, last: Carried) -> Computed {
        let c_last = match last {
            Carried::Hidden { c: Some(c), .. } => Some(("c_last".to_owned(), values(c))),
            _ => None,
        };
        [(self.cell.outputs(self.sizes)[0].0.to_owned(), output)].into_iter().chain(c_last).collect()
    }
}

/// Values of outputs and gradients by the name they are expected under.
type Computed = BTreeMap<String, Vec<f32>>;

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("cells compute in f32")
}

/// Every input and parameter on a device, flat, so that gradients come back in the order of the file.
struct Leaves<'a> {
    case: &'a Case,
    inputs: BTreeMap<&'static str, Tensor<1>>,
}

impl<'a> Leaves<'a> {
    fn new(case: &'a Case, device: &Device) -> Self {
        let leaf = |values: &Vec<f32>| {
            let leaf = Tensor::<1>::from_data(TensorData::new(values.clone(), [values.len()]), device);
            if device.is_autodiff() { leaf.require_grad() } else { leaf }
        };
        Self { case, inputs: case.inputs.iter().map(|(name, values)| (*name, leaf(values))).collect() }
    }

    fn layer(&self) -> Layer {
        Layer::new(self.case.cell, self.case.sizes, |name| self.inputs[name].clone())
    }

    /// The output, flat, of the cells whose input side is ready, by calls of at most `per_call` steps.
    fn ready(&self, per_call: usize) -> Option<Tensor<1>> {
        let (cell, sizes, input) = (self.case.cell, self.case.sizes, |name: &str| self.inputs[name].clone());
        Some(match cell {
            Cell::SLstm => xlstm::s_lstm(sizes, input, per_call),
            Cell::MLstm => xlstm::m_lstm(sizes, input, per_call),
            Cell::LinearAttention | Cell::Retention => attention::retention(cell, sizes, input, per_call),
            Cell::Aaren => attention::aaren(sizes, input, per_call),
            Cell::Delta => attention::delta(sizes, input, per_call),
            Cell::Wkv => channels::rwkv4(sizes, input, per_call),
            Cell::S4d => channels::s4d(sizes, input, per_call),
            _ => return None,
        })
    }

    /// The output, flat, and what is carried after it.
    fn forward(&self) -> (Tensor<1>, Carried) {
        if let Some(output) = self.ready(self.case.sizes.seq_len) {
            return (output, Carried::States(None));
        }
        let layer = self.layer();
        let (output, last) = layer.forward(0..self.case.sizes.seq_len, layer.start());
        (output.flatten(0, 2), last)
    }
}
