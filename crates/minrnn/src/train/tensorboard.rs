//! Scalars for TensorBoard: an events file of length- and checksum-framed protocol buffer messages.
//!
//! A frame is the length (u64), its masked CRC-32C (u32), the message, and the message's masked CRC-32C (u32), all
//! little-endian (TensorFlow's `TFRecord`). The fields used are `Event { wall_time = 1: double, step = 2: int64,
//! file_version = 3: string, summary = 5, session_log = 7 }`, `Summary { value = 1 }`, `Summary.Value { tag = 1: string,
//! simple_value = 2: float }` and `SessionLog { status = 1: enum, START = 1 }`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::metrics::Record;
use crate::{Error, Result};

/// An events file that scalars are appended to.
#[derive(Debug)]
pub struct EventsFile {
    path: PathBuf,
    file: File,
}

impl EventsFile {
    /// Starts a new events file in `directory`. Readers merge the files of a directory; with `purge_from` they discard earlier records from
    /// that iteration on, as a resumed run needs.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(directory: impl AsRef<Path>, purge_from: Option<u64>) -> Result<Self> {
        let seconds = now() as u64;
        // Readers take the files in the order of their names.
        for count in 0..1000 {
            let path = directory.as_ref().join(format!("events.out.tfevents.{seconds:010}.{count:03}.minrnn"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut events = Self { path, file };
                    events.write(now(), 0, |event| bytes_field(event, 3, b"brain.Event:2"))?;
                    if let Some(iteration) = purge_from {
                        events.write(now(), iteration, |event| bytes_field(event, 7, &[1 << 3, 1]))?;
                    }
                    return Ok(events);
                }
                Err(source) if source.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::io("create the TensorBoard file", path, source)),
            }
        }
        Err(Error::io("create a TensorBoard file in", directory, ErrorKind::AlreadyExists.into()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one value of the curve `tag`.
    ///
    /// # Errors
    /// When writing fails.
    pub fn scalar(&mut self, tag: &str, iteration: u64, value: f64) -> Result<()> {
        let mut entry = Vec::new();
        bytes_field(&mut entry, 1, tag.as_bytes());
        entry.push(2 << 3 | 5);
        entry.extend((value as f32).to_le_bytes());
        let mut summary = Vec::new();
        bytes_field(&mut summary, 1, &entry);
        self.write(now(), iteration, |event| bytes_field(event, 5, &summary))
    }

    /// Appends every number of a record, with tags `train/…` and `test/…`.
    ///
    /// # Errors
    /// When writing fails.
    pub fn record(&mut self, record: &Record) -> Result<()> {
        match *record {
            Record::Train { iteration, loss, lr, grad_norm, tokens_per_s } => {
                let scalars = [("loss", loss), ("lr", lr), ("grad_norm", grad_norm), ("tokens_per_s", tokens_per_s)];
                scalars.into_iter().try_for_each(|(name, value)| self.scalar(&format!("train/{name}"), iteration, value))
            }
            Record::Eval { iteration, train_loss, test_loss, test_accuracy } => {
                let scalars = [("train/eval_loss", train_loss), ("test/loss", Some(test_loss)), ("test/accuracy", test_accuracy)];
                let measured = scalars.into_iter().filter_map(|(tag, value)| Some((tag, value?)));
                measured.into_iter().try_for_each(|(tag, value)| self.scalar(tag, iteration, value))
            }
        }
    }

    fn write(&mut self, wall_time: f64, step: u64, rest: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut event = vec![1 << 3 | 1];
        event.extend(wall_time.to_le_bytes());
        event.push(2 << 3);
        varint(&mut event, step);
        rest(&mut event);
        self.file.write_all(&frame(&event)).map_err(|source| Error::io("append to", &self.path, source))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut frame = length.to_vec();
    frame.extend(masked_crc(&length).to_le_bytes());
    frame.extend(message);
    frame.extend(masked_crc(message).to_le_bytes());
    frame
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn bytes_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a message as (number, wire type, payload), read according to the format's specification.
    fn fields(mut message: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn read_varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !message.is_empty() {
            let key = read_varint(&mut message);
            let len = match key & 7 {
                0 => {
                    found.push((key >> 3, 0, read_varint(&mut message).to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                5 => 4,
                _ => read_varint(&mut message) as usize,
            };
            found.push((key >> 3, key & 7, message[..len].to_vec()));
            message = &message[len..];
        }
        found
    }

    fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let crc = |bytes: &[u8]| {
            // A left rotation by 17 is a right rotation by 15.
            crc32c::crc32c(bytes).rotate_left(17).wrapping_add(0xa282_ead8).to_le_bytes()
        };
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            assert_eq!(bytes[8..12], crc(&bytes[..8]));
            assert_eq!(bytes[12 + len..16 + len], crc(&bytes[12..12 + len]));
            found.push(bytes[12..12 + len].to_vec());
            bytes = &bytes[16 + len..];
        }
        found
    }

    #[test]
    fn the_checksum_is_castagnoli() {
        // The check value of CRC-32C; the other common polynomial gives cbf43926.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn events_parse_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut events = EventsFile::create(directory.path(), Some(301)).unwrap();
        events.scalar("train/loss", 300, 1.25).unwrap();
        events.record(&Record::Eval { iteration: 1 << 40, train_loss: None, test_loss: 1.5, test_accuracy: Some(0.5) }).unwrap();
        let parsed: Vec<_> = messages(&std::fs::read(events.path()).unwrap()).iter().map(|message| fields(message)).collect();
        assert_eq!(parsed.len(), 5);
        assert_eq!(parsed[0][2], (3, 2, b"brain.Event:2".to_vec()));
        assert_eq!((parsed[1][1].2[..2].to_vec(), &parsed[1][2]), (vec![45, 1], &(7, 2, vec![8, 1])));
        let value = |event: &[(u64, u64, Vec<u8>)]| fields(&fields(&event[2].2)[0].2);
        assert_eq!(value(&parsed[2]), [(1, 2, b"train/loss".to_vec()), (2, 5, 1.25f32.to_le_bytes().to_vec())]);
        assert_eq!((value(&parsed[3])[0].2.as_slice(), value(&parsed[4])[0].2.as_slice()), (&b"test/loss"[..], &b"test/accuracy"[..]));
        assert_eq!(parsed[4][1], (2, 0, (1u64 << 40).to_le_bytes().to_vec()));
        assert!(f64::from_le_bytes(parsed[2][0].2[..].try_into().unwrap()) > 1e9);
    }

    #[test]
    fn files_of_the_same_second_do_not_collide_and_sort_by_age() {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|_| EventsFile::create(directory.path(), None).unwrap().path().to_owned()).collect();
        assert!(paths.is_sorted() && paths[0] != paths[1] && paths[1] != paths[2]);
        assert!(EventsFile::create(directory.path().join("none"), None).unwrap_err().to_string().contains("TensorBoard"));
    }
}
