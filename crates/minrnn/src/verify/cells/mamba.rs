//! The selective scan between Mamba's projections.

use burn::tensor::Tensor;

use super::y_by_channel;
use crate::ops::{self, SelectiveScan, StepCodes};
use crate::verify::cell::{Cell, Found, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "mamba",
    settings: &[],
    told_by: "u and A",
    sizes,
    remembers: Some(|sizes| sizes.d_inner),
    inputs: |Sizes { batch_size, seq_len, d_model, d_inner, .. }| {
        let sequences = [("u", d_model), ("delta", d_model), ("z", d_model), ("B", d_inner), ("C", d_inner)];
        let sequences = sequences.map(|(name, width)| (name, vec![batch_size, seq_len, width]));
        sequences.into_iter().chain([("A", vec![d_model, d_inner]), ("D", vec![d_model]), ("delta_bias", vec![d_model])]).collect()
    },
    outputs: y_by_channel,
    run,
};

fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (u, a) = (found.shape("u")?, found.shape("A")?);
    let &[batch_size, seq_len, d_model] = u else { return Err(format!("tensor 'u' has shape {u:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = a else { return Err(format!("tensor 'A' has shape {a:?}, expected [d, e]")) };
    if u.contains(&0) || a.contains(&0) {
        return Err(format!("tensor 'u' has shape {u:?} and 'A' {a:?}; every size must be at least 1"));
    }
    if rows != d_model {
        return Err(format!("tensor 'A' has {rows} rows, but 'u' has {d_model} channels; both are the width"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads: 1 })
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let [u, delta, z] = ["u", "delta", "z"].map(|name| given.get::<3>(name));
    let bc = Tensor::cat(vec![given.get::<3>("B"), given.get("C")], 2);
    let (y, _) = given.in_calls(None, |range, h0| {
        let [u, delta, z, bc] = [&u, &delta, &z, &bc].map(|x| steps(x, range));
        let (delta_bias, a, skip) = (given.get("delta_bias"), given.get("A"), given.get("D"));
        let (y, last) = ops::selective_scan(SelectiveScan { u, delta, delta_bias, a, bc, skip, z: Some(z), h0 }, &StepCodes::dense());
        (y, Some(last))
    });
    vec![y.flatten(0, 2)]
}
