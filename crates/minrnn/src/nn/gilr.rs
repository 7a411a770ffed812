//! GILR, the gated impulse linear recurrence (Martin and Cundy 2018, arXiv:1709.04057).
//!
//! ```text
//! g_t = σ(U x_t + b)            i_t = tanh(V x_t + b')
//! h_t = g_t ⊙ h_{t−1} + (1 − g_t) ⊙ i_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E); g forget gate; i impulse.
//!
//! This is exactly a [`MinGru`] with the candidate tanh v and the update gate z = 1 − g = σ(−(U x + b)): its gate rows hold −U and −b,
//! which the symmetric initialisation draws alike. So a GILR is that cell under its own name.

use burn::config::Config;
use minrnn_model::{Candidate, CheckedConfig, InitialState};

use super::init::Initializer;
use super::min_gru::{MinGru, MinGruConfig};
use crate::Result;

/// Settings of a [`Gilr`].
#[derive(Config, Debug)]
pub struct GilrConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// Width E of the hidden state.
    pub d_inner: usize,
    /// Zero or learned state before the first step.
    #[config(default = "InitialState::Zero")]
    pub initial_state: InitialState,
}

/// A GILR with its down-projection; rows of `in_proj` are impulse, then the negated forget gate.
pub type Gilr = MinGru;

impl GilrConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// When the expansion gives no whole width.
    pub fn from_model(config: &CheckedConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_inner()).with_initial_state(config.initial_state))
    }

    /// A new cell.
    pub fn init(&self, init: &mut Initializer) -> Gilr {
        let cell = MinGruConfig::new(self.d_model, self.d_inner).with_candidate(Candidate::Tanh);
        cell.with_initial_state(self.initial_state).init(init)
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::nn::Mixer;
    use crate::ops::StepCodes;

    /// The written equations on a given U and V, with an identity as the projection back.
    #[test]
    fn the_gate_is_the_negated_forget_gate() {
        let device = Device::flex();
        let mut cell = GilrConfig::new(1, 1).init(&mut Initializer::new(0, &device));
        let (u, b, v, c) = (0.7f32, -0.2, 1.3, 0.4);
        let vector = |x: [f32; 2]| Tensor::<1>::from_floats(x, &device);
        cell.in_proj.weight = Param::from_tensor(vector([v, -u]).unsqueeze());
        cell.in_proj.bias = Some(Param::from_tensor(vector([c, -b])));
        cell.out_proj.weight = Param::from_tensor(Tensor::from_floats([[1.0]], &device));
        cell.out_proj.bias = None;
        let inputs = [0.5f32, -1.0, 2.0];
        let x = Tensor::<1>::from_floats(inputs, &device).reshape([1, 3, 1]);
        let (y, _) = cell.forward(x, cell.init_state(1), &StepCodes::dense());
        let mut h = 0.0;
        for (x, y) in inputs.into_iter().zip(y.into_data().try_to_vec::<f32>().unwrap()) {
            let g = 1.0 / (1.0 + (-(u * x + b)).exp());
            h = g * h + (1.0 - g) * (v * x + c).tanh();
            assert!((y - h).abs() < 1e-6, "{y}, expected {h}");
        }
    }
}
