//! Formats of other libraries' weights, as `import` and `export` name them.

use clap::builder::PossibleValuesParser;
use minrnn::interchange::Format;

/// What the configuration of an imported model says of the file it came from.
pub const IMPORTED: &str = "imported";

/// Takes the name of a format.
pub fn format_parser() -> PossibleValuesParser {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().into()
}
