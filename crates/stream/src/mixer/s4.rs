//! S4 and S4D: a state space for each channel, followed by GELU and a gated down-projection, which are left out inside a wiring.

use super::state_space::StateSpace;
use super::{Mixer, Output};
use crate::linear::LANES;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct S4 {
    ssm: StateSpace,
    output: Output,
}

impl S4 {
    /// `rank_one` for S4, not for S4D.
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str, rank_one: bool) -> Result<Self> {
        let ssm = StateSpace::read(source, &join(name, "ssm"), [config.d_model, 1], config.d_state, rank_one)?;
        Ok(Self { ssm, output: Output::of_map(config) })
    }
}

impl Mixer for S4 {
    fn width(&self) -> usize {
        self.ssm.width()
    }

    fn output(&self) -> Output {
        self.output
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d) = (pass.rows, self.ssm.width());
        let u = Shared::new(&mut buffers.normed[..n * d], d);
        let y = Shared::new(room(&mut buffers.recurrent[0], n * d), d);
        let hidden = Shared::new(room(&mut buffers.hidden, n * d), d);
        pass.workers.split(d, LANES, n * self.ssm.state_len(), |_, range| {
            for &span in pass.spans {
                // SAFETY: pieces have channels of their own.
                unsafe { self.ssm.forward(pass, (memory, 0), span, range.clone(), [u, y]) };
                for row in span.first..span.first + span.len {
                    // SAFETY: pieces have channels of their own, and the state spaces are done with these rows.
                    let (y, hidden) = unsafe { (y.part(row, range.clone()), hidden.part(row, range.clone())) };
                    self.output.activate(y, hidden);
                }
            }
        });
    }
}
