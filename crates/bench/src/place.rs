//! Where, and with which program, a measurement is made.

use burn::tensor::Device;

use crate::{Error, Result, machine};

/// The program that measures; included in every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// The commit it was built from, or `unknown`.
    pub commit: &'static str,
    /// The compiler it was built with.
    pub compiler: &'static str,
}

/// A device, a number of threads and a program.
#[derive(Debug, Clone)]
pub struct Place {
    /// The device that computes.
    pub device: Device,
    /// Threads of the processor.
    pub threads: usize,
    /// The program that computes.
    pub build: Build,
}

impl Place {
    /// The CPU with as many threads as cores.
    pub fn here(build: Build) -> Self {
        Self { device: Device::flex(), threads: machine::threads(), build }
    }

    /// Runs `work` on a pool of that many threads.
    pub(crate) fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R> {
        let threads = self.threads;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        Ok(pool.map_err(|error| Error::Threads { threads, problem: error.to_string() })?.install(work))
    }
}
