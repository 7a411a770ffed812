//! How untyped tables write missing values.

/// Cells that mean a missing number or name, regardless of case.
const MISSING: [&str; 7] = ["", "nan", "na", "n/a", "null", "none", "?"];

/// Whether `cell`, already trimmed, looks like a missing number or name.
pub(super) fn is_missing(cell: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(cell))
}

/// Whether `cell`, already trimmed, counts as empty; a cell that looks missing does if values `may_miss`.
pub(super) fn is_nothing(cell: &str, may_miss: bool) -> bool {
    cell.is_empty() || may_miss && is_missing(cell)
}
