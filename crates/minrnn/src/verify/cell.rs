//! The cells a case can be about: their settings and their tensors.

use std::collections::BTreeMap;

use super::case::Sizes;
use crate::ops::{Candidate, Gates};

/// Names of the cells that can be verified.
const SUPPORTED: &[&str] = &[
    "min_gru",
    "min_lstm",
    "gru",
    "lstm",
    "mamba",
    "slstm",
    "mlstm",
    "linear_attention",
    "retention",
    "wkv",
    "aaren",
    "gilr",
    "s4d",
    "delta",
];
/// Metadata that say nothing about the cell; `format` is what safetensors' own writers add.
const COMMON: &[&str] = &["case", "cell", "format"];

/// A cell with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    MinGru(Candidate),
    MinLstm(Candidate, Gates),
    Gru,
    Lstm,
    Mamba,
    SLstm,
    MLstm,
    LinearAttention,
    Retention,
    Wkv,
    Aaren,
    Gilr,
    S4d,
    Delta,
}

impl Cell {
    /// The cell that `metadata` name, or a sentence about what is wrong with them.
    pub(super) fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, String> {
        let cells = || SUPPORTED.join(", ");
        let name = metadata.get("cell").ok_or_else(|| format!("the metadata name no 'cell'; expected one of {}", cells()))?;
        let cell = match name.as_str() {
            "min_gru" => Self::MinGru(candidate(metadata)?),
            "min_lstm" => Self::MinLstm(candidate(metadata)?, gates(metadata)?),
            "gru" => Self::Gru,
            "lstm" => Self::Lstm,
            "mamba" => Self::Mamba,
            "slstm" => Self::SLstm,
            "mlstm" => Self::MLstm,
            "linear_attention" => Self::LinearAttention,
            "retention" => Self::Retention,
            "wkv" => Self::Wkv,
            "aaren" => Self::Aaren,
            "gilr" => Self::Gilr,
            "s4d" => Self::S4d,
            "delta" => Self::Delta,
            other => return Err(format!("unknown cell {other:?}; supported are {}", cells())),
        };
        match metadata.keys().find(|key| !COMMON.contains(&key.as_str()) && !cell.settings().contains(&key.as_str())) {
            None => Ok(cell),
            Some(key) if cell.settings().is_empty() => Err(format!("unknown setting {key:?} in the metadata; {name} has no settings")),
            Some(key) => Err(format!("unknown setting {key:?} in the metadata; {name} has {}", cell.settings().join(" and "))),
        }
    }

    /// The name in the metadata.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MinGru(_) => "min_gru",
            Self::MinLstm(..) => "min_lstm",
            Self::Gru => "gru",
            Self::Lstm => "lstm",
            Self::Mamba => "mamba",
            Self::SLstm => "slstm",
            Self::MLstm => "mlstm",
            Self::LinearAttention => "linear_attention",
            Self::Retention => "retention",
            Self::Wkv => "wkv",
            Self::Aaren => "aaren",
            Self::Gilr => "gilr",
            Self::S4d => "s4d",
            Self::Delta => "delta",
        }
    }

    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::MinGru(_) => &["candidate"],
            Self::MinLstm(..) => &["candidate", "normalize_gates"],
            _ => &[],
        }
    }

    /// Name and shape of every input and parameter.
    pub(super) fn inputs(self, sizes: Sizes) -> Vec<(&'static str, Vec<usize>)> {
        let Sizes { batch_size: b, seq_len: t, d_model: d, d_inner: e, n_heads } = sizes;
        let (key, head) = (d / n_heads, e / n_heads);
        let by_head = |name: &'static str, width: usize| (name, vec![b, n_heads, t, width]);
        match self {
            Self::LinearAttention | Self::Retention => return vec![by_head("q", key), by_head("k", key), by_head("v", head)],
            Self::Aaren => return vec![("query", vec![n_heads, head]), by_head("k", head), by_head("v", head)],
            Self::Delta => {
                return vec![by_head("q", head), by_head("k", head), by_head("v", head), ("beta", vec![b, n_heads, t])];
            }
            Self::Wkv => {
                let sequences = ["r", "k", "v"].map(|name| (name, vec![b, t, d]));
                return sequences.into_iter().chain(["decay", "bonus"].map(|name| (name, vec![d]))).collect();
            }
            Self::S4d => {
                let parameters = [("log_dt", vec![d]), ("log_a_real", vec![d, e]), ("a_imag", vec![d, e])];
                let read = [("C", vec![d, e, 2]), ("D", vec![d])];
                return [("u", vec![b, t, d])].into_iter().chain(parameters).chain(read).collect();
            }
            Self::SLstm => return vec![("x", vec![b, t, d]), ("R", vec![n_heads, 4 * head, head]), ("b", vec![4 * e])],
            Self::MLstm => {
                let sequences = ["q", "k", "v"].map(|name| (name, vec![b, n_heads, t, head]));
                return sequences.into_iter().chain(["igate", "fgate"].map(|name| (name, vec![b, n_heads, t]))).collect();
            }
            _ => {}
        }
        let mut inputs = vec![("x", vec![b, t, d]), ("h0", vec![b, e])];
        let linear = |weight, bias| [(weight, vec![e, d]), (bias, vec![e])];
        let traditional = |rows: usize| {
            let matrices = [("weight_ih_l0", vec![rows, d]), ("weight_hh_l0", vec![rows, e])];
            matrices.into_iter().chain([("bias_ih_l0", vec![rows]), ("bias_hh_l0", vec![rows])])
        };
        match self {
            Self::MinGru(_) => inputs.extend(linear("linear_z.weight", "linear_z.bias")),
            Self::MinLstm(..) => {
                inputs.extend(linear("linear_f.weight", "linear_f.bias"));
                inputs.extend(linear("linear_i.weight", "linear_i.bias"));
            }
            Self::Gilr => {
                inputs.extend(linear("linear_g.weight", "linear_g.bias"));
                inputs.extend(linear("linear_i.weight", "linear_i.bias"));
            }
            Self::Gru => inputs.extend(traditional(3 * e)),
            Self::Lstm => {
                inputs.push(("c0", vec![b, e]));
                inputs.extend(traditional(4 * e));
            }
            Self::Mamba => {
                let sequences = [("u", d), ("delta", d), ("z", d), ("B", e), ("C", e)];
                inputs = sequences.iter().map(|&(name, width)| (name, vec![b, t, width])).collect();
                inputs.extend([("A", vec![d, e]), ("D", vec![d]), ("delta_bias", vec![d])]);
            }
            _ => {}
        }
        if matches!(self, Self::MinGru(_) | Self::MinLstm(..)) {
            inputs.extend(linear("linear_h.weight", "linear_h.bias"));
        }
        inputs
    }

    /// Name and shape of every output that can be expected; the first is the one that the loss weighs.
    pub(super) fn outputs(self, sizes: Sizes) -> Vec<(&'static str, Vec<usize>)> {
        let h = ("h", vec![sizes.batch_size, sizes.seq_len, sizes.d_inner]);
        let by_head = vec![sizes.batch_size, sizes.n_heads, sizes.seq_len, sizes.d_inner / sizes.n_heads];
        match self {
            Self::MLstm => vec![("h", by_head)],
            Self::LinearAttention | Self::Retention | Self::Aaren | Self::Delta => vec![("y", by_head)],
            Self::Lstm => vec![h, ("c_last", vec![sizes.batch_size, sizes.d_inner])],
            Self::Mamba | Self::Wkv | Self::S4d => vec![("y", vec![sizes.batch_size, sizes.seq_len, sizes.d_model])],
            _ => vec![h],
        }
    }
}

fn candidate(metadata: &BTreeMap<String, String>) -> Result<Candidate, String> {
    match metadata.get("candidate").map(String::as_str) {
        Some("positive") => Ok(Candidate::Positive),
        Some("identity") => Ok(Candidate::Identity),
        found => Err(wrong_setting("candidate", "positive or identity", found)),
    }
}

fn gates(metadata: &BTreeMap<String, String>) -> Result<Gates, String> {
    match metadata.get("normalize_gates").map(String::as_str) {
        Some("true") => Ok(Gates::Normalized),
        Some("false") => Ok(Gates::Unnormalized),
        found => Err(wrong_setting("normalize_gates", "true or false", found)),
    }
}

fn wrong_setting(name: &str, expected: &str, found: Option<&str>) -> String {
    let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found:?}"));
    format!("expected the setting '{name}' in the metadata to be {expected}, found {found}")
}
