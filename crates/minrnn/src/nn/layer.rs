//! The position of a block in a model.

use minrnn_model::CheckedConfig;

/// Refuses a block that the model of `config` does not have; they are counted from 0.
///
/// # Panics
/// When `layer` is `n_layers` or more.
#[track_caller]
pub(super) fn expect_layer(config: &CheckedConfig, layer: usize) {
    let n_layers = config.n_layers;
    assert!(layer < n_layers, "expected a layer below n_layers = {n_layers}, counted from 0, found {layer}; raise n_layers");
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use minrnn_model::{ForgetFloor, ModelConfig};

    use super::super::{AnyMixer, Initializer, MinGru};

    fn config() -> minrnn_model::CheckedConfig {
        ModelConfig { vocab_size: 2, d_model: 4, n_layers: 2, forget_floor: ForgetFloor::Learned, ..Default::default() }.checked().unwrap()
    }

    #[test]
    fn blocks_are_counted_from_0() {
        for layer in [0, 1] {
            MinGru::new(&config(), layer, &mut Initializer::new(1, &Device::flex()));
        }
    }

    #[test]
    #[should_panic(expected = "below n_layers = 2, counted from 0, found 2")]
    fn a_cell_of_a_block_that_is_not_there_is_refused() {
        MinGru::new(&config(), 2, &mut Initializer::new(1, &Device::flex()));
    }

    #[test]
    #[should_panic(expected = "below n_layers = 2, counted from 0, found 7")]
    fn a_chosen_mixer_of_a_block_that_is_not_there_is_refused() {
        AnyMixer::new(&config(), 7, &mut Initializer::new(1, &Device::flex()));
    }
}
