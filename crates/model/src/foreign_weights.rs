//! Weights as published by other libraries: also 16-bit numbers, and tensors split over several files with an index.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Deserialize;

use crate::files::read_text;
use crate::weights::{damaged, read_checked};
use crate::{Error, Result, Tensor, Weights};

/// The name of the index of a model split over several files.
pub const INDEX_FILE: &str = "model.safetensors.index.json";
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// What an index says.
#[derive(Deserialize)]
struct Index {
    /// The file of every tensor.
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// Reads every tensor of the safetensors file at `path`, or of all files named by the index at `path` (ending in `.json`). F16 and BF16
    /// numbers are converted to F32.
    ///
    /// # Errors
    /// When a file is missing, truncated or damaged, holds a tensor of another type, or does not match the index.
    pub fn read_foreign(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.extension().is_none_or(|end| end != "json") {
            return Ok(Self::of(path, tensors_of(path)?));
        }
        let text = read_text(path, MAX_INDEX_BYTES)?;
        let not_one = |error| Error::malformed(path, format!("expected an index with a weight_map of tensors and files: {error}"));
        let Index { weight_map } = serde_json::from_str(&text).map_err(not_one)?;
        let mut by_file = BTreeMap::<&str, Vec<&str>>::new();
        weight_map.iter().for_each(|(tensor, file)| by_file.entry(file).or_default().push(tensor));
        if by_file.is_empty() {
            return Err(Error::malformed(path, "the index names no tensor, expected those of a model"));
        }
        let mut all = BTreeMap::new();
        for (file, listed) in by_file {
            if !matches!(Path::new(file).components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
                return Err(Error::malformed(path, format!("the index names '{file}', expected files beside it")));
            }
            let shard = path.with_file_name(file);
            let mut tensors = tensors_of(&shard)?;
            for name in listed {
                let Some(tensor) = tensors.remove(name) else {
                    return Err(Error::malformed(path, format!("tensor '{name}' should be in '{file}', which does not have it")));
                };
                all.insert(name.to_owned(), tensor);
            }
            if let Some(name) = tensors.keys().next() {
                return Err(Error::malformed(path, format!("'{file}' has a tensor '{name}' that the index does not list there")));
            }
        }
        Ok(Self::of(path, all))
    }
}

/// The tensors of one file.
fn tensors_of(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let bytes = read_checked(path)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(path, error.to_string()))?;
    let read = |(name, view): (&str, TensorView<'_>)| {
        let data = numbers(&view).ok_or_else(|| {
            let found = format!("{}, which is neither F32 nor F16 nor BF16", view.dtype());
            Error::WrongType { path: path.to_owned(), tensor: name.to_owned(), found }
        })?;
        Ok((name.to_owned(), Tensor::new(view.shape().to_vec(), data)?))
    };
    file.iter().map(read).collect()
}

fn numbers(view: &TensorView<'_>) -> Option<Vec<f32>> {
    let bytes = view.data();
    Some(match view.dtype() {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect(),
        Dtype::F16 => bytes.as_chunks().0.iter().map(|chunk| f16::from_le_bytes(*chunk).to_f32()).collect(),
        Dtype::BF16 => bytes.as_chunks().0.iter().map(|chunk| bf16::from_le_bytes(*chunk).to_f32()).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A safetensors file with one tensor of these bytes.
    fn file(name: &str, dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
        let header = format!(r#"{{"{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{}]}}}}"#, data.len());
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn of_f32(name: &str, numbers: &[f32]) -> Vec<u8> {
        file(name, "F32", &[numbers.len()], &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    /// A folder with an index and two files.
    fn folder(index: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.safetensors"), of_f32("a", &[1.0, 2.0])).unwrap();
        fs::write(folder.path().join("b.safetensors"), of_f32("b", &[3.0])).unwrap();
        fs::write(folder.path().join(INDEX_FILE), index).unwrap();
        folder
    }

    fn refusal(index: &str) -> String {
        Weights::read_foreign(folder(index).path().join(INDEX_FILE)).unwrap_err().to_string()
    }

    #[test]
    fn every_number_of_16_bits_is_the_number_it_stands_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w.safetensors");
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let read = |dtype: &str| {
            fs::write(&path, file("w", dtype, &[1 << 16], &all)).unwrap();
            Weights::read_foreign(&path).unwrap().take_any("w").unwrap().into_data()
        };
        for (bits, number) in (0..=u16::MAX).zip(read("BF16")) {
            assert_eq!(number.to_bits() >> 16, u32::from(bits) | if number.is_nan() { 0x40 } else { 0 });
        }
        for (bits, number) in (0..=u16::MAX).zip(read("F16")) {
            let (sign, exponent, digits) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let size = match exponent {
                0 => digits * 2f64.powi(-24),
                31 if digits == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + digits / 1024.0) * 2f64.powi(exponent - 15),
            };
            assert!(f64::from(number.abs()) == size || size.is_nan() && number.is_nan(), "{bits:#x}");
            assert!(number.is_sign_negative() == (sign == 1) || number.is_nan());
        }
    }

    #[test]
    fn an_index_gathers_the_tensors_of_its_files() {
        let folder = folder(r#"{"metadata": {"total_size": 12}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}"#);
        let mut weights = Weights::read_foreign(folder.path().join(INDEX_FILE)).unwrap();
        assert_eq!(weights.take("a", &[2]).unwrap(), [1.0, 2.0]);
        assert_eq!(weights.take("b", &[1]).unwrap(), [3.0]);
        weights.expect_empty().unwrap();
    }

    #[test]
    fn indices_that_do_not_fit_their_files_are_sentences() {
        assert!(refusal("{").contains("expected an index"));
        assert!(refusal("{}").contains("weight_map"));
        assert!(refusal(r#"{"weight_map": {}}"#).contains("names no tensor"));
        assert!(refusal(r#"{"weight_map": {"a": 3}}"#).contains("expected an index"));
        assert!(refusal(r#"{"weight_map": {"c": "a.safetensors"}}"#).contains("'c' should be in 'a.safetensors'"));
        let surplus = refusal(r#"{"weight_map": {"a": "a.safetensors", "b": "a.safetensors"}}"#);
        assert!(surplus.contains("'b' should be in 'a.safetensors'"), "{surplus}");
        assert!(refusal(r#"{"weight_map": {"a": "none.safetensors"}}"#).starts_with("could not read"));
        for outside in ["../a.safetensors", "/a.safetensors", "x/a.safetensors", "..", ""] {
            let sentence = refusal(&format!(r#"{{"weight_map": {{"a": "{outside}"}}}}"#));
            assert!(sentence.contains("expected files beside it"), "{sentence}");
        }
    }

    #[test]
    fn other_types_and_cut_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w.safetensors");
        fs::write(&path, file("w", "I32", &[1], &[0; 4])).unwrap();
        let refused = Weights::read_foreign(&path).unwrap_err().to_string();
        assert!(refused.contains("tensor 'w' has type I32"), "{refused}");
        let whole = file("w", "BF16", &[2], &[0; 4]);
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(matches!(Weights::read_foreign(&path), Err(Error::WrongLength { .. } | Error::DamagedHeader { .. })), "{len}");
        }
    }
}
