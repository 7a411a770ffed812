//! What a block puts around its mixer, the inner layer:
//!
//! ```text
//! mamba:  [u, ζ] = W_in x             y = inner(SiLU(DW(u)))      x ← x + W_out (y ⊙ SiLU(ζ))
//! h3:     q, k, v = W_in x + b        y = inner(shift(k) ⊙ v)     x ← x + W_out (q ⊙ y) + b'
//! ```
//!
//! A session keeps the window of the convolution or of the shift. The inner layer takes its input from `buffers.normed`.

use core::mem;

use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::conv::{Depthwise, PAST};
use crate::gates;
use crate::linear::{Linear, matmul};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::shift::Shift;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result, WiringKind};

/// The layers around an inner one.
#[derive(Debug)]
pub(crate) struct Wiring {
    /// D → 2W, rows u then ζ, or D → 3W, rows query, key, value.
    in_proj: Linear,
    past: Past,
    /// W → D.
    out_proj: Linear,
}

/// What sees previous steps.
#[derive(Debug)]
enum Past {
    /// Mamba's, of u.
    Conv(Depthwise),
    /// H3's, of the keys.
    Shift(Shift),
}

impl Wiring {
    /// The wiring of a block, if it has one.
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Option<Self>> {
        let (d, n, inner) = (config.d_model, config.d_state, config.inside_wiring().d_model);
        let [in_proj, out_proj] = ["in_proj", "out_proj"].map(|part| join(name, part));
        Ok(match config.wiring {
            WiringKind::None => None,
            WiringKind::H3 => Some(Self {
                in_proj: source.linear(&in_proj, 3 * inner, d)?,
                past: Past::Shift(Shift::read(source, &join(name, "shift_ssm"), inner, n)?),
                out_proj: source.linear(&out_proj, d, inner)?,
            }),
            WiringKind::Mamba => Some(Self {
                in_proj: source.linear_without_bias(&in_proj, 2 * inner, d)?,
                past: Past::Conv(Depthwise::read(source, &join(name, "conv1d"), inner)?),
                out_proj: source.linear_without_bias(&out_proj, d, inner)?,
            }),
        })
    }

    /// W, the width of the inner layer.
    fn width(&self) -> usize {
        self.out_proj.weight.inputs()
    }

    pub(crate) fn state_len(&self) -> usize {
        match &self.past {
            Past::Conv(_) => PAST * self.width(),
            Past::Shift(shift) => shift.state_len(),
        }
    }

    /// Adds to `x` `[N, D]` what the wiring makes of `buffers.normed` `[N, D]` with an inner layer that adds its output to what it gets.
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_>,
        memory: Memory<'_>,
        buffers: &mut Buffers,
        x: &mut [f32],
        inner: impl FnOnce(&mut Buffers, &mut [f32]),
    ) {
        let (rows, width) = (pass.rows, self.width());
        let [mut input, mut gate, mut output] = mem::take(&mut buffers.wired);
        let into = [room(&mut input, rows * width), room(&mut gate, rows * width)];
        let (normed, scratch) = (&buffers.normed, room(&mut buffers.product, rows * self.in_proj.weight.outputs()));
        match &self.past {
            Past::Conv(conv) => branches(pass, &self.in_proj.weight, conv, memory, normed, scratch, into),
            Past::Shift(shift) => products(pass, &self.in_proj, shift, memory, normed, scratch, into),
        }
        mem::swap(&mut buffers.normed, &mut input);
        let y = room(&mut output, rows * width);
        y.fill(0.0);
        inner(buffers, y);
        mem::swap(&mut buffers.normed, &mut input);
        match &self.past {
            Past::Conv(_) => gates::gate_by_silu(pass.level, [&gate], y),
            Past::Shift(_) => gates::times(pass.level, [&gate], y),
        }
        let scratch = room(&mut buffers.product, rows * self.out_proj.weight.outputs());
        self.out_proj.add_to(pass, rows, y, scratch, x);
        buffers.wired = [input, gate, output];
    }
}

/// Mamba's two branches of `x` `[N, D]`: SiLU(DW(u)) and ζ, each `[N, W]`.
pub(crate) fn branches(
    pass: &Pass<'_>,
    in_proj: &WeightMatrix,
    conv: &Depthwise,
    memory: Memory<'_>,
    x: &[f32],
    scratch: &mut [f32],
    into: [&mut [f32]; 2],
) {
    let (rows, width) = (pass.rows, in_proj.outputs() / 2);
    let [u, z] = into.map(|into| Shared::new(into, width));
    matmul(pass, in_proj, 2, 0..2, rows, x, scratch, |range, values| {
        let width = range.len();
        let (before, gate) = values.split_at(rows * width);
        conv.forward(pass, memory, range.clone(), |row| &before[row * width..(row + 1) * width], u);
        for (row, gate) in gate.chunks_exact(width).enumerate() {
            // SAFETY: pieces have channels of their own.
            let (u, z) = unsafe { (u.part(row, range.clone()), z.part(row, range.clone())) };
            gates::silu(pass.level, [], u);
            z.copy_from_slice(gate);
        }
    });
}

/// H3's product of shifted keys and values of `x` `[N, D]`, and its queries, each `[N, D]`.
fn products(pass: &Pass<'_>, in_proj: &Linear, shift: &Shift, memory: Memory<'_>, x: &[f32], scratch: &mut [f32], into: [&mut [f32]; 2]) {
    let (rows, width) = (pass.rows, in_proj.weight.outputs() / 3);
    let [into, queries] = into.map(|into| Shared::new(into, width));
    matmul(pass, &in_proj.weight, 3, 0..3, rows, x, scratch, |range, values| {
        let each = range.len();
        let at = |part: usize, row: usize, i: usize| values[(part * rows + row) * each + i] + in_proj.bias[part * width + range.start + i];
        for span in pass.spans {
            for row in span.first..span.first + span.len {
                // SAFETY: pieces have channels of their own.
                let (into, queries) = unsafe { (into.part(row, range.clone()), queries.part(row, range.clone())) };
                for i in 0..each {
                    // SAFETY: pieces have channels of their own, here of the kept keys.
                    let key = unsafe { shift.step(memory, span.session, range.start + i, at(1, row, i)) };
                    into[i] = key * at(2, row, i);
                    queries[i] = at(0, row, i);
                }
            }
        }
    });
}
