//! GILR, the gated impulse linear recurrence (Martin and Cundy 2018, arXiv:1709.04057).
//!
//! ```text
//! g_t = σ(U x_t + b)            i_t = tanh(V x_t + b')
//! h_t = g_t ⊙ h_{t−1} + (1 − g_t) ⊙ i_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E); g forget gate; i impulse.
//!
//! This is exactly a [`MinGru`](super::MinGru) with the candidate tanh v and the update gate z = 1 − g = σ(−(U x + b)): its gate rows hold
//! −U and −b, which have the same distribution under the symmetric initialisation. So a GILR is that cell under its own name.

/// A GILR with its down-projection; rows of `in_proj` are impulse, then the negated forget gate. [`new`](super::MinGru::new) makes one if
/// the configuration's mixer is `gilr`.
pub type Gilr = super::MinGru;

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::{Device, Tensor};
    use minrnn_model::{MixerKind, ModelConfig};

    use super::*;
    use crate::nn::{Initializer, Mixer};
    use crate::ops::StepCodes;

    /// The equations above with given U and V, and an identity as the down-projection.
    #[test]
    fn the_gate_is_the_negated_forget_gate() {
        let device = Device::flex();
        let config = ModelConfig { mixer: MixerKind::Gilr, vocab_size: 2, d_model: 1, expansion: 1.0, ..Default::default() };
        let mut cell = Gilr::new(&config.checked().unwrap(), 0, &mut Initializer::new(0, &device));
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
