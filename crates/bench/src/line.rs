//! Results: a row of numbers for each case.

use burn::tensor::Device;
use minrnn::device::name_of;
use minrnn_kernels::simd::Level;
use serde::{Deserialize, Serialize};

use crate::timing::Times;
use crate::{Bench, Case, Measured, Place, machine};

/// Stands for the processor's instructions when another device computed.
const DEVICE: &str = "device";
/// [`Line::bench`] of the bare recurrence.
pub const SCAN: &str = "scan";

/// One result; the keys are those printed by the programs in `benchmarks/peers`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// The bench, or [`SCAN`].
    pub bench: String,
    /// The library: `minrnn`.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// The time-mixing layer; empty for the bare recurrence.
    pub mixer: String,
    /// D.
    pub d_model: usize,
    /// E.
    pub d_hidden: usize,
    /// B.
    pub batch_size: usize,
    /// T.
    pub seq_len: usize,
    /// Number format.
    pub precision: String,
    /// Threads of the processor.
    pub threads: usize,
    /// Processor and cores, or the name of the device.
    pub machine: String,
    /// The commit of the program.
    pub commit: String,
    /// The compiler it was built by.
    pub compiler: String,
    /// Instructions of the processor, or `device`.
    pub simd: String,
    /// Median time of an iteration.
    pub median_ms: f64,
    /// Minimum time of an iteration.
    pub min_ms: f64,
    /// B · T in the median time.
    pub tokens_per_s: f64,
    /// Peak memory of the process.
    pub peak_mib: f64,
    /// Timed iterations.
    pub iterations: usize,
    /// Matrix products only, at the median time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gflop_per_s: Option<f64>,
    /// Trainable parameters of the model or mixer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<usize>,
    /// Bandwidth of the bare recurrence.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Bandwidth>,
}

/// Results of the bare scan only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bandwidth {
    /// `forward` or `forward+backward`.
    pub pass: String,
    /// With every input read once and every output written once, in the turn with the shortest total time.
    pub gb_per_s: f64,
    /// The machine's bandwidth for copying arrays of the same size, in that turn.
    pub copy_gb_per_s: f64,
}

impl Line {
    /// The result of a case.
    pub(crate) fn new(bench: Bench, case: &Case, measured: &Measured, place: &Place) -> Self {
        let line = Self::timed(bench.name(), case.batch_size, case.seq_len, place, &measured.times);
        Self {
            mixer: case.mixer.to_string(),
            d_model: case.d_model,
            d_hidden: case.d_hidden,
            precision: case.precision.name().to_owned(),
            gflop_per_s: measured.flop.map(|flop| round(flop / line.median_ms / 1e6, 6)),
            parameters: measured.parameters,
            ..line
        }
    }

    /// Whether it was measured on the CPU.
    pub fn on_processor(&self) -> bool {
        self.simd != DEVICE
    }

    /// The result of work on B sequences of length T that belongs to no mixer.
    pub(crate) fn timed(bench: &str, batch_size: usize, seq_len: usize, place: &Place, times: &Times) -> Self {
        let (machine, simd) = match place.device == Device::flex() {
            true => (machine::name(), Level::current().name()),
            false => (name_of(&place.device), DEVICE),
        };
        Self {
            bench: bench.to_owned(),
            implementation: "minrnn".to_owned(),
            mixer: String::new(),
            d_model: 0,
            d_hidden: 0,
            batch_size,
            seq_len,
            precision: "f32".to_owned(),
            threads: place.threads,
            machine,
            commit: place.build.commit.to_owned(),
            compiler: place.build.compiler.to_owned(),
            simd: simd.to_owned(),
            median_ms: round(times.median(), 4),
            min_ms: round(times.min(), 4),
            tokens_per_s: round(batch_size as f64 * seq_len as f64 / times.median() * 1e3, 1),
            peak_mib: round(machine::peak_mib(), 1),
            iterations: times.count(),
            gflop_per_s: None,
            parameters: None,
            scan: None,
        }
    }
}

/// `value` with that many decimals.
pub(crate) fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Build;

    const BUILD: Build = Build { commit: "unknown", compiler: "unknown" };

    fn line() -> Line {
        Line::timed(SCAN, 3, 5, &Place { threads: 2, ..Place::here(BUILD) }, &Times::new(vec![2.0]))
    }

    #[test]
    fn a_line_survives_json() {
        let bandwidth = Bandwidth { pass: "forward".to_owned(), gb_per_s: 30.0, copy_gb_per_s: 40.0 };
        let written = Line { scan: Some(bandwidth), ..line() };
        let text = serde_json::to_string(&written).unwrap();
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(read.scan.unwrap().copy_gb_per_s, 40.0);
        assert_eq!(read.tokens_per_s, 7500.0);
        assert!(text.contains(r#""impl":"minrnn""#) && !text.contains("parameters"), "{text}");
        let without: Line = serde_json::from_str(&serde_json::to_string(&line()).unwrap()).unwrap();
        assert!(without.scan.is_none());
    }
}
