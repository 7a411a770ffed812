//! LSTM.

use minrnn_model::Candidate;

use super::recurrent::{input_side, recurrent_side};
use super::{Place, initial};
use crate::Result;
use crate::graph::{Graph, Value};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let e = at.config.d_inner();
    let [first_h, first_c] = ["initial_state", "initial_cell"].map(|part| initial(g, at, part, Candidate::Identity));
    let (h, c) = (g.state(&at.at("h"), &[e], first_h?), g.state(&at.at("c"), &[e], first_c?));
    let (p, u) = (input_side(g, at, 4, x)?, recurrent_side(g, at, 4, h)?);
    let sum = g.add(p, u);
    let [i, f, z, o] = g.split(sum, 1, [e; 4]);
    let [i, f, o] = [i, f, o].map(|gate| g.sigmoid(gate));
    let z = g.tanh(z);
    let (kept, added) = (g.mul(f, c), g.mul(i, z));
    let c = g.add(kept, added);
    let shown = g.tanh(c);
    let h = g.mul(o, shown);
    g.keep(&at.at("h"), h);
    g.keep(&at.at("c"), c);
    g.linear(&at.at("out_proj"), h, [e, at.config.d_model], true)
}
