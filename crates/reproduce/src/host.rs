//! What a reproduction needs from the program that started it.

use std::path::PathBuf;

use minrnn::train::{Corpus, Ending, Event, Trainer};
use minrnn_bench::Line;

use crate::plan::Bench;
use crate::{Error, Result, Target};

/// Receives events, and does what a library cannot.
pub trait Host {
    /// Receives the progress of one of the concurrent jobs, counted from 0.
    fn notice_of(&mut self, job: usize, notice: Notice<'_>);

    /// The same for a single job.
    fn notice(&mut self, notice: Notice<'_>) {
        self.notice_of(0, notice);
    }

    /// The file of a public text.
    ///
    /// # Errors
    /// [`Error::Host`] if it cannot be obtained.
    fn fetch(&mut self, corpus: Corpus) -> Result<PathBuf>;

    /// Measures `bench`, preferably in a process of its own, since peak memory is per process.
    ///
    /// # Errors
    /// [`Error::Host`] if it cannot be measured.
    fn measure(&mut self, bench: &Bench) -> Result<Line>;

    /// The command that makes the results of `target`, for its page.
    fn command(&self, target: &Target) -> String;

    /// The commit of this program.
    fn commit(&self) -> String;

    /// `error` as worded on the pages.
    fn sentence(&self, error: &Error) -> String {
        error.to_string()
    }
}

/// Progress.
#[non_exhaustive]
pub enum Notice<'a> {
    /// A run starts.
    Starting {
        /// The name of its target.
        target: &'a str,
        /// Its number among the target's runs, from 1.
        number: usize,
        /// Number of runs of the target.
        of: usize,
        /// Its row and column, and its seed.
        label: &'a str,
    },
    /// A training that was started on another CPU, or with another number of threads, is continued: from here on its numbers round
    /// differently.
    OtherMachine {
        /// Number of updates before.
        iteration: u64,
        /// The machine that made the last of them.
        before: &'a str,
        /// The machine that continues.
        now: &'a str,
    },
    /// A training is about to make its first update.
    Training(&'a Trainer),
    /// Something happened in a training.
    Event(&'a Event),
    /// The training makes no more updates.
    Paused,
    /// The training ended; its best checkpoint is scored next.
    Ended(Ending, &'a Trainer),
    /// A training failed, cannot be run, or is being run by another process: why there is no result here.
    NotDone(&'a str),
}
