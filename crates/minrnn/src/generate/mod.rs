//! Generation: prompts are read in parallel over time, then text is generated token by token.
//!
//! Which of these do I want?
//! * text from a prompt: [`TextGenerator`], which samples, stops at stop strings and returns text as it is completed;
//! * sequences read by the fast inference runtime, with compact weights: [`RuntimeSession`];
//! * the same by the training model, with my own mixer: [`Session`] with [`prefill`](Session::prefill) and [`step`](Session::step);
//! * the state in a file: `save` and `load` of either; [`ModelIdentity`] ties it to its model.
//!
//! ```
//! use std::ops::ControlFlow;
//! use burn::tensor::Device;
//! use minrnn::{data::Tokenizer, generate::{Session, TextGenerator}, model::SequenceModel};
//! use minrnn_model::ModelConfig;
//! use minrnn_stream::Sampling;
//!
//! let tokenizer = Tokenizer::characters_of("to be or not to be\n");
//! let config = ModelConfig { vocab_size: tokenizer.vocab_size(), d_model: 8, ..Default::default() };
//! let model = SequenceModel::new(&config, 0, &Device::flex())?;
//! let mut generator = TextGenerator::new(Session::new(&model, 1), &tokenizer, &["to be"], Sampling::default(), &[])?;
//! let mut text = String::new();
//! generator.generate(20, |piece| {
//!     text += &piece.text;
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(text.chars().count(), 20);
//! # Ok::<(), minrnn::Error>(())
//! ```

mod identity;
mod runtime_session;
mod saved;
mod session;
mod state_forms;
mod text;
mod token_session;

pub use identity::ModelIdentity;
pub use minrnn_stream::{RECENT_TOKENS, StopStrings};
pub use runtime_session::RuntimeSession;
pub use saved::expect_undamaged;
pub use session::Session;
pub use text::{Piece, TextGenerator};
pub use token_session::{Logits, StateTensor, TokenSession};
