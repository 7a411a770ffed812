//! Results: a row of numbers for each case, as a table or as JSON.

use std::io::{Write, stdout};

use anyhow::Context;
use burn::tensor::Device;
use minrnn::device::name_of;
use minrnn_kernels::simd::Level;
use serde::{Deserialize, Serialize};

use super::Measured;
use super::case::Case;
use super::timing::Times;
use crate::machine;

/// Stands for the instructions of the processor where another device computed.
const DEVICE: &str = "device";

/// One result; the keys are those the programs in `benchmarks/peers` print.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    pub bench: String,
    #[serde(rename = "impl")]
    pub implementation: String,
    pub mixer: String,
    pub d_model: usize,
    pub d_hidden: usize,
    pub batch_size: usize,
    pub seq_len: usize,
    pub precision: String,
    pub threads: usize,
    pub machine: String,
    pub commit: String,
    pub compiler: String,
    pub simd: String,
    pub median_ms: f64,
    pub min_ms: f64,
    /// B · T in the median time.
    pub tokens_per_s: f64,
    pub peak_mib: f64,
    pub iterations: usize,
    /// Matrix products only, in the median time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gflop_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<usize>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Bandwidth>,
}

/// What only the bare scan reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bandwidth {
    /// `forward` or `forward+backward`.
    pub pass: String,
    /// Every input read once and every output written once, in the turn that took least time in all.
    pub gb_per_s: f64,
    /// The machine copying arrays of the same size, in that turn.
    pub copy_gb_per_s: f64,
}

impl Line {
    /// The result of a case.
    pub fn new(bench: &str, case: &Case, threads: usize, measured: &Measured) -> Self {
        let line = Self::timed(bench, case.batch_size, case.seq_len, threads, &measured.times);
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

    /// The same, measured on `device`.
    pub fn on(self, device: &Device) -> Self {
        if *device == Device::flex() { self } else { Self { machine: name_of(device), simd: DEVICE.to_owned(), ..self } }
    }

    /// Whether it was measured on the processor.
    pub fn on_processor(&self) -> bool {
        self.simd != DEVICE
    }

    /// The result of work on B sequences of length T that is no mixer's.
    pub fn timed(bench: &str, batch_size: usize, seq_len: usize, threads: usize, times: &Times) -> Self {
        Self {
            bench: bench.to_owned(),
            implementation: "minrnn".to_owned(),
            mixer: String::new(),
            d_model: 0,
            d_hidden: 0,
            batch_size,
            seq_len,
            precision: "f32".to_owned(),
            threads,
            machine: machine::name(),
            commit: machine::COMMIT.to_owned(),
            compiler: machine::COMPILER.to_owned(),
            simd: Level::current().name().to_owned(),
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
pub fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

/// Prints lines as they come.
pub struct Report {
    bench: &'static str,
    json: bool,
    started: bool,
}

impl Report {
    /// Of one bench, as JSON or as a table.
    pub fn new(bench: &'static str, json: bool) -> Self {
        Self { bench, json, started: false }
    }

    /// Prints a result.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut out = stdout().lock();
        let mut print = |text: String| writeln!(out, "{text}").context("cannot print the results");
        if self.json {
            return print(serde_json::to_string(line)?);
        }
        if !self.started {
            print(format!("{}; {} threads; {}; commit {}; {}\n", line.machine, line.threads, line.simd, line.commit, line.compiler))?;
            print(row(&columns(self.bench).map(|(name, _)| name.to_owned())))?;
            self.started = true;
        }
        print(row(&columns(self.bench).map(|(_, value)| value(line))))
    }
}

type Column = (&'static str, fn(&Line) -> String);

fn columns(bench: &str) -> [Column; 10] {
    let size: [Column; 4] = [
        ("B", |line| line.batch_size.to_string()),
        ("T", |line| line.seq_len.to_string()),
        ("d_model", |line| line.d_model.to_string()),
        ("d_hidden", |line| line.d_hidden.to_string()),
    ];
    let time: [Column; 3] = [
        ("median ms", |line| format!("{:.2}", line.median_ms)),
        ("min ms", |line| format!("{:.2}", line.min_ms)),
        ("tokens/s", |line| format!("{:.0}", line.tokens_per_s)),
    ];
    let last: Column = ("peak MiB", |line| format!("{:.0}", line.peak_mib));
    if bench == "scan" {
        let pass: Column = ("pass", |line| line.scan.as_ref().map_or_else(String::new, |scan| scan.pass.clone()));
        let speed: Column = ("GB/s", |line| line.scan.as_ref().map_or_else(String::new, |scan| format!("{:.1}", scan.gb_per_s)));
        let copy: Column = ("copy GB/s", |line| line.scan.as_ref().map_or_else(String::new, |scan| format!("{:.1}", scan.copy_gb_per_s)));
        let share: Column = ("share", |line| {
            line.scan.as_ref().map_or_else(String::new, |scan| format!("{:.0} %", 100.0 * scan.gb_per_s / scan.copy_gb_per_s))
        });
        let [b, t, _, e] = size;
        return [pass, b, t, e, time[0], time[1], speed, copy, share, last];
    }
    let mixer: Column = ("mixer", |line| line.mixer.clone());
    let flops: Column = ("GFLOP/s", |line| line.gflop_per_s.map_or_else(String::new, |speed| format!("{speed:.1}")));
    let [b, t, d, e] = size;
    [mixer, b, t, d, e, time[0], time[1], time[2], flops, last]
}

fn row(cells: &[String; 10]) -> String {
    let [first, rest @ ..] = cells;
    let rest: String = rest.iter().map(|cell| format!(" {cell:>10}")).collect();
    format!("{first:<16}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line::timed("scan", 3, 5, 2, &Times::new(vec![2.0]))
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

    #[test]
    fn rows_align_with_their_heading() {
        for bench in ["scan", "lm"] {
            let columns = columns(bench);
            let heading = row(&columns.map(|(name, _)| name.to_owned()));
            assert_eq!(heading.chars().count(), row(&columns.map(|(_, value)| value(&line()))).chars().count());
        }
    }
}
