//! What models do beyond the law, by topic.

#[path = "../common/mod.rs"]
mod common;

mod batch_norm;
mod bidirectional;
mod checkpoints;
mod decision;
mod law_breakers;
mod own_mixer;
mod timed;
mod whole;
