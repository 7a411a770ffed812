//! One subcommand per file.

pub mod bench;
pub mod devices;
pub mod eval;
pub mod experiments;
pub mod export;
pub mod generate;
pub mod import;
pub mod inspect;
pub mod pack;
pub mod plot;
pub mod predict;
pub mod reproduce;
pub mod rollout;
pub mod score;
pub mod serve;
pub mod stream;
pub mod train;
pub mod verify;
