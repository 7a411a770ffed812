//! Computing a case and comparing.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};

use super::case::{Case, Sizes};
use super::cell::{Carried, Cell, Layer};
use super::compare::{Comparison, Direction, Tolerance};
use super::xlstm;

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
        let (h, c_last) = Leaves::new(self, device).forward();
        outputs(values(h), c_last)
    }

    fn forward_and_backward(&self, loss_weight: &[f32], device: &Device) -> Computed {
        let leaves = Leaves::new(self, device);
        let (h, c_last) = leaves.forward();
        let loss_weight = Tensor::<1>::from_data(TensorData::new(loss_weight.to_vec(), h.dims()), device);
        let grads = (h.clone() * loss_weight).sum().backward();
        let mut computed = outputs(values(h), c_last);
        for (name, leaf) in &leaves.inputs {
            let gradient = leaf.grad(&grads).map_or_else(|| vec![0.0; leaf.dims()[0]], values);
            computed.insert(format!("grad.{name}"), gradient);
        }
        computed
    }

    /// One call of the cell for each step, with nothing kept but the state.
    fn step_by_step(&self, device: &Device) -> Computed {
        let leaves = Leaves::new(self, device);
        if let Some(h) = leaves.xlstm(1) {
            return outputs(values(h), None);
        }
        let (layer, x, mut carried) = (leaves.layer(), leaves.x(), leaves.carried());
        let Sizes { batch_size, seq_len, d_inner, .. } = self.sizes;
        let mut h = vec![0.0; batch_size * seq_len * d_inner];
        for t in 0..seq_len {
            let (h_t, next) = layer.forward(x.clone().narrow(1, t, 1), carried);
            carried = next;
            for (b, row) in values(h_t).chunks_exact(d_inner).enumerate() {
                let at = (b * seq_len + t) * d_inner;
                h[at..at + d_inner].copy_from_slice(row);
            }
        }
        outputs(h, carried.c)
    }
}

/// Values of outputs and gradients by the name they are expected under.
type Computed = BTreeMap<String, Vec<f32>>;

fn outputs(h: Vec<f32>, c_last: Option<Tensor<2>>) -> Computed {
    let c_last = c_last.map(|c| ("c_last".to_owned(), values(c)));
    [("h".to_owned(), h)].into_iter().chain(c_last).collect()
}

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
        self.case.cell.layer(self.case.sizes, |name| self.inputs[name].clone())
    }

    fn x(&self) -> Tensor<3> {
        let Sizes { batch_size, seq_len, d_model, .. } = self.case.sizes;
        self.inputs["x"].clone().reshape([batch_size, seq_len, d_model])
    }

    fn carried(&self) -> Carried {
        let state = |leaf: &Tensor<1>| leaf.clone().reshape([self.case.sizes.batch_size, self.case.sizes.d_inner]);
        Carried { h: state(&self.inputs["h0"]), c: self.inputs.get("c0").map(state) }
    }

    /// h, flat, of the cells of xLSTM, by calls of at most `per_call` steps.
    fn xlstm(&self, per_call: usize) -> Option<Tensor<1>> {
        let (sizes, input) = (self.case.sizes, |name: &str| self.inputs[name].clone());
        match self.case.cell {
            Cell::SLstm => Some(xlstm::slstm(sizes, input, per_call).flatten(0, 2)),
            Cell::MLstm => Some(xlstm::mlstm(sizes, input, per_call).flatten(0, 3)),
            _ => None,
        }
    }

    /// h, flat, and the last cell state of the cell that has one.
    fn forward(&self) -> (Tensor<1>, Option<Tensor<2>>) {
        if let Some(h) = self.xlstm(self.case.sizes.seq_len) {
            return (h, None);
        }
        let (h, last) = self.layer().forward(self.x(), self.carried());
        (h.flatten(0, 2), last.c)
    }
}
