//! Highway output: what a mixer adds to the residual stream is s ⊙ (W_o h + b_o) + (1 − s) ⊙ x with s = σ(W_s x + b_s), x being the
//! mixer's input.

use crate::gates;
use crate::linear::{Linear, matmul};
use crate::pass::Pass;
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, MixerKind, Result};

/// W_s and b_s.
#[derive(Debug, Clone)]
pub(crate) struct Highway(Linear);

impl Highway {
    /// The highway of a mixer, if it has one.
    pub(crate) fn read(config: &CheckedConfig, kind: MixerKind, source: &mut dyn Source, mixer: &str) -> Result<Option<Self>> {
        if !config.highway || !matches!(kind, MixerKind::MinGru | MixerKind::MinLstm) {
            return Ok(None);
        }
        Ok(Some(Self(source.linear(&join(mixer, "highway"), config.d_model, config.d_model)?)))
    }

    /// Adds the mixture of `out_proj` of `buffers.hidden` and of `buffers.normed` to `y` `[N, D]`.
    pub(crate) fn add_to(&self, pass: &Pass<'_>, out_proj: &Linear, buffers: &mut Buffers, y: &mut [f32]) {
        let (n, d) = (pass.rows, self.0.weight.outputs());
        let scratch = room(&mut buffers.product, n * d);
        let projected = room(&mut buffers.recurrent[0], n * d);
        {
            let projected = Shared::new(projected, d);
            matmul(pass, &out_proj.weight, 1, 0..1, n, &buffers.hidden, scratch, |range, values| {
                for (row, values) in values.chunks_exact(range.len()).enumerate() {
                    // SAFETY: pieces have outputs of their own.
                    unsafe { projected.part(row, range.clone()) }.copy_from_slice(values);
                }
            });
        }
        let (projected, x, y) = (&*projected, &buffers.normed, Shared::new(y, d));
        matmul(pass, &self.0.weight, 1, 0..1, n, x, scratch, |range, values| {
            for (row, gate) in values.chunks_exact(range.len()).enumerate() {
                let at = row * d + range.start..row * d + range.end;
                let inputs = [gate, &self.0.bias[range.clone()], &projected[at.clone()], &out_proj.bias[range.clone()], &x[at]];
                // SAFETY: pieces have outputs of their own.
                gates::highway(pass.level, inputs, unsafe { y.part(row, range.clone()) });
            }
        });
    }
}
