//! A page about a run, for a browser: its results, its curves, the confusion of classes or forecasts beside the actual values, and its
//! worst errors. It needs no other file and no network.

mod chart;
mod curves;
mod examples;
mod scores;

use std::fmt::Write;

use minrnn_model::write_atomic;

use crate::Result;
use crate::checkpoint::parameter_count;
use crate::counted::counted;
use crate::data::table::{Cases, Confusion, Example, Measure, MeasureKind, left_out};
use crate::html::escaped;
use crate::train::{FinalReport, METRICS_FILE, Record, Trainer, duration, read_metrics};

/// The page of a run, in its directory.
pub const REPORT_FILE: &str = "report.html";

/// Writes the page about the run of `trainer`, with its result `found`, to its directory.
///
/// # Errors
/// When the log cannot be read or the file cannot be written.
pub fn write_report(trainer: &Trainer, found: &FinalReport) -> Result<()> {
    let run = trainer.run_dir();
    let (experiment, progress) = (trainer.experiment(), trainer.progress());
    let records = read_metrics(run.file(METRICS_FILE))?;
    let title = run.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let model = &experiment.model;
    let mut summary = vec![experiment.described().into_owned()];
    summary.extend(experiment.data.path.as_ref().map(|path| format!("Data: {}", path.display())));
    summary.push(format!(
        "Model: {}, {}, width {}, {}",
        model.mixer_names(),
        counted(model.n_layers, "layer"),
        model.d_model,
        counted(parameter_count(trainer.model()), "parameter")
    ));
    summary.push(format!("Learned in {}, {}", counted(progress.iteration, "update"), duration(progress.seconds)));
    let mut notes = Vec::new();
    if found.scored != found.checkpoint {
        notes.push(
            "The score belongs to the earlier model, which never saw the test part; the model to use was trained on all data.".to_owned(),
        );
    }
    notes.extend(trainer.start_caveat().map(|caveat| format!("{caveat}.")));
    notes.extend(found.temperature.map(|by| format!("Probabilities are calibrated on what was held out: logits divided by {by:.2}.")));
    let intervals = found.spreads.iter().zip(trainer.data().table_task()).flat_map(|(spreads, task)| spreads.describe(&task));
    notes.extend(intervals.map(|sentence| format!("The {sentence}.")));
    notes.extend(left_out(&found.compared).into_iter().map(|told| format!("The {told}.")));
    let measures = match &found.compared[..] {
        [] => without_baseline(trainer, found),
        compared => compared.to_vec(),
    };
    let page = Report {
        title: &title,
        summary,
        measures: &measures,
        confusion: found.confusion.as_ref(),
        notes,
        records: &records,
        refit_at: progress.refit.map(|refit| refit.began_at),
        loss: experiment.loss().label(),
        examples: &found.examples,
        experiment: &experiment.to_toml()?,
    };
    Ok(write_atomic(run.file(REPORT_FILE), page.html().as_bytes())?)
}

/// The measures of a task without its own: accuracy or loss, for a text also in bits per byte.
fn without_baseline(trainer: &Trainer, found: &FinalReport) -> Vec<Measure> {
    let measure = |kind, value| Measure {
        kind,
        target: None,
        found: value,
        interval: None,
        n: found.fixed.n_scored,
        cases: Cases::Values,
        baseline: None,
    };
    let score = match trainer.experiment().data.task.scored_accuracy(found.fixed.accuracy) {
        Some(accuracy) => measure(MeasureKind::Accuracy, accuracy),
        None => measure(MeasureKind::Loss(trainer.experiment().loss().label()), found.fixed.loss),
    };
    let of_bytes = found.bits_per_byte.map(|bits| measure(MeasureKind::Loss("bits per byte"), bits));
    std::iter::once(score).chain(of_bytes).collect()
}

/// The content of the page.
struct Report<'a> {
    /// The name of the run.
    title: &'a str,
    /// What was learned, the data, the model, and for how long, one line each.
    summary: Vec<String>,
    /// The results on the test part.
    measures: &'a [Measure],
    /// Which classes were predicted for which.
    confusion: Option<&'a Confusion>,
    /// Notes on the score, one line each.
    notes: Vec<String>,
    /// The log.
    records: &'a [Record],
    /// Number of updates after which the table was learned again.
    refit_at: Option<u64>,
    /// The name of the loss.
    loss: &'a str,
    /// Single sequences, the worst first.
    examples: &'a [Example],
    /// The resolved experiment, as TOML.
    experiment: &'a str,
}

const STYLE: &str = include_str!("style.css");

impl Report<'_> {
    fn html(&self) -> String {
        let title = escaped(self.title);
        let mut body = format!("<header>\n<h1>{title}</h1>\n");
        for line in &self.summary {
            let _ = writeln!(body, "<p>{}</p>", escaped(line));
        }
        body += "</header>\n";
        body += &section("Result", scores::measures(self.measures) + &paragraphs(&self.notes));
        body += &section("Classes", self.confusion.map_or_else(String::new, scores::confusion));
        body += &section("Learning", curves::curves(self.records, self.refit_at, self.loss));
        body += &section("Where it was most wrong", examples::labelled(self.examples));
        body += &section("Forecasts and what came", examples::forecast(self.examples));
        let settings = format!("<details>\n<summary>All settings</summary>\n<pre>{}</pre>\n</details>\n", escaped(self.experiment.trim()));
        body += &section("Settings", settings);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{}\n</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
            STYLE.trim()
        )
    }
}

/// A section of the page, unless it is empty.
fn section(heading: &str, content: String) -> String {
    if content.is_empty() { content } else { format!("<section>\n<h2>{heading}</h2>\n{content}</section>\n") }
}

fn paragraphs(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p class=\"note\">{}</p>\n", escaped(line))).collect()
}
