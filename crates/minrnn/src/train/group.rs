//! Cooperation of the processes of a training: sharing work, adding gradients, and stopping together if one of them cannot continue.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ranks::{Alone, Ranks, sum_pieces};
use crate::{Error, Result};

/// Number of values exchanged at once, 16 MiB, so that buffers stay small and counts fit MPI's limit.
const BUCKET: usize = 1 << 22;

/// The processes of a training, seen from one of them.
#[derive(Clone)]
pub struct Group {
    ranks: Arc<dyn Ranks>,
    /// Whether all processes were told of an error.
    failed: Arc<AtomicBool>,
}

/// An error being sent to the other processes.
#[derive(Serialize, Deserialize)]
struct Told {
    sentence: String,
    is_wrong_input: bool,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({} of {})", self.rank(), self.size())
    }
}

impl Group {
    /// This process by itself.
    pub fn alone() -> Self {
        Self::new(Arc::new(Alone))
    }

    /// The processes connected by `ranks`.
    pub fn new(ranks: Arc<dyn Ranks>) -> Self {
        Self { ranks, failed: Arc::default() }
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.ranks.rank()
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.ranks.size()
    }

    /// Whether this process trains by itself.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Whether this is the process that writes and prints.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether all processes know of an error, which the first reports.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Ends all processes with the exit code `code`, because of an error that the others do not know of.
    pub fn abort(&self, code: u8) -> ! {
        self.ranks.abort(code)
    }

    /// Which of `n` items, a multiple of the number of processes, belong to this process.
    pub fn share(&self, n: u64) -> Range<u64> {
        let (rank, size) = (self.rank() as u64, self.size() as u64);
        rank * n / size..(rank + 1) * n / size
    }

    /// Adds the `values` of all processes, in a fixed binary tree over their ranks; all get the same bits.
    pub fn sum(&self, values: &mut [f32]) {
        let n = self.size();
        if n == 1 {
            return;
        }
        let most = values.len().min(BUCKET).div_ceil(n) * n;
        let (mut given, mut taken) = (vec![0.0; most], vec![0.0; most]);
        for bucket in values.chunks_mut(BUCKET) {
            let len = bucket.len().div_ceil(n) * n;
            let (given, taken) = (&mut given[..len], &mut taken[..len]);
            given[..bucket.len()].copy_from_slice(bucket);
            given[bucket.len()..].fill(0.0);
            self.ranks.exchange(given, taken);
            self.ranks.collect(sum_pieces(taken, n), given);
            bucket.copy_from_slice(&given[..bucket.len()]);
        }
    }

    /// The `values` of all processes, equally many from each, in order of rank, on the first process; nothing on the others. Bits are
    /// preserved.
    pub fn collect_first(&self, values: &[f32]) -> Vec<Vec<f32>> {
        let n = if self.is_first() { self.size() } else { 0 };
        let mut found: Vec<Vec<f32>> = (0..n).map(|_| Vec::with_capacity(values.len())).collect();
        let most = (BUCKET / self.size()).max(1);
        let mut all = vec![0.0; n * values.len().min(most)];
        for own in values.chunks(most) {
            let all = &mut all[..n * own.len()];
            self.ranks.collect_first(own, all);
            found.iter_mut().zip(all.chunks_exact(own.len())).for_each(|(found, piece)| found.extend_from_slice(piece));
        }
        found
    }

    /// The outcomes of all processes in order of rank, or the error of the first process that has one.
    ///
    /// # Errors
    /// On every process if any has one: [`Error::Elsewhere`] if it is not this one's.
    pub fn agree_all<T: Serialize + DeserializeOwned>(&self, outcome: Result<T>) -> Result<Vec<T>> {
        if self.is_alone() {
            return Ok(vec![outcome?]);
        }
        let told = outcome.as_ref().map_err(|error| match error {
            Error::Elsewhere { sentence, is_wrong_input, .. } => Told { sentence: sentence.clone(), is_wrong_input: *is_wrong_input },
            error => Told { sentence: error.to_string(), is_wrong_input: error.is_wrong_input() },
        });
        let bytes = serde_json::to_vec(&told).unwrap_or_else(|error| {
            let told: Result<(), Told> =
                Err(Told { sentence: format!("could not tell the other processes: {error}"), is_wrong_input: true });
            serde_json::to_vec(&told).expect("a sentence can be written")
        });
        let mut all = Vec::new();
        for (rank, bytes) in self.ranks.gather(&bytes).into_iter().enumerate() {
            let found: Result<T, Told> = serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                Err(Told {
                    sentence: format!("is at something else than this one; start the same command everywhere ({error})"),
                    is_wrong_input: true,
                })
            });
            match found {
                Ok(found) => all.push(found),
                Err(Told { sentence, is_wrong_input }) => {
                    self.failed.store(true, Ordering::Relaxed);
                    return Err(match outcome {
                        Err(own) if rank == self.rank() => own,
                        _ => Error::Elsewhere { rank, size: self.size(), sentence, is_wrong_input },
                    });
                }
            }
        }
        Ok(all)
    }

    /// This process's outcome if all succeed, or the error of the first process that has one.
    ///
    /// # Errors
    /// As [`agree_all`](Self::agree_all).
    pub fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        let (own, told) = match outcome {
            Ok(own) => (Some(own), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.agree_all(told)?;
        Ok(own.expect("no process has an error"))
    }

    /// Calls `find` on the first process only and returns its result on all of them.
    ///
    /// # Errors
    /// When `find` returns one.
    pub fn tell<T: Serialize + DeserializeOwned>(&self, find: impl FnOnce() -> Result<T>) -> Result<T> {
        // A list, since the result itself may be null.
        let found = self.agree_all(self.is_first().then(find).transpose().map(|found| Vec::from_iter(found)))?;
        Ok(found.into_iter().flatten().next().expect("the first process has found it"))
    }

    /// An outcome that depends only on what all processes share and is therefore the same on all of them. A faulty machine may have an
    /// error alone, in which case the others do not reach the end.
    ///
    /// # Errors
    /// When it is one.
    pub fn alike<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Checks that all processes would compute the same: each states what its results depend on, and what to do if that differs.
    ///
    /// # Errors
    /// When something differs; the error names the first.
    pub fn expect_alike(&self, own: Vec<Trait>) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let all = self.agree_all(Ok(own))?;
        for (rank, found) in all.iter().enumerate() {
            if let Some((first, other)) = all[0].iter().zip(found).find(|(first, other)| first.value != other.value) {
                let Trait { what, value, remedy } = first;
                let sentence = format!("process {rank} has {what} {}, process 0 has {value}; {remedy}", other.value);
                return self.alike(Err(Error::Config(sentence)));
            }
        }
        Ok(())
    }
}

/// Something that results depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trait {
    /// What it is.
    pub what: String,
    /// Its value on this process.
    pub value: String,
    /// What to do if it differs.
    pub remedy: String,
}

impl Trait {
    /// `what` is `value` here; `remedy` says what to do if it differs.
    pub fn new(what: &str, value: impl fmt::Display, remedy: &str) -> Self {
        Self { what: what.to_owned(), value: value.to_string(), remedy: remedy.to_owned() }
    }
}
