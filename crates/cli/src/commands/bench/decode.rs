//! Generation without sampling: from a carried state, each token the most likely one after those before.

use burn::tensor::Device;
use minrnn::ops::StepCodes;

use super::Measured;
use super::case::{Case, Defaults};
use super::language_model::{build, flop, inputs, parameters, random_tokens};
use super::timing::Plan;

pub const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 1, seq_len: &[256], iterations: 5 };

pub fn measure(case: &Case, plan: Plan) -> anyhow::Result<Measured> {
    let device = Device::flex();
    let model = build(case, 1, &device)?;
    let steps = StepCodes::dense();
    let lengths = vec![1; case.batch_size];
    let first = inputs(case, &random_tokens(case, 0), &device).narrow(1, 0, 1);
    let (logits, start) = model.prefill(first, &lengths, model.init_state(case.batch_size), &steps);
    let times = plan.time(|| {
        let (mut logits, mut state) = (logits.clone(), start.clone());
        for _ in 0..case.seq_len {
            (logits, state) = model.prefill(logits.argmax(1), &lengths, state, &steps);
        }
        std::hint::black_box((logits, state));
    });
    Ok(Measured { times, flop: flop(case, false), parameters: Some(parameters(&model)) })
}
