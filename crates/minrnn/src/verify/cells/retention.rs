//! The retention of RetNet, before its norm and gate.

use burn::tensor::Tensor;

use super::{by_head, head_sizes, head_width, y_by_head};
use crate::ops::{self, Retention, RetentionState, StepCodes};
use crate::verify::cell::{Cell, Found, Given, Shapes, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "retention",
    settings: &[],
    told_by: "queries and values",
    sizes,
    remembers: Some(head_width),
    inputs: queries_keys_values,
    outputs: y_by_head,
    run: |given| vec![retained(given, &Retention::ret_net(given.sizes.n_heads, given.sizes.d_model / given.sizes.n_heads))],
};

/// The sizes of a retention, whose values may be wider than its queries.
fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (q, v) = (found.shape("q")?, found.shape("v")?);
    let (keys, values) = (head_sizes("q", q)?, head_sizes("v", v)?);
    if q[..3] != v[..3] {
        return Err(format!("tensor 'v' has shape {v:?}, expected [{}, {}, {}, DV] as 'q' has {q:?}", q[0], q[1], q[2]));
    }
    if q[3] % 2 == 1 {
        return Err(format!("tensor 'q' has heads of {}, expected an even number: channels rotate in pairs", q[3]));
    }
    Ok(Sizes { d_inner: values.d_inner, ..keys })
}

pub(super) fn queries_keys_values(sizes: Sizes) -> Shapes {
    [("q", sizes.d_model), ("k", sizes.d_model), ("v", sizes.d_inner)].map(|(name, width)| (name, by_head(sizes, width))).into()
}

/// y, flat, from an empty memory.
pub(super) fn retained(given: &Given, form: &Retention) -> Tensor<1> {
    let Sizes { batch_size, d_model, n_heads, .. } = given.sizes;
    let [q, k, v] = ["q", "k", "v"].map(|name| given.by_step(name));
    let columns = head_width(given.sizes) + usize::from(form.normalized);
    let memory = RetentionState {
        state: Tensor::zeros([batch_size, n_heads, d_model / n_heads, columns], &q.device()),
        position: Tensor::zeros([batch_size, 1], &q.device()),
    };
    let (y, _) = given.in_calls(memory, |range, memory| {
        let [q, k, v] = [&q, &k, &v].map(|x| steps(x, range));
        ops::retention(form, q, k, v, memory, &StepCodes::dense())
    });
    given.by_head(y)
}
