//! Hyena's filter alone, followed by GELU and a gated down-projection, which are left out inside a wiring.

use super::long_filter::LongFilter;
use super::{Mixer, Output};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::Source;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct HyenaFilter {
    filter: LongFilter,
    output: Output,
}

impl HyenaFilter {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        Ok(Self { filter: LongFilter::read(config, source, name)?, output: Output::of_map(config) })
    }
}

impl Mixer for HyenaFilter {
    fn width(&self) -> usize {
        self.filter.width()
    }

    fn output(&self) -> Output {
        self.output
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d) = (pass.rows, self.width());
        let (y, hidden) = (room(&mut buffers.recurrent[0], n * d), room(&mut buffers.hidden, n * d));
        let hidden = Shared::new(hidden, d);
        self.filter.forward(pass, memory, &buffers.normed[..n * d], Shared::new(y, d), |row, channels, y| {
            // SAFETY: pieces have channels of their own.
            self.output.activate(y, unsafe { hidden.part(row, channels) });
        });
    }
}
