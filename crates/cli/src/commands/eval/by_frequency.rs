//! `minrnn eval RUN --by-frequency`: how rare tokens fare.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::data::TextData;
use minrnn::model::SequenceModel;
use minrnn::train::{Evaluation, Experiment, FrequencyScore, Windows, evaluate_by_frequency, full_pass, token_counts};
use minrnn::words::counted;

use super::output::Output;
use crate::exit::ExitCode;
use crate::failure::NO_STDOUT;

/// Scores `model` on the whole test text, in windows that start anew, and prints a line for each of up to `n_bins` bins of tokens by their
/// count in the training text.
pub fn score(
    model: &SequenceModel,
    text: &TextData,
    experiment: &Experiment,
    n_bins: usize,
    output: Output,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let mut set = full_pass(text.test().clone(), experiment, Windows::Anew)?;
    let counts = token_counts(text.train())?;
    let Some(scores) = evaluate_by_frequency(model, &mut *set, &counts, n_bins, stop)? else {
        return Ok(super::stopped());
    };
    for score in scores.iter().filter(|score| score.evaluation.n_scored > 0) {
        super::expect_finite("the test text", &score.evaluation)?;
    }
    for score in &scores {
        print(score, output).context(NO_STDOUT)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(score: &FrequencyScore, output: Output) -> io::Result<()> {
    let FrequencyScore { counts, n_tokens, share, evaluation: Evaluation { loss, accuracy, n_scored } } = score;
    let accuracy = accuracy.unwrap_or(0.0);
    let (from, to, is_scored) = (counts.start(), counts.end(), *n_scored > 0);
    let mut out = io::stdout().lock();
    if output == Output::Json {
        let line = serde_json::json!({
            "measure": "frequency", "from": from, "to": to, "tokens": n_tokens, "share": share,
            "loss": is_scored.then_some(loss), "accuracy": is_scored.then_some(accuracy), "predictions": n_scored,
        });
        return writeln!(out, "{line}");
    }
    let seen = match (from, to) {
        (_, 0) => "never in the training text".to_owned(),
        (from, to) if from == to => format!("{} in the training text", counted(*from, "time")),
        (from, to) => format!("{from}–{to} times in the training text"),
    };
    write!(out, "{seen}: tokens {n_tokens}, {:.2} % of the predictions", 100.0 * share)?;
    match is_scored {
        true => writeln!(out, ", loss {loss:.4} nats, accuracy {:.2} %, {}", 100.0 * accuracy, counted(*n_scored, "prediction")),
        false => writeln!(out),
    }
}
