//! Cells of CSV files.

use minrnn::csv::quoted;

use crate::printable::printable;

/// A cell in which line ends and other control characters are escaped, so that it stays in its line, and `\` too, so that the original text can be told.
pub fn in_a_line(text: &str) -> String {
    quoted(&printable(&text.replace('\\', "\\\\"))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_and_a_backslash_with_an_n_are_told_apart() {
        assert_eq!(in_a_line("\n"), "\\n");
        assert_eq!(in_a_line("\\n"), "\\\\n");
        assert_eq!(in_a_line("a\\,\"\t"), "\"a\\\\,\"\"\\t\"");
    }
}
