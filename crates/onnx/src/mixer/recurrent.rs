//! What GRU and LSTM share: the input side and the recurrent side.

use super::Place;
use crate::Result;
use crate::graph::{Graph, Value};

/// W x + b for `gates` gates, `[B, gates · E]`.
pub(super) fn input_side(g: &mut Graph<'_>, at: &Place<'_>, gates: usize, x: Value) -> Result<Value> {
    g.linear(&at.at("in_proj"), x, [at.config.d_model, gates * at.config.d_inner()], true)
}

/// U h + b' for `gates` gates.
pub(super) fn recurrent_side(g: &mut Graph<'_>, at: &Place<'_>, gates: usize, h: Value) -> Result<Value> {
    let e = at.config.d_inner();
    g.linear(&at.at("recurrent"), h, [e, gates * e], true)
}
