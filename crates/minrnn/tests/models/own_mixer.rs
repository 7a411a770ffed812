//! A mixer written outside the library: it needs only the trait, and gets every law and the whole model around it.

use crate::common::configs::small;
use crate::common::subject::Cell;
use crate::common::{D_MODEL, device, laws, parameters, perturbed, random_tokens, saved};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use minrnn::checkpoint::load_weights;
use minrnn::model::SequenceModel;
use minrnn::nn::{Hidden, Initializer, Mixer, Mode};
use minrnn::ops::{Start, StepCodes, linear_scan};
use minrnn_model::{MixerKind, ModelConfig};

/// h_t = a ⊙ h_{t−1} + (1 − a) ⊙ x_t with a = σ(decay) per channel.
#[derive(Module, Debug)]
struct Average {
    decay: Param<Tensor<1>>,
}

impl Average {
    fn new(init: &mut Initializer) -> Self {
        Self { decay: init.normal([D_MODEL], 1.0) }
    }
}

impl Mixer for Average {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        Hidden { h: Tensor::zeros([batch_size, D_MODEL], &self.decay.val().device()) }
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let coeffs = activation::sigmoid(self.decay.val()).unsqueeze::<3>() + x.zeros_like();
        let values = (-coeffs.clone() + 1.0) * x;
        let (y, h) = linear_scan(coeffs, values, Start::carried(state.h), steps);
        (y, Hidden { h })
    }
}

fn config() -> ModelConfig {
    ModelConfig { n_layers: 2, conv: true, ..small(MixerKind::MinGru) }
}

fn model(device: &Device, seed: u64) -> SequenceModel<Average> {
    SequenceModel::with_mixers(&config(), seed, device, |_, init| Ok(Average::new(init))).expect("a valid model")
}

#[test]
fn it_obeys_the_law_and_so_does_its_model() {
    let cell = Cell(Average::new(&mut Initializer::new(1, &device())));
    laws::a_cut_changes_nothing("average", &cell, laws::SHORT);
    laws::forward_equals_steps("average", &cell, laws::SHORT);
    laws::segments_equal_sequences_alone("average", &cell, laws::SHORT);
    laws::no_step_returns_the_carried_state("average", &cell, laws::SHORT);
    laws::rows_are_chosen_and_reset("average", &cell, laws::SHORT);
    laws::a_state_is_a_value("average", &cell, laws::SHORT);
    let model = perturbed(model(&device(), 1));
    laws::a_cut_changes_nothing("model of averages", &model, laws::SHORT);
    laws::segments_equal_sequences_alone("model of averages", &model, laws::SHORT);
    laws::no_step_returns_the_carried_state("model of averages", &model, laws::SHORT);
}

#[test]
fn its_model_is_saved_and_loaded() {
    let (original, other) = (model(&Device::flex(), 1), model(&Device::flex(), 2));
    assert!(parameters(&original).iter().any(|(name, _)| name == "backbone.blocks.1.mixer.decay"));
    let loaded = load_weights(other, &mut saved(&original)).unwrap();
    assert_eq!(parameters(&loaded), parameters(&original));
    let tokens = random_tokens(2, 5, 1, &Device::flex());
    let (logits, state) = loaded.forward(tokens, loaded.init_state(2), &StepCodes::dense(), Mode::Evaluate);
    assert_eq!(logits.dims(), [2, 5, config().vocab_size]);
    assert_eq!(state.blocks.len(), 2);
}
