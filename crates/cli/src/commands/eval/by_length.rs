//! `minrnn eval RUN --by-length`: how well a formal language is known at each string length.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::data::FormalTask;
use minrnn::model::SequenceModel;
use minrnn::train::{Experiment, LengthScore, Task, evaluate_length};
use minrnn::words::counted;

use super::output::Output;
use crate::exit::ExitCode;
use crate::failure::{NO_STDOUT, WrongInput};

#[derive(clap::Args)]
pub struct Args {
    /// Accuracy at each string length of a formal language, or over this many neighbouring lengths together
    #[arg(
        long, value_name = "WIDTH", allow_negative_numbers = true, num_args = 0..=1, default_missing_value = "1",
        conflicts_with_all = ["data", "batches", "against", "logits", "hidden", "layer", "embeddings"], value_parser = clap::value_parser!(u64).range(1..)
    )]
    by_length: Option<u64>,
    /// Length of the longest strings of --by-length [default: the longest that the run is scored on]
    // A flag that conflicts with --by-length also lifts the requirement of it, so each of those is named here too.
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, requires = "by_length",
        conflicts_with_all = ["data", "batches", "by_frequency", "backtest"]
    )]
    max_length: Option<usize>,
    /// Number of strings of each length of --by-length
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, default_value_t = 512, requires = "by_length",
        conflicts_with_all = ["data", "batches", "by_frequency", "backtest"], value_parser = clap::value_parser!(u64).range(1..)
    )]
    strings: u64,
}

impl Args {
    /// The number of neighbouring lengths in each line, if scores by length are asked for.
    pub fn width(&self) -> Option<usize> {
        self.by_length.map(|width| usize::try_from(width).unwrap_or(usize::MAX))
    }
}

/// What is scored.
pub struct Strings {
    trained_on: FormalTask,
    /// All lengths from 1.
    scored: FormalTask,
    of_each_length: u64,
    seed: u64,
}

impl Strings {
    /// The strings that `args` ask for, in the language of `experiment`.
    ///
    /// # Errors
    /// When it is not about a formal language, or the model cannot read such long strings.
    pub fn new(experiment: &Experiment, args: &Args) -> anyhow::Result<Self> {
        if experiment.data.task != Task::FormalLanguage {
            let sentence = "--by-length needs a model trained on a formal language, whose strings have a length each; leave it out";
            return Err(WrongInput(sentence.to_owned()).into());
        }
        let trained_on = experiment.data.formal()?.training;
        let mut longer = experiment.clone();
        longer.data.formal_language.eval_min_length = 1;
        longer.data.formal_language.eval_max_length =
            args.max_length.unwrap_or(experiment.data.formal_language.eval_max_length.max(trained_on.max_length));
        longer.validate().map_err(|error| match args.max_length {
            Some(most) => anyhow::Error::from(WrongInput(format!("--max-length {most} cannot be scored: {error}"))),
            None => error.into(),
        })?;
        let scored = longer.data.formal()?.evaluation;
        Ok(Self { trained_on, scored, of_each_length: args.strings, seed: experiment.train.scoring_seed() })
    }

    /// Scores `model` on strings of every length and prints a line for each `width` of them, then the means over the lengths that were
    /// trained on and over those beyond.
    pub fn score(&self, model: &SequenceModel, width: usize, output: Output, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
        let (longest, chance) = (self.scored.max_length, self.scored.chance()?);
        if output == Output::Text {
            let (name, n) = (self.scored.language.name(), self.of_each_length);
            writeln!(io::stdout(), "{name}: {n} strings of each length; scaled so that guessing ({:.1} %) is 0", 100.0 * chance)
                .context(NO_STDOUT)?;
        }
        let print = |what, scores: &[LengthScore]| LengthScore::mean(scores).map_or(Ok(()), |score| print(what, &score, chance, output));
        let (mut scores, mut printed) = (Vec::new(), 0);
        for length in 1..=longest {
            let Some(score) = evaluate_length(model, &self.scored, length, self.of_each_length, self.seed, stop)? else {
                return Ok(super::stopped());
            };
            super::expect_finite(format!("strings of length {length}"), &score.evaluation)?;
            scores.push(score);
            if length == longest || length - printed == width {
                print("length", &scores[printed..]).context(NO_STDOUT)?;
                printed = length;
            }
        }
        let last = self.trained_on.max_length.min(longest);
        print("trained on", &scores[(self.trained_on.min_length - 1).min(last)..last]).context(NO_STDOUT)?;
        print("longer", &scores[last..]).context(NO_STDOUT)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print(what: &str, score: &LengthScore, chance: f64, output: Output) -> io::Result<()> {
    let LengthScore { lengths, n_strings, evaluation } = score;
    let (from, to) = (lengths.start(), lengths.end());
    let (accuracy, scaled) = (evaluation.accuracy.unwrap_or(0.0), evaluation.scaled_accuracy(chance).unwrap_or(0.0));
    let mut out = io::stdout().lock();
    if output == Output::Json {
        let (loss, predictions) = (evaluation.loss, evaluation.n_scored);
        let line = serde_json::json!({
            "measure": what, "from": from, "to": to, "accuracy": accuracy, "scaled_accuracy": scaled, "loss": loss,
            "strings_of_each_length": n_strings, "predictions": predictions,
        });
        return writeln!(out, "{line}");
    }
    let range = if from == to { from.to_string() } else { format!("{from}–{to}") };
    let what = if what == "length" { "length".to_owned() } else { format!("{what}, lengths") };
    writeln!(
        out,
        "{what} {range}: accuracy {:.2} %, scaled {:.2} %, loss {:.4} nats, {}",
        100.0 * accuracy,
        100.0 * scaled,
        evaluation.loss,
        counted(evaluation.n_scored, "prediction")
    )
}
