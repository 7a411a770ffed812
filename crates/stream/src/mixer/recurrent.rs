//! What GRU and LSTM share: products with the inputs of all tokens at once, and with the state at every step.

use alloc::vec::Vec;

use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::linear::{Linear, matmul};
use crate::pass::{Memory, Pass, Span};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// Input side and recurrent side of a cell with `gates` gates.
#[derive(Debug, Clone)]
pub(super) struct Recurrent {
    in_proj: Linear,
    /// U `[gates · E, E]`.
    pub(super) weight: WeightMatrix,
    /// `[gates · E]`: the input side's bias, plus the recurrent one wherever a gate adds both.
    pub(super) bias: Vec<f32>,
    gates: usize,
}

impl Recurrent {
    /// Reads the matrices; a recurrent bias is added to the input side's.
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str, gates: usize, recurrent_bias: bool) -> Result<Self> {
        let e = config.d_inner();
        let in_proj = source.linear(&join(name, "in_proj"), gates * e, config.d_model)?;
        let weight = source.matrix(&join(name, "recurrent.weight"), gates * e, e)?;
        let mut bias = in_proj.bias.clone();
        if recurrent_bias {
            let own = source.vector(&join(name, "recurrent.bias"), &[gates * e])?;
            bias.iter_mut().zip(own).for_each(|(bias, own)| *bias += own);
        }
        Ok(Self { in_proj, weight, bias, gates })
    }

    /// E.
    pub(super) fn width(&self) -> usize {
        self.weight.inputs()
    }

    /// The bias of `gate`, `[E]`.
    pub(super) fn bias(&self, gate: usize) -> &[f32] {
        &self.bias[gate * self.width()..][..self.width()]
    }

    /// The input side W x of every token, `[N, gates · E]`, into `buffers.recurrent[0]`.
    pub(super) fn input_side(&self, pass: &Pass<'_>, buffers: &mut Buffers) {
        let (n, e) = (pass.rows, self.width());
        let width = self.gates * e;
        let preact = Shared::new(room(&mut buffers.recurrent[0], n * width), width);
        let scratch = room(&mut buffers.product, n * width);
        matmul(pass, &self.in_proj.weight, self.gates, 0..self.gates, n, &buffers.normed, scratch, |range, values| {
            for (i, values) in values.chunks_exact(range.len()).enumerate() {
                let at = i / n * e;
                // SAFETY: pieces have channels of their own.
                unsafe { preact.part(i % n, at + range.start..at + range.end) }.copy_from_slice(values);
            }
        });
    }
}

/// The spans that have a token at step `t`.
pub(super) fn active<'a>(pass: &Pass<'a>, t: usize) -> impl Iterator<Item = &'a Span> + Clone {
    pass.spans.iter().filter(move |span| span.len > t)
}

/// Steps until the last span has ended.
pub(super) fn steps(pass: &Pass<'_>) -> usize {
    pass.spans.iter().map(|span| span.len).max().unwrap_or(0)
}

/// Copies the first `e` numbers that are kept for each active session to rows of `h`; returns the number of rows.
pub(super) fn gather(pass: &Pass<'_>, memory: Memory<'_>, t: usize, e: usize, h: &mut [f32]) -> usize {
    let mut rows = 0;
    for (row, span) in h.chunks_exact_mut(e).zip(active(pass, t)) {
        // SAFETY: called between two phases, when nothing else uses the memory.
        row.copy_from_slice(unsafe { memory.part(span.session, 0, e) });
        rows += 1;
    }
    rows
}
