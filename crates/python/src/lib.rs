#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod allocator;
mod arrays;
mod command;
mod counts;
mod failure;
mod files;
mod generation;
mod handed;
mod inputs;
mod loaded;
mod model;
mod plain;
mod prediction;
mod remembered;
mod rows;
mod scan;
mod scoring;
mod session;
mod signals;
mod steps;
mod table;
mod text_scoring;
mod texts;
mod threads;
mod training;
mod trajectories;

use pyo3::prelude::*;

/// The compiled part of ``minrnn``.
#[pymodule]
mod _minrnn {
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::files::{export_weights, import_weights, inspect, pack, verify};
    #[pymodule_export]
    use super::generation::Generation;
    #[pymodule_export]
    use super::model::PyModel;
    #[pymodule_export]
    use super::remembered::Session;
    #[pymodule_export]
    use super::scan::{scan_backward, scan_forward};
    #[pymodule_export]
    use super::training::train;
    #[pymodule_export]
    use super::trajectories::write_trajectories;

    /// The version of the library.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python has for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
