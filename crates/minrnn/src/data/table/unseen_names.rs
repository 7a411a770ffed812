//! Names in a table that training never saw.

use std::fmt;

use minrnn_model::first_few;

/// A column with names that training never saw, which a model treats as none of the names it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenNames {
    /// The column.
    pub column: String,
    /// The first such name.
    pub first: String,
    /// Number of rows with such a name.
    pub n: u64,
    /// Number of rows with a name.
    pub of: u64,
    /// The names that training saw.
    pub known: Vec<String>,
}

impl fmt::Display for UnseenNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, first, n, of, known } = self;
        write!(f, "column '{column}': the names in {n} of {of} rows were not seen in training, such as '{first}'; ")?;
        write!(f, "they are read as none of those that were: {}", first_few(8, known.iter().map(|name| format!("'{name}'"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_known_are_told_with_some_that_are() {
        let unseen = UnseenNames {
            column: "mode".to_owned(),
            first: "RUN".to_owned(),
            n: 2,
            of: 9,
            known: ["idle", "run"].map(str::to_owned).into(),
        };
        let sentence = "column 'mode': the names in 2 of 9 rows were not seen in training, such as 'RUN'; they are read as none of those that \
                        were: 'idle', 'run'";
        assert_eq!(unseen.to_string(), sentence);
    }
}
