#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod api;
mod cache;
mod connections;
mod counts;
mod engine;
mod error;
mod job;
mod logprobs;
mod reading;
mod served;
mod server;
mod settings;

pub use error::{Error, Result};
pub use served::{Accept, Predictions, Scores, ServedModel, ServedTable, TableModel, Unanswered};
pub use server::Server;
pub use settings::Settings;
