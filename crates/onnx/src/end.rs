//! From the residual stream to the prediction: final norm, mean over the past, comparison with the previous sequence, head.

use minrnn_model::{CheckedConfig, Pooling};

use crate::Result;
use crate::formulas::LAST_COUNT;
use crate::graph::{Graph, Initial, Value};
use crate::norm::norm;

/// The prediction `[B, outputs]` from `x` `[B, D]`.
pub(crate) fn predict(g: &mut Graph<'_>, config: &CheckedConfig, x: Value) -> Result<Value> {
    let (d, outputs) = (config.d_model, config.outputs());
    let mut x = norm(g, config, "backbone.final_norm", x)?;
    if config.decision {
        let action = g.linear("head", x, [d, outputs], true)?;
        return Ok(g.tanh(action));
    }
    if config.pooling == Pooling::Mean {
        x = mean(g, d, x);
    }
    if config.pair_head {
        x = compared(g, d, x)?;
    }
    if config.tie_embeddings {
        let table = g.parameter("embedding.weight", &[config.vocab_size, d])?;
        return Ok(g.gemm(x, table, None));
    }
    g.linear("head", x, [d, outputs], config.n_outputs > 0)
}

/// The mean of all `x` `[B, D]` so far. What rounding adds to their sums is kept and compensated (Kahan 1965, doi:10.1145/363707.363723); when the
/// count is reduced, the sums are scaled so that the mean stays.
fn mean(g: &mut Graph<'_>, d: usize, x: Value) -> Value {
    let [sum, surplus] = ["end.sum", "end.surplus"].map(|name| g.state(name, &[d], Initial::All(0.0)));
    let count = g.state("end.count", &[1], Initial::All(0.0));
    let next = g.next_count(count);
    let (goes_back, one, share) = (g.less(next, count), g.number(1.0), g.number((LAST_COUNT / 2.0 - 1.0) / LAST_COUNT));
    let share = g.choose(goes_back, share, one);
    let [sum, surplus] = [sum, surplus].map(|part| g.mul(part, share));
    let x = g.sub(x, surplus);
    let total = g.add(sum, x);
    let added = g.sub(total, sum);
    let surplus = g.sub(added, x);
    g.keep("end.sum", total);
    g.keep("end.surplus", surplus);
    g.keep("end.count", next);
    g.div(total, next)
}

/// GELU(W [a, x, a − x, a ⊙ x] + b), a being x at the last step of the previous sequence.
fn compared(g: &mut Graph<'_>, d: usize, x: Value) -> Result<Value> {
    let before = g.state("end.before", &[d], Initial::All(0.0));
    g.state("end.last", &[d], Initial::All(0.0));
    g.take_on_reset("end.before", "end.last");
    g.take_on_reset("end.last", "end.last");
    g.keep("end.last", x);
    let (difference, product) = (g.sub(before, x), g.mul(before, x));
    let all = g.concat(&[before, x, difference, product], 1);
    let mixed = g.linear("pair_head.linear", all, [4 * d, d], true)?;
    Ok(g.gelu(mixed))
}
