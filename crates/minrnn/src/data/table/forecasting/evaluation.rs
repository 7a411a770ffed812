//! Every sequence from its first step to the last scored one.

use std::ops::Range;
use std::sync::Arc;

use super::super::{CHUNK_LEN, WholeSeries};
use super::parts::Part;
use super::table::Table;
use crate::Result;
use crate::data::batch::expect_index;
use crate::data::{Batch, EvaluationSet};

/// Every sequence with `wanted` steps (those scored, or those that tell how surprising a value is), from its first step to the last wanted one; nothing
/// after it has to be read.
pub(super) fn whole(table: &Table, wanted: impl Fn(usize) -> Range<usize>, batch_size: usize) -> WholeSeries {
    let last = |series: usize| Some(wanted(series)).filter(|steps| !steps.is_empty()).map_or(0, |steps| steps.end);
    WholeSeries::new((0..table.series.len()).map(last).collect(), batch_size, CHUNK_LEN)
}

/// Every sequence from its first step to the last one scored in a part, or to the last later one that is followed by a value.
pub(super) struct ForecastEvaluation {
    pub(super) table: Arc<Table>,
    pub(super) part: Part,
    pub(super) whole: WholeSeries,
    /// Steps from one scored step to the next.
    pub(super) stride: usize,
}

impl EvaluationSet for ForecastEvaluation {
    fn n_batches(&self) -> u64 {
        self.whole.n_chunks() as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        let chunk = self.whole.chunk(index as usize);
        let (table, batch_size) = (&self.table, self.whole.batch_size());
        let (n, inputs_width, targets_width) = (batch_size * chunk.seq_len, table.n_inputs(), table.n_targets());
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * inputs_width], vec![0.0; n * targets_width], vec![0.0; n]);
        let mut kept = Vec::new();
        for (series, step, place) in chunk.places() {
            table.fill_inputs(series, step, &mut kept, &mut inputs[place * inputs_width..][..inputs_width]);
            let scored = table.scored(series, self.part);
            if scored.contains(&step) && (step - scored.start).is_multiple_of(self.stride) {
                table.fill_targets(series, step, self.part, &mut kept, &mut targets[place * targets_width..][..targets_width]);
                mask[place] = 1.0;
            }
        }
        Ok(table.batch(inputs, targets, mask, chunk.segments, batch_size))
    }

    fn carries_state(&self) -> bool {
        true
    }
}
