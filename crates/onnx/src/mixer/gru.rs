//! GRU, in the paper's form and in PyTorch's.

use minrnn_model::{Candidate, GruForm};

use super::recurrent::{input_side, recurrent_side};
use super::{Place, initial};
use crate::Result;
use crate::graph::{Graph, Value};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let e = at.config.d_inner();
    let first = initial(g, at, "initial_state", Candidate::Identity)?;
    let h = g.state(&at.at("h"), &[e], first);
    let p = input_side(g, at, 3, x)?;
    let next = match at.config.gru_form {
        GruForm::Paper => {
            let weight = g.tensor(&at.at("recurrent.weight"), &[3 * e, e])?;
            let (gates, inner) = weight.split_at(2 * e * e);
            let gates = g.constant(&at.at("recurrent.weight.gates"), &[2 * e, e], gates);
            let inner = g.constant(&at.at("recurrent.weight.candidate"), &[e, e], inner);
            let [p, p_n] = g.split(p, 1, [2 * e, e]);
            let u = g.gemm(h, gates, None);
            let sum = g.add(p, u);
            let sum = g.sigmoid(sum);
            let [reset, share] = g.split(sum, 1, [e; 2]);
            let left = g.mul(reset, h);
            let u = g.gemm(left, inner, None);
            let n = g.add(p_n, u);
            let n = g.tanh(n);
            g.move_to(h, n, share)
        }
        GruForm::Torch => {
            let u = recurrent_side(g, at, 3, h)?;
            let ([p, p_n], [u, u_n]) = (g.split(p, 1, [2 * e, e]), g.split(u, 1, [2 * e, e]));
            let sum = g.add(p, u);
            let sum = g.sigmoid(sum);
            let [reset, share] = g.split(sum, 1, [e; 2]);
            let u_n = g.mul(reset, u_n);
            let n = g.add(p_n, u_n);
            let n = g.tanh(n);
            g.move_to(n, h, share)
        }
    };
    g.keep(&at.at("h"), next);
    g.linear(&at.at("out_proj"), next, [e, at.config.d_model], true)
}
