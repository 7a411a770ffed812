//! What a block puts around its mixer, the inner layer.

use minrnn_model::{CheckedConfig, WiringKind};

use crate::graph::{Graph, Value};
use crate::window::{depthwise, shift};
use crate::{Result, join};

/// What the wiring `name` makes of `x` `[B, D]` with an inner layer `inner`.
pub(crate) fn wired<'a>(
    g: &mut Graph<'a>,
    config: &CheckedConfig,
    name: &str,
    x: Value,
    inner: impl FnOnce(&mut Graph<'a>, Value) -> Result<Value>,
) -> Result<Value> {
    let (d, width) = (config.d_model, config.inside_wiring().d_model);
    let [in_proj, out_proj] = ["in_proj", "out_proj"].map(|part| join(name, part));
    let (y, has_bias) = match config.wiring {
        WiringKind::None => return inner(g, x),
        WiringKind::Mamba => {
            let all = g.linear(&in_proj, x, [d, 2 * width], false)?;
            let [u, gate] = g.split(all, 1, [width; 2]);
            let u = depthwise(g, &join(name, "conv1d"), width, u)?;
            let u = g.silu(u);
            let (y, gate) = (inner(g, u)?, g.silu(gate));
            (g.mul(y, gate), false)
        }
        WiringKind::H3 => {
            let all = g.linear(&in_proj, x, [d, 3 * width], true)?;
            let [query, key, value] = g.split(all, 1, [width; 3]);
            let key = shift(g, &join(name, "shift_ssm"), width, config.d_state, key)?;
            let product = g.mul(key, value);
            let y = inner(g, product)?;
            (g.mul(query, y), true)
        }
    };
    g.linear(&out_proj, y, [width, d], has_bias)
}
