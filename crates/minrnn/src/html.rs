//! Text in HTML pages.

/// `text` escaped for HTML, between tags and in attributes.
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
