//! Named f32 tensors in a safetensors file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, SafeTensors, View};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::{Error, Result, write_atomic};

/// A header longer than this describes no minrnn model.
const MAX_HEADER: u64 = 64 << 20;

/// The tensors of one file, by name. They are taken out one by one, with the shape the caller expects.
#[derive(Debug, Clone)]
pub struct Weights {
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
}

/// One tensor, row-major: as many values as the product of its shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Tensor {
    /// The tensor of `shape`, the size of each dimension, outermost first, with the row-major values `data`.
    ///
    /// # Errors
    /// When there are fewer or more values than the product of `shape`.
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Result<Self> {
        if is_filled(&shape, &data) { Ok(Self { shape, data }) } else { Err(Error::WrongCount { shape, found: data.len() }) }
    }

    /// Size of each dimension, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row by row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The values, for modification in place.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The values alone.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// Shape and values.
    pub fn into_parts(self) -> (Vec<usize>, Vec<f32>) {
        (self.shape, self.data)
    }
}

/// Whether `data` has as many values as a tensor of `shape`.
fn is_filled(shape: &[usize], data: &[f32]) -> bool {
    shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size)) == Some(data.len())
}

impl Weights {
    /// Tensors read from the file `path` in another format.
    pub fn of(path: impl AsRef<Path>, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self { path: path.as_ref().to_owned(), tensors: tensors.into_iter().collect(), metadata: BTreeMap::new() }
    }

    /// Reads every tensor of the safetensors file at `path`.
    ///
    /// The header is checked against the size of the file before its sizes are used for allocation.
    ///
    /// # Errors
    /// When the file is missing, truncated or damaged, names a tensor twice, or holds one that is not f32.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_checked_by(path.as_ref(), |_| Ok(()))
    }

    /// The same, after `check` has accepted the whole file.
    pub(crate) fn read_checked_by(path: &Path, check: impl FnOnce(&[u8]) -> Result<()>) -> Result<Self> {
        let bytes = read_checked(path)?;
        check(&bytes)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(path, error.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(Error::WrongType { path: path.to_owned(), tensor: name.to_owned(), found: view.dtype().to_string() });
            }
            let (chunks, _) = view.data().as_chunks::<4>();
            let data = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
            tensors.insert(name.to_owned(), Tensor::new(view.shape().to_vec(), data)?);
        }
        // The file was parsed above, so its header parses again.
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(path, error.to_string()))?;
        let metadata = header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { path: path.to_owned(), tensors, metadata })
    }

    /// The file the tensors came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The free-text metadata of the header.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Names of the tensors that have not been taken, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Number of values in the tensors that have not been taken.
    pub fn value_count(&self) -> usize {
        self.tensors.values().map(|tensor| tensor.data.len()).sum()
    }

    /// A tensor that has not been taken, or `None`.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// Takes out the tensor `name`, whatever its shape.
    ///
    /// # Errors
    /// When there is no such tensor.
    pub fn take_any(&mut self, name: &str) -> Result<Tensor> {
        self.tensors.remove(name).ok_or_else(|| self.missing(name, None))
    }

    /// The error that there is no tensor `name`, with the shape `expected` if known.
    pub fn missing(&self, name: &str, expected: Option<&[usize]>) -> Error {
        let alike = |other: &str| {
            let same = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
            same(&mut name.bytes().zip(other.bytes())) + same(&mut name.bytes().rev().zip(other.bytes().rev()))
        };
        let nearest = self.names().max_by_key(|other| alike(other)).filter(|other| 2 * alike(other) >= name.len());
        Error::MissingTensor {
            path: self.path.clone(),
            tensor: name.to_owned(),
            expected: expected.map(<[usize]>::to_vec),
            nearest: nearest.map(ToOwned::to_owned),
        }
    }

    /// Takes out the values of the tensor `name`, which must have `shape` and be finite.
    ///
    /// # Errors
    /// When there is no such tensor, its shape differs, or a value is NaN or infinite.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.tensors.remove(name).ok_or_else(|| self.missing(name, Some(shape)))?;
        if tensor.shape != shape {
            let (expected, found) = (shape.to_vec(), tensor.shape);
            return Err(Error::WrongShape { path: self.path.clone(), tensor: name.to_owned(), expected, found });
        }
        if let Some(position) = tensor.data.iter().position(|value| !value.is_finite()) {
            let found = tensor.data[position];
            return Err(Error::NotFinite { path: self.path.clone(), tensor: name.to_owned(), position, found });
        }
        Ok(tensor.data)
    }

    /// Checks that every tensor has been taken.
    ///
    /// # Errors
    /// When one is left: the file belongs to another model.
    pub fn expect_empty(&self) -> Result<()> {
        match self.tensors.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::UnexpectedTensor { path: self.path.clone(), tensor: name.clone() }),
        }
    }
}

/// Writes named f32 tensors to a safetensors file, atomically replacing an older one. The order of `tensors` does not matter.
///
/// Each item is a name, a shape and the row-major values.
///
/// # Errors
/// When the number of values is not the product of the shape, a name occurs twice, or the file cannot be written.
pub fn write_safetensors<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>, Cow<'a, [f32]>)>,
    metadata: Option<(&str, &str)>,
) -> Result<()> {
    let path = path.as_ref();
    let mut views = BTreeMap::new();
    for (name, shape, data) in tensors {
        if !is_filled(&shape, &data) {
            return Err(Error::malformed(path, format!("tensor '{name}' has {} values but shape {shape:?}", data.len())));
        }
        if views.contains_key(&name) {
            return Err(Error::malformed(path, format!("tensor '{name}' occurs twice")));
        }
        views.insert(name, F32View { shape, data });
    }
    let metadata = metadata.map(|(key, value)| HashMap::from([(key.to_owned(), value.to_owned())]));
    let bytes = safetensors::serialize(views, metadata).map_err(|error| Error::malformed(path, error.to_string()))?;
    write_atomic(path, &bytes)
}

struct F32View<'a> {
    shape: Vec<usize>,
    data: Cow<'a, [f32]>,
}

impl View for F32View<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.data.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        size_of_val(&*self.data)
    }
}

/// The whole file, once its header is known to describe exactly its length and to give every name once.
pub(crate) fn read_checked(path: &Path) -> Result<Vec<u8>> {
    let io = |source| Error::io("read", path, source);
    let mut file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() {
        return Err(Error::malformed(path, "expected a safetensors file, found a directory or a device"));
    }
    let found = meta.len();
    let mut start = [0u8; 8];
    if found < 8 {
        return Err(damaged(path, format!("the file has {found} bytes, fewer than a header")));
    }
    file.read_exact(&mut start).map_err(io)?;
    let header_len = u64::from_le_bytes(start);
    if header_len > found - 8 || header_len > MAX_HEADER {
        return Err(damaged(path, format!("it claims a header of {header_len} bytes in a file of {found}")));
    }
    let mut bytes = start.to_vec();
    (&mut file).take(header_len).read_to_end(&mut bytes).map_err(io)?;
    let of_json = |error: serde_json::Error| damaged(path, error.to_string());
    let header: Metadata = serde_json::from_slice(&bytes[8..]).map_err(of_json)?;
    let _: UniqueNames = serde_json::from_slice(&bytes[8..]).map_err(of_json)?;
    let expected = 8 + header_len as u128 + header.data_len() as u128;
    if expected != u128::from(found) {
        return Err(Error::WrongLength { path: path.to_owned(), expected: expected.min(u128::from(u64::MAX)) as u64, found });
    }
    bytes.reserve_exact(header.data_len());
    (&mut file).take(header.data_len() as u64).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The names of a header, and those inside each of them: none may occur twice, since the library that parses headers would silently take the last.
type UniqueNames = Unique<Option<Unique<IgnoredAny>>>;

/// An object of JSON whose names are all different.
struct Unique<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(PhantomData))
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some((name, _)) = entries.next_entry::<String, V>()? {
            if let Some(name) = seen.replace(name) {
                return Err(A::Error::custom(format!("'{name}' is given twice")));
            }
        }
        Ok(self)
    }
}

pub(crate) fn damaged(path: &Path, problem: String) -> Error {
    Error::DamagedHeader { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with the given header text and `data_len` zero bytes.
    fn file(header: &str, data_len: usize) -> tempfile::NamedTempFile {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data_len, 0);
        raw(&bytes)
    }

    fn raw(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    fn two_tensors() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let tensors = [
            ("b.weight".to_owned(), vec![2, 3], vec![1.0, -2.5, 3e-40, 0.0, 5.0, f32::MAX].into()),
            ("a".to_owned(), vec![], vec![7.0].into()),
        ];
        write_safetensors(file.path(), tensors, Some(("format", "pt"))).unwrap();
        file
    }

    #[test]
    fn what_is_written_is_read_back_bit_for_bit() {
        let file = two_tensors();
        let mut weights = Weights::read(file.path()).unwrap();
        assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b.weight"]);
        assert_eq!((weights.value_count(), weights.metadata()["format"].as_str()), (7, "pt"));
        assert_eq!(weights.take("b.weight", &[2, 3]).unwrap(), [1.0, -2.5, 3e-40, 0.0, 5.0, f32::MAX]);
        assert!(matches!(weights.expect_empty(), Err(Error::UnexpectedTensor { tensor, .. }) if tensor == "a"));
        assert_eq!(weights.take("a", &[]).unwrap(), [7.0]);
        weights.expect_empty().unwrap();
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_order_of_the_tensors() {
        let tensors = |names: [&str; 2]| names.map(|name| (name.to_owned(), vec![1], Cow::from(vec![name.len() as f32])));
        let (first, second) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        write_safetensors(first.path(), tensors(["a", "bb"]), None).unwrap();
        write_safetensors(second.path(), tensors(["bb", "a"]), None).unwrap();
        assert_eq!(std::fs::read(first.path()).unwrap(), std::fs::read(second.path()).unwrap());
    }

    #[test]
    fn missing_tensors_and_wrong_shapes_are_named() {
        let file = two_tensors();
        let mut weights = Weights::read(file.path()).unwrap();
        assert!(weights.take("c", &[1]).unwrap_err().to_string().contains("tensor 'c' is missing, expected with shape [1]; the file"));
        let misspelt = weights.take("b.wieght", &[2, 3]).unwrap_err().to_string();
        assert!(misspelt.contains("'b.wieght' is missing, expected with shape [2, 3]; the most similar name in the file is 'b.weight'"));
        let wrong = weights.take("b.weight", &[3, 2]).unwrap_err().to_string();
        assert!(wrong.contains("'b.weight' has shape [2, 3], expected [3, 2]"), "{wrong}");
    }

    #[test]
    fn a_tensor_has_as_many_values_as_its_shape() {
        let empty: &[f32] = &[];
        for (shape, values) in [(&[2, 3][..], &[1.0; 6][..]), (&[], &[7.0]), (&[3, 0], empty), (&[0, usize::MAX], empty)] {
            let mut tensor = Tensor::new(shape.to_vec(), values.to_vec()).unwrap();
            assert_eq!((tensor.shape(), tensor.data()), (shape, values));
            tensor.data_mut().fill(0.5);
            assert_eq!(tensor.clone().into_data(), vec![0.5; values.len()]);
            assert_eq!(tensor.into_parts(), (shape.to_vec(), vec![0.5; values.len()]));
        }
        for (shape, values) in [(&[2, 3][..], &[1.0; 5][..]), (&[2, 3], &[1.0; 7]), (&[], empty), (&[1 << 32, 1 << 32], empty)] {
            let refused = Tensor::new(shape.to_vec(), values.to_vec()).unwrap_err().to_string();
            assert!(refused.contains(&format!("of shape {shape:?} has {} values", values.len())), "{refused}");
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = std::fs::read(two_tensors().path()).unwrap();
        for len in 0..bytes.len() {
            let cut = raw(&bytes[..len]);
            let refused = Weights::read(cut.path());
            assert!(matches!(refused, Err(Error::WrongLength { .. } | Error::DamagedHeader { .. })), "{len}");
        }
        let longer = raw(&[&bytes[..], &[0]].concat());
        assert!(matches!(Weights::read(longer.path()), Err(Error::WrongLength { .. })));
    }

    #[test]
    fn no_flipped_header_byte_panics() {
        let bytes = std::fs::read(two_tensors().path()).unwrap();
        for at in 0..bytes.len().min(200) {
            for flip in [0x01, 0x10, 0x80] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                let _ = Weights::read(raw(&bytes).path());
            }
        }
    }

    #[test]
    fn a_header_that_claims_a_huge_tensor_is_refused_unallocated() {
        let claims = |shape: &str, end: u64| file(&format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#), 4);
        let huge = claims("[1099511627776]", 4 << 40);
        assert!(matches!(Weights::read(huge.path()), Err(Error::WrongLength { found, .. }) if found < 200));
        let overflow = claims("[4294967296, 4294967296, 16]", 4);
        assert!(matches!(Weights::read(overflow.path()), Err(Error::DamagedHeader { .. })));
        let mismatch = claims("[1000]", 4);
        assert!(matches!(Weights::read(mismatch.path()), Err(Error::DamagedHeader { .. })));
        assert!(matches!(Weights::read(raw(&u64::MAX.to_le_bytes()).path()), Err(Error::DamagedHeader { .. })));
        assert!(matches!(Weights::read(raw(b"").path()), Err(Error::DamagedHeader { .. })));
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused() {
        let zeros = r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#;
        let twice = [
            (format!(r#"{{"w":{{{zeros}}},"w":{{{zeros}}}}}"#), "w"),
            // The same name, written with an escape.
            (format!(r#"{{"w":{{{zeros}}},"\u0077":{{{zeros}}}}}"#), "w"),
            (format!(r#"{{"__metadata__":{{"format":"pt","format":"np"}},"w":{{{zeros}}}}}"#), "format"),
        ];
        for (header, name) in twice {
            let file = file(&header, 4);
            for refused in [Weights::read(file.path()), Weights::read_foreign(file.path())] {
                let refused = refused.unwrap_err();
                assert!(matches!(refused, Error::DamagedHeader { .. }), "{refused}");
                assert!(refused.to_string().contains(&format!("'{name}' is given twice")), "{refused}");
            }
        }
        let once = file(&format!(r#"{{"__metadata__":null,"w":{{{zeros}}}}}"#), 4);
        assert_eq!(Weights::read(once.path()).unwrap().take("w", &[1]).unwrap(), [0.0]);
    }

    #[test]
    fn tensors_that_overlap_or_leave_a_gap_are_refused() {
        for offsets in ["[0,4]", "[2,6]", "[5,9]", "[8,4]"] {
            let of_w = r#""w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
            for len in [4, 6, 8, 9] {
                let file = file(&format!(r#"{{{of_w},"v":{{"dtype":"F32","shape":[1],"data_offsets":{offsets}}}}}"#), len);
                let refused = Weights::read(file.path());
                assert!(matches!(refused, Err(Error::DamagedHeader { .. } | Error::WrongLength { .. })), "{offsets} of {len}");
            }
        }
    }

    #[test]
    fn tensors_of_another_type_are_refused_by_name() {
        let half = file(r#"{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#, 4);
        let refused = Weights::read(half.path()).unwrap_err().to_string();
        assert!(refused.contains("tensor 'w' has type F16, expected F32"), "{refused}");
    }

    #[test]
    fn missing_files_and_directories_are_sentences() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Weights::read(directory.path()).unwrap_err().to_string().contains("found a directory"));
        assert!(Weights::read(directory.path().join("none")).unwrap_err().to_string().starts_with("could not read"));
    }

    #[test]
    fn values_that_do_not_fill_their_shape_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weights");
        let refused = write_safetensors(&path, [("w".to_owned(), vec![2], vec![1.0].into())], None);
        assert!(refused.unwrap_err().to_string().contains("'w' has 1 values") && !path.exists());
    }
}
