//! RWKV-4 over many tokens against its equations in f64: the sums of time mixing as they stand, without the logarithms of the runtime.

mod common;

use common::reference::sigmoid;
use common::{Numbers, Tensors, assert_close, stepped, weights};
use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig, NormKind, WeightFormat};
use minrnn_stream::Model;

const VOCAB_SIZE: usize = 11;

/// The equations, one token after the other.
struct Reference<'a> {
    tensors: &'a Tensors,
    /// The latest inputs of the two mixings.
    before: [Vec<f64>; 2],
    /// P and Q.
    sums: [Vec<f64>; 2],
}

impl Reference<'_> {
    fn get(&self, name: &str) -> impl Iterator<Item = f64> {
        self.tensors[&format!("backbone.blocks.0.{name}")].1.iter().map(|&x| f64::from(x))
    }

    fn matmul(weight: impl Iterator<Item = f64>, x: &[f64]) -> Vec<f64> {
        let weight: Vec<f64> = weight.collect();
        weight.chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    }

    /// W of the mixture of `x` and the input before it.
    fn mixed(&self, part: &str, name: &str, x: &[f64], before: &[f64]) -> Vec<f64> {
        let mixture: Vec<f64> =
            self.get(&format!("{part}.mix_{name}")).zip(x.iter().zip(before)).map(|(mu, (x, b))| mu * x + (1.0 - mu) * b).collect();
        Self::matmul(self.get(&format!("{part}.{name}.weight")), &mixture)
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let [gain, shift] = ["weight", "bias"].map(|part| self.tensors[&format!("{name}.{part}")].1.clone());
        (0..x.len()).map(|i| (x[i] - mean) / (variance + 1e-5).sqrt() * f64::from(gain[i]) + f64::from(shift[i])).collect()
    }

    /// Logits after `token`.
    fn step(&mut self, token: u32) -> Vec<f32> {
        let wide = |x: &f32| f64::from(*x);
        let d = self.before[0].len();
        let mut x: Vec<f64> = self.tensors["embedding.weight"].1[token as usize * d..][..d].iter().map(wide).collect();

        let normed = self.norm("backbone.blocks.0.mixer_norm", &x);
        let [r, k, v] = ["receptance", "key", "value"].map(|name| self.mixed("mixer", name, &normed, &self.before[0]));
        let (decay, bonus): (Vec<f64>, Vec<f64>) = (self.get("mixer.decay").collect(), self.get("mixer.bonus").collect());
        let [p, q] = &mut self.sums;
        let mut y = vec![0.0; r.len()];
        for c in 0..y.len() {
            let (now, kept) = ((bonus[c] + k[c]).exp(), (-decay[c].exp()).exp());
            y[c] = sigmoid(r[c]) * (p[c] + now * v[c]) / (q[c] + now);
            (p[c], q[c]) = (kept * p[c] + k[c].exp() * v[c], kept * q[c] + k[c].exp());
        }
        self.before[0] = normed;
        x.iter_mut().zip(Self::matmul(self.get("mixer.out_proj.weight"), &y)).for_each(|(x, y)| *x += y);

        let normed = self.norm("backbone.blocks.0.ff_norm", &x);
        let [r, k] = ["receptance", "key"].map(|name| self.mixed("ff", name, &normed, &self.before[1]));
        let hidden: Vec<f64> = k.iter().map(|k| k.max(0.0) * k.max(0.0)).collect();
        let value = Self::matmul(self.get("ff.value.weight"), &hidden);
        self.before[1] = normed;
        x.iter_mut().zip(r.iter().zip(value)).for_each(|(x, (r, value))| *x += sigmoid(*r) * value);

        let x = self.norm("backbone.final_norm", &x);
        Self::matmul(self.tensors["head.weight"].1.iter().map(wide), &x).into_iter().map(|y| y as f32).collect()
    }
}

#[test]
fn thousands_of_steps_that_fade_slowly_match_the_equations() {
    let config = ModelConfig {
        mixer: MixerKind::Rwkv4,
        vocab_size: VOCAB_SIZE,
        d_model: 12,
        expansion: 1.0,
        n_layers: 1,
        norm: NormKind::Layer,
        ff: FeedForwardKind::ChannelMix,
        conv: false,
        ..ModelConfig::default()
    };
    let checked = config.checked().unwrap();
    let (d, e) = (checked.d_model, checked.d_inner());
    let mut numbers = Numbers::new(7);
    let tensors: Tensors = checked
        .tensors()
        .into_iter()
        .map(|tensor| {
            let [scale, shift] = match tensor.name.rsplit('.').next().unwrap() {
                // Half of what was read is gone after 1 to 5000 steps.
                "decay" => [4.5, -4.5],
                name if name.starts_with("mix_") => [0.5, 0.5],
                "bias" => [0.3, 0.0],
                _ => [1.7 / (*tensor.shape.last().unwrap() as f32).sqrt(), 0.0],
            };
            let values = (0..tensor.elements()).map(|_| numbers.next() * scale + shift).collect();
            (tensor.name, (tensor.shape, values))
        })
        .collect();
    let model = Model::new(&config, &mut weights(&tensors), WeightFormat::F32).unwrap();
    let tokens: Vec<u32> = (0..4000).map(|_| ((numbers.next() + 1.0) / 2.0 * VOCAB_SIZE as f32) as u32).collect();
    let mut reference = Reference { tensors: &tensors, before: [(); 2].map(|()| vec![0.0; d]), sums: [(); 2].map(|()| vec![0.0; e]) };
    let expected: Vec<f32> = tokens.iter().flat_map(|&token| reference.step(token)).collect();
    assert_close(&stepped(&model, &tokens), &expected, 5e-6, "RWKV-4");
}
