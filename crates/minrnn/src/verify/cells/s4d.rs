//! S4D: a diagonal state space for each channel, from a state of 0.

use burn::tensor::Tensor;

use super::{MAX_HEAD, y_by_channel};
use crate::nn::diagonal_recurrence;
use crate::ops::{self, StepCodes};
use crate::verify::cell::{Cell, Found, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "s4d",
    settings: &[],
    told_by: "u and a_imag",
    sizes,
    remembers: Some(|sizes| sizes.d_inner),
    inputs: |Sizes { batch_size, seq_len, d_model, d_inner, .. }| {
        let parameters = [("log_dt", vec![d_model]), ("log_a_real", vec![d_model, d_inner]), ("a_imag", vec![d_model, d_inner])];
        let read = [("C", vec![d_model, d_inner, 2]), ("D", vec![d_model])];
        [("u", vec![batch_size, seq_len, d_model])].into_iter().chain(parameters).chain(read).collect()
    },
    outputs: y_by_channel,
    run,
};

fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (u, a_imag) = (found.shape("u")?, found.shape("a_imag")?);
    let &[batch_size, seq_len, d_model] = u else { return Err(format!("tensor 'u' has shape {u:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = a_imag else { return Err(format!("tensor 'a_imag' has shape {a_imag:?}, expected [d, N]")) };
    if u.contains(&0) || a_imag.contains(&0) {
        return Err(format!("tensor 'u' has shape {u:?} and 'a_imag' {a_imag:?}; every size must be at least 1"));
    }
    if rows != d_model {
        return Err(format!("tensor 'a_imag' has {rows} rows, but 'u' has {d_model} channels; both are the width"));
    }
    if d_inner > MAX_HEAD {
        return Err(format!("tensor 'a_imag' has {d_inner} states a channel, expected at most {MAX_HEAD}"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads: 1 })
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let Sizes { batch_size, d_model, d_inner, .. } = given.sizes;
    let u = given.get::<3>("u");
    let parameters = diagonal_recurrence(given.get("log_dt"), given.get("log_a_real"), given.get("a_imag"), given.get("C"));
    let x0 = Tensor::zeros([batch_size, 2 * d_inner, d_model], &u.device());
    let (y, _) =
        given.in_calls(x0, |range, x| ops::state_space(steps(&u, range), parameters.clone(), given.get("D"), x, &StepCodes::dense()));
    vec![y.flatten(0, 2)]
}
