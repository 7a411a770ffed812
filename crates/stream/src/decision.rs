//! The first layers of a policy (Chen et al. 2021, arXiv:2106.01345, §3), in which a step is three rows of the residual stream:
//!
//! ```text
//! step     [R | s | a of the previous step | t]
//! rows     norm(W_a a + e(t of the previous step)), norm(W_R R + e(t)), norm(W_s s + e(t))
//! ```
//!
//! e is a table of 1000 vectors; later times use the last. Before a session's first step there is no action, and its row is left out; a
//! session remembers whether it has begun and the time of its last step. The prediction is at the last row of a step.

use minrnn_kernels::weight_matrix::WeightMatrix;
use minrnn_model::{POLICY_PLACES as ROWS, POLICY_TIME_SCALE, POLICY_TIMES};

use crate::linear::Linear;
use crate::norm::Norm;
use crate::pass::{Memory, Pass};
use crate::source::Source;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// Maps of the parts of a step, and the norm behind them.
#[derive(Debug)]
pub(crate) struct Decision {
    /// Of the previous action, of the return, and of the observation, each → D.
    parts: [Linear; ROWS],
    /// `[1000, D]`.
    times: WeightMatrix,
    norm: Norm,
}

/// Whether the first number of a memory says that a step has been read; in a restored memory it may be any number.
fn has_begun(begun: f32) -> bool {
    begun > 0.0
}

impl Decision {
    /// What a session keeps: whether it has begun, and the time of its last step.
    pub(crate) const STATE_LEN: usize = 2;

    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source) -> Result<Self> {
        let (action, d) = (config.n_outputs, config.d_model);
        let observation = config.observation_width();
        let to_go = source.linear("to_go", d, 1)?;
        let observation = source.linear("observation", d, observation)?;
        let action = source.linear("action", d, action)?;
        let times = source.matrix("times.weight", POLICY_TIMES, d)?;
        Ok(Self { parts: [action, to_go, observation], times, norm: Norm::layer(source, "norm", d)? })
    }

    /// Numbers in a step.
    pub(crate) fn row_len(&self) -> usize {
        self.parts.iter().map(|part| part.weight.inputs()).sum::<usize>() + 1
    }

    /// Number of rows for `steps` steps of a session whose memory is `memory`.
    pub(crate) fn rows(memory: &[f32], steps: usize) -> usize {
        let has_begun = has_begun(memory[0]);
        ROWS.saturating_mul(steps).saturating_sub(usize::from(!has_begun))
    }

    /// Writes the rows `x` `[N, D]` of the steps in `values`, and advances the memory of each span.
    pub(crate) fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, values: &[f32], x: &mut [f32], buffers: &mut Buffers) {
        let (d, width) = (x.len() / pass.rows, self.row_len());
        let [_, _, observation] = self.parts.each_ref().map(|part| part.weight.inputs());
        let action = 1 + observation;
        let steps = values.len() / width;
        let [mapped, inputs, time, _] = &mut buffers.recurrent;
        let mapped = room(mapped, ROWS * steps * d);
        let starts = [action..width - 1, 0..1, 1..action];
        for ((part, columns), mapped) in self.parts.iter().zip(starts).zip(mapped.chunks_exact_mut((steps * d).max(1))) {
            let inputs = room(inputs, steps * columns.len());
            for (row, inputs) in values.chunks_exact(width).zip(inputs.chunks_exact_mut(columns.len())) {
                inputs.copy_from_slice(&row[columns.clone()]);
            }
            part.write(pass, steps, inputs, room(&mut buffers.product, steps * d), mapped);
        }
        let (mapped, time) = (&*mapped, room(time, d));
        let rows = room(&mut buffers.normed, pass.rows * d);
        let (mut step, mut row) = (0, 0);
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let (begun, last) = unsafe { memory.part(span.session, 0, Self::STATE_LEN) }.split_at_mut(1);
            let (begun, last) = (&mut begun[0], &mut last[0]);
            let end = span.first + span.len;
            while row < end {
                let now = libm::rintf(values[(step + 1) * width - 1] * POLICY_TIME_SCALE as f32).clamp(0.0, (POLICY_TIMES - 1) as f32);
                for (part, of) in [*last, now, now].into_iter().enumerate().skip(usize::from(!has_begun(*begun))) {
                    let row_of = &mut rows[row * d..][..d];
                    self.times.row((of as usize).min(POLICY_TIMES - 1), time);
                    let mapped = &mapped[(part * steps + step) * d..][..d];
                    row_of.iter_mut().zip(mapped).zip(&*time).for_each(|((row, x), time)| *row = x + time);
                    row += 1;
                }
                (*begun, *last) = (1.0, now);
                step += 1;
            }
        }
        self.norm.forward(pass, pass.rows, rows, x);
    }
}
