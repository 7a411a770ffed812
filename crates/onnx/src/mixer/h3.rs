//! H3: q, k, v = W x + b, k̄ the shift of k, m_ab = k̄_a v_b, y_b = Σ_a q_a S4D(m_ab); a, b being channels of one head.

use super::Place;
use crate::Result;
use crate::graph::{Graph, Value};
use crate::state_space::state_space;
use crate::window::shift;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e) = (at.config.d_model, at.config.head_width);
    let heads = d / e;
    let all = g.linear(&at.at("in_proj"), x, [d, 3 * d], true)?;
    let [query, key, value] = g.split(all, 1, [d; 3]);
    let key = shift(g, &at.at("shift_ssm"), d, at.config.d_state, key)?;
    let (key, value) = (g.reshape(key, &[heads, e, 1]), g.reshape(value, &[heads, 1, e]));
    let products = g.mul(key, value);
    let products = g.reshape(products, &[d * e]);
    let memories = state_space(g, &at.at("ssm"), [heads, e * e, at.config.d_state / 2], false, products)?;
    let (query, memories) = (g.reshape(query, &[heads, 1, e]), g.reshape(memories, &[heads, e, e]));
    let y = g.matmul(query, memories);
    let y = g.reshape(y, &[d]);
    g.linear(&at.at("out_proj"), y, [d, d], true)
}
