//! Matrices of numbers as files, written row by row, so they may be larger than memory.
//!
//! | ending | what is written |
//! |---|---|
//! | `.npy` | NumPy's format, version 1.0: one array `[rows, width]` of little-endian f32 |
//! | `.csv` | a line for each row: its labels, then its numbers |
//! | `.safetensors` | the array under its name, and `lengths` `[sequences]` i64: how many rows each sequence has |

mod csv;
mod npy;
mod safetensors;

use std::path::Path;

use crate::data::AtomicFile;
use crate::{Error, Result};

/// The layout of a file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    /// The array's name.
    pub name: String,
    /// Names of a row's labels, for formats with labels.
    pub labels: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Number of rows of each sequence; all are written one after another.
    pub lengths: Vec<u64>,
}

impl ArrayLayout {
    /// Number of rows of all sequences.
    fn rows(&self) -> Option<u64> {
        self.lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length))
    }

    /// Bytes of the array.
    fn bytes(&self) -> Option<u64> {
        self.rows()?.checked_mul(self.columns.len() as u64)?.checked_mul(size_of::<f32>() as u64)
    }
}

/// A format of files.
struct Format {
    /// The ending of their names.
    ending: &'static str,
    /// What is written before the first row.
    header: fn(&ArrayLayout) -> Option<Vec<u8>>,
    /// Appends a row with its labels.
    row: fn(labels: &[String], row: &[f32], out: &mut Vec<u8>),
}

/// Every format there is.
const FORMATS: [Format; 3] = [npy::FORMAT, csv::FORMAT, safetensors::FORMAT];

/// A file being written: it appears under its name once it is complete.
pub struct ArrayFile {
    file: AtomicFile,
    format: &'static Format,
    width: usize,
    rows_left: u64,
    bytes: Vec<u8>,
}

impl ArrayFile {
    /// Checks that the extension of `path` is that of a format.
    ///
    /// # Errors
    /// When it is not.
    pub fn expect_known(path: &Path) -> Result<()> {
        format_of(path).map(drop)
    }

    /// Starts the file `path`, whose extension determines its format.
    ///
    /// # Errors
    /// When the extension is unknown, the array is too large for the format, or the file cannot be written.
    pub fn create(path: &Path, layout: &ArrayLayout) -> Result<Self> {
        let format = format_of(path)?;
        let too_large =
            || Error::malformed(path, format!("an array of {} columns and so many rows does not fit into it", layout.columns.len()));
        let header = (format.header)(layout).ok_or_else(too_large)?;
        let mut file = AtomicFile::create(path, "write the array")?;
        file.write(&header)?;
        Ok(Self { file, format, width: layout.columns.len(), rows_left: layout.rows().ok_or_else(too_large)?, bytes: Vec::new() })
    }

    /// Writes the next row `[width]` with its labels.
    ///
    /// # Errors
    /// When the file cannot be written.
    ///
    /// # Panics
    /// When the row's width differs, or there are more rows than announced.
    pub fn push(&mut self, labels: &[String], row: &[f32]) -> Result<()> {
        assert!(row.len() == self.width && self.rows_left > 0, "a row as was announced");
        self.rows_left -= 1;
        self.bytes.clear();
        (self.format.row)(labels, row, &mut self.bytes);
        self.file.write(&self.bytes)
    }

    /// Moves the file into place.
    ///
    /// # Errors
    /// When it cannot be written.
    ///
    /// # Panics
    /// When there are fewer rows than announced.
    pub fn finish(self) -> Result<()> {
        assert_eq!(self.rows_left, 0, "as many rows as were announced");
        self.file.commit()
    }
}

fn format_of(path: &Path) -> Result<&'static Format> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    FORMATS.iter().find(|format| format.ending == ending).ok_or_else(|| {
        let known: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.ending)).collect();
        Error::malformed(path, format!("its name should end in {}, which says how numbers are written", known.join(" or ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> ArrayLayout {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        ArrayLayout { name: "logits".to_owned(), labels: owned(&["id", "step"]), columns: owned(&["a", "b, c"]), lengths: vec![2, 1] }
    }

    const ROWS: [[f32; 2]; 3] = [[0.5, -1.0], [f32::MAX, 0.1], [-0.0, 3.0]];

    /// The bytes of such a file.
    fn written(name: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut file = ArrayFile::create(&path, &layout()).unwrap();
        for (at, row) in ROWS.iter().enumerate() {
            file.push(&["x\"y".to_owned(), (at + 1).to_string()], row).unwrap();
        }
        assert!(!path.exists());
        file.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn an_npy_file_is_the_one_that_numpy_writes() {
        // Made by tools/write_npy_fixture.py.
        let expected = include_bytes!("../../tests/fixtures/logits.npy");
        assert_eq!(written("logits.npy"), expected);
    }

    #[test]
    fn a_safetensors_file_is_read_by_its_library() {
        let bytes = written("logits.safetensors");
        let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let (logits, lengths) = (read.tensor("logits").unwrap(), read.tensor("lengths").unwrap());
        assert_eq!((logits.shape(), lengths.shape()), (&[3, 2][..], &[2][..]));
        let numbers: Vec<f32> = logits.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!(numbers, ROWS.concat());
        let lengths: Vec<i64> = lengths.data().as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        assert_eq!(lengths, [2, 1]);
    }

    #[test]
    fn a_csv_file_has_labels_and_reads_back_to_the_bit() {
        let text = String::from_utf8(written("logits.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["id,step,a,\"b, c\"", "\"x\"\"y\",1,0.5,-1"]);
        let cells: Vec<f32> = lines[2].split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(cells, ROWS[1]);
    }

    #[test]
    fn an_unknown_ending_is_refused_and_what_is_not_finished_leaves_nothing() {
        for name in ["logits", "logits.txt", "npy"] {
            let refused = ArrayFile::expect_known(Path::new(name)).unwrap_err().to_string();
            assert!(refused.contains("should end in .npy or .csv or .safetensors"), "{refused}");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut file = ArrayFile::create(&folder.path().join("a.npy"), &layout()).unwrap();
        file.push(&[], &ROWS[0]).unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let huge = ArrayLayout { lengths: vec![u64::MAX, 2], ..layout() };
        for name in ["a.npy", "a.csv", "a.safetensors"] {
            assert!(ArrayFile::create(&folder.path().join(name), &huge).is_err(), "{name}");
        }
    }
}
