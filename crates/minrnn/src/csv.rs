//! Cells of CSV files, as in RFC 4180.

use std::borrow::Cow;

/// `cell` as written in a line: in quotation marks if it contains a comma, a quotation mark or a line break.
pub fn quoted(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_quotation_marks_and_ends_of_lines_are_quoted() {
        let cells = ["", "plain", "a,b", "say \"x\"", "two\nlines", "\r"].map(quoted);
        assert_eq!(cells, ["", "plain", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\"", "\"\r\""]);
    }
}
