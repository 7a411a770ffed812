//! From the residual stream to what is predicted: final norm, mean over the past, comparison with the sequence before, head.

use minrnn_model::{CheckedConfig, Pooling};

use crate::Result;
use crate::graph::{Graph, Initial, Value};
use crate::norm::norm;

/// What is predicted `[B, outputs]` of `x` `[B, D]`.
pub(crate) fn predict(g: &mut Graph<'_>, config: &CheckedConfig, x: Value) -> Result<Value> {
    let (d, outputs) = (config.d_model, config.outputs());
    let mut x = norm(g, config, "backbone.final_norm", x)?;
    if config.decision {
        let action = g.linear("head", x, [d, outputs], true)?;
        return Ok(g.tanh(action));
    }
    if config.pooling == Pooling::Mean {
        let (sum, count) = (g.state("end.sum", &[d], Initial::All(0.0)), g.state("end.count", &[1], Initial::All(0.0)));
        let (sum, count) = (g.add(sum, x), g.plus(count, 1.0));
        g.keep("end.sum", sum);
        g.keep("end.count", count);
        x = g.div(sum, count);
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

/// GELU(W [a, x, a − x, a ⊙ x] + b), a being x at the last step of the sequence before.
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
