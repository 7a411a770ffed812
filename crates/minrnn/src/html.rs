//! Text in pages for a browser.

/// `text` with what HTML would read as its own written so that it is shown, between tags and in attributes alike.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_it_is_between_tags_and_in_attributes() {
        assert_eq!(escaped("a < b & \"c\" > &amp;"), "a &lt; b &amp; &quot;c&quot; &gt; &amp;amp;");
    }
}
