//! Functions without an ONNX operator, and layers shared by many parts.

use minrnn_kernels::Candidate;

use crate::graph::{Graph, Value};
use crate::{Result, join};

/// The largest count of steps that a state holds: an f32 cannot represent every larger one.
pub(crate) const LAST_COUNT: f32 = 16_777_216.0;

impl Graph<'_> {
    /// 1 − x.
    pub(crate) fn one_minus(&mut self, x: Value) -> Value {
        let one = self.number(1.0);
        self.sub(one, x)
    }

    /// x times a number.
    pub(crate) fn times(&mut self, x: Value, factor: f32) -> Value {
        let factor = self.number(factor);
        self.mul(x, factor)
    }

    /// x plus a number.
    pub(crate) fn plus(&mut self, x: Value, number: f32) -> Value {
        let number = self.number(number);
        self.add(x, number)
    }

    /// The count after one more step. From the largest count it goes back to half of it.
    pub(crate) fn next_count(&mut self, count: Value) -> Value {
        let (last, half, next) = (self.number(LAST_COUNT), self.number(LAST_COUNT / 2.0), self.plus(count, 1.0));
        let has_next = self.less(count, last);
        self.choose(has_next, next, half)
    }

    /// x σ(x).
    pub(crate) fn silu(&mut self, x: Value) -> Value {
        let gate = self.sigmoid(x);
        self.mul(x, gate)
    }

    /// x Φ(x).
    pub(crate) fn gelu(&mut self, x: Value) -> Value {
        let scaled = self.number(std::f32::consts::SQRT_2);
        let scaled = self.div(x, scaled);
        let error = self.erf(scaled);
        let twice = self.plus(error, 1.0);
        let product = self.mul(x, twice);
        self.times(product, 0.5)
    }

    /// ln σ(x).
    pub(crate) fn log_sigmoid(&mut self, x: Value) -> Value {
        let opposite = self.neg(x);
        let softplus = self.softplus(opposite);
        self.neg(softplus)
    }

    /// The candidate of the pre-activation `v`.
    pub(crate) fn candidate(&mut self, candidate: Candidate, v: Value) -> Value {
        match candidate {
            // v + ½ for v ≥ 0, σ(v) below: max(v, 0) + σ(min(v, 0)).
            Candidate::Positive => {
                let (zero, above) = (self.number(0.0), self.relu(v));
                let below = self.min(v, zero);
                let below = self.sigmoid(below);
                self.add(above, below)
            }
            Candidate::Identity => v,
            Candidate::Tanh => self.tanh(v),
        }
    }

    /// x W (+ b) of the linear layer `name`.
    pub(crate) fn linear(&mut self, name: &str, x: Value, [inputs, outputs]: [usize; 2], has_bias: bool) -> Result<Value> {
        let weight = self.parameter(&join(name, "weight"), &[outputs, inputs])?;
        let bias = if has_bias { Some(self.parameter(&join(name, "bias"), &[outputs])?) } else { None };
        Ok(self.gemm(x, weight, bias))
    }

    /// h + share (x − h).
    pub(crate) fn move_to(&mut self, h: Value, x: Value, share: Value) -> Value {
        let distance = self.sub(x, h);
        let step = self.mul(share, distance);
        self.add(h, step)
    }

    /// value ⊙ σ(gate), `x` being [value | gate] of `width` each.
    pub(crate) fn gated_halves(&mut self, x: Value, width: usize) -> Value {
        let [value, gate] = self.split(x, 1, [width; 2]);
        let gate = self.sigmoid(gate);
        self.mul(value, gate)
    }
}
