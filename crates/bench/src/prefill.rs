//! One pass over a prompt by the inference runtime, to the state after it and the logits of the next token.

use burn::tensor::Device;
use minrnn::generate::Session;
use minrnn_stream::Workspace;

use crate::case::{Case, Defaults};
use crate::language_model::{build, deploy, forward_flop, parameters, random_tokens};
use crate::timing::Plan;
use crate::{Measured, Result};

pub(crate) const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 1, seq_len: &[512, 2048], iterations: 5 };

pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    if *device != Device::flex() {
        return on_device(case, plan, device);
    }
    let model = deploy(case, 1)?;
    let tokens: Vec<u32> = random_tokens(case, 0).into_iter().map(|token| token as u32).collect();
    let prompts: Vec<&[u32]> = tokens.chunks(case.seq_len + 1).map(|row| &row[..case.seq_len]).collect();
    let mut failure = None;
    let (mut workspace, mut logits) = (Workspace::new(), vec![0.0; case.batch_size * model.outputs()]);
    let start = model.init_state(case.batch_size)?;
    let times = plan.time(|| {
        let mut state = start.clone();
        failure = model.prefill(&prompts, &mut state, &mut logits, &mut workspace).map_err(minrnn::Error::from).err();
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    // The head runs on one position of each row; the peers count it for every position, and so do we.
    Ok(Measured { times, flop: forward_flop(case), parameters: Some(model.parameters()) })
}

/// The same with the training model, which also runs on GPUs.
fn on_device(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let model = build(case, 1, device)?;
    let tokens: Vec<u32> = random_tokens(case, 0).into_iter().map(|token| token as u32).collect();
    let prompts: Vec<&[u32]> = tokens.chunks(case.seq_len + 1).map(|row| &row[..case.seq_len]).collect();
    let mut failure = None;
    let times = plan.time_on(device, || failure = Session::new(&model, case.batch_size).prefill(&prompts).err())?;
    failure.map_or(Ok(()), Err)?;
    Ok(Measured { times, flop: forward_flop(case), parameters: Some(parameters(&model)) })
}
