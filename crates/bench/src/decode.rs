//! Greedy generation by the inference runtime: from a carried state, each token the most likely one given those before.

use burn::tensor::Device;
use minrnn::generate::Session;
use minrnn_model::likeliest;
use minrnn_stream::{Model, Workspace};

use crate::case::{Case, Defaults};
use crate::language_model::{build, deploy, forward_flop, parameters, random_tokens};
use crate::timing::{Plan, Times};
use crate::{Measured, Result};

pub(crate) const DEFAULTS: Defaults = Defaults { d_model: 384, d_hidden: 768, batch_size: 1, seq_len: &[256], iterations: 5 };

pub(crate) fn measure(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    if *device != Device::flex() {
        return on_device(case, plan, device);
    }
    let model = deploy(case, 1)?;
    let first: Vec<u32> = random_tokens(case, 0).chunks(case.seq_len + 1).map(|row| row[0] as u32).collect();
    let times = runtime(case, plan, &model, &first)?;
    Ok(Measured { times, flop: forward_flop(case), parameters: Some(model.parameters()) })
}

fn runtime(case: &Case, plan: Plan, model: &Model, first: &[u32]) -> minrnn_stream::Result<Times> {
    let v = model.vocab_size();
    let (mut start, mut workspace) = (model.init_state(case.batch_size)?, Workspace::new());
    let mut logits = vec![0.0; case.batch_size * v];
    model.step(first, &mut start, &mut logits, &mut workspace)?;
    let mut tokens = likeliest_of_rows(&logits, v);
    let mut outcome = Ok(());
    let times = plan.time(|| {
        let mut state = start.clone();
        for _ in 0..case.seq_len {
            outcome = model.step(&tokens, &mut state, &mut logits, &mut workspace);
            if outcome.is_err() {
                return;
            }
            tokens = likeliest_of_rows(&logits, v);
        }
    });
    outcome.map(|()| times)
}

/// The same with the training model, which also runs on GPUs.
fn on_device(case: &Case, plan: Plan, device: &Device) -> Result<Measured> {
    let model = build(case, 1, device)?;
    let first: Vec<u32> = random_tokens(case, 0).chunks(case.seq_len + 1).map(|row| row[0] as u32).collect();
    let mut failure = None;
    let times = plan.time_on(device, || {
        let (mut session, mut tokens) = (Session::new(&model, case.batch_size), first.clone());
        for _ in 0..case.seq_len {
            match session.step(&tokens) {
                Ok(logits) => tokens = (0..case.batch_size).map(|row| likeliest(logits.row(row)) as u32).collect(),
                Err(error) => failure = Some(error),
            }
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    Ok(Measured { times, flop: forward_flop(case), parameters: Some(parameters(&model)) })
}

/// The most likely token of each row.
fn likeliest_of_rows(logits: &[f32], vocab_size: usize) -> Vec<u32> {
    logits.chunks_exact(vocab_size).map(|row| likeliest(row) as u32).collect()
}
