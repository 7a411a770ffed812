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
    /// The model.
    pub model: Box<dyn TableModel>,
}

/// Answers for tables. Its methods are called on threads of their own, for one table at a time.
///
/// `table` is the bytes of a file, `accept` the format of the answer, and `stop` is set once nobody waits any more; the result then does not matter.
pub trait TableModel: Send + Sync {
    /// The predictions for the sequences of `table`. `future` holds the bytes of a file with the future rows, if they were sent.
    ///
    /// # Errors
    /// A sentence, and whether the request is at fault.
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unanswered>;

    /// How surprising every row of `table` is, and which are more surprising than a share `share` of rows with nothing unusual. `usual` holds the bytes of
    /// a file with such rows, if they were sent.
    ///
    /// # Errors
    /// A sentence, and whether the request is at fault, such as one to a model that does not score rows.
    fn score(&self, table: &[u8], usual: Option<&[u8]>, share: f64, accept: Accept, stop: &AtomicBool) -> Result<Scores, Unanswered>;
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

/// How surprising rows are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// The rows, as CSV or JSON.
    pub text: String,
    /// The surprise above which a row is marked, if there was anything to compare with.
    pub threshold: Option<f64>,
    /// What readers should know about the tables and the threshold, a sentence each.
    pub notes: Vec<String>,
}

/// Why a table has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// What is wrong.
    pub sentence: String,
    /// Whether the request is at fault.
    pub is_wrong_input: bool,
}
