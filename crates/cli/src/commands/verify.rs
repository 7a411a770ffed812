//! `minrnn verify`: our cells against tensors computed elsewhere.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use minrnn::verify::{Case, Comparison, Direction, Sizes, Tolerance};
use minrnn::words::counted;
use serde_json::json;

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{self, FAILED, WRONG_INPUT};
use crate::output::print;

#[derive(clap::Args)]
#[command(after_help = "Exit code: 0 when everything is within the tolerance, 1 when something is not, 2 when a file is not a case \
    (the others are still checked).")]
pub struct Args {
    /// Verify cases (safetensors files), as tools/write_verify_cases.py writes them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Allowed error relative to each expected value
    #[arg(long, value_name = "X", allow_negative_numbers = true, default_value_t = Tolerance::default().rtol, value_parser = not_negative)]
    rtol: f64,
    /// Allowed absolute error
    #[arg(long, value_name = "X", allow_negative_numbers = true, default_value_t = Tolerance::default().atol, value_parser = not_negative)]
    atol: f64,
    #[command(flatten)]
    device: DeviceArg,
    /// One JSON object per tensor instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let tolerance = Tolerance { rtol: args.rtol, atol: args.atol };
    let device = args.device.open()?;
    let (mut cases, mut failed_cases, mut tensors, mut failed_tensors) = (0, 0, 0, 0);
    for path in &args.files {
        let case = match Case::read(path) {
            Ok(case) => case,
            Err(error) => {
                failure::report(&error.into());
                continue;
            }
        };
        let comparisons = case.check(tolerance, &device);
        print(if args.json { json_lines(path, &case, &comparisons) } else { table(path, &case, &comparisons) })?;
        let failed = comparisons.iter().filter(|comparison| !comparison.pass).count();
        cases += 1;
        tensors += comparisons.len();
        failed_tensors += failed;
        failed_cases += usize::from(failed > 0);
    }
    if !args.json {
        let checked = format!("{} in {}", counted(tensors, "tensor"), counted(cases, "case"));
        let within = format!("|error| ≤ {:e} + {:e}·|expected|", args.atol, args.rtol);
        let failed = format!("{} in {}", counted(failed_tensors, "tensor"), counted(failed_cases, "case"));
        let mut summary = match (cases, failed_tensors) {
            (0, _) => "nothing was checked".to_owned(),
            (_, 0) => format!("{checked} checked: all pass ({within})"),
            _ => format!("{checked} checked: {failed} FAILED ({within})"),
        };
        if cases < args.files.len() {
            write!(summary, "; {} could not be used", counted(args.files.len() - cases, "file"))?;
        }
        print(summary + "\n")?;
    }
    Ok(match (cases == args.files.len(), failed_tensors) {
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::from(FAILED),
        (false, _) => ExitCode::from(WRONG_INPUT),
    })
}

fn table(path: &Path, case: &Case, comparisons: &[Comparison]) -> String {
    let Sizes { batch_size, seq_len, d_model, d_inner, .. } = case.sizes();
    let mut text = format!("{}: {}, B = {batch_size}, T = {seq_len}, d = {d_model}, e = {d_inner}\n", path.display(), case.cell());
    let labels: Vec<String> = comparisons.iter().map(label).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    text += &format!("  {:width$}  max abs error  relative RMS error\n", "");
    for (label, comparison) in labels.iter().zip(comparisons) {
        let (max, rms) = (number(comparison.max_abs_error), number(comparison.relative_rms_error));
        let verdict = if comparison.pass { "pass" } else { "FAIL" };
        text += &format!("  {label:width$}  {max:>13}  {rms:>18}  {verdict}\n");
    }
    text + "\n"
}

fn label(comparison: &Comparison) -> String {
    match comparison.direction {
        Direction::Steps => format!("{} (step by step)", comparison.tensor),
        Direction::Forward | Direction::Backward => comparison.tensor.clone(),
    }
}

fn number(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        x if x.is_nan() => "not finite".to_owned(),
        x => format!("{x:.1e}"),
    }
}

/// Numbers that are not finite become null.
fn json_lines(path: &Path, case: &Case, comparisons: &[Comparison]) -> String {
    let line = |comparison: &Comparison| {
        let line = json!({
            "file": path.display().to_string(),
            "cell": case.cell(),
            "tensor": comparison.tensor,
            "direction": comparison.direction.name(),
            "max_abs_error": comparison.max_abs_error,
            "relative_rms_error": comparison.relative_rms_error,
            "pass": comparison.pass,
        });
        format!("{line}\n")
    };
    comparisons.iter().map(line).collect()
}

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number of at least 0, such as 1e-4".to_owned()),
    }
}
