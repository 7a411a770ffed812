//! Looking up names of one file among those of another.

use std::collections::HashMap;

use crate::numbers::INEXACT;
use crate::{Error, Result};

/// A name that is a number, distinguishable from all other numbers however it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NumberName {
    Whole(i128),
    /// The bits of a number with a fraction.
    Real(u64),
}

impl NumberName {
    pub fn of(name: &str) -> Option<Self> {
        // 01 is a code.
        if let [b'0', b'0'..=b'9', ..] = name.trim_start_matches(['+', '-']).as_bytes() {
            return None;
        }
        let of_real = |real: f64| if real.fract() == 0.0 { Self::Whole(real as i128) } else { Self::Real(real.to_bits()) };
        let real = || name.parse::<f64>().ok().filter(|real| real.abs() < INEXACT).map(of_real);
        name.parse::<i128>().ok().map(Self::Whole).or_else(real)
    }
}

/// Which names count as equal although another file writes them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Alike {
    /// Integers, such as 1 and 1.0. Others may be codes, such as 1.1 and 1.10.
    #[default]
    Whole,
    /// All names that are the same number.
    Numbers,
}

impl Alike {
    /// The number that stands for `name`.
    fn number(self, name: &str) -> Option<NumberName> {
        let is_alike = |number: &NumberName| match self {
            Self::Whole => matches!(number, NumberName::Whole(_)) && !name.contains(['e', 'E']),
            Self::Numbers => true,
        };
        NumberName::of(name).filter(is_alike)
    }
}

/// Names with their indices. A name that is a number is found however another file writes it, unless several names here are that number. By default the
/// names are those of sequences, where only integers count as numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct KnownNames {
    alike: Alike,
    places: HashMap<String, usize>,
    /// The index of each number; `None` if several names are that number.
    numbers: HashMap<NumberName, Option<usize>>,
}

impl KnownNames {
    /// Names of sequences, each with its index.
    pub fn of_sequences<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::default().with(names)
    }

    /// Names of classes or of a column's values, each with its index.
    pub fn of_values<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { alike: Alike::Numbers, ..Self::default() }.with(names)
    }

    fn with<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().enumerate().for_each(|(at, name)| self.insert(name, at));
        self
    }

    /// Adds `name`, which must be new, with the index `at`.
    pub fn insert(&mut self, name: &str, at: usize) {
        self.places.insert(name.to_owned(), at);
        if let Some(number) = self.alike.number(name) {
            self.numbers.entry(number).and_modify(|known| *known = None).or_insert(Some(at));
        }
    }

    /// The index of `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.find_as_written(name).or_else(|| self.numbers.get(&self.alike.number(name)?).copied().flatten())
    }

    /// The index of `name` exactly as written.
    pub fn find_as_written(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The indices of `names`, which are distinct names of another file.
    ///
    /// # Errors
    /// When two of them have the same index.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_whole_number_is_found_with_a_point_and_without_unless_several_are() {
        let known = KnownNames::of_sequences(["1", "b", "1.1", "03", "7", "7.0"]);
        assert_eq!(
            ["1.0", "+1", "1e0", "b", "1.10", "1.1", "03", "3", "3.0", "7", "7.0", "7.00", ""].map(|name| known.find(name)),
            [Some(0), Some(0), None, Some(1), None, Some(2), Some(3), None, None, Some(4), Some(5), None, None]
        );
        assert_eq!(known.find_all(["c", "b", "1.0"]).unwrap(), [None, Some(1), Some(0)]);
        let refused = known.find_all(["1", "b", "1.0"]).unwrap_err().to_string();
        assert_eq!(refused, "it names one sequence in two ways, '1' and '1.0', which are the same number; write it in one");
    }

    #[test]
    fn a_value_that_is_a_number_is_found_however_it_is_written() {
        fn find<const N: usize>(known: &[&str], names: [&str; N]) -> [Option<usize>; N] {
            let known = KnownNames::of_values(known.iter().copied());
            names.map(|name| known.find(name))
        }
        let known = ["0", "1", "1.50", "up"];
        assert_eq!(find(&known, ["0.0", "1e0", "1.5", "2", "up", "nan", ""]), [Some(0), Some(1), Some(2), None, Some(3), None, None]);
        assert_eq!(find(&["1", "1.0"], ["1.00", "1.0"]), [None, Some(1)]);
        assert_eq!(find(&known, ["-0", "+1", "01", "-01", "00"]), [Some(0), Some(1), None, None, None]);
        // A name with leading zeros is a code.
        assert_eq!(find(&["01", "002.5", "10"], ["1", "1.0", "2.5", "10.0"]), [None, None, None, Some(2)]);
        // Different numbers that round to the same 64-bit float.
        assert_eq!(
            find(
                &["9007199254740993", "9007199254740991", "18446744073709551615"],
                ["+9007199254740993", "9007199254740992", "9007199254740993.0", "9007199254740991.0", "18446744073709551614", "1e400"]
            ),
            [Some(0), None, None, Some(1), None, None]
        );
    }
}
