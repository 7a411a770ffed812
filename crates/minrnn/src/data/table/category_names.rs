//! The names that a column of a model's tables may hold, looked for in whatever is read.

use minrnn_model::UNSEEN;

use super::known_names::KnownNames;
use super::missing::is_nothing;

/// The names that a column held in training, and the number that stands for each.
#[derive(Debug, Clone, PartialEq)]
pub struct CategoryNames {
    names: Vec<String>,
    known: KnownNames,
}

impl CategoryNames {
    /// Of the `names` of a [`Category`](minrnn_model::Category), in its order.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.to_vec(), known: KnownNames::of_values(names.iter().map(String::as_str)) }
    }

    /// The names in the order of their numbers.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// What stands in a row for `name`, whatever blanks are around it: its number, [`UNSEEN`] of one that is none of the names, or NaN where nothing stands,
    /// for which more texts are taken where some `may_miss`. A name is known as it is written, and as another format writes the same number.
    pub fn code(&self, name: &str, may_miss: bool) -> f64 {
        let name = name.trim();
        match self.known.find_as_written(name) {
            Some(at) => at as f64,
            None if is_nothing(name, may_miss) => f64::NAN,
            None => self.known.find(name).map_or(UNSEEN, |at| at as f64),
        }
    }
}
