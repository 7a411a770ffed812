//! S4 and S4D: a state space for each channel, followed by GELU and a gated down-projection, which are left out inside a wiring.

use minrnn_model::MixerKind;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Value};
use crate::state_space::state_space;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let d = at.config.d_model;
    let y = state_space(g, &at.at("ssm"), [d, 1, at.config.d_state / 2], at.kind == MixerKind::S4, x)?;
    if !at.config.has_output_mixing() {
        return Ok(y);
    }
    let y = g.gelu(y);
    let y = g.linear(&at.at("out_proj"), y, [d, 2 * d], true)?;
    Ok(g.gated_halves(y, d))
}
