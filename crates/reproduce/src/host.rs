//! What a reproduction asks of whoever started it.

use std::path::PathBuf;

use minrnn::train::{Corpus, Ending, Event, Trainer};
use minrnn_bench::Line;

use crate::plan::Bench;
use crate::{Error, Result, Target};

/// Who is told what happens, and does what a library cannot.
pub trait Host {
    /// Told of progress in one of the jobs that go on side by side, which count from 0.
    fn notice_of(&mut self, job: usize, notice: Notice<'_>);

    /// The same of the only job.
    fn notice(&mut self, notice: Notice<'_>) {
        self.notice_of(0, notice);
    }

    /// The file of a public text.
    ///
    /// # Errors
    /// [`Error::Host`] where it cannot be had.
    fn fetch(&mut self, corpus: Corpus) -> Result<PathBuf>;

    /// Measures `bench`, best in a process of its own: peak memory is a process's.
    ///
    /// # Errors
    /// [`Error::Host`] where it cannot be measured.
    fn measure(&mut self, bench: &Bench) -> Result<Line>;

    /// What makes the results of `target`, as its page says it.
    fn command(&self, target: &Target) -> String;

    /// The commit of this program.
    fn commit(&self) -> String;

    /// `error` as the pages say it.
    fn sentence(&self, error: &Error) -> String {
        error.to_string()
    }
}

/// Progress.
#[non_exhaustive]
pub enum Notice<'a> {
    /// A run begins.
    Starting {
        /// The name of its target.
        target: &'a str,
        /// Which it is of the target's runs, counted from 1.
        number: usize,
        /// The runs of the target.
        of: usize,
        /// Its row and column, and its seed.
        label: &'a str,
    },
    /// A training goes on that another processor, or another number of threads, began: from here on its numbers round differently.
    OtherMachine {
        /// Updates made before.
        iteration: u64,
        /// What made the last of them.
        before: &'a str,
        /// What goes on.
        now: &'a str,
    },
    /// A training is about to make its first update.
    Training(&'a Trainer),
    /// Something happened in it.
    Event(&'a Event),
    /// It makes no more updates.
    Paused,
    /// It came to its end; its best checkpoint is scored next.
    Ended(Ending, &'a Trainer),
    /// A training failed, cannot be made, or is another process's: why nothing came of it here.
    NotDone(&'a str),
}
