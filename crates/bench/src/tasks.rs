//! The times of a training step's tasks, run sequentially: the basis for computing a schedule on many threads.

use std::time::Duration;

use burn::tensor::Device;
use minrnn_kernels::schedule::{Record, Region, record};
use minrnn_kernels::simd::Level;
use serde::{Deserialize, Serialize};

use crate::lm::{Training, least_bytes};
use crate::timing::Plan;
use crate::{Case, Error, Place, Result, machine};

/// A training step split for a number of threads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tasks {
    /// Number of threads it was split for.
    pub threads: usize,
    /// Processor and cores.
    pub machine: String,
    /// The commit of the program.
    pub commit: String,
    /// Instructions of the processor.
    pub simd: String,
    /// For each region the time before it, and the times of its tasks, in milliseconds.
    pub regions: Vec<(f64, Vec<f64>)>,
    /// The time after the last region, in milliseconds.
    pub after_ms: f64,
    /// Minimum number of bytes moved by the step.
    pub least_bytes: f64,
}

/// Records the tasks of [`Bench::Lm`](crate::Bench::Lm), the minimum time of each over the plan's iterations, at least one.
///
/// # Errors
/// When the sizes do not fit together, there is not enough memory, or the device is not the CPU.
pub fn measure_tasks(case: &Case, plan: Plan, place: &Place) -> Result<Tasks> {
    if place.device != Device::flex() {
        return Err(Error::OnlyOnCpu);
    }
    place.on_threads(|| {
        let mut training = Training::new(case, &place.device)?;
        (0..plan.warmup).for_each(|_| training.step());
        let mut least = record(|| training.step());
        for _ in 1..plan.iterations {
            least = least_of(least, &record(|| training.step()));
        }
        training.end()?;
        let ms = |time: Duration| crate::line::round(1e3 * time.as_secs_f64(), 4);
        Ok(Tasks {
            threads: place.threads,
            machine: machine::name(),
            commit: place.build.commit.to_owned(),
            simd: Level::current().name().to_owned(),
            regions: least.regions.into_iter().map(|region| (ms(region.before), region.tasks.into_iter().map(ms).collect())).collect(),
            after_ms: ms(least.after),
            least_bytes: least_bytes(case) as f64,
        })
    })?
}

/// The minimum of each time in two records of the same work; the first record if they are split differently.
fn least_of(mut record: Record, other: &Record) -> Record {
    let cut = |record: &Record| record.regions.iter().map(|region| region.tasks.len()).collect::<Vec<_>>();
    if cut(&record) == cut(other) {
        record.after = record.after.min(other.after);
        for (Region { before, tasks }, other) in record.regions.iter_mut().zip(&other.regions) {
            *before = other.before.min(*before);
            tasks.iter_mut().zip(&other.tasks).for_each(|(task, &other)| *task = other.min(*task));
        }
    }
    record
}
