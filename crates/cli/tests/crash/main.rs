//! Nothing is lost: a run that is killed before any system call, or whose machine loses power there, continues to the same bits.
//!
//! Every change of a file is seen from outside the program, by a tracer that this test compiles (`traced.c`). A few moments drawn from a
//! seed are tried here; all of them with
//!
//! ```text
//! cargo test --release --workspace --test crash -- --ignored
//! ```
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

#[path = "../common/mod.rs"]
mod common;
mod disk;
mod kill;
mod power;
mod reproduce;
mod subject;
mod trace;
