//! Data: from text or a task's rules to batches of token ids or values. Independent of models.
//!
//! Which of these do I want?
//! * text for a language model: [`Tokenizer`] → [`encode_text`] → [`TextData`] → [`RandomWindows`] (every window starts from the initial
//!   state) or [`StatefulStream`] (state is carried from window to window); scored by [`FixedBatches`] of random windows or by a
//!   [`FullPass`];
//! * a synthetic task: [`SelectiveCopying`], [`FormalLanguage`], [`MqarBatches`], [`NearestNeighbourBatches`];
//! * a label for a long sequence: [`ListOps`], [`Retrieval`], [`Image`];
//! * a table of numbers to classify or to forecast: [`table`];
//! * a task that training knows by name: [`SequenceTask`];
//! * recorded episodes for a policy: [`offline_rl`];
//! * anything else: implement [`BatchSource`] for your own training loop ([`differentiate`](crate::train::differentiate)), and
//!   [`EvaluationSet`] for scoring ([`evaluate`](crate::train::evaluate)), or wrap the former in [`FixedBatches`].
//!   [`Trainer`](crate::train::Trainer) trains on the data named by an experiment.
//!
//! Legend: `B` batch_size, `T` seq_len, `N` tokens in a part of the text, `V` vocab_size.

mod atomic;
mod batch;
mod encode;
mod foreign;
mod formal;
mod labelled;
mod lra;
mod mqar;
mod nearest_neighbour;
mod numbered_examples;
pub mod offline_rl;
mod passes;
mod positioned;
mod selective_copying;
mod sequence_task;
pub mod shakespeare;
mod source;
pub mod table;
mod text;
mod text_blocks;
mod token_file;
mod tokenizer;

pub(crate) use atomic::AtomicFile;
pub use batch::{Batch, BatchSource, Carry, EvaluationSet, FixedBatches, Sequences};
pub use encode::{encode_short_text, encode_text, text_sha256};
pub use foreign::{FOREIGN_LEN, foreign};
pub use formal::{FormalLanguage, FormalTask, Generalization, Language, OneLength, Protocol};
pub use lra::{Expressions, Image, ListOps, ListOpsTask, PixelInput, Retrieval, RetrievalTask, TextUnit};
pub use mqar::{Mqar, MqarBatches};
pub use nearest_neighbour::{NearestNeighbour, NearestNeighbourBatches};
pub use selective_copying::{Encoding, SelectiveCopying, SelectiveCopyingConfig};
pub use sequence_task::{Extent, IoKind, SequenceTask};
pub use source::{MAX_PIPE_BYTES, expect_lasting};
pub use text::{FullPass, RandomWindows, StatefulStream, TextData, TextPart};
pub use token_file::{TokenFile, TokenWriter};
pub use tokenizer::{Bpe, Characters, Seen, TextInput, TextStream, Tokenizer, TokenizerKind, train_tokenizer};
