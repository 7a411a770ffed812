//! The models in f64, one token after the other, as the equations stand.

use minrnn_kernels::recurrence::{Cell, Inputs};
use minrnn_kernels::reference::recurrence;
use minrnn_kernels::{Gates, Shape, Start};
use minrnn_model::{Candidate, FeedForwardKind, GruForm, InitialState, MixerKind, ModelConfig, NormKind};

use super::Tensors;

pub struct Reference<'a> {
    config: &'a ModelConfig,
    tensors: &'a Tensors,
    blocks: Vec<Memory>,
}

struct Memory {
    /// The three inputs before the current one, oldest first.
    window: Vec<Vec<f64>>,
    h: Vec<f64>,
    c: Vec<f64>,
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Φ(x) x with the error function summed as a series or a continued fraction.
fn gelu(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    let erf = if z.abs() > 5.0 {
        z.signum()
    } else {
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    };
    x * 0.5 * (1.0 + erf)
}

impl<'a> Reference<'a> {
    pub fn new(config: &'a ModelConfig, tensors: &'a Tensors) -> Self {
        let mut reference = Self { config, tensors, blocks: Vec::new() };
        for i in 0..config.n_layers {
            let initial = |part: &str| match config.initial_state {
                InitialState::Zero => vec![0.0; config.checked().unwrap().d_inner()],
                InitialState::Learned => {
                    let theta = reference.vector(&format!("backbone.blocks.{i}.mixer.{part}"));
                    let positive =
                        matches!(config.mixer, MixerKind::MinGru | MixerKind::MinLstm) && config.candidate == Candidate::Positive;
                    let kind = if positive { Candidate::Positive } else { Candidate::Identity };
                    theta.into_iter().map(|x| kind.value(x)).collect()
                }
            };
            let h = initial("initial_state");
            let c = if config.mixer == MixerKind::Lstm { initial("initial_cell") } else { Vec::new() };
            reference.blocks.push(Memory { window: vec![vec![0.0; config.d_model]; 3], h, c });
        }
        reference
    }

    fn vector(&self, name: &str) -> Vec<f64> {
        self.tensors[name].1.iter().map(|&x| f64::from(x)).collect()
    }

    fn matmul(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.vector(name).chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let y = self.matmul(&format!("{name}.weight"), x);
        y.into_iter().zip(self.vector(&format!("{name}.bias"))).map(|(y, b)| y + b).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let get = |part: &str| self.vector(&format!("{name}.{part}"));
        let n = x.len() as f64;
        match self.config.norm {
            NormKind::Rms => {
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
                x.iter().zip(get("gamma")).map(|(x, gamma)| x / norm * n.sqrt() * (1.0 + gamma)).collect()
            }
            NormKind::Layer => {
                let mean = x.iter().sum::<f64>() / n;
                let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                let scaled = x.iter().zip(get("weight")).map(|(x, gamma)| (x - mean) / (variance + 1e-5).sqrt() * gamma);
                scaled.zip(get("bias")).map(|(x, beta)| x + beta).collect()
            }
            NormKind::Batch => {
                let (gamma, beta, mean, variance) = (get("weight"), get("bias"), get("running_mean"), get("running_var"));
                (0..x.len()).map(|i| (x[i] - mean[i]) / (variance[i] + 1e-5).sqrt() * gamma[i] + beta[i]).collect()
            }
        }
    }

    /// Logits after `token`.
    pub fn step(&mut self, token: u32) -> Vec<f32> {
        let d = self.config.d_model;
        let embedding = self.vector("embedding.weight");
        let mut x = embedding[token as usize * d..][..d].to_vec();
        for i in 0..self.config.n_layers {
            x = self.block(i, x);
        }
        let x = self.norm("backbone.final_norm", &x);
        let head = if self.config.tie_embeddings { "embedding.weight" } else { "head.weight" };
        self.matmul(head, &x).into_iter().map(|y| y as f32).collect()
    }

    fn block(&mut self, i: usize, mut x: Vec<f64>) -> Vec<f64> {
        let at = |part: &str| format!("backbone.blocks.{i}.{part}");
        let add = |x: &mut Vec<f64>, y: Vec<f64>| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        if self.config.conv {
            let (taps, bias) = (self.vector(&at("conv.depthwise.weight")), self.vector(&at("conv.depthwise.bias")));
            self.blocks[i].window.push(x.clone());
            let window = &self.blocks[i].window;
            let y: Vec<f64> = (0..x.len()).map(|c| bias[c] + (0..4).map(|tap| taps[c * 4 + tap] * window[tap][c]).sum::<f64>()).collect();
            self.blocks[i].window.remove(0);
            add(&mut x, self.linear(&at("conv.pointwise"), &y));
        }
        let normed = self.norm(&at("mixer_norm"), &x);
        let h = self.mix(i, &normed);
        add(&mut x, self.linear(&at("mixer.out_proj"), &h));
        if self.config.ff != FeedForwardKind::None {
            let up = self.linear(&at("ff.up"), &self.norm(&at("ff_norm"), &x));
            let d_ff = self.config.checked().unwrap().d_ff();
            let hidden: Vec<f64> = match self.config.ff {
                FeedForwardKind::Gated => {
                    let scale = self.vector(&at("ff.scale"));
                    (0..d_ff).map(|c| gelu(up[d_ff + c]) * up[c] * scale[c]).collect()
                }
                _ => up.into_iter().map(gelu).collect(),
            };
            add(&mut x, self.linear(&at("ff.down"), &hidden));
        }
        x
    }

    fn mix(&mut self, i: usize, x: &[f64]) -> Vec<f64> {
        let config = self.config;
        let e = config.checked().unwrap().d_inner();
        let name = format!("backbone.blocks.{i}.mixer");
        let p = self.linear(&format!("{name}.in_proj"), x);
        let gates = p.len() / e;
        let old = self.blocks[i].h.clone();
        let recurrent = |h: &[f64]| {
            let mut u = self.matmul(&format!("{name}.recurrent.weight"), h);
            if let Some((_, bias)) = self.tensors.get(&format!("{name}.recurrent.bias")) {
                u.iter_mut().zip(bias).for_each(|(u, b)| *u += f64::from(*b));
            }
            assert_eq!(u.len(), gates * e);
            u
        };
        let mut cell = self.blocks[i].c.clone();
        let h: Vec<f64> = match config.mixer {
            MixerKind::MinGru | MixerKind::MinLstm => {
                let gates = if config.normalize_gates { Gates::Normalized } else { Gates::Unnormalized };
                let minimal = config.mixer == MixerKind::MinGru;
                let cell = if minimal { Cell::MinGru(config.candidate) } else { Cell::MinLstm(config.candidate, gates) };
                let start = Start { h0: Some(&old[..]), ..Start::default() };
                let shape = Shape { batch: 1, seq_len: 1, width: e };
                recurrence::forward(shape, cell, Inputs { preact: &p, bias: None, extra: &[] }, start).h
            }
            MixerKind::Gru => {
                let u = recurrent(&old);
                let r: Vec<f64> = (0..e).map(|c| sigmoid(p[c] + u[c])).collect();
                let z: Vec<f64> = (0..e).map(|c| sigmoid(p[e + c] + u[e + c])).collect();
                match config.gru_form {
                    GruForm::Paper => {
                        let inner = recurrent(&r.iter().zip(&old).map(|(r, h)| r * h).collect::<Vec<_>>());
                        (0..e).map(|c| (1.0 - z[c]) * old[c] + z[c] * (p[2 * e + c] + inner[2 * e + c]).tanh()).collect()
                    }
                    GruForm::Torch => (0..e).map(|c| (1.0 - z[c]) * (p[2 * e + c] + r[c] * u[2 * e + c]).tanh() + z[c] * old[c]).collect(),
                }
            }
            MixerKind::Lstm => {
                let u = recurrent(&old);
                let a = |gate: usize, c: usize| p[gate * e + c] + u[gate * e + c];
                (0..e)
                    .map(|c| {
                        cell[c] = sigmoid(a(1, c)) * cell[c] + sigmoid(a(0, c)) * a(2, c).tanh();
                        sigmoid(a(3, c)) * cell[c].tanh()
                    })
                    .collect()
            }
            other => unreachable!("{other} has no reference"),
        };
        self.blocks[i].c = cell;
        self.blocks[i].h.clone_from(&h);
        h
    }
}
