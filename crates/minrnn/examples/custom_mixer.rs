//! A sequence mixer of your own in the library's block and model: each channel keeps an average of its past, with a learned horizon.
//! It learns to copy the token before last.
//!
//! Run with `cargo build --release --workspace --example custom_mixer && target/release/examples/custom_mixer`.

use burn::module::{Module, Param};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData, activation::sigmoid};
use minrnn::model::SequenceModel;
use minrnn::nn::{Hidden, Initializer, Mixer, Mode};
use minrnn::ops::{Start, StepCodes, linear_scan};
use minrnn_model::ModelConfig;

/// h = a ⊙ h + (1 − a) ⊙ x with a = σ(decay).
#[derive(Module, Debug)]
struct Average {
    decay: Param<Tensor<1>>,
}

impl Mixer for Average {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        Hidden { h: Tensor::zeros([batch_size, self.decay.dims()[0]], &self.decay.device()) }
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let coeffs = sigmoid(self.decay.val()).unsqueeze::<3>() + x.zeros_like();
        let values = (-coeffs.clone() + 1.0) * x;
        let (y, h) = linear_scan(coeffs, values, Start::carried(state.h), steps);
        (y, Hidden { h })
    }
}

fn main() -> minrnn::Result<()> {
    let config = ModelConfig { vocab_size: 8, d_model: 64, ..Default::default() };
    let device = Device::flex().autodiff();
    let average = |_layer, init: &mut Initializer| Ok(Average { decay: init.normal([64], 1.0) });
    let mut model = SequenceModel::with_mixers(&config, 1, &device, average)?;
    let mut optimizer = AdamWConfig::new().init();
    for iteration in 0..=100 {
        let tokens: Vec<i32> = (0..16 * 34).map(|i| (i * i + 7 * iteration * i + i / 5) % 8).collect();
        let rows = || tokens.chunks_exact(34);
        let inputs: Vec<i32> = rows().flat_map(|row| &row[2..]).copied().collect();
        let targets: Vec<i32> = rows().flat_map(|row| &row[..32]).copied().collect();
        let inputs = Tensor::<2, Int>::from_data(TensorData::new(inputs, [16, 32]), &device);
        let state = model.init_state(16);
        let (loss, _) = model.loss(inputs, targets, None, state, &StepCodes::dense(), Mode::Train { dropout_key: 0 });
        if iteration % 20 == 0 {
            println!("iteration {iteration:3}  loss {:.3}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(3e-3, model, gradients);
    }
    Ok(())
}
