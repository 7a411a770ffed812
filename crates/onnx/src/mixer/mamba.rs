//! Mamba: [u, ζ] = W_in x, u ← SiLU(conv4(u)), y = S6(u) ⊙ SiLU(ζ).

use super::Place;
use super::s6::selective;
use crate::Result;
use crate::graph::{Graph, Value};
use crate::window::depthwise;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e) = (at.config.d_model, at.config.d_inner());
    let all = g.linear(&at.at("in_proj"), x, [d, 2 * e], false)?;
    let [u, gate] = g.split(all, 1, [e; 2]);
    let u = depthwise(g, &at.at("conv1d"), e, u)?;
    let u = g.silu(u);
    let (y, gate) = (selective(g, at, e, u)?, g.silu(gate));
    let y = g.mul(y, gate);
    g.linear(&at.at("out_proj"), y, [e, d], false)
}
