//! S6, the selective state spaces of Mamba: [δ, B, C] = W_x u, Δ = softplus(W_dt δ + b), h ← exp(Δ A) h + Δ u B, y = Σ_n C h + D u.

use minrnn_kernels::matmul::transposed;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Initial, Value};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let d = at.config.d_model;
    let y = selective(g, at, d, x)?;
    if !at.config.has_output_mixing() {
        return Ok(y);
    }
    let y = g.gelu(y);
    let y = g.linear(&at.at("out_proj"), y, [d, 2 * d], true)?;
    Ok(g.gated_halves(y, d))
}

/// The state spaces of `e` channels of `u` `[B, e]`.
pub(super) fn selective(g: &mut Graph<'_>, at: &Place<'_>, e: usize, u: Value) -> Result<Value> {
    let (n, r) = (at.config.d_state, at.config.step_rank());
    let all = g.linear(&at.at("x_proj"), u, [e, r + 2 * n], false)?;
    let [delta, input, output] = g.split(all, 1, [r, n, n]);
    let delta = g.linear(&at.at("dt_proj"), delta, [r, e], true)?;
    let delta = g.softplus(delta);
    let a_log = g.tensor(&at.at("A_log"), &[e, n])?;
    let a: Vec<f32> = transposed(&a_log, e, n).into_iter().map(|a| -libm::expf(a)).collect();
    let (a, skip) = (g.constant(&at.at("A"), &[n, e], &a), g.parameter(&at.at("D"), &[e])?);

    let state = at.at("states");
    let h = g.state(&state, &[n, e], Initial::All(0.0));
    let row = g.reshape(delta, &[1, e]);
    let exponent = g.mul(row, a);
    let decay = g.exp(exponent);
    let (product, column) = (g.mul(delta, u), g.reshape(input, &[n, 1]));
    let product = g.reshape(product, &[1, e]);
    let (kept, added) = (g.mul(decay, h), g.mul(column, product));
    let h = g.add(kept, added);
    g.keep(&state, h);
    let output = g.reshape(output, &[1, n]);
    let y = g.matmul(output, h);
    let (y, direct) = (g.reshape(y, &[e]), g.mul(skip, u));
    Ok(g.add(y, direct))
}
