//! The files of ListOps: a header line `Source`, `Target`, then an expression, a tab and its value on each line.
//!
//! A generated data set is written once in the same format, to a folder named after its settings that appears once it is complete. The
//! official files also show the nesting with round brackets; ours have none, since every reader deletes them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::expression::{evaluate, text_of, tokenize};
use super::{Expressions, ListOpsTask};
use crate::data::lra::lines::Lines;
use crate::new_directory::make_directory;
use crate::{Error, Result};

const FILES: [&str; 3] = ["basic_train.tsv", "basic_val.tsv", "basic_test.tsv"];
const REMEDY: &str = "the official folder listops-1000 of the Long Range Arena has basic_train.tsv, basic_val.tsv and basic_test.tsv; \
                      with another folder as data.path, or none, expressions are generated";

/// Training, validation and test parts: the official files in `folder` if it has them, otherwise those generated with the settings of
/// `task`, now or earlier.
pub(super) fn open(task: &ListOpsTask, folder: &Path) -> Result<[Expressions; 3]> {
    if FILES.iter().any(|name| folder.join(name).exists()) {
        return read_all(folder);
    }
    let generated = folder.join(folder_name(task));
    if generated.exists() {
        return read_all(&generated);
    }
    let parts = task.generate()?;
    write_all(&parts, &generated)?;
    Ok(parts)
}

/// The name states everything the expressions depend on.
fn folder_name(task: &ListOpsTask) -> String {
    let (min_length, ListOpsTask { max_length, max_depth, max_arguments, n_train, n_eval, seed, .. }) = (task.longer_than(), task);
    format!("listops-length-{min_length}-{max_length}-depth-{max_depth}-arguments-{max_arguments}-{n_train}-{n_eval}-seed-{seed}")
}

fn read_all(folder: &Path) -> Result<[Expressions; 3]> {
    let read = |i: usize| read(&folder.join(FILES[i]));
    Ok([read(0)?, read(1)?, read(2)?])
}

/// The expressions of one file.
pub(super) fn read(path: &Path) -> Result<Expressions> {
    let mut lines = Lines::open(path, REMEDY)?;
    match lines.next_line()? {
        Some(b"Source\tTarget") => {}
        Some(other) => {
            let found = shown(other);
            return Err(lines.wrong(format!("expected the header 'Source<TAB>Target', found '{found}'; {REMEDY}")));
        }
        None => return Err(Error::malformed(path, format!("the file is empty; {REMEDY}"))),
    }
    let (mut expressions, mut tokens) = (Expressions::default(), Vec::new());
    while let Some(line) = lines.next_line()? {
        tokens.clear();
        match row(line, &mut tokens) {
            Ok(value) => expressions.push(&tokens, value),
            Err(problem) => return Err(lines.wrong(problem)),
        }
    }
    if expressions.is_empty() {
        return Err(Error::malformed(path, format!("there is no expression below the header; {REMEDY}")));
    }
    Ok(expressions)
}

/// Appends the tokens of a line to `tokens`; returns its value.
fn row(line: &[u8], tokens: &mut Vec<u8>) -> Result<u8, String> {
    let tab = line.iter().position(|&byte| byte == b'\t').ok_or("expected an expression, a tab and a digit, found no tab")?;
    let (source, target) = (&line[..tab], &line[tab + 1..]);
    let [digit @ b'0'..=b'9'] = target else {
        return Err(format!("expected one digit as the target, found '{}'", shown(target)));
    };
    tokenize(source, tokens).map_err(|word| format!("expected operators, digits and brackets, found '{}'", shown(word)))?;
    let (value, target) = (evaluate(tokens)?, digit - b'0');
    if value == target { Ok(value) } else { Err(format!("the target is {target}, but the expression comes to {value}")) }
}

/// The beginning of a text, for error messages.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned()
}

/// Writes the parts to the new folder `folder`.
fn write_all(parts: &[Expressions; 3], folder: &Path) -> Result<()> {
    let made = make_directory(folder, |unfinished| {
        parts.iter().zip(FILES).try_for_each(|(part, name)| {
            let path = unfinished.join(name);
            write(part, &path).map_err(|error| Error::io("write the expressions", path, error))
        })
    });
    match made {
        // Another process was faster and wrote the same.
        Err(_) if folder.exists() => Ok(()),
        made => made,
    }
}

fn write(part: &Expressions, path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(b"Source\tTarget\n")?;
    for i in 0..part.len() {
        let (tokens, value) = part.get(i);
        writeln!(file, "{}\t{value}", text_of(tokens))?;
    }
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn small() -> ListOpsTask {
        ListOpsTask { min_length: 3, max_length: 40, max_depth: 4, max_arguments: 4, n_train: 30, n_eval: 5, seed: 1 }
    }

    #[test]
    fn a_generated_data_set_is_written_once_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(&small(), dir.path()).unwrap();
        assert_eq!(first.each_ref().map(Expressions::len), [30, 5, 5]);
        let entries = || fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(entries(), ["listops-length-3-40-depth-4-arguments-4-30-5-seed-1"]);
        let file = dir.path().join(&entries()[0]).join(FILES[0]);
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(open(&small(), dir.path()).unwrap(), first);
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
        // Other settings have another folder.
        assert_ne!(open(&ListOpsTask { seed: 2, ..small() }, dir.path()).unwrap(), first);
        assert_eq!(entries().len(), 2);
    }

    #[test]
    fn a_slower_process_takes_what_the_faster_one_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let parts = small().generate().unwrap();
        let target = dir.path().join(folder_name(&small()));
        write_all(&parts, &target).unwrap();
        write_all(&parts, &target).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(open(&small(), dir.path()).unwrap(), parts);
    }

    #[test]
    fn the_official_format_is_read_with_its_round_brackets() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in FILES.iter().zip([
            "Source\tTarget\n( ( ( [MAX 2 ) 9 ) ] )\t9\n4\t4\n",
            "Source\tTarget\r\n( ( ( ( [SM 9 ) ( ( ( [MED 1 ) 8 ) ] ) ) 7 ) ] )\t0\r\n",
            "Source\tTarget\n3\t3\n",
        ]) {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let [train, validation, test] = open(&small(), dir.path()).unwrap();
        assert_eq!((train.len(), validation.len(), test.len()), (2, 1, 1));
        assert_eq!(train.get(0), (&[3, 9, 16, 6][..], 9));
        assert_eq!(train.get(1), (&[11][..], 4));
        // 9 + (1 + 8) / 2 + 7 = 9 + 4 + 7 = 20.
        assert_eq!(text_of(validation.get(0).0), "[SM 9 [MED 1 8 ] 7 ]");
        fs::remove_file(dir.path().join(FILES[1])).unwrap();
        let message = open(&small(), dir.path()).unwrap_err().to_string();
        assert!(message.contains("basic_val.tsv") && message.contains("listops-1000"), "{message}");
    }

    #[test]
    fn bad_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILES[0]);
        for (text, expected) in [
            ("", "the file is empty"),
            ("Source,Target\n", "line 1: expected the header"),
            ("Source\tTarget\n", "no expression below the header"),
            ("Source\tTarget\n4\t4\n[MAX 2 9 ]\n", "line 3: expected an expression, a tab"),
            ("Source\tTarget\n[MAX 2 9 ]\t10\n", "line 2: expected one digit as the target, found '10'"),
            ("Source\tTarget\n[MAX 2 9\t9\n", "line 2: a bracket is not closed"),
            ("Source\tTarget\n[MEAN 2 9 ]\t9\n", "found '[MEAN'"),
            ("Source\tTarget\n[MAX 2 9 ]\t2\n", "the target is 2, but the expression comes to 9"),
        ] {
            fs::write(&path, text).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains(FILES[0]), "{message}");
        }
    }
}
