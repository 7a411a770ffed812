//! Recurrence, convolution, norm and loss kernels for CPUs: slices in, slices out, forward and backward.
//!
//! Every kernel is a module with `forward` and `backward` on row-major f32 slices, and a short sequential version of it, generic over f32
//! and f64, in [`mod@reference`]. Outputs may be uninitialised and are written whole. Instructions are chosen at run time ([`simd::Level`]);
//! threads come from the ambient rayon pool; the same shape on the same number of threads gives the same bits ([`grid`]).
//!
//! Where a kernel has many tensors, what it reads is its `Inputs`, what its backward pass reads besides is its `Upstream`, and where that
//! writes is its `Gradients`.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use minrnn_kernels::{Shape, Start, scan};
//!
//! // h_t = a_t h_{t-1} + b_t for one sequence of three steps and one channel, from h_0 = 0.
//! let shape = Shape { batch: 1, seq_len: 3, width: 1 };
//! let (a, b) = ([0.5, 0.5, 0.5], [1.0, 0.0, 2.0]);
//! let (mut h, mut h_last) = ([MaybeUninit::uninit(); 3], [MaybeUninit::uninit(); 1]);
//! scan::forward(shape, &a, &b, Start::default(), &mut h, &mut h_last);
//! // SAFETY: the kernel has written every element.
//! assert_eq!(h.map(|x| unsafe { x.assume_init() }), [1.0, 0.5, 2.25]);
//! ```
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width, `E` inner width, `N` rows (B·T), `M` any width, `K` taps, `V` classes.
//!
//! Feature `std` (default): threads and run-time choice of instructions. Without it the crate is `no_std` with `alloc`.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod activation;
pub mod adamw;
pub mod attention;
pub mod block_diagonal;
mod candidate;
pub mod conv;
pub mod copy;
pub mod cross_entropy;
pub mod decay_min_gru;
pub mod delta;
pub mod dropout;
pub mod embedding;
pub mod floored_min_gru;
pub mod gated_gelu;
pub mod gelu;
pub mod grid;
pub mod gru;
pub mod head_norm;
pub mod highway;
pub mod layer_norm;
pub mod log_space;
pub mod lstm;
pub mod m_lstm;
pub mod matmul;
pub mod min_gru;
pub mod min_lstm;
mod norm;
pub mod prefix_softmax;
mod recurrence;
pub mod reference;
pub mod retention;
pub mod rms_norm;
pub mod rotary;
mod rows;
pub mod rwkv4;
pub mod s_lstm;
mod scaled_min_gru;
pub mod scan;
pub mod segments;
pub mod selective_scan;
pub mod shape;
pub mod signed_min_gru;
pub mod silu;
pub mod simd;
pub mod skip_gate;
pub mod split;
pub mod state_space;
mod stepwise;
pub mod swi_glu;
pub mod weight_matrix;

pub use gru::GruForm;
pub use segments::Segments;
pub use shape::{Candidate, Gates, Out, Shape, Start};
