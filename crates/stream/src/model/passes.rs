//! A pass of steps through the layers.

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::Scratch;

use super::{Model, PASS_STEPS};
use crate::Result;
use crate::end::gather;
use crate::inside::Inside;
use crate::pass::{Memory, Pass, Sessions};
use crate::reads::Steps;
use crate::shared::Shared;
use crate::state::State;
use crate::workers;
use crate::workspace::{Workspace, room};

impl Model {
    /// Makes room for what is kept of `steps` more steps of a session.
    pub(super) fn reserve(&self, state: &mut State, row: usize, steps: usize) -> Result<()> {
        if self.state_shape.pasts().is_empty() {
            return Ok(());
        }
        let each = self.places();
        state.reserve(row, steps.saturating_mul(each), PASS_STEPS * each)
    }

    /// Adds steps of a session to the next pass.
    pub(super) fn add(&self, workspace: &mut Workspace, state: &State, session: usize, steps: Steps<'_>) {
        let rows = self.front.rows(state.front(session), steps.len());
        workspace.add(session, steps, rows);
    }

    /// Runs the steps of the workspace's spans; then row `to` of `outputs` gets what is predicted after row `from` of the pass, for every
    /// wanted `(from, to)`.
    pub(super) fn pass(&self, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) {
        self.pass_inside::<false>(state, outputs, Inside::default(), workspace);
    }

    /// The same; if `IS_WANTED`, also writes what `inside` asks for, which has room for it at every wanted row.
    pub(super) fn pass_inside<const IS_WANTED: bool>(
        &self,
        state: &mut State,
        outputs: &mut [f32],
        mut inside: Inside<'_>,
        workspace: &mut Workspace,
    ) {
        let (d, rows) = (self.config.d_model, workspace.rows);
        if rows == 0 {
            return;
        }
        let level = Level::current();
        let (row_len, lists) = (self.state_shape.row_len(), self.state_shape.pasts().len());
        let (values, pasts) = state.parts_mut();
        let sessions = Sessions { values: Shared::new(values, row_len), pasts: Shared::new(pasts, lists) };
        let [front, end] = self.state_shape.ends().map(|(first, len)| Memory::new(sessions, first, len));
        workers::fork_join(rows.saturating_mul(self.row_macs), workspace.most_threads, |workers| {
            let Workspace { x, buffers, scratches, spans, input, wanted, .. } = workspace;
            if scratches.len() < workers.most_pieces() {
                scratches.resize_with(workers.most_pieces(), Scratch::default);
            }
            let pass = Pass { workers, level, spans, rows, scratches: Shared::new(scratches, 0) };
            let x = room(x, rows * d);
            self.front.forward(&pass, front, input, x, buffers);
            let mut first = 0;
            for (layer, (block, len)) in self.blocks.iter().zip(self.state_shape.block_lens()).enumerate() {
                block.forward(&pass, sessions, first, x, buffers);
                first += len;
                if IS_WANTED && let Some((_, room)) = inside.hidden.as_mut().filter(|(wanted, _)| *wanted == layer) {
                    gather(x, wanted, room);
                }
            }
            self.end.forward(&pass, end, self.front.embedding(), x, wanted, outputs, buffers);
            if IS_WANTED && let Some(features) = inside.features {
                features.copy_from_slice(&buffers.hidden[..features.len()]);
            }
        });
    }
}
