#![doc = include_str!("../README.md")]
//!
//! A [`Target`] is planned at a scale ([`plan`]), its trainings are run or continued and its measurements made
//! ([`Reproduction::carry_out`]), and the results so far are collected in a [`Grid`] and written ([`write_tables`]) after every run.
#![deny(missing_docs)]

mod baseline;
mod catalog;
mod count;
mod error;
mod estimate;
mod folder;
mod grid;
mod host;
mod lengths;
mod metric;
mod outcome;
mod plan;
mod published;
mod reproduction;
mod share;
mod training;
mod unfinished;
mod verdict;
mod write;

pub use baseline::Baseline;
pub use catalog::{Effort, Line, Scale, Show, Target, Work, all, find, names};
pub use error::{Error, FolderProblem, Result};
pub use folder::Folder;
pub use grid::{Filled, Grid};
pub use host::{Host, Notice};
pub use lengths::AtLength;
pub use metric::Metric;
pub use minrnn::statistics::Summary;
pub use outcome::{End, Origin, Outcome, Point, Stretch};
pub use plan::{Bench, Cell, Job, Training, plan};
pub use published::Published;
pub use reproduction::{Open, Reproduction, Wanted};
pub use training::{Options, OwnText, Run};
pub use unfinished::Begun;
pub use verdict::{Order, Verdict};
pub use write::{markdown, write, write_index, write_tables};
