//! A whole training: its rounds one after the other, the score of what came of them, and the page about it.

use std::sync::atomic::AtomicBool;

use super::trainer::{Ending, Event, FinalReport, Trainer};
use crate::Result;
use crate::report::write_report;

/// What a training tells from its first round to its score.
pub enum Told<'a> {
    /// Something happened in a round.
    Event(&'a Event),
    /// A round is over, however it ended.
    RoundOver,
    /// The model begins to learn anew, from all data.
    Refit(&'a Trainer),
    /// The last round came to its end; the score comes next.
    Ended(Ending, &'a Trainer),
}

impl Trainer {
    /// Trains from here to the end of the last round, each of them [recorded](Self::run_and_record), scores what came of it, and writes the page about it.
    /// `None` when `stop` was raised. Of several processes the first writes and is told.
    ///
    /// # Errors
    /// As [`run_and_record`](Self::run_and_record), [`begin_refit`](Self::begin_refit), [`final_report`](Self::final_report) and [`write_report`].
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
