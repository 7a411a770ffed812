//! How untyped tables write missing values.

/// What stands where a number or a name is missing, whatever its case.
const MISSING: [&str; 7] = ["", "nan", "na", "n/a", "null", "none", "?"];

/// Whether `cell`, without blanks around it, looks like a missing number or name.
pub(super) fn is_missing(cell: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(cell))
}

/// Whether a cell of that text, without blanks around it, holds nothing; what looks missing does so where something `may_miss`.
pub(super) fn is_nothing(cell: &str, may_miss: bool) -> bool {
    cell.is_empty() || may_miss && is_missing(cell)
}
