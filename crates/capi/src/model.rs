//! Models: loaded once, shared by their sessions, and freed with the last of them.

use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock};

use minrnn_model::{Calibration, TableTask, Threshold, Tokenizer, hex};
use minrnn_stream::{AlignedBytes, Model, ModelKind, PackedModel, Reads, expect_table};
use sha2::{Digest, Sha256};

use crate::constants::*;
use crate::failure::{Failure, Result, guarded, valued};
use crate::handles::{Named, Opaque, Table};
use crate::pointers;
use crate::status::Status;

/// What was loaded.
pub(crate) struct Loaded {
    pub model: Model,
    pub table: Option<TableTask>,
    pub tokenizer: Option<Tokenizer>,
    /// How surprising held-out rows were, if known.
    surprise: Option<Calibration>,
    /// Why the file's tokenizer could not be read, if so.
    refused_tokenizer: Option<String>,
    /// The file, whose memory the matrices share.
    bytes: AlignedBytes,
    identity: OnceLock<String>,
    names: [Vec<CString>; 4],
    /// The names that each column distinguishes; none if it holds numbers.
    categories: Vec<Vec<CString>>,
}

impl Named for Arc<Loaded> {
    const NAME: &'static str = "model";
    const KIND: usize = 0;
}

pub(crate) static MODELS: Table<Arc<Loaded>> = Table::new();

/// `minrnn_model` of the header.
pub type ModelHandle = Opaque<Model>;

impl Loaded {
    fn new(bytes: AlignedBytes) -> Result<Self> {
        let PackedModel { model, tokenizer, table, surprise, .. } = PackedModel::from_aligned(&bytes)?;
        let (tokenizer, refused_tokenizer) = match tokenizer.map(|json| Tokenizer::from_json(&json)) {
            None => (None, None),
            Some(Ok(tokenizer)) => (Some(tokenizer), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        if let Some(tokenizer) = &tokenizer {
            tokenizer.expect_known(model.vocab_size())?;
        }
        let names: [Vec<CString>; 4] = table.as_ref().map_or_else(Default::default, |table| {
            let [columns, classes, targets] =
                [table.columns(), table.classes(), table.targets()].map(|names| names.iter().map(|name| in_c(name)).collect());
            [columns, classes, targets, table.group().map(in_c).into_iter().collect()]
        });
        let mut categories = vec![Vec::new(); names[0].len()];
        for category in table.iter().flat_map(TableTask::categories) {
            categories[category.column] = category.values.iter().map(|name| in_c(name)).collect();
        }
        Ok(Self { model, table, tokenizer, surprise, refused_tokenizer, bytes, identity: OnceLock::new(), names, categories })
    }

    /// The identity that a saved session must match.
    pub fn identity(&self) -> &str {
        self.identity.get_or_init(|| hex(Sha256::digest(&self.bytes[..]).as_slice()))
    }

    /// The tokenizer, if the model reads text.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| {
            let why = self.refused_tokenizer.clone();
            Failure::new(Status::Kind, why.unwrap_or_else(|| "the model has no tokenizer: it does not read text".to_owned()))
        })
    }

    /// The task on tables, if the model was trained on one.
    pub fn table(&self) -> Result<&TableTask> {
        Ok(expect_table(self.table.as_ref())?)
    }

    /// The names that a column distinguishes, in order of their codes; empty if it holds numbers.
    pub fn names_of(&self, column: usize) -> Result<&[CString]> {
        self.table()?;
        let names = self.categories.get(column).map(Vec::as_slice);
        let among = self.categories.len();
        names.ok_or_else(|| Failure::new(Status::Input, format!("there is no column {column} among {among} (counted from 0)")))
    }

    /// The surprise that a share `share` of held-out rows did not exceed.
    fn threshold(&self, share: f64) -> Result<f64> {
        let known = self.surprise.as_ref().ok_or_else(|| Failure::new(Status::Kind, Threshold::NONE))?;
        let threshold = known.threshold(share).map_err(|error| match error {
            // The share is not at fault.
            minrnn_model::Error::Row(sentence) => Failure::new(Status::Kind, sentence),
            error => Failure::new(Status::Input, format!("share: {error}")),
        })?;
        Ok(threshold.surprise)
    }

    fn kind(&self) -> i32 {
        match ModelKind::of(&self.model, self.table.as_ref(), self.tokenizer.is_some()) {
            ModelKind::Classifier => KIND_CLASSIFIER,
            ModelKind::Regressor => KIND_REGRESSOR,
            ModelKind::Forecaster => KIND_FORECASTER,
            ModelKind::Text => KIND_TEXT,
            ModelKind::Policy => KIND_POLICY,
            ModelKind::Tokens => KIND_TOKENS,
            ModelKind::Values => KIND_VALUES,
        }
    }

    /// Bytes of a session that has read `steps`.
    fn session_bytes(&self, steps: usize) -> usize {
        usize::try_from(self.model.session_bytes_of(self.table.as_ref(), steps)).unwrap_or(usize::MAX)
    }

    /// The names of columns, classes or targets, or that of the column of sequences.
    fn names(&self, what: i32) -> Option<&[CString]> {
        let at = [SIZE_COLUMNS, SIZE_CLASSES, SIZE_TARGETS, SIZE_GROUPS].iter().position(|&names| names == what)?;
        Some(&self.names[at])
    }

    fn size(&self, what: i32) -> Option<usize> {
        let forecaster = match &self.table {
            Some(TableTask::Forecast(forecaster)) => Some(forecaster),
            _ => None,
        };
        Some(match what {
            SIZE_VOCAB => self.model.vocab_size(),
            SIZE_INPUTS => match self.model.reads() {
                Reads::Tokens { .. } => 0,
                Reads::Values { width } => width,
            },
            SIZE_OUTPUTS => self.model.outputs(),
            SIZE_PARAMETERS => self.model.parameters(),
            SIZE_COLUMNS | SIZE_CLASSES | SIZE_TARGETS | SIZE_GROUPS => self.names(what)?.len(),
            SIZE_HORIZON => forecaster.map_or(0, |forecaster| forecaster.horizon),
            SIZE_QUANTILES => forecaster.map_or(0, |forecaster| forecaster.quantiles.len()),
            SIZE_PREDICTIONS => self.table.as_ref().map_or(0, |_| self.model.outputs()),
            SIZE_MAY_MISS => self.table.as_ref().map_or(0, |table| usize::from(!table.missing().is_error())),
            SIZE_STEPS_SEEN => self.model.steps_seen(),
            _ => return None,
        })
    }
}

fn in_c(name: &str) -> CString {
    CString::new(name.replace('\0', "\u{FFFD}")).unwrap_or_default()
}

fn insert(bytes: AlignedBytes, out: *mut *mut ModelHandle) -> Result<()> {
    let name = MODELS.insert(Arc::new(Loaded::new(bytes)?))?;
    // SAFETY: the caller's promise about `out`.
    unsafe { pointers::give("out", out, std::ptr::without_provenance_mut(name)) }
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Loads the packed model in the file `path`.
///
/// # Safety
/// `path` is null or a text that ends with a zero byte; `out` is null or has room for a pointer.
#[cfg(feature = "std")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_model_open(path: *const c_char, out: *mut *mut ModelHandle) -> Status {
    guarded(|| {
        pointers::expect_place("out", out)?;
        // SAFETY: the caller's promise.
        let path = unsafe { pointers::text("path", path) }?;
        pointers::expect_apart(["path", "out"], (path.as_ptr(), path.count_bytes() + 1), (out, 1))?;
        let path = file_path(path)?;
        let named = |failure: Failure| Failure::new(failure.status, format!("'{}': {}", path.display(), failure.sentence));
        let bytes = minrnn_stream::read_aligned(path)?;
        insert(bytes, out).map_err(named)
    })
}

/// The path in a C string.
#[cfg(all(feature = "std", unix))]
fn file_path(path: &std::ffi::CStr) -> Result<&std::path::Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

#[cfg(all(feature = "std", not(unix)))]
fn file_path(path: &std::ffi::CStr) -> Result<&std::path::Path> {
    let path = path.to_str().map_err(|_| Failure::new(Status::Input, "path is not UTF-8"))?;
    Ok(std::path::Path::new(path))
}

/// Loads a packed model from the `len` bytes of its file at `bytes`, which are copied.
///
/// # Safety
/// `bytes` is null or has `len` bytes; `out` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_model_from_memory(bytes: *const u8, len: usize, out: *mut *mut ModelHandle) -> Status {
    guarded(|| {
        pointers::expect_apart(["bytes", "out"], (bytes, len), (out, 1))?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { pointers::read("bytes", bytes, len) }?;
        let copied = AlignedBytes::copied(bytes);
        insert(copied.map_err(|_| Failure::new(Status::Memory, format!("memory cannot hold the {len} bytes of a model")))?, out)
    })
}

/// Frees a model; its sessions, and calls that use it, continue. Freeing null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_free(model: *mut ModelHandle) -> Status {
    guarded(|| if model.is_null() { Ok(()) } else { MODELS.remove_after_use(model.addr()).map(drop) })
}

/// What the model does, a `MINRNN_KIND_`; 0 on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_kind(model: *const ModelHandle) -> i32 {
    valued(0, || Ok(MODELS.shared(model.addr())?.kind()))
}

/// One of the sizes of a model, a `MINRNN_SIZE_`; 0 on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_size(model: *const ModelHandle, what: i32) -> usize {
    valued(0, || {
        let size = MODELS.shared(model.addr())?.size(what);
        size.ok_or_else(|| Failure::new(Status::Input, format!("there is no size {what}, expected a MINRNN_SIZE_")))
    })
}

/// Bytes of a session once it has read `steps` steps; 0 on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_session_bytes(model: *const ModelHandle, steps: usize) -> usize {
    valued(0, || Ok(MODELS.shared(model.addr())?.session_bytes(steps)))
}

/// The name of a column, a class, a target or the group column; null on error. It is valid as long as the model.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_name(model: *const ModelHandle, what: i32, index: usize) -> *const c_char {
    valued(std::ptr::null(), || {
        let model = MODELS.shared(model.addr())?;
        let names = model
            .names(what)
            .ok_or_else(|| Failure::new(Status::Input, format!("there are no names of {what}, expected a MINRNN_SIZE_ of names")))?;
        let name = names.get(index).map(|name| name.as_ptr());
        name.ok_or_else(|| Failure::new(Status::Input, format!("there is no name {index} among {} (counted from 0)", names.len())))
    })
}

/// The surprise that a share `share` of the rows held out in training did not exceed, in nats; NaN on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_threshold(model: *const ModelHandle, share: f64) -> f64 {
    valued(f64::NAN, || MODELS.shared(model.addr())?.threshold(share))
}

/// The level of a forecast quantile; NaN on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_model_quantile(model: *const ModelHandle, index: usize) -> f64 {
    valued(f64::NAN, || match MODELS.shared(model.addr())?.table() {
        Ok(TableTask::Forecast(forecaster)) if index < forecaster.quantiles.len() => Ok(forecaster.quantiles[index]),
        _ => Err(Failure::new(Status::Input, format!("the model has no quantile {index}"))),
    })
}
