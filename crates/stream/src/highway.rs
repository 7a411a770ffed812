//! Highway output: a mixer adds s ⊙ (W_o h + b_o) + (1 − s) ⊙ x to the residual stream, with s = σ(W_s x + b_s) and x the mixer's input.

use crate::gates;
use crate::linear::{Linear, product, write};
use crate::pass::Pass;
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
        write(pass, &out_proj.weight, &buffers.hidden, scratch, projected);
        let (projected, x) = (&*projected, &buffers.normed);
        product(pass, &self.0.weight, n, x, scratch, y, |row, range, gate, y| {
            let at = row * d + range.start..row * d + range.end;
            let inputs = [gate, &self.0.bias[range.clone()], &projected[at.clone()], &out_proj.bias[range], &x[at]];
            gates::highway(pass.level, inputs, y);
        });
    }
}
