//! Functions on model files, named as the commands that do the same.

use std::path::PathBuf;

use burn::tensor::Device;
use minrnn::checkpoint::parameter_count;
use minrnn::deployed::Packed;
use minrnn::interchange::Format;
use minrnn::subject::Subject;
use minrnn::transfer::{Exported, Import, Imported, export_model};
use minrnn::verify::{Case, Comparison, Tolerance};
use minrnn_cli::{ONNX, exported_names, write_graph};
use minrnn_model::WeightFormat;
use pyo3::prelude::*;
use serde_json::json;

use crate::failure::{Failure, Result, apart};
use crate::plain;

/// Packs the model of a run or a checkpoint into one file, or rounds a packed one further. Returns a summary as JSON.
#[pyfunction]
pub(crate) fn pack(py: Python<'_>, run: PathBuf, path: PathBuf, #[pyo3(from_py_with = plain::weights)] weights: String) -> Result<String> {
    let format: WeightFormat = weights.parse().map_err(|error| Failure::input(format!("{error}")))?;
    let packed = apart(py, || minrnn::deployed::pack(&run, &path, format, None))??;
    let Packed { from, mixers, bytes, tensors, .. } = packed;
    let told = json!({
        "path": path.to_string_lossy(), "from": from.to_string_lossy(), "mixer": mixers, "bytes": bytes,
        "tensors": tensors.len(),
    });
    Ok(told.to_string())
}

/// Compares the library's cells with tensors computed elsewhere, a verify case. Returns every comparison as JSON.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    path: PathBuf,
    #[pyo3(from_py_with = plain::rtol)] rtol: f64,
    #[pyo3(from_py_with = plain::atol)] atol: f64,
) -> Result<String> {
    let checked = apart(py, || -> minrnn::Result<_> {
        let case = Case::read(&path)?;
        let comparisons = case.check(Tolerance { rtol, atol }, &Device::flex());
        Ok((case.cell(), comparisons))
    })??;
    let (cell, comparisons) = checked;
    let object = |comparison: &Comparison| {
        json!({
            "cell": cell, "tensor": comparison.tensor, "direction": comparison.direction.name(), "max_abs_error": comparison.max_abs_error,
            "relative_rms_error": comparison.relative_rms_error, "pass": comparison.pass,
        })
    };
    Ok(comparisons.iter().map(object).collect::<serde_json::Value>().to_string())
}

/// Returns the size and memory of the model at a path, or of a named experiment, as JSON.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf, settings: Vec<String>) -> Result<String> {
    Ok(apart(py, || Subject::of(&path).to_json(&path, &settings))??.to_string())
}

/// Makes a checkpoint from weights in the format of another library. Returns a summary as JSON.
#[pyfunction]
pub(crate) fn import_weights(
    py: Python<'_>,
    file: PathBuf,
    output: PathBuf,
    #[pyo3(from_py_with = plain::format)] format: String,
    settings: Vec<String>,
    tokenizer: Option<PathBuf>,
    into: Option<PathBuf>,
) -> Result<String> {
    let format: Format = format.parse().map_err(|error| Failure::input(format!("{error}")))?;
    let import = Import { file, format, settings, tokenizer, into };
    let Imported { loaded, unused } = apart(py, || import.write(&output))??;
    let told = json!({
        "path": output.to_string_lossy(), "mixer": loaded.config.model.mixer_names(), "layers": loaded.config.model.n_layers,
        "d_model": loaded.config.model.d_model, "parameters": parameter_count(&loaded.model), "tokenizer": loaded.tokenizer.is_some(),
        "tokenizer_left_out": unused,
    });
    Ok(told.to_string())
}

/// Writes a trained model in the format of another library. Returns a summary as JSON.
#[pyfunction]
pub(crate) fn export_weights(
    py: Python<'_>,
    run: PathBuf,
    output: PathBuf,
    #[pyo3(from_py_with = plain::format)] format: String,
) -> Result<String> {
    if format == ONNX {
        let written = apart(py, || write_graph(&run, &output))??;
        return Ok(json!({"path": output.to_string_lossy(), "checkpoint": written.path.to_string_lossy()}).to_string());
    }
    let unknown = |_| Failure::input(format!("unknown format '{format}'; expected one of {}", exported_names().join(", ")));
    let format: Format = format.parse().map_err(unknown)?;
    let Exported { path, tensors, vocabulary } = apart(py, || export_model(&run, format, &output))??;
    let told = json!({
        "path": output.to_string_lossy(), "checkpoint": path.to_string_lossy(), "tensors": tensors, "tokenizer": vocabulary,
    });
    Ok(told.to_string())
}
