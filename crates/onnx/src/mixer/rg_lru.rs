//! RG-LRU: u = W_u x + b_u, r, i = W_a u + b_a, W_x u + b_x, a = e^(−8 softplus(Λ) σ(r)), h ← a h + √(1 − a²) σ(i) u. The first token enters
//! unscaled: there a = 0.

use minrnn_kernels::recurrence::rg_lru_rate;

use super::Place;
use super::linear_cell::less_and_more;
use crate::block_diagonal::product;
use crate::graph::{Graph, Initial, Value};
use crate::{Error, Result};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e, heads) = (at.config.d_model, at.config.d_inner(), at.config.n_heads);
    let head = e / heads;
    let u = g.linear(&at.at("in_proj"), x, [d, e], true)?;
    let bias = g.tensor(&at.at("bias"), &[2 * e])?;
    let [r, i] = [("recurrence_gate", &bias[..e]), ("input_gate", &bias[e..])].map(|(gate, bias)| {
        let gate = at.at(gate);
        let x = product(g, &format!("{gate}.weight"), [heads, head, head], u)?;
        let bias = g.constant(&format!("{gate}.bias"), &[e], bias);
        let x = g.add(x, bias);
        Ok::<_, Error>(g.sigmoid(x))
    });
    let (r, i) = (r?, i?);
    let half: Vec<f32> = g.tensor(&at.at("decay"), &[e])?.iter().map(|&x| rg_lru_rate(x) / 2.0).collect();
    let half = g.constant(&at.at("decay.half"), &[e], &half);

    let (h, begun) = (g.state(&at.at("h"), &[e], Initial::All(0.0)), g.state(&at.at("begun"), &[1], Initial::All(0.0)));
    // 1 − e^−2t = 2 tanh t / (1 + tanh t), exact where a is close to 1.
    let exponent = g.mul(half, r);
    let t = g.tanh(exponent);
    let (twice, sum, rest) = (g.add(t, t), g.plus(t, 1.0), g.one_minus(t));
    let (missing, a) = (g.div(twice, sum), g.div(rest, sum));
    let a = g.mul(begun, a);
    let zero = g.number(0.0);
    let (has_begun, one) = (g.greater(begun, zero), g.number(1.0));
    let missing = g.choose(has_begun, missing, one);
    let sum = g.plus(a, 1.0);
    let square = g.mul(missing, sum);
    let (root, input) = (g.sqrt(square), g.mul(i, u));
    let added = g.mul(root, input);
    let h = less_and_more(g, h, missing, added);
    let now = g.max(begun, one);
    g.keep(&at.at("h"), h);
    g.keep(&at.at("begun"), now);
    g.linear(&at.at("out_proj"), h, [e, d], true)
}
