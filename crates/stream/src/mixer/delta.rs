//! Associative memories with the delta rule: S ← S + β (v − S k̂) k̂ᵀ, y = S q for every head, the products being [q | k | v | β].
//!
//! The inputs of all tokens are projected in one product; then each worker runs whole heads through all tokens.

use minrnn_kernels::delta;

use super::Mixer;
use crate::linear::Linear;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct Delta {
    /// D → 3E + H, rows q, k, v and β.
    in_proj: Linear,
    heads: usize,
    head_width: usize,
}

impl Delta {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (e, heads) = (config.d_inner(), config.n_heads);
        Ok(Self { in_proj: source.linear(&join(name, "in_proj"), 3 * e + heads, config.d_model)?, heads, head_width: e / heads })
    }
}

impl Mixer for Delta {
    fn width(&self) -> usize {
        self.heads * self.head_width
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, e, inputs) = (self.head_width, self.width(), self.in_proj.weight.outputs());
        let Buffers { normed, product, hidden, recurrent: [preact, ..], .. } = buffers;
        let preact = room(preact, pass.rows * inputs);
        self.in_proj.write(pass, pass.rows, normed, room(product, pass.rows * inputs), preact);
        let (preact, hidden) = (&*preact, Shared::new(room(hidden, pass.rows * e), e));
        let cost = pass.rows * 4 * e * n;
        pass.workers.split(self.heads, 1, cost, |_, heads| {
            for head in heads {
                let columns = head * n..(head + 1) * n;
                for span in pass.spans {
                    // SAFETY: pieces have heads of their own.
                    let state = unsafe { memory.part(span.session, head * n * n, (head + 1) * n * n) };
                    for row in span.first..span.first + span.len {
                        let x = &preact[row * inputs..][..inputs];
                        let part = |i: usize| &x[i * e..][columns.clone()];
                        // SAFETY: pieces have heads of their own, and so columns of every row.
                        let out = unsafe { hidden.part(row, columns.clone()) };
                        delta::step(pass.level, [part(0), part(1), part(2)], x[3 * e + head], state, out);
                    }
                }
            }
        });
    }
}
