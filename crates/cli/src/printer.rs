//! Several texts that grow at once, printed one after the other.

use std::io::{Result, Write};

/// Prints the first unfinished text as it grows and every other one when its turn comes, under titles as `head` prints them.
///
/// Without titles there is one text, and nothing but it is printed.
pub struct Printer<W> {
    out: W,
    titles: Vec<String>,
    texts: Vec<Text>,
    current: usize,
    line_is_open: bool,
}

#[derive(Default)]
struct Text {
    waiting: String,
    ended: bool,
    begun: bool,
}

impl<W: Write> Printer<W> {
    /// For as many texts as there are titles, or one.
    pub fn new(out: W, titles: Vec<String>) -> Self {
        let texts = (0..titles.len().max(1)).map(|_| Text::default()).collect();
        Self { out, titles, texts, current: 0, line_is_open: false }
    }

    /// More of text `row`; what is printed has reached the reader on return.
    pub fn add(&mut self, row: usize, text: &str) -> Result<()> {
        self.texts[row].waiting += text;
        self.print()
    }

    /// Text `row` is complete.
    pub fn end(&mut self, row: usize) -> Result<()> {
        self.texts[row].ended = true;
        self.print()
    }

    /// All texts are complete; `close_line` ends the last line of a single text too.
    pub fn finish(&mut self, close_line: bool) -> Result<()> {
        self.texts.iter_mut().for_each(|text| text.ended = true);
        self.print()?;
        if close_line || !self.titles.is_empty() {
            self.close_line()?;
        }
        self.out.flush()
    }

    fn print(&mut self) -> Result<()> {
        while let Some(text) = self.texts.get_mut(self.current) {
            let (waiting, begins) = (std::mem::take(&mut text.waiting), !std::mem::replace(&mut text.begun, true));
            let ended = text.ended;
            if begins && !self.titles.is_empty() {
                self.close_line()?;
                let space = if self.current == 0 { "" } else { "\n" };
                writeln!(self.out, "{space}==> {} <==", self.titles[self.current])?;
            }
            if !waiting.is_empty() {
                self.out.write_all(waiting.as_bytes())?;
                self.out.flush()?;
                self.line_is_open = !waiting.ends_with('\n');
            }
            if !ended {
                return Ok(());
            }
            self.current += 1;
        }
        Ok(())
    }

    fn close_line(&mut self) -> Result<()> {
        if std::mem::take(&mut self.line_is_open) { self.out.write_all(b"\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer(titles: &[&str]) -> Printer<Vec<u8>> {
        Printer::new(Vec::new(), titles.iter().map(ToString::to_string).collect())
    }

    fn printed(printer: &Printer<Vec<u8>>) -> &str {
        std::str::from_utf8(&printer.out).unwrap()
    }

    #[test]
    fn one_text_is_printed_alone() {
        for (close_line, expected) in [(false, "ab"), (true, "ab\n")] {
            let mut printer = printer(&[]);
            printer.add(0, "a").unwrap();
            assert_eq!(printed(&printer), "a");
            printer.add(0, "b").unwrap();
            printer.finish(close_line).unwrap();
            assert_eq!(printed(&printer), expected);
        }
    }

    #[test]
    fn texts_appear_in_order_and_the_first_as_it_grows() {
        let mut printer = printer(&["A", "B", "C"]);
        printer.add(1, "b1").unwrap();
        printer.add(0, "a1").unwrap();
        assert_eq!(printed(&printer), "==> A <==\na1");
        printer.end(1).unwrap();
        printer.add(2, "c1\n").unwrap();
        printer.end(0).unwrap();
        assert_eq!(printed(&printer), "==> A <==\na1\n\n==> B <==\nb1\n\n==> C <==\nc1\n");
        printer.add(2, "c2").unwrap();
        printer.finish(false).unwrap();
        assert!(printed(&printer).ends_with("c1\nc2\n"));
    }

    #[test]
    fn empty_texts_keep_their_titles() {
        let mut printer = printer(&["A", "B"]);
        printer.finish(false).unwrap();
        assert_eq!(printed(&printer), "==> A <==\n\n==> B <==\n");
    }
}
