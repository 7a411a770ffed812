//! A whole training: its rounds, the score of the result, and the report page.

use std::sync::atomic::AtomicBool;

use super::trainer::{Ending, Event, FinalReport, Trainer};
use crate::Result;
use crate::report::write_report;

/// The events of a training from its first round to its score.
pub enum Told<'a> {
    /// Something happened in a round.
    Event(&'a Event),
    /// A round ended, for whatever reason.
    RoundOver,
    /// The model starts learning again from all data.
    Refit(&'a Trainer),
    /// The last round ended; the score comes next.
    Ended(Ending, &'a Trainer),
}

impl Trainer {
    /// Trains from here to the end of the last round, [recording](Self::run_and_record) each round, scores the result, and writes the
    /// report page. `None` if `stop` was raised. With several processes, only the first writes and calls `tell`.
    ///
    /// # Errors
    /// As [`run_and_record`](Self::run_and_record), [`begin_refit`](Self::begin_refit), [`final_report`](Self::final_report) and
    /// [`write_report`].
    pub fn run_to_the_end(&mut self, stop: &AtomicBool, mut tell: impl FnMut(Told)) -> Result<Option<FinalReport>> {
        let group = self.group().clone();
        let mut tell = |told: Told| {
            if group.is_first() {
                tell(told);
            }
        };
        loop {
            let outcome = self.run_and_record(stop, |event| tell(Told::Event(event)));
            tell(Told::RoundOver);
            let ending = outcome?;
            if ending == Ending::Stopped {
                return Ok(None);
            }
            match self.begin_refit(stop)? {
                None => return Ok(None),
                Some(true) => tell(Told::Refit(self)),
                Some(false) => {
                    tell(Told::Ended(ending, self));
                    break;
                }
            }
        }
        let Some(report) = self.final_report(stop)? else { return Ok(None) };
        let written = if group.is_first() { write_report(self, &report) } else { Ok(()) };
        group.agree(written)?;
        Ok(Some(report))
    }
}
