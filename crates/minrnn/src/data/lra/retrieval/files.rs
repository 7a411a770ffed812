//! The files of pairs: no header, and on each line label, id of paper 1, id of paper 2, text 1, text 2, separated by tabs. Quotation marks
//! have no special meaning.

use std::path::Path;

use super::documents::Documents;
use super::{Pair, RetrievalTask, TextUnit};
use crate::data::lra::lines::Lines;
use crate::{Error, Result};

pub(super) const TRAIN: &str = "new_aan_pairs.train.tsv";
pub(super) const VALIDATION: &str = "new_aan_pairs.eval.tsv";
pub(super) const TEST: &str = "new_aan_pairs.test.tsv";

/// All files, for use in a sentence.
pub(super) const ALL: &str = "new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv";

const REMEDY: &str = "set data.path to the folder of new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv, which are \
                      part of the release of the Long Range Arena (lra_release.gz)";

/// The pairs of one file, with their texts put into `documents`.
pub(super) fn read(task: &RetrievalTask, path: &Path, documents: &mut Documents) -> Result<Vec<Pair>> {
    let mut lines = Lines::open(path, REMEDY)?;
    let mut pairs = Vec::new();
    while let Some(line) = lines.next_line()? {
        match pair(task, line, documents) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => return Err(lines.wrong(problem)),
        }
    }
    if pairs.is_empty() {
        return Err(Error::malformed(path, format!("the file is empty; {REMEDY}")));
    }
    Ok(pairs)
}

fn pair(task: &RetrievalTask, line: &[u8], documents: &mut Documents) -> Result<Pair, String> {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let [label, _, _, first, second] = columns[..] else {
        let found = columns.len();
        return Err(format!("expected 5 columns (label, two ids, two texts) separated by tabs, found {found}; the file may be cut short"));
    };
    let cites = match std::str::from_utf8(label).ok().and_then(|label| label.trim().parse::<f64>().ok()) {
        Some(0.0) => false,
        Some(1.0) => true,
        _ => return Err(format!("expected the label 0 or 1, found '{}'", String::from_utf8_lossy(&label[..label.len().min(40)]))),
    };
    let mut insert = |text: &[u8]| {
        // One token is reserved for the end.
        let n = task.max_length - 1;
        Ok::<u32, String>(match task.unit {
            TextUnit::Byte => documents.insert(&text[..text.len().min(n)]),
            TextUnit::Char => {
                let text = std::str::from_utf8(text).map_err(|error| {
                    let at = error.valid_up_to();
                    format!("a text is not UTF-8 from its byte {at} on; convert the file to UTF-8, or take retrieval_unit = \"byte\"")
                })?;
                let end = text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
                documents.insert(&text.as_bytes()[..end])
            }
        })
    };
    Ok(Pair { documents: [insert(first)?, insert(second)?], cites })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &[u8], unit: TextUnit) -> Result<(Vec<Pair>, Documents)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TRAIN);
        std::fs::write(&path, text).unwrap();
        let mut documents = Documents::default();
        Ok((read(&RetrievalTask { unit, max_length: 6 }, &path, &mut documents)?, documents))
    }

    #[test]
    fn sentences_name_the_files() {
        assert_eq!(ALL, format!("{TRAIN}, {VALIDATION} and {TEST}"));
        assert!(REMEDY.contains(ALL));
    }

    #[test]
    fn quotation_marks_and_labels_as_floats_are_read() {
        let text = "1.0\tP00\tP01\t\"open\t\"\n0\tP01\tP02\t\"\tclosed\"\n".as_bytes();
        let (pairs, documents) = read_text(text, TextUnit::Char).unwrap();
        assert_eq!(pairs, [Pair { documents: [0, 1], cites: true }, Pair { documents: [1, 2], cites: false }]);
        assert_eq!((documents.get(0), documents.get(2)), (&b"\"open"[..], &b"close"[..]));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            (&b""[..], "the file is empty"),
            (b"1\ta\tb\tone\ttwo\n1\ta\tb\tone\n", "line 2: expected 5 columns"),
            (b"1\ta\tb\tone\ttwo\tthree\n", "found 6"),
            (b"2\ta\tb\tone\ttwo\n", "line 1: expected the label 0 or 1, found '2'"),
            (b"label\ta\tb\tone\ttwo\n", "found 'label'"),
            (b"1\ta\tb\tone\tt\xFF\n", "not UTF-8 from its byte 1"),
        ] {
            let message = read_text(text, TextUnit::Char).err().unwrap().to_string();
            assert!(message.contains(expected) && message.contains(TRAIN), "{message}");
        }
        assert!(read_text(b"1\ta\tb\tone\tt\xFF\n", TextUnit::Byte).is_ok());
        let missing = read(&RetrievalTask::default(), Path::new("no/such.tsv"), &mut Documents::default()).unwrap_err().to_string();
        assert!(missing.contains("there is no such file") && missing.contains("data.path"), "{missing}");
    }
}
