//! The sign between the cells of a table.

use super::super::BYTE_ORDER_MARK;

/// The usual ones; of those that are equally frequent the last counts.
const USUAL: [u8; 3] = [b'\t', b';', b','];

/// Counts the usual delimiters in the first record that is not empty, outside quotation marks.
#[derive(Default)]
pub struct Delimiters {
    counts: [usize; USUAL.len()],
    place: Where,
    /// Number of bytes read.
    n: usize,
}

/// The position within the record.
#[derive(Clone, Copy, Default)]
enum Where {
    /// Before it: there were only empty lines, or a byte order mark.
    #[default]
    Outside,
    /// Before a cell, whichever sign delimits it.
    Before,
    /// In a cell without marks around it.
    Plain,
    /// Between two marks within such a cell; the line ends the record all the same.
    Between,
    /// In marks around a cell, which may hold ends of lines.
    Quoted,
    /// After a mark within these, which closes them unless another one follows.
    Closed,
}

impl Delimiters {
    /// Reads a further `piece` of the table; whether the record ends in it.
    pub fn read(&mut self, piece: &[u8]) -> bool {
        use Where::{Before, Between, Closed, Outside, Plain, Quoted};
        for &byte in piece {
            let is_order_mark = BYTE_ORDER_MARK.get(self.n) == Some(&byte);
            self.n += 1;
            let is_line_end = matches!(byte, b'\r' | b'\n');
            self.place = match (self.place, byte) {
                (Outside, _) if is_line_end || is_order_mark => Outside,
                (Quoted, b'"') => Closed,
                (Quoted, _) | (Closed | Outside | Before, b'"') => Quoted,
                _ if is_line_end => return true,
                (Between, b'"') => Plain,
                (Between, _) | (Plain, b'"') => Between,
                _ => match USUAL.iter().position(|&usual| usual == byte) {
                    Some(at) => {
                        self.counts[at] += 1;
                        Before
                    }
                    None => Plain,
                },
            };
        }
        false
    }

    /// The most frequent one so far.
    pub fn most_frequent(&self) -> u8 {
        let counted = USUAL.into_iter().zip(self.counts);
        counted.max_by_key(|&(_, count)| count).map_or(b',', |(delimiter, _)| delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delimiter of `table`, and how many of its bytes tell it, if they are read one by one.
    fn found(table: &str) -> (char, usize) {
        let mut delimiters = Delimiters::default();
        let ended = table.as_bytes().chunks(1).position(|byte| delimiters.read(byte));
        let mut at_once = Delimiters::default();
        assert_eq!(at_once.read(table.as_bytes()), ended.is_some());
        assert_eq!(at_once.most_frequent(), delimiters.most_frequent());
        (char::from(delimiters.most_frequent()), ended.map_or(table.len(), |at| at + 1))
    }

    #[test]
    fn the_first_record_that_is_not_empty_tells_it() {
        for (table, delimiter, n) in [
            ("a;b\n1,5;2,5\n", ';', 4),
            ("\n\r\n\na;b\n1,5;2,5\n", ';', 8),
            ("\u{feff}\n\"a\"\tb\n1,5\t2,5\n", '\t', 10),
            ("a;b\r1,5;2,5\r", ';', 4),
            ("a;b", ';', 3),
            ("a\n1;2;3\n", ',', 2),
            ("a;b,c\n", ',', 6),
            ("", ',', 0),
            ("\n\n", ',', 2),
        ] {
            assert_eq!(found(table), (delimiter, n), "{table:?}");
        }
    }

    #[test]
    fn what_is_in_quotation_marks_tells_nothing_though_lines_end_in_it() {
        for (table, delimiter) in [
            ("\"note\n(a, b, c)\";v\n1;2\n", ';'),
            ("v;\"note\r\n\r\n(a, b, \"\"c\"\", d)\"\n1;2\n", ';'),
            ("\"a;b;c\",d\n", ','),
            // Marks in cells that do not begin with one.
            ("id; \"temp, in C, or so\"\n1;2\n", ';'),
            ("id;height 5\";v\n1,2,3,4\n", ';'),
            ("id;height 5\"\n1,2,3,4\"\n", ';'),
        ] {
            assert_eq!(found(table).0, delimiter, "{table:?}");
        }
    }
}
