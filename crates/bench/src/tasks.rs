//! What the tasks of a training step take, one after the other: what a schedule of them on many threads is computed from.

use std::time::Duration;

use minrnn_kernels::schedule::{Record, record};
use minrnn_kernels::simd::Level;
use serde::{Deserialize, Serialize};

use crate::lm::{Training, least_bytes};
use crate::timing::{Plan, milliseconds};
use crate::{Case, Place, Result, machine};

/// A training step cut for a number of threads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tasks {
    /// Threads that it was cut for.
    pub threads: usize,
    /// Processor and cores.
    pub machine: String,
    /// The commit of the program.
    pub commit: String,
    /// Instructions of the processor.
    pub simd: String,
    /// Of each region the time before it, and that of its tasks, in milliseconds.
    pub regions: Vec<(f64, Vec<f64>)>,
    /// The time after the last region, in milliseconds.
    pub after_ms: f64,
    /// Bytes that the step moves at least.
    pub least_bytes: f64,
}

/// Records the tasks of [`Bench::Lm`](crate::Bench::Lm), of the fastest of the plan's iterations.
///
/// # Errors
/// When the sizes do not fit together, there is no memory for them, or the device is not the processor.
pub fn measure_tasks(case: &Case, plan: Plan, place: &Place) -> Result<Tasks> {
    place.on_threads(|| {
        let mut training = Training::new(case, &place.device)?;
        (0..plan.warmup).for_each(|_| training.step());
        let mut best: Option<(f64, Record)> = None;
        for _ in 0..plan.iterations {
            let mut found = None;
            let time = milliseconds(|| found = Some(record(|| training.step())));
            if best.as_ref().is_none_or(|(least, _)| time < *least) {
                best = found.map(|record| (time, record));
            }
        }
        training.end()?;
        let (_, record) = best.expect("a plan has an iteration");
        let ms = |time: Duration| crate::line::round(1e3 * time.as_secs_f64(), 4);
        Ok(Tasks {
            threads: place.threads,
            machine: machine::name(),
            commit: place.build.commit.to_owned(),
            simd: Level::current().name().to_owned(),
            regions: record.regions.into_iter().map(|region| (ms(region.before), region.tasks.into_iter().map(ms).collect())).collect(),
            after_ms: ms(record.after),
            least_bytes: least_bytes(case) as f64,
        })
    })?
}
