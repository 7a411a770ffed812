//! Associative memories with the delta rule: S ← S + β (v − S k̂) k̂ᵀ, y = S q for every head.

use minrnn_kernels::delta::EPS;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Initial, Value};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e, heads) = (at.config.d_model, at.config.d_inner(), at.config.n_heads);
    let n = e / heads;
    let all = g.linear(&at.at("in_proj"), x, [d, 3 * e + heads], true)?;
    let [q, k, v, beta] = g.split(all, 1, [e, e, e, heads]);
    let k = g.reshape(k, &[heads, 1, n]);
    let squares = g.mul(k, k);
    let sum = g.sum(squares, -1, true);
    let sum = g.plus(sum, EPS);
    let length = g.sqrt(sum);
    let k = g.div(k, length);

    let state = at.at("memory");
    let memory = g.state(&state, &[heads, n, n], Initial::All(0.0));
    let (recalled, v) = (g.matmul(k, memory), g.reshape(v, &[heads, 1, n]));
    let (error, beta) = (g.sub(v, recalled), g.sigmoid(beta));
    let beta = g.reshape(beta, &[heads, 1, 1]);
    let correction = g.mul(beta, error);
    let k = g.reshape(k, &[heads, n, 1]);
    let correction = g.mul(k, correction);
    let memory = g.add(memory, correction);
    g.keep(&state, memory);
    let q = g.reshape(q, &[heads, 1, n]);
    let y = g.matmul(q, memory);
    let y = g.reshape(y, &[e]);
    g.linear(&at.at("out_proj"), y, [e, d], true)
}
