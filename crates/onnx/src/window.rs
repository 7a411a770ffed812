//! Short causal filters, whose memory is a window of the last inputs, oldest first.

use minrnn_kernels::matmul::transposed;
use minrnn_model::CONV_TAPS;

use crate::graph::{Graph, Initial, Value};
use crate::{Result, join};

/// Σ taps ⊙ (window, x) for `x` `[B, width]`; `taps` `[count, width]`, the last of which meets x. The window is kept under `state`.
fn filter(g: &mut Graph<'_>, state: &str, [count, width]: [usize; 2], taps: Value, x: Value) -> Value {
    let past = count - 1;
    let window = g.state(state, &[past, width], Initial::All(0.0));
    let newest = g.reshape(x, &[1, width]);
    let all = g.concat(&[window, newest], 1);
    let kept = g.slice(all, 1, 1, count);
    g.keep(state, kept);
    let products = g.mul(all, taps);
    g.sum(products, 1, false)
}

/// The depthwise convolution `name` of `x` `[B, width]`.
pub(crate) fn depthwise(g: &mut Graph<'_>, name: &str, width: usize, x: Value) -> Result<Value> {
    let taps = transposed(&g.tensor(&join(name, "weight"), &[width, 1, CONV_TAPS])?, width, CONV_TAPS);
    let (taps, bias) = (g.constant(&join(name, "taps"), &[CONV_TAPS, width], &taps), g.parameter(&join(name, "bias"), &[width])?);
    let sum = filter(g, &join(name, "window"), [CONV_TAPS, width], taps, x);
    Ok(g.add(sum, bias))
}

/// H3's shift `name` of the keys `[B, width]`: Σ_{l<N} K_l ⊙ k_{t−l} + D ⊙ k_t.
pub(crate) fn shift(g: &mut Graph<'_>, name: &str, width: usize, d_state: usize, keys: Value) -> Result<Value> {
    let mut taps = transposed(&g.tensor(&join(name, "taps"), &[width, 1, d_state])?, width, d_state);
    let skip = g.tensor(&join(name, "skip"), &[width])?;
    taps[(d_state - 1) * width..].iter_mut().zip(&skip).for_each(|(tap, skip)| *tap += skip);
    let taps = g.constant(&join(name, "filter"), &[d_state, width], &taps);
    Ok(filter(g, &join(name, "window"), [d_state, width], taps, keys))
}
