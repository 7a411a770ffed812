//! The token shift of RWKV-4: mixtures μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}.

use crate::graph::{Graph, Initial, Value};
use crate::{Result, join};

/// For each of `parts`, the names of the μ, a mixture of `x` `[B, D]` and the previous input.
pub(crate) fn mixtures<const N: usize>(g: &mut Graph<'_>, name: &str, parts: [&str; N], d: usize, x: Value) -> Result<[Value; N]> {
    let state = join(name, "previous");
    let previous = g.state(&state, &[d], Initial::All(0.0));
    let mut mixed = [x; N];
    for (mixed, part) in mixed.iter_mut().zip(parts) {
        let share = g.parameter(&join(name, part), &[d])?;
        *mixed = g.move_to(previous, x, share);
    }
    g.keep(&state, x);
    Ok(mixed)
}
