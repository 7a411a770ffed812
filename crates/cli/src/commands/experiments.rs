//! `minrnn experiments`: what `minrnn train` and `minrnn reproduce` can be asked for by name.

use minrnn::train::{Expect, Experiment, Metric, experiments};

use super::reproduce;
use crate::exit::ExitCode;
use crate::output::print;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> anyhow::Result<ExitCode> {
    let width = experiments::NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for name in experiments::NAMES {
        let Experiment { description, expect, .. } = Experiment::load(name, &[])?;
        text += &format!("{name:width$}  {description}\n");
        if let Some(expect) = &expect {
            text += &format!("{:width$}  expected: {}\n", "", expectation(expect));
        }
    }
    text += "\nTrain one with: minrnn train NAME\n\nTables and figures made from them:\n\n";
    print(text + &reproduce::list()?)?;
    Ok(ExitCode::SUCCESS)
}

fn expectation(expect: &Expect) -> String {
    let Expect { metric, value, tolerance, source } = expect;
    let metric = match metric {
        Metric::TestLoss => "test loss",
        Metric::TestAccuracy => "test accuracy",
    };
    format!("{metric} {value}, within {tolerance} (source: {source})")
}
