//! The lines or tokens of a text as rows, each with its surprise.

use minrnn_kernels::choices;

use super::surprise::Listener;
use super::unknown_characters::UnknownCharacters;
use super::usual::exceeds;
use crate::{Error, Result};

/// Maximum number of bytes of a row's text that are kept.
const LONGEST_TEXT: usize = 1 << 16;

choices! {
    /// The unit of a text's rows.
    RowUnit, "unit" {
        /// A line: the mean surprise of its tokens.
        #[default]
        Line = "line",
        /// A token.
        Token = "token",
    }
}

/// A row of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextRow {
    /// Line number, from 1.
    pub line: u64,
    /// Its text, without the line break as far as the vocabulary has it; bytes that are not valid text are U+FFFD, and very long text is truncated.
    pub text: String,
    /// Number of tokens.
    pub tokens: u64,
    /// Mean of −ln of the tokens' probabilities, in nats; `None` for the very first token, which nothing predicts.
    pub surprise: Option<f64>,
    /// Whether it contains something that is not in the vocabulary, or not valid text.
    pub has_unknown: bool,
    /// Whether it contains a byte that is not valid text.
    pub has_no_text: bool,
}

impl TextRow {
    /// Whether it is an anomaly: more surprising than `threshold`, or with something that is not in the vocabulary; `None` if that cannot be told.
    pub fn is_marked(&self, threshold: Option<f64>) -> Option<bool> {
        if self.has_unknown { Some(true) } else { exceeds(self.surprise, threshold) }
    }
}

/// Collects the tokens of a text into rows, and passes each on as soon as it is complete.
pub struct TextRows<'a> {
    unit: RowUnit,
    see: &'a mut dyn FnMut(TextRow) -> Result<()>,
    row: TextRow,
    text: Vec<u8>,
    /// Where the last character ends in it that is not in the vocabulary: no line break before is left out.
    end_of_unknown: usize,
    unknown: UnknownCharacters,
    /// The summed surprise of the tokens whose probability is known.
    sum: f64,
    known: u64,
    /// Whether anything was read.
    has_begun: bool,
}

impl<'a> TextRows<'a> {
    /// A new collector; `see` is called with each row.
    pub fn new(unit: RowUnit, see: &'a mut dyn FnMut(TextRow) -> Result<()>) -> Self {
        Self {
            unit,
            see,
            row: TextRow::default(),
            text: Vec::new(),
            end_of_unknown: 0,
            unknown: UnknownCharacters::default(),
            sum: 0.0,
            known: 0,
            has_begun: false,
        }
    }

    /// Passes on an incomplete row, at the end of the text.
    ///
    /// # Errors
    /// Any error of `see`.
    pub fn finish(&mut self) -> Result<()> {
        if self.row.line == 0 {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.text);
        if self.unit == RowUnit::Line {
            let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
            text.truncate(end.max(self.end_of_unknown));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let surprise = (self.known > 0).then(|| self.sum / self.known as f64);
        (self.sum, self.known, self.end_of_unknown) = (0.0, 0, 0);
        (self.see)(TextRow { text, surprise, ..std::mem::take(&mut self.row) })
    }

    /// Sentences about the characters so far that are not in the vocabulary.
    pub(super) fn notes(&self) -> Vec<String> {
        self.unknown.notes()
    }

    /// Opens the row that something in `line` belongs to.
    fn open(&mut self, line: u64) -> Result<()> {
        if self.unit == RowUnit::Token || self.row.line != line {
            self.finish()?;
        }
        (self.row.line, self.has_begun) = (line, true);
        Ok(())
    }

    /// Passes the row on if nothing belongs to it behind `text`, its last one.
    fn close(&mut self, text: &[u8]) -> Result<()> {
        if self.unit == RowUnit::Token || text.ends_with(b"\n") { self.finish() } else { Ok(()) }
    }

    /// Adds `text` that the model cannot read to the row that it belongs to.
    fn add_unknown(&mut self, line: u64, text: char, has_no_text: bool) -> Result<()> {
        self.open(line)?;
        let mut bytes = [0; 4];
        let text = text.encode_utf8(&mut bytes).as_bytes();
        self.append(text);
        self.end_of_unknown = self.text.len();
        self.row.has_unknown = true;
        self.row.has_no_text |= has_no_text;
        self.close(text)
    }

    fn append(&mut self, text: &[u8]) {
        let room = LONGEST_TEXT.saturating_sub(self.text.len());
        self.text.extend_from_slice(&text[..text.len().min(room)]);
    }
}

impl Listener for TextRows<'_> {
    fn token(&mut self, line: u64, text: &[u8], log_probability: Option<f64>) -> Result<()> {
        self.open(line)?;
        self.append(text);
        self.row.tokens += 1;
        if let Some(known) = log_probability {
            self.sum -= known;
            self.known += 1;
        }
        self.close(text)
    }

    fn flaw(&mut self, line: u64, _: Error) -> Result<()> {
        self.add_unknown(line, char::REPLACEMENT_CHARACTER, false)
    }

    fn unknown(&mut self, line: u64, character: char, _: Error) -> Result<()> {
        self.unknown.add(character);
        self.add_unknown(line, character, false)
    }

    /// A file that begins like this is in another encoding; later it is a flaw in a text, and unusual.
    fn not_text(&mut self, line: u64, flaw: Error) -> Result<()> {
        if !self.has_begun {
            return Err(flaw);
        }
        self.add_unknown(line, char::REPLACEMENT_CHARACTER, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(unit: RowUnit) -> Vec<TextRow> {
        let mut found = Vec::new();
        let mut see = |row| {
            found.push(row);
            Ok(())
        };
        let mut rows = TextRows::new(unit, &mut see);
        rows.token(1, b"a", None).unwrap();
        rows.token(1, b"\n", Some(-2.0)).unwrap();
        rows.token(2, b"bc", Some(-1.0)).unwrap();
        rows.unknown(2, 'ä', Error::Data(String::new())).unwrap();
        rows.token(2, b"d", Some(-4.0)).unwrap();
        rows.finish().unwrap();
        found
    }

    #[test]
    fn a_line_is_as_surprising_as_its_tokens_on_average() {
        let row = |line, text: &str, tokens, surprise, has_unknown| {
            let text = text.to_owned();
            TextRow { line, text, tokens, surprise, has_unknown, has_no_text: false }
        };
        assert_eq!(rows(RowUnit::Line), [row(1, "a", 2, Some(2.0), false), row(2, "bcäd", 2, Some(2.5), true)]);
        let tokens = rows(RowUnit::Token);
        assert_eq!(tokens[..2], [row(1, "a", 1, None, false), row(1, "\n", 1, Some(2.0), false)]);
        assert_eq!(tokens[3], row(2, "ä", 0, None, true));
        assert_eq!(tokens.len(), 5);
    }

    #[test]
    fn a_line_break_is_kept_in_a_line_if_the_vocabulary_does_not_have_it() {
        let mut found = Vec::new();
        let mut see = |row: TextRow| {
            found.push((row.line, row.text, row.has_unknown));
            Ok(())
        };
        let mut rows = TextRows::new(RowUnit::Line, &mut see);
        let no = || Error::Data(String::new());
        // CR LF, of which the vocabulary has the second, both or none.
        rows.token(1, b"a", None).unwrap();
        rows.unknown(1, '\r', no()).unwrap();
        rows.token(1, b"\n", Some(-1.0)).unwrap();
        rows.token(2, b"a\r\n", Some(-1.0)).unwrap();
        rows.token(3, b"a", Some(-1.0)).unwrap();
        rows.unknown(3, '\r', no()).unwrap();
        rows.unknown(3, '\n', no()).unwrap();
        rows.token(4, b"b\n", Some(-1.0)).unwrap();
        rows.finish().unwrap();
        assert!(rows.notes()[0].ends_with("'\\r' (2 times), '\\n' (1 time)"), "{:?}", rows.notes());
        let expected = [(1, "a\r", true), (2, "a", false), (3, "a\r\n", true), (4, "b", false)];
        assert_eq!(found, expected.map(|(line, text, has_unknown)| (line, text.to_owned(), has_unknown)));
    }

    #[test]
    fn what_is_not_in_the_vocabulary_is_marked_without_a_threshold_too() {
        let row = |surprise, has_unknown| TextRow { surprise, has_unknown, ..TextRow::default() };
        for (surprise, threshold, expected) in
            [(Some(3.0), Some(2.0), Some(true)), (Some(1.0), Some(2.0), Some(false)), (None, Some(2.0), None), (Some(3.0), None, None)]
        {
            assert_eq!(row(surprise, false).is_marked(threshold), expected);
            assert_eq!(row(surprise, true).is_marked(threshold), Some(true));
        }
    }

    #[test]
    fn what_begins_as_no_text_is_refused_and_a_flaw_in_a_text_is_marked() {
        let no_text = || Error::Data("line 1: no".to_owned());
        let mut found = Vec::new();
        let mut see = |row| {
            found.push(row);
            Ok(())
        };
        let mut rows = TextRows::new(RowUnit::Line, &mut see);
        assert_eq!(rows.not_text(1, no_text()).unwrap_err().to_string(), "line 1: no");
        rows.token(1, b"a", None).unwrap();
        rows.not_text(2, no_text()).unwrap();
        rows.token(2, b"b", Some(-1.0)).unwrap();
        rows.finish().unwrap();
        let told: Vec<_> = found.iter().map(|row| (row.text.as_str(), row.has_unknown, row.has_no_text)).collect();
        assert_eq!(told, [("a", false, false), ("\u{fffd}b", true, true)]);
    }
}
