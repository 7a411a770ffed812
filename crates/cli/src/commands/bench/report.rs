//! Measurements on stdout: as a table or as JSON.

use std::io::{Write, stdout};

use anyhow::Context;
use minrnn::words::counted;
use minrnn_bench::{Line, SCAN};

/// Prints lines as they come.
pub struct Report {
    bench: &'static str,
    json: bool,
    started: bool,
}

impl Report {
    /// A report of one bench, as JSON or as a table.
    pub fn new(bench: &'static str, json: bool) -> Self {
        Self { bench, json, started: false }
    }

    /// Prints a result.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut out = stdout().lock();
        let mut print = |text: String| writeln!(out, "{text}").context("cannot print the results");
        if self.json {
            return print(serde_json::to_string(line)?);
        }
        if !self.started {
            let threads = counted(line.threads, "thread");
            print(format!("{}; {threads}; {}; commit {}; {}\n", line.machine, line.simd, line.commit, line.compiler))?;
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
    if bench == SCAN {
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
    use minrnn_bench::{Bench, Case, Place, Plan, measure};

    use super::*;
    use crate::commands::bench::BUILD;

    #[test]
    fn rows_align_with_their_heading() {
        let case = Case { d_model: 2, d_hidden: 2, batch_size: 1, seq_len: 1, ..Bench::Layer.case() };
        let line = measure(Bench::Layer, &case, Plan { warmup: 0, iterations: 1 }, &Place { threads: 1, ..Place::here(BUILD) }).unwrap();
        for bench in [SCAN, "lm"] {
            let columns = columns(bench);
            let heading = row(&columns.map(|(name, _)| name.to_owned()));
            assert_eq!(heading.chars().count(), row(&columns.map(|(_, value)| value(&line))).chars().count());
        }
    }
}
