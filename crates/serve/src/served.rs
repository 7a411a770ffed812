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

/// A model of tables, which predicts for those of requests, and the name that they call it by.
pub struct ServedTable {
    /// Its name.
    pub name: String,
    /// What it says of itself in the list of models.
    pub about: String,
    /// What predicts.
    pub predictor: Box<dyn Predictor>,
}

/// What is predicted for the sequences of a table.
pub trait Predictor: Send + Sync {
    /// The predictions for `table`, the bytes of a file, as `accept` says. `future` are those of a file with the rows to come, where they were sent.
    /// `stop` is raised when nobody waits any more; what is given then does not matter. It is called on a thread of its own, one table at a time.
    ///
    /// # Errors
    /// A sentence, and whether the table is at fault.
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unpredicted>;
}

/// What a request takes as its answer.
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
    /// What whoever reads them should know of the table, a sentence each.
    pub notes: Vec<String>,
}

/// Why nothing was predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpredicted {
    /// What is wrong.
    pub sentence: String,
    /// Whether it is wrong with the table.
    pub is_wrong_input: bool,
}
