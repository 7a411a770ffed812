//! Named presets that a file's own values override.

use toml::Table;

use super::settings::suggestion;
use crate::{Error, Result};

/// The presets for readings of minGRU and minLSTM, each from another source.
pub(super) const READINGS: [&str; 2] = ["paper", "official"];

const PRESETS: [(&str, &str); 3] = [
    ("default", ""),
    (
        "paper",
        r#"
        [model]
        candidate = "positive"
        scan = "linear"
        normalize_gates = true
        forget_bias = 0.0
        initial_state = "zero"
        norm = "layer"
        "#,
    ),
    (
        "official",
        r#"
        [model]
        candidate = "positive"
        scan = "linear"
        normalize_gates = false
        forget_bias = 3.0
        initial_state = "learned"
        norm = "rms"
        [train]
        decay_groups = "official"
        "#,
    ),
];

/// The sections of the preset `name`: `default`, `paper` (the published text) or `official` (its authors' code).
///
/// # Errors
/// When there is no such preset.
pub(super) fn preset(name: &str) -> Result<Table> {
    match PRESETS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => text.parse().map_err(|error: toml::de::Error| Error::Config(format!("preset {name}: {}", error.message()))),
        None => Err(Error::Config(format!("unknown preset '{name}'{}", suggestion(name, PRESETS.iter().map(|(known, _)| *known))))),
    }
}
