#![doc = include_str!("../README.md")]
//!
//! A kernel with many tensors takes its inputs as `Inputs`, the further inputs of its backward pass as `Upstream`, and the outputs of that
//! as `Gradients`. Every output is an [`Out`], made from initialised numbers or uninitialised memory.
//!
//! # Where to look
//! * [`recurrence`]: every linear recurrence, including minGRU and minLSTM, as cells of one driver;
//! * [`matmul`], [`weight_matrix`]: products in training and, with compact weights, in inference;
//! * [`mod@reference`]: the short version of each kernel;
//! * [`simd::Level`]: the instruction sets; [`grid`]: how work is split over threads.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width, `E` inner width, `N` rows (B·T), `M` any width, `K` taps, `V` classes.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod activation;
pub mod adamw;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod amx;
pub mod attention;
pub mod block_diagonal;
pub mod choice;
pub mod conv;
pub mod copy;
pub mod count;
pub mod cross_entropy;
pub mod delta;
pub mod dropout;
pub mod embedding;
pub mod gated_gelu;
pub mod gelu;
pub mod grid;
pub mod gru;
pub mod head_norm;
pub mod highway;
pub mod layer_norm;
pub mod lstm;
pub mod m_lstm;
pub mod matmul;
mod norm;
mod out;
pub mod prefix_softmax;
pub mod recurrence;
pub mod reference;
pub mod retention;
pub mod rms_norm;
pub mod rotary;
mod rows;
pub mod rwkv4;
pub mod s_lstm;
#[cfg(feature = "std")]
pub mod schedule;
pub mod segments;
pub mod selective_scan;
pub mod shape;
pub mod sigmoid;
pub mod silu;
pub mod simd;
pub mod skip_gate;
pub mod softplus;
pub mod split;
mod start;
pub mod state_space;
mod stepwise;
pub mod swi_glu;
pub mod weight_matrix;

pub use gru::GruForm;
pub use out::Out;
pub use segments::Segments;
pub use shape::{Candidate, Gates, Shape};
pub use start::Start;
