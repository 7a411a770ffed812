//! Parameters of modules.

use burn::tensor::Device;
use minrnn::checkpoint::parameter_shapes;
use minrnn::nn::{AnyMixer, Initializer};
use minrnn::train::Experiment;

/// Number of weights in a mixer's products with its input and its previous state, without biases and the projection back to the model's
/// width.
///
/// # Errors
/// When the model's settings do not fit together.
pub fn count_parameters(experiment: &Experiment) -> minrnn::Result<usize> {
    let config = minrnn_model::ModelConfig { vocab_size: 2, ..experiment.model.clone() };
    let mixer = AnyMixer::new(&config.checked().map_err(minrnn::Error::from)?, 0, &mut Initializer::new(0, &Device::flex()));
    let counted = |(name, shape): &(String, Vec<usize>)| shape.len() == 2 && !name.contains("out_proj");
    Ok(parameter_shapes(&mixer).iter().filter(|parameter| counted(parameter)).map(|(_, shape)| shape.iter().product::<usize>()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(mixer: &str, expansion: f64) -> usize {
        let settings = [format!("mixer={mixer}"), format!("expansion={expansion}"), "d_model=24".to_owned(), "ff=none".to_owned()];
        count_parameters(&Experiment::load("text", &settings).unwrap()).unwrap()
    }

    /// With d_h = α d_x: 2 / (3 (1 + α)) and 3 / (4 (1 + α)).
    #[test]
    fn the_fractions_of_the_paper_are_those_of_the_modules() {
        for alpha in 1..=4u32 {
            let e = f64::from(alpha);
            assert_eq!(count("min-gru", e) * 3 * (1 + alpha as usize), count("gru", e) * 2);
            assert_eq!(count("min-lstm", e) * 4 * (1 + alpha as usize), count("lstm", e) * 3);
        }
    }
}
