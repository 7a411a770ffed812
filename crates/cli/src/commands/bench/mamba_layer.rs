//! One Mamba layer up to its output projection: in-projection, convolution, selection, scan and gate, loss = Σ w ⊙ y, backward to x,
//! the carried state and all weights.

use std::hint::black_box;

use burn::tensor::{Device, Tensor, TensorData};
use minrnn::nn::{Initializer, Mamba, MambaConfig, MambaState, Mixer};
use minrnn::ops::{StepCodes, with_precision};
use minrnn::rng::{self, ChaCha8Rng, Purpose};
use rand::Rng;

use super::Measured;
use super::case::{Case, expect_room};
use super::timing::Plan;

/// Numbers kept of each token, a lower bound, in widths of the recurrence.
const WIDTHS_KEPT: u128 = 9;

pub fn measure(case: &Case, plan: Plan) -> anyhow::Result<Measured> {
    expect_room(case.tokens() * (2 * case.d_model as u128 + WIDTHS_KEPT * case.d_hidden as u128))?;
    let config = MambaConfig::new(case.d_model, case.d_hidden);
    let layer = Layer::new(case, &config);
    let precision = case.precision.training()?;
    let times = plan.time(|| with_precision(precision, || layer.iteration()));
    let (d, e, r, n) = (case.d_model, case.d_hidden, config.dt_rank(), config.d_state);
    let weights = 2 * d * e + e * (r + 2 * n) + r * e;
    Ok(Measured { times, flop: Some(6.0 * case.tokens() as f64 * weights as f64), parameters: None })
}

struct Layer {
    mamba: Mamba,
    x: Tensor<3>,
    state: MambaState,
    loss_weight: Tensor<3>,
}

impl Layer {
    fn new(case: &Case, config: &MambaConfig) -> Self {
        let Case { d_model: d, d_hidden: e, batch_size: b, seq_len: t, .. } = *case;
        let device = Device::flex().autodiff();
        let mut rng = rng::stream(0, Purpose::Bench, 0);
        let mamba = config.init(&mut Initializer::new(0, &device));
        let state = mamba.init_state(b);
        Self {
            mamba,
            x: uniform([b, t, d], &mut rng, &device).require_grad(),
            state: MambaState { conv: state.conv.require_grad(), ssm: state.ssm.require_grad() },
            loss_weight: uniform([b, t, e], &mut rng, &device),
        }
    }

    fn iteration(&self) {
        let (y, _) = self.mamba.inner(self.x.clone(), self.state.clone(), &StepCodes::dense());
        let gradients = (y * self.loss_weight.clone()).sum().backward();
        black_box((self.x.grad(&gradients), self.state.conv.grad(&gradients), self.state.ssm.grad(&gradients)));
        let Mamba { in_proj, conv1d, x_proj, dt_proj, .. } = &self.mamba;
        black_box([in_proj, x_proj, dt_proj].map(|linear| linear.weight.val().grad(&gradients)));
        black_box((conv1d.weight.val().grad(&gradients), self.mamba.A_log.val().grad(&gradients), self.mamba.D.val().grad(&gradients)));
    }
}

/// Uniform with deviation 1.
fn uniform<const N: usize>(shape: [usize; N], rng: &mut ChaCha8Rng, device: &Device) -> Tensor<N> {
    let unit = |rng: &mut ChaCha8Rng| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0;
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| 3f32.sqrt() * unit(rng)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
