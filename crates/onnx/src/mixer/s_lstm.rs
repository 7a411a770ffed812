//! sLSTM: m⁺ = max(ln f + m, ĩ), c ← e^(ln f + m − m⁺) c + e^(ĩ − m⁺) tanh z̃, n likewise of 1, h ← σ(õ) c / n, y = norm of each head of h.
//!
//! The gates of a head are one product of [SiLU(conv4(x)) | x | h] with a matrix that has zeros for inputs a gate does not use.

use minrnn_kernels::s_lstm::{EMPTY_M, ForgetGate};

use super::Place;
use crate::graph::{Graph, Initial, Value};
use crate::window::depthwise;
use crate::{Result, norm};

const GATES: [&str; 4] = ["igate", "fgate", "zgate", "ogate"];

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (config, d, heads) = (at.config, at.config.d_model, at.config.n_heads);
    let head = d / heads;
    let [h, c, n, m] = [("h", 0.0), ("c", 0.0), ("n", 0.0), ("m", EMPTY_M)]
        .map(|(part, first)| g.state(&at.at(part), &[heads, head], Initial::All(first)));
    let own = g.reshape(x, &[heads, head]);
    let inputs = if config.slstm_conv {
        let gated = depthwise(g, &at.at("conv1d"), d, x)?;
        let gated = g.silu(gated);
        let gated = g.reshape(gated, &[heads, head]);
        vec![gated, own, h]
    } else {
        vec![own, h]
    };
    let (weight, bias) = gates(g, at, heads, head)?;
    let all = g.concat(&inputs, 2);
    let all = g.reshape(all, &[heads, 1, inputs.len() * head]);
    let all = g.matmul(all, weight);
    let all = g.reshape(all, &[heads, 4 * head]);
    let all = g.add(all, bias);
    let [i, f, z, o] = g.split(all, 2, [head; 4]);

    let log_forget = match config.slstm_forget_gate {
        ForgetGate::Sigmoid => g.log_sigmoid(f),
        ForgetGate::Exponential => f,
    };
    let kept = g.add(log_forget, m);
    let new_m = g.max(kept, i);
    let [take, keep] = [i, kept].map(|x| {
        let below = g.sub(x, new_m);
        g.exp(below)
    });
    let z = g.tanh(z);
    let (kept, added) = (g.mul(keep, c), g.mul(take, z));
    let c = g.add(kept, added);
    let kept = g.mul(keep, n);
    let n = g.add(kept, take);
    let (o, ratio) = (g.sigmoid(o), g.div(c, n));
    let h = g.mul(o, ratio);
    for (part, value) in [("h", h), ("c", c), ("n", n), ("m", new_m)] {
        g.keep(&at.at(part), value);
    }
    norm::heads(g, &at.at("group_norm.weight"), [heads, head], h)
}

/// The matrices `[H, inputs, 4 head]` of all gates, and their biases `[H, 4 head]`.
fn gates(g: &mut Graph<'_>, at: &Place<'_>, heads: usize, head: usize) -> Result<(Value, Value)> {
    let has_conv = at.config.slstm_conv;
    let sources = if has_conv { 3 } else { 2 };
    let (rows, columns) = (sources * head, 4 * head);
    let mut all = vec![0.0; heads * rows * columns];
    let recurrent = g.tensor(&at.at("recurrent.weight"), &[heads, columns, head])?;
    let bias = g.tensor(&at.at("bias"), &[4 * heads * head])?;
    let mut biases = vec![0.0; heads * columns];
    for (gate, name) in GATES.iter().enumerate() {
        let weight = g.tensor(&at.at(&format!("{name}.weight")), &[heads, head, head])?;
        // The input and the forget gates read the output of the convolution.
        let source = if has_conv && gate >= 2 { 1 } else { 0 };
        for (part, out, input) in (0..heads * head * head).map(|i| (i / (head * head), i / head % head, i % head)) {
            let column = gate * head + out;
            let at = |source: usize| (part * rows + source * head + input) * columns + column;
            all[at(source)] = weight[(part * head + out) * head + input];
            all[at(sources - 1)] = recurrent[(part * columns + column) * head + input];
        }
        for i in 0..heads * head {
            biases[i / head * columns + gate * head + i % head] = bias[gate * heads * head + i];
        }
    }
    let weight = g.constant(&at.at("gates.weight"), &[heads, rows, columns], &all);
    Ok((weight, g.constant(&at.at("gates.bias"), &[heads, columns], &biases)))
}
