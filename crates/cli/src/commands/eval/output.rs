//! How scores are printed: as lines for people, or a JSON object on each line.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use minrnn::data::table::{Comparison, left_out};
use minrnn::numbers::significant;
use minrnn::train::{Evaluation, TextSize};
use minrnn::words::counted;
use serde_json::json;

use super::sets::Scored;
use crate::failure::NO_STDOUT;
use crate::text_table::confusion_table;

/// What is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Text,
    Json,
}

impl Output {
    /// Prints which model is scored; JSON does without.
    pub fn print_model(self, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Text => writeln!(io::stdout(), "model: {}", path.display()).context(NO_STDOUT),
            Self::Json => Ok(()),
        }
    }

    /// Prints what was measured; the loss of a text of `size` also in bits per byte.
    pub fn print(self, scored: Scored, evaluation: &Evaluation, size: Option<TextSize>) -> io::Result<()> {
        let Evaluation { loss, accuracy, n_scored } = evaluation;
        let (name, bits_per_byte) = (scored.name(), size.map(|size| size.bits_per_byte(*loss)));
        let mut out = io::stdout().lock();
        if self == Self::Json {
            let mut line = json!({"measure": name, "loss": loss, "accuracy": accuracy, "predictions": n_scored});
            if let Some(bits) = bits_per_byte {
                line["bits_per_byte"] = bits.into();
            }
            return writeln!(out, "{line}");
        }
        let told = counted(*n_scored, "prediction");
        match accuracy {
            Some(accuracy) => writeln!(
                out,
                "{name}: loss {loss:.4} nats ({:.4} bits), accuracy {:.2} %, {told}",
                loss / std::f64::consts::LN_2,
                100.0 * accuracy
            )?,
            None => writeln!(out, "{name}: loss {}, {told}", significant(*loss))?,
        }
        bits_per_byte.map_or(Ok(()), |bits| writeln!(out, "  bits per byte {bits:.4}"))
    }

    /// Prints the measures of a table beside those of a baseline.
    pub fn print_comparison(self, comparison: &dyn Comparison) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let (measures, confusion) = (comparison.measures(), comparison.confusion());
        match self {
            Self::Json => {
                measures.iter().try_for_each(|measure| writeln!(out, "{}", measure.to_json()))?;
                confusion.map_or_else(Vec::new, |confusion| confusion.to_json()).iter().try_for_each(|line| writeln!(out, "{line}"))
            }
            Self::Text => {
                measures.iter().try_for_each(|measure| writeln!(out, "{}", measure.describe()))?;
                left_out(&measures).iter().try_for_each(|told| writeln!(out, "{told}"))?;
                confusion.map_or(Ok(()), |confusion| write!(out, "{}", confusion_table(confusion)))
            }
        }
    }

    /// Prints the share of places at which the model and the one in `other` have the same likeliest token.
    pub fn print_agreement(self, share: f64, other: &Path) -> io::Result<()> {
        match self {
            Self::Json => writeln!(io::stdout(), "{}", json!({"measure": "agreement", "against": other, "share": share})),
            Self::Text => writeln!(io::stdout(), "top-1 agreement with {}: {:.2} %", other.display(), 100.0 * share),
        }
    }
}
