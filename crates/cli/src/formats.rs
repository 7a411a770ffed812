//! Formats of other libraries' weights, as `import` and `export` name them.

use clap::builder::PossibleValuesParser;
use minrnn::interchange::Format;

/// The format of a step as a graph, which is only written.
pub const ONNX: &str = "onnx";

/// Accepts the name of a format that is read.
pub fn imported_format() -> PossibleValuesParser {
    names().collect::<Vec<_>>().into()
}

/// Accepts the name of a format that is written.
pub fn exported_format() -> PossibleValuesParser {
    exported_names().into()
}

/// The names of the formats that are written.
pub fn exported_names() -> Vec<&'static str> {
    names().chain([ONNX]).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    Format::ALL.iter().map(|format| format.name())
}
