//! The label of a table's sequences.

/// The kind of a sequence's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// One of several classes.
    Class,
    /// A number.
    Number,
}

impl Label {
    /// The verb for finding it.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Class => "classify",
            Self::Number => "regress",
        }
    }

    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Number => "number",
        }
    }

    /// The noun with its article.
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Class => "a class",
            Self::Number => "a number",
        }
    }
}
