//! One pass over a prompt, to the state after it and the logits of the next token.

use burn::tensor::Device;
use minrnn::ops::StepCodes;

use super::Measured;
use super::case::{Case, Defaults};
use super::language_model::{build, flop, inputs, parameters, random_tokens};
use super::timing::Plan;

pub const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 1, seq_len: &[512, 4096], iterations: 5 };

pub fn measure(case: &Case, plan: Plan) -> anyhow::Result<Measured> {
    let device = Device::flex();
    let model = build(case, 4 * case.d_model as u128, &device)?;
    let lengths = vec![case.seq_len; case.batch_size];
    let prompt = inputs(case, &random_tokens(case, 0), &device);
    let times = plan.time(|| {
        let state = model.init_state(case.batch_size);
        std::hint::black_box(model.prefill(prompt.clone(), &lengths, state, &StepCodes::dense()));
    });
    // The head sees one position of each row; the peers count it everywhere, and so do we.
    Ok(Measured { times, flop: flop(case, false), parameters: Some(parameters(&model)) })
}
