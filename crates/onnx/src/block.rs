//! The residual block: convolution, mixer and feed-forward part with their norms and residual connections.

use minrnn_model::{CheckedConfig, FeedForwardKind};

use crate::feed_forward::feed_forward;
use crate::graph::{Graph, Value};
use crate::norm::norm;
use crate::window::depthwise;
use crate::wiring::wired;
use crate::{Result, join, mixer};

/// Block `layer` of `x` `[B, D]`.
pub(crate) fn block(g: &mut Graph<'_>, config: &CheckedConfig, layer: usize, mut x: Value) -> Result<Value> {
    let (name, d) = (format!("backbone.blocks.{layer}"), config.d_model);
    if config.conv {
        let y = depthwise(g, &join(&name, "conv.depthwise"), d, x)?;
        let y = g.linear(&join(&name, "conv.pointwise"), y, [d, d], true)?;
        x = g.add(x, y);
    }
    let normed = norm(g, config, &join(&name, "mixer_norm"), x)?;
    let (inside, mixer) = (config.inside_wiring(), join(&name, "mixer"));
    let y = wired(g, config, &join(&name, "wiring"), normed, |g, x| mixer::mixed(g, &inside, layer, &mixer, x))?;
    x = g.add(x, y);
    let kind = config.ff_at(layer);
    if kind != FeedForwardKind::None {
        let normed = norm(g, config, &join(&name, "ff_norm"), x)?;
        let y = feed_forward(g, config, kind, &join(&name, "ff"), normed)?;
        x = g.add(x, y);
    }
    Ok(x)
}
