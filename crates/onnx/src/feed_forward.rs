//! A feed-forward part's contribution to the residual stream.

use minrnn_model::{CheckedConfig, FeedForwardKind};

use crate::graph::{Graph, Value};
use crate::token_shift::mixtures;
use crate::{Result, join};

/// The part `name` of kind `kind` of `x` `[B, D]`.
pub(crate) fn feed_forward(g: &mut Graph<'_>, config: &CheckedConfig, kind: FeedForwardKind, name: &str, x: Value) -> Result<Value> {
    let (d, m) = (config.d_model, config.d_ff());
    let linear = |g: &mut Graph<'_>, part: &str, x, sizes, has_bias| g.linear(&join(name, part), x, sizes, has_bias);
    let hidden = match kind {
        FeedForwardKind::None => unreachable!("a block without a feed-forward part does not ask for one"),
        FeedForwardKind::ChannelMix => {
            let [for_key, for_gate] = mixtures(g, name, ["mix_key", "mix_receptance"], d, x)?;
            let key = linear(g, "key", for_key, [d, m], false)?;
            let key = g.relu(key);
            let squared = g.mul(key, key);
            let gate = linear(g, "receptance", for_gate, [d, d], false)?;
            let (gate, value) = (g.sigmoid(gate), linear(g, "value", squared, [m, d], false)?);
            return Ok(g.mul(gate, value));
        }
        FeedForwardKind::Mlp => {
            let up = linear(g, "up", x, [d, m], config.bias)?;
            g.gelu(up)
        }
        FeedForwardKind::Gated => {
            let up = linear(g, "up", x, [d, 2 * m], config.bias)?;
            let [value, gate] = g.split(up, 1, [m, m]);
            let (gate, scale) = (g.gelu(gate), g.parameter(&join(name, "scale"), &[m])?);
            let gated = g.mul(gate, value);
            g.mul(gated, scale)
        }
        FeedForwardKind::GeGlu => {
            let up = linear(g, "up", x, [d, 2 * m], false)?;
            let [gate, value] = g.split(up, 1, [m, m]);
            let gate = g.gelu(gate);
            g.mul(gate, value)
        }
        FeedForwardKind::SwiGlu => {
            let up = linear(g, "up", x, [d, 2 * m], false)?;
            let [value, gate] = g.split(up, 1, [m, m]);
            let gate = g.silu(gate);
            g.mul(gate, value)
        }
    };
    let has_bias = config.bias && matches!(kind, FeedForwardKind::Mlp | FeedForwardKind::Gated);
    linear(g, "down", hidden, [m, d], has_bias)
}
