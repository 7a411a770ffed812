//! Causal filters of a few taps, whose memory is a window of the last inputs, oldest first.

use crate::graph::{Graph, Initial, Value};
use crate::{Result, join};

/// Taps of the convolution of blocks, Mamba and xLSTM.
const TAPS: usize = 4;

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
    let filters = g.tensor(&join(name, "weight"), &[width, 1, TAPS])?;
    let taps: Vec<f32> = (0..TAPS * width).map(|i| filters[i % width * TAPS + i / width]).collect();
    let (taps, bias) = (g.constant(&join(name, "taps"), &[TAPS, width], &taps), g.parameter(&join(name, "bias"), &[width])?);
    let sum = filter(g, &join(name, "window"), [TAPS, width], taps, x);
    Ok(g.add(sum, bias))
}

/// H3's shift `name` of the keys `[B, width]`: Σ_{l<N} K_l ⊙ k_{t−l} + D ⊙ k_t.
pub(crate) fn shift(g: &mut Graph<'_>, name: &str, width: usize, d_state: usize, keys: Value) -> Result<Value> {
    let filters = g.tensor(&join(name, "taps"), &[width, 1, d_state])?;
    let skip = g.tensor(&join(name, "skip"), &[width])?;
    let tap = |i: usize| filters[i % width * d_state + i / width] + if i / width == d_state - 1 { skip[i % width] } else { 0.0 };
    let taps: Vec<f32> = (0..d_state * width).map(tap).collect();
    let taps = g.constant(&join(name, "filter"), &[d_state, width], &taps);
    Ok(filter(g, &join(name, "window"), [d_state, width], taps, keys))
}
