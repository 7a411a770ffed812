#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod api;
mod cache;
mod connections;
mod counts;
mod engine;
mod job;
mod logprobs;
mod reading;
mod server;
mod settings;

pub use server::{Error, Predictions, Predictor, Result, ServedModel, ServedTable, Server, Unpredicted};
pub use settings::Settings;
