#![doc = include_str!("../README.md")]
//!
//! | bench | one iteration |
//! |---|---|
//! | [`measure_scan`] | the bare recurrence h = a h + b, forward, and forward and backward; the machine's copy bandwidth beside it |
//! | [`measure_tasks`] | not a time, but the times of a training step's tasks, to compute schedules for other numbers of threads |
//! | [`Bench::Layer`] | in-projection, recurrence, loss = Σ w ⊙ h, backward to x, h0 and all weights; Mamba up to its output projection |
//! | [`Bench::Lm`] | one training step of the Shakespeare model |
//! | [`Bench::Decode`] | tokens one by one from a carried state, each the most likely one |
//! | [`Bench::Prefill`] | one pass over a prompt, to the state and the last position's logits |
//!
//! Letters in shapes are those of `minrnn`: `B` batch, `T` time, `D` model width, `E` inner width.
#![deny(missing_docs)]

mod bench;
mod case;
mod decode;
mod error;
mod language_model;
mod layer;
mod line;
mod lm;
pub mod machine;
mod mixer;
mod place;
mod prefill;
mod random;
mod scan;
mod tasks;
mod timing;

pub use bench::Bench;
pub use case::Case;
pub use error::{Error, Result};
pub use line::{Bandwidth, Line, SCAN};
pub use place::{Build, Place};
pub use scan::{default_scans, measure_scan};
pub use tasks::{Tasks, measure_tasks};
pub use timing::Plan;

/// Measures `case` on `place`.
///
/// # Errors
/// When its sizes do not fit together, there is no memory for it, or the device fails.
pub fn measure(bench: Bench, case: &Case, plan: Plan, place: &Place) -> Result<Line> {
    let measured = place.on_threads(|| bench.measure(case, plan, &place.device))??;
    Ok(Line::new(bench, case, &measured, place))
}

/// What a bench measured, before it becomes a line.
struct Measured {
    times: timing::Times,
    /// Operations of matrix products in one iteration.
    flop: Option<f64>,
    parameters: Option<usize>,
}
