//! Every sequence of a part, from its first step on.

use std::sync::Arc;

use super::super::WholeSeries;
use super::table::Table;
use crate::Result;
use crate::data::batch::expect_index;
use crate::data::{Batch, EvaluationSet};

/// Every sequence of a part once.
pub(super) struct LabelEvaluation {
    pub(super) table: Arc<Table>,
    pub(super) whole: WholeSeries,
}

impl EvaluationSet for LabelEvaluation {
    fn n_batches(&self) -> u64 {
        self.whole.n_chunks() as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        Ok(self.table.batch(self.whole.chunk(index as usize)))
    }

    fn carries_state(&self) -> bool {
        true
    }
}
