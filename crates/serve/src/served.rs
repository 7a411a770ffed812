//! What is served: models of text and of tables, under the names that requests call them by.

use std::sync::atomic::AtomicBool;

use minrnn_model::Tokenizer;
use minrnn_stream::Model;

/// A model of text and the name that requests call it by.
#[derive(Debug)]
pub struct ServedModel {
    /// Its name.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Its tokens.
    pub tokenizer: Tokenizer,
}

/// A model of tables, and the name that requests call it by.
pub struct ServedTable {
    /// Its name.
    pub name: String,
    /// Its description in the list of models.
    pub about: String,
    /// What predicts.
    pub predictor: Box<dyn Predictor>,
}

/// Predicts for the sequences of tables.
pub trait Predictor: Send + Sync {
    /// The predictions for `table`, the bytes of a file, in the format `accept`. `future` holds the bytes of a file with the future rows, if they were
    /// sent. `stop` is set once nobody waits any more; the result then does not matter. Called on a thread of its own, for one table at a time.
    ///
    /// # Errors
    /// A sentence, and whether the table is at fault.
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unpredicted>;
}

/// The format of the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Lines of CSV.
    Csv,
    /// One value of JSON.
    Json,
}

/// What was predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predictions {
    /// The predictions, as CSV or JSON.
    pub text: String,
    /// What readers should know about the table, a sentence each.
    pub notes: Vec<String>,
}

/// Why nothing was predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpredicted {
    /// What is wrong.
    pub sentence: String,
    /// Whether the table is at fault.
    pub is_wrong_input: bool,
}
