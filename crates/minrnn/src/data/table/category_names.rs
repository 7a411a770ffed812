//! The names that a column of a model's tables may hold, for lookup in any table.

use minrnn_model::UNSEEN;

use super::known_names::KnownNames;
use super::missing::is_nothing;

/// The names that a column held in training, with their codes.
#[derive(Debug, Clone, PartialEq)]
pub struct CategoryNames {
    names: Vec<String>,
    known: KnownNames,
}

impl CategoryNames {
    /// The `names` of a [`Category`](minrnn_model::Category), in order.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.to_vec(), known: KnownNames::of_values(names.iter().map(String::as_str)) }
    }

    /// The names in the order of their codes.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The code of `name`, ignoring surrounding blanks: its index, [`UNSEEN`] if it is unknown, or NaN for an empty cell; more texts count
    /// as empty if names `may_miss`. A name is recognised as it was written, or as another format would write the same number.
    pub fn code(&self, name: &str, may_miss: bool) -> f64 {
        let name = name.trim();
        match self.known.find_as_written(name) {
            Some(at) => at as f64,
            None if is_nothing(name, may_miss) => f64::NAN,
            None => self.known.find(name).map_or(UNSEEN, |at| at as f64),
        }
    }
}
