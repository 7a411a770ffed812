//! Names of one file, looked for among those of another.

use std::collections::HashMap;

use super::cells::NumberName;
use crate::{Error, Result};

/// Names with their places. One that is a whole number is found whether another file writes it as 1 or as 1.0, unless several here are that number. Others
/// may be codes, such as 1.1 and 1.10.
#[derive(Debug, Default)]
pub(super) struct KnownNames {
    places: HashMap<String, usize>,
    /// Of each number its place; none where several names are that number.
    numbers: HashMap<NumberName, Option<usize>>,
}

impl KnownNames {
    /// These names, each at its place among them.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known = Self::default();
        names.into_iter().enumerate().for_each(|(at, name)| known.insert(name, at));
        known
    }

    /// Adds `name`, which is not known yet, at the place `at`.
    pub fn insert(&mut self, name: &str, at: usize) {
        self.places.insert(name.to_owned(), at);
        if let Some(number) = whole(name) {
            self.numbers.entry(number).and_modify(|known| *known = None).or_insert(Some(at));
        }
    }

    /// The place of `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        let same_number = || self.numbers.get(&whole(name)?).copied().flatten();
        self.places.get(name).copied().or_else(same_number)
    }

    /// The places of `names`, different ones of another file.
    ///
    /// # Errors
    /// When two of them have the same place.
    pub fn find_all<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Option<usize>>> {
        let mut names_at: HashMap<usize, &str> = HashMap::new();
        let mut find = |name: &'a str| {
            let at = self.find(name);
            match at.and_then(|at| names_at.insert(at, name)) {
                None => Ok(at),
                Some(other) => Err(Error::Data(format!(
                    "it names one sequence in two ways, '{other}' and '{name}', which are the same number; write it in one"
                ))),
            }
        };
        names.into_iter().map(&mut find).collect()
    }
}

/// The whole number that `name` is, written in digits.
fn whole(name: &str) -> Option<NumberName> {
    NumberName::of(name).filter(|number| matches!(number, NumberName::Whole(_)) && !name.contains(['e', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_whole_number_is_found_with_a_point_and_without_unless_several_are() {
        let known = KnownNames::of(["1", "b", "1.1", "03", "7", "7.0"]);
        assert_eq!(
            ["1.0", "+1", "1e0", "b", "1.10", "1.1", "03", "3", "3.0", "7", "7.0", "7.00", ""].map(|name| known.find(name)),
            [Some(0), Some(0), None, Some(1), None, Some(2), Some(3), None, None, Some(4), Some(5), None, None]
        );
        assert_eq!(known.find_all(["c", "b", "1.0"]).unwrap(), [None, Some(1), Some(0)]);
        let refused = known.find_all(["1", "b", "1.0"]).unwrap_err().to_string();
        assert_eq!(refused, "it names one sequence in two ways, '1' and '1.0', which are the same number; write it in one");
    }
}
