//! Image: what does a picture of CIFAR-10 show, read as grey pixels row by row?
//!
//! The files are those of CIFAR-10's binary version, records of 3073 bytes: a label, then 32 × 32 bytes of red, of green and of blue.
//!
//! ```text
//! grey  = (19595 R + 38470 G + 7471 B + 32768) >> 16          the luma of ITU-R 601, rounded
//! value = (grey − 122.6) / 61                                 near mean 0 and deviation 1
//! ```

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lines::open;
use crate::data::labelled::targets_at_the_ends;
use crate::data::passes::{Examples, Parts, shuffled};
use crate::data::{Batch, BatchSource, EvaluationSet, IoKind, SequenceTask, Sequences};
use crate::rng::Purpose;
use crate::{Error, Result, Segments};

const TRAIN_FILES: [&str; 5] = ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST_FILE: &str = "test_batch.bin";
const CLASSES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

const PIXELS: usize = 32 * 32;
const RECORD_BYTES: usize = 1 + 3 * PIXELS;
/// Records of an official file.
const MAX_RECORDS: usize = 10_000;

/// One in this many pictures of the training files is used for validation, chosen at random but the same in every run.
const VALIDATION_SHARE: usize = 10;
const SPLIT_SEED: u64 = 0;

const MEAN: f64 = 122.6;
const DEVIATION: f64 = 61.0;

const REMEDY: &str = "set data.path to the folder cifar-10-batches-bin of https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, which \
                      has data_batch_1.bin to data_batch_5.bin and test_batch.bin";

/// How a pixel is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelInput {
    /// As one number, near mean 0 and deviation 1.
    #[default]
    Value,
    /// As one of 256 tokens.
    Token,
}

/// Grey pictures and what they show.
#[derive(Debug)]
struct Pictures {
    grey: Vec<u8>,
    classes: Vec<u8>,
    input: PixelInput,
}

impl Pictures {
    fn new(input: PixelInput) -> Self {
        Self { grey: Vec::new(), classes: Vec::new(), input }
    }

    fn picture(&self, i: u32) -> &[u8] {
        &self.grey[i as usize * PIXELS..][..PIXELS]
    }

    /// Appends the pictures of a file.
    fn read(&mut self, path: &Path) -> Result<()> {
        let mut bytes = Vec::new();
        let limit = (MAX_RECORDS * RECORD_BYTES) as u64 + 1;
        open(path, REMEDY)?.take(limit).read_to_end(&mut bytes).map_err(|error| Error::io("read the pictures", path, error))?;
        if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD_BYTES) || bytes.len() > MAX_RECORDS * RECORD_BYTES {
            let found = if bytes.len() as u64 == limit { "more".to_owned() } else { format!("{} bytes", bytes.len()) };
            return Err(Error::malformed(
                path,
                format!(
                    "expected up to {MAX_RECORDS} whole records of {RECORD_BYTES} bytes ({} bytes in the official file), found {found}; the \
                     file may be cut short or another version of the data set; {REMEDY}",
                    MAX_RECORDS * RECORD_BYTES
                ),
            ));
        }
        for (i, record) in bytes.chunks_exact(RECORD_BYTES).enumerate() {
            let (class, planes) = (record[0], &record[1..]);
            if usize::from(class) >= CLASSES.len() {
                let problem = format!("record {i} (counted from 0): expected a label from 0 to 9, found {class}; {REMEDY}");
                return Err(Error::malformed(path, problem));
            }
            self.classes.push(class);
            self.grey.extend((0..PIXELS).map(|p| grey(planes[p], planes[PIXELS + p], planes[2 * PIXELS + p])));
        }
        Ok(())
    }

    /// The pictures numbered `chosen`.
    fn select(&self, chosen: &[u32]) -> Self {
        let classes = chosen.iter().map(|&i| self.classes[i as usize]).collect();
        let grey = chosen.iter().flat_map(|&i| self.picture(i)).copied().collect();
        Self { grey, classes, input: self.input }
    }

    /// The training and validation parts; neither is empty if there are at least two pictures.
    fn split(&self) -> (Self, Self) {
        let order = shuffled(self.classes.len(), SPLIT_SEED, 0, 0);
        let (validation, train) = order.split_at(self.classes.len().div_ceil(VALIDATION_SHARE).min(self.classes.len() / 2));
        (self.select(train), self.select(validation))
    }
}

/// The luma of a pixel.
fn grey(red: u8, green: u8, blue: u8) -> u8 {
    ((19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue) + 32_768) >> 16) as u8
}

impl Examples for Pictures {
    fn n_examples(&self) -> usize {
        self.classes.len()
    }

    fn n_steps(&self) -> u64 {
        self.grey.len() as u64
    }

    fn longest(&self) -> usize {
        PIXELS
    }

    fn batch(&self, chosen: &[u32]) -> Batch {
        let pixels = || chosen.iter().flat_map(|&i| self.picture(i)).copied();
        let inputs = match self.input {
            PixelInput::Token => Sequences::Tokens(pixels().map(u32::from).collect()),
            PixelInput::Value => {
                Sequences::Values { values: pixels().map(|pixel| ((f64::from(pixel) - MEAN) / DEVIATION) as f32).collect(), width: 1 }
            }
        };
        let classes = chosen.iter().map(|&i| u32::from(self.classes[i as usize]));
        let (targets, mask) = targets_at_the_ends(classes, &vec![PIXELS; chosen.len()], PIXELS);
        let batch_size = chosen.len();
        Batch { inputs, targets: targets.into(), mask: Some(mask), segments: Segments::dense(), batch_size, seq_len: PIXELS }
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.grey), &self.classes)
    }
}

/// The task with its data.
#[derive(Debug, Clone)]
pub struct Image {
    parts: Parts,
    input: PixelInput,
}

impl Image {
    /// Its files, for use in a sentence.
    pub(crate) const FILES: &'static str = "data_batch_1.bin to data_batch_5.bin and test_batch.bin";

    /// What a model reads and what it predicts.
    pub fn signals(input: PixelInput) -> (IoKind, IoKind) {
        let reads = match input {
            PixelInput::Value => IoKind::Values { width: 1 },
            PixelInput::Token => IoKind::Tokens { n: 256 },
        };
        (reads, IoKind::Tokens { n: CLASSES.len() })
    }

    /// The six files of `folder`.
    ///
    /// # Errors
    /// When a file is missing or malformed.
    pub fn open(input: PixelInput, folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let (mut pictures, mut test) = (Pictures::new(input), Pictures::new(input));
        for name in TRAIN_FILES {
            pictures.read(&folder.join(name))?;
        }
        test.read(&folder.join(TEST_FILE))?;
        let (train, validation) = pictures.split();
        Ok(Self { parts: Parts { train: Arc::new(train), validation: Arc::new(validation), test: Arc::new(test) }, input })
    }
}

impl SequenceTask for Image {
    fn reads(&self) -> IoKind {
        Self::signals(self.input).0
    }

    fn predicts(&self) -> IoKind {
        Self::signals(self.input).1
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn longest(&self) -> usize {
        PIXELS
    }

    fn description(&self) -> Option<serde_json::Value> {
        let data = self.parts.description();
        Some(json!({ "task": "image", "classes": CLASSES, "mean": MEAN, "deviation": DEVIATION, "data": data }))
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        self.parts.training(batch_size, seed)
    }

    fn evaluation(&self, batch_size: usize, _: u64, purpose: Purpose, _: u64) -> Result<Box<dyn EvaluationSet>> {
        self.parts.evaluation(batch_size, purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures of one colour each: label i, red, green, blue.
    fn records(of: &[[u8; 4]]) -> Vec<u8> {
        of.iter()
            .flat_map(|&[class, red, green, blue]| [vec![class], vec![red; PIXELS], vec![green; PIXELS], vec![blue; PIXELS]].concat())
            .collect()
    }

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (i, name) in TRAIN_FILES.iter().enumerate() {
            let i = i as u8;
            std::fs::write(dir.path().join(name), records(&[[2 * i, i, i, i], [2 * i + 1, i + 100, i + 100, i + 100]])).unwrap();
        }
        std::fs::write(dir.path().join(TEST_FILE), records(&[[3, 255, 0, 0], [4, 0, 255, 0], [5, 0, 0, 255]])).unwrap();
        dir
    }

    #[test]
    fn sentences_name_the_files() {
        assert_eq!(Image::FILES, format!("{} to {} and {TEST_FILE}", TRAIN_FILES[0], TRAIN_FILES[4]));
        assert!(REMEDY.contains(Image::FILES));
    }

    #[test]
    fn grey_is_the_rounded_luma() {
        // 0.299 · 255 = 76.2, 0.587 · 255 = 149.7, 0.114 · 255 = 29.07.
        assert_eq!([grey(255, 0, 0), grey(0, 255, 0), grey(0, 0, 255)], [76, 150, 29]);
        assert!((0..=255).all(|v| grey(v, v, v) == v));
        assert_eq!(grey(10, 20, 30), 18);
    }

    #[test]
    fn pixels_keep_their_places_and_planes() {
        let dir = folder();
        let mut record = records(&[[7, 0, 0, 0]]);
        // Row 1, column 2: red 200; the last pixel: blue 100.
        record[1 + 34] = 200;
        record[3 * PIXELS] = 100;
        std::fs::write(dir.path().join(TEST_FILE), record).unwrap();
        let task = Image::open(PixelInput::Token, dir.path()).unwrap();
        let batch = task.evaluation(8, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        let bright: Vec<_> = batch.inputs.tokens().iter().enumerate().filter(|(_, pixel)| **pixel > 0).collect();
        assert_eq!(bright, [(34, &60), (1023, &11)]);
        assert_eq!((batch.targets.tokens()[1023], batch.n_scored()), (7, 1));
    }

    #[test]
    fn pictures_are_read_as_values_and_split_into_three_parts() {
        let task = Image::open(PixelInput::Value, folder().path()).unwrap();
        let batch = task.evaluation(2, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        assert_eq!((batch.batch_size, batch.seq_len), (2, PIXELS));
        let values = batch.inputs.values();
        assert!((values[0] - (76.0 - 122.6) / 61.0).abs() < 1e-6 && (values[PIXELS] - (150.0 - 122.6) / 61.0).abs() < 1e-6);
        let parts = &task.parts;
        assert_eq!((parts.train.n_examples(), parts.validation.n_examples(), parts.test.n_examples()), (9, 1, 3));
        // Each label occurs in exactly one picture, of the nine for training and the one for validation.
        let labels = |part: &dyn Examples| {
            let batch = part.batch(&(0..part.n_examples() as u32).collect::<Vec<_>>());
            batch.targets.tokens().chunks(PIXELS).map(|row| row[PIXELS - 1]).collect::<Vec<_>>()
        };
        let mut seen = [labels(&*parts.train), labels(&*parts.validation)].concat();
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn bad_files_are_named() {
        let good = records(&[[1, 2, 3, 4]]);
        for (bytes, expected) in [
            (vec![], "found 0 bytes"),
            (good[..3000].to_vec(), "found 3000 bytes"),
            (records(&[[10, 0, 0, 0]]), "record 0 (counted from 0): expected a label from 0 to 9, found 10"),
        ] {
            let dir = folder();
            std::fs::write(dir.path().join(TRAIN_FILES[2]), bytes).unwrap();
            let message = Image::open(PixelInput::Value, dir.path()).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("data_batch_3.bin") && message.contains("cifar-10-binary"), "{message}");
        }
        let dir = folder();
        std::fs::remove_file(dir.path().join(TEST_FILE)).unwrap();
        let message = Image::open(PixelInput::Value, dir.path()).unwrap_err().to_string();
        assert!(message.contains("test_batch.bin': there is no such file; set data.path"), "{message}");
    }
}
