//! The lines or tokens of a text as rows, each with how surprising it is.

use super::surprise::Listener;
use crate::{Error, Result};

/// Bytes of a row's text that are kept.
const LONGEST_TEXT: usize = 1 << 16;

/// What a row of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowUnit {
    /// A line: how surprising its tokens are on average.
    Line,
    /// A token.
    Token,
}

/// A row of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextRow {
    /// The number of its line, from 1 on.
    pub line: u64,
    /// What stands in it, without the end of the line; what cannot be read is U+FFFD, and what is very long is cut.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
    /// −ln of their probabilities, the mean over tokens in nats; none of the first token of all, which nothing let expect.
    pub surprise: Option<f64>,
    /// Whether there is something in it that the vocabulary does not have, or that is no text.
    pub has_unknown: bool,
    /// Whether there is a byte in it that is no text.
    pub has_no_text: bool,
}

/// Gathers the tokens of a text into rows, and hands each on as soon as it is whole.
pub struct TextRows<'a> {
    unit: RowUnit,
    see: &'a mut dyn FnMut(TextRow) -> Result<()>,
    row: TextRow,
    text: Vec<u8>,
    /// Of the tokens whose probability is known.
    sum: f64,
    known: u64,
}

impl<'a> TextRows<'a> {
    /// No row yet; `see` gets each.
    pub fn new(unit: RowUnit, see: &'a mut dyn FnMut(TextRow) -> Result<()>) -> Self {
        Self { unit, see, row: TextRow::default(), text: Vec::new(), sum: 0.0, known: 0 }
    }

    /// Hands on what has begun, since nothing follows.
    ///
    /// # Errors
    /// What `see` gives.
    pub fn finish(&mut self) -> Result<()> {
        if self.row.line == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned();
        let end = if self.unit == RowUnit::Line { text.trim_end_matches(['\n', '\r']).len() } else { text.len() };
        let surprise = (self.known > 0).then(|| self.sum / self.known as f64);
        (self.sum, self.known) = (0.0, 0);
        (self.see)(TextRow { text: text[..end].to_owned(), surprise, ..std::mem::take(&mut self.row) })
    }

    /// The row that something in `line` belongs to.
    fn open(&mut self, line: u64) -> Result<()> {
        if self.unit == RowUnit::Token || self.row.line != line {
            self.finish()?;
        }
        self.row.line = line;
        Ok(())
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
        Ok(())
    }

    fn flaw(&mut self, line: u64, _: Error) -> Result<()> {
        self.open(line)?;
        self.append("\u{fffd}".as_bytes());
        self.row.has_unknown = true;
        Ok(())
    }

    /// What begins so is in another encoding; later on it is a flaw in a text, and an unusual one.
    fn not_text(&mut self, line: u64, flaw: Error) -> Result<()> {
        if self.row.line == 0 {
            return Err(flaw);
        }
        self.flaw(line, flaw)?;
        self.row.has_no_text = true;
        Ok(())
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
        rows.flaw(2, Error::Data(String::new())).unwrap();
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
        assert_eq!(rows(RowUnit::Line), [row(1, "a", 2, Some(2.0), false), row(2, "bc\u{fffd}d", 2, Some(2.5), true)]);
        let tokens = rows(RowUnit::Token);
        assert_eq!(tokens[..2], [row(1, "a", 1, None, false), row(1, "\n", 1, Some(2.0), false)]);
        assert_eq!(tokens[3], row(2, "\u{fffd}", 0, None, true));
        assert_eq!(tokens.len(), 5);
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
