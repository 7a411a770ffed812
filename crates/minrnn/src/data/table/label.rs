//! What every sequence of a table has one of.

/// What a sequence has one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A class of several.
    Class,
    /// A number.
    Number,
}

impl Label {
    /// What finding it is called.
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
