//! Text from elsewhere, made safe to show.

/// `text` with its control characters escaped: a file may have any name and hold any text, and a terminal would obey it.
pub fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_all_else_is_kept() {
        assert_eq!(printable("'a\x1b[31m\nb\u{9b}': é 日本 \u{1f980} \\"), "'a\\u{1b}[31m\\nb\\u{9b}': é 日本 \u{1f980} \\");
    }
}
