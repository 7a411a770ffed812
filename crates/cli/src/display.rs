//! What a training run shows: a live bar on a terminal, plain lines elsewhere, and the closing words.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use minrnn::checkpoint::parameter_count;
use minrnn::data::table::left_out;
use minrnn::report::REPORT_FILE;
use minrnn::train::{Data, Ending, Evaluation, Event, Expect, FINAL_BATCHES, FinalReport, Keep, Metric, Task, Trainer, Update, duration};
use minrnn::words::counted;

use crate::input;
use crate::say::say;
use crate::shell;
use crate::text_table::confusion_table;

/// At most one plain line of progress in this time.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Shows the events of a run on stderr.
pub struct Display {
    bar: Option<ProgressBar>,
    max_iterations: u64,
    started: Instant,
    started_at: u64,
    last_line: Option<Instant>,
    task: Task,
    keeps_best: bool,
    scored_part: &'static str,
    processes: usize,
}

impl Display {
    pub fn new(trainer: &Trainer) -> Self {
        let experiment = trainer.experiment();
        let (train, model) = (&experiment.train, &experiment.model);
        say(experiment.described());
        say(format_args!(
            "{}: {}, width {}, {}; {} on {}{}",
            model.mixer_names(),
            counted(model.n_layers, "layer"),
            model.d_model,
            counted(parameter_count(trainer.model()), "parameter"),
            counted(train.max_iterations, "iteration"),
            if trainer.group().is_alone() { String::new() } else { format!("{} processes, each with ", trainer.group().size()) },
            counted(rayon::current_num_threads(), "thread"),
        ));
        let data = &experiment.data;
        let [own, validation, test] = [&data.path, &data.table.validation, &data.table.test].map(Option::as_deref);
        if let Some(is) = input::sameness(test, own) {
            say(format_args!("the test file {is} the training file; its score says nothing about new data"));
        }
        if let Some(is) = input::sameness(validation, own) {
            say(format_args!("the validation file {is} the training file; what it chooses fits the training rows, not new data"));
        }
        if let Some(is) = input::sameness(test, validation).filter(|_| train.refit || train.validates()) {
            // A run that learns from its test file does not begin any more, but one that began so goes on.
            let why = match train.refit {
                true => "the model is retrained on it in the end, so its score says nothing about new data",
                false => "it chooses the checkpoint, so its score flatters the model",
            };
            say(format_args!("the test file {is} the validation file; {why}"));
        }
        if trainer.progress().iteration > 0 {
            say(format_args!("resumed after {}", counted(trainer.progress().iteration, "iteration")));
        }
        Self::of_round(trainer)
    }

    /// For the second round, which retrains on all data.
    pub fn of_refit(trainer: &Trainer) -> Self {
        let updates = trainer.progress().refit.map_or(0, |refit| refit.updates);
        let table = &trainer.experiment().data.table;
        let is_left_out = trainer.data().has_test_file() && input::sameness(table.test.as_deref(), table.validation.as_deref()).is_none();
        let but = if is_left_out { " except the test file" } else { "" };
        say(format_args!("retraining on all data{but}, {} as before", counted(updates, "iteration")));
        Self::of_round(trainer)
    }

    fn of_round(trainer: &Trainer) -> Self {
        let (started_at, max_iterations) = (trainer.progress().iteration, trainer.end_of_round());
        let bar = ProgressBar::new(max_iterations);
        // If nothing can be drawn, such as on a terminal that cannot move its cursor, lines above it would not be printed either.
        let bar = (!bar.is_hidden()).then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}  {elapsed} elapsed, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(started_at);
            bar.reset_eta();
            bar
        });
        let task = trainer.experiment().data.task;
        let scored_part = if trainer.data().has_parts() { "validation" } else { "test" };
        let processes = trainer.group().size();
        let keeps_best = trainer.experiment().train.validates();
        Self { bar, max_iterations, started: Instant::now(), started_at, last_line: None, task, keeps_best, scored_part, processes }
    }

    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Updated(update) => self.show_update(update),
            Event::Evaluated { iteration, evaluation, is_best } => {
                let accuracy = self.task.scored_accuracy(evaluation.accuracy);
                let accuracy = accuracy.map_or(String::new(), |share| format!("  accuracy {:.2} %", 100.0 * share));
                let best = if *is_best && self.keeps_best { "  best" } else { "" };
                self.line(&format!("iteration {iteration}: {} loss {:.4}{accuracy}{best}", self.scored_part, evaluation.loss));
            }
            _ => {}
        }
    }

    fn show_update(&mut self, update: &Update) {
        let of_all = if self.processes > 1 { format!(" of {} processes", self.processes) } else { String::new() };
        let numbers = format!("loss {:.4}  {} tokens/s{of_all}", update.loss, thousands(update.tokens_per_s));
        match &self.bar {
            Some(bar) => {
                bar.set_message(numbers);
                bar.set_position(update.iteration);
            }
            None if self.last_line.is_none_or(|last| last.elapsed() >= PLAIN_INTERVAL) => {
                self.last_line = Some(Instant::now());
                let done = (update.iteration - self.started_at) as f64;
                let left = self.started.elapsed().as_secs_f64() / done * (self.max_iterations - update.iteration) as f64;
                say(format_args!("{}/{} {numbers}  {} left", update.iteration, self.max_iterations, duration(left)));
            }
            None => {}
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say(text),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What a stopped run says last.
pub fn say_how_to_go_on(trainer: &Trainer) {
    let out = trainer.run_dir().path();
    say(format_args!("stopped after {}; everything is saved in {}", counted(trainer.progress().iteration, "iteration"), out.display()));
    let starter = if trainer.group().is_alone() { String::new() } else { format!("mpiexec -n {} ", trainer.group().size()) };
    say(format_args!("continue with: {starter}minrnn train --resume --out {}", shell::quoted(out)));
}

/// Says why a run ended.
pub fn announce_ending(ending: Ending, trainer: &Trainer) {
    let (iteration, seconds) = (trainer.progress().iteration, trainer.progress().seconds);
    let scoring = match trainer.experiment().train.keep {
        _ if trainer.data().has_parts() => "scoring",
        Keep::Best => "scoring the best checkpoints",
        Keep::Last => "scoring the last checkpoint",
        Keep::Average => "scoring the average of the last quarter",
    };
    let why = match ending {
        _ if trainer.progress().refit.is_some() => "retrained on all data".to_owned(),
        Ending::EarlyStopped => format!("no improvement in {}", counted(trainer.experiment().train.patience, "evaluation")),
        Ending::Solved => format!("solved, {} % of the answers are right", 100.0 * trainer.experiment().train.solved_at),
        _ => "all iterations done".to_owned(),
    };
    say(format_args!("{why}: {}, {} of training; {scoring}", counted(iteration, "iteration"), duration(seconds)));
}

/// Prints the final report on stdout.
pub fn print_report(report: &FinalReport, trainer: &Trainer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (task, loss) = (trainer.experiment().data.task, trainer.experiment().loss());
    let shown = |evaluation: &Evaluation| match (task.scored_accuracy(evaluation.accuracy), loss.shown(evaluation.loss)) {
        (Some(accuracy), shown) => format!("accuracy {:.2} %, {shown}", 100.0 * accuracy),
        (None, shown) if loss.is_in_nats() => format!("{shown} nats"),
        (None, shown) => shown,
    };
    // Measures that are compared with a baseline are printed below with their uncertainty, and only there.
    if report.compared.is_empty() {
        for (iteration, evaluation) in &report.kept {
            writeln!(out, "iteration {iteration}: test {} ({})", shown(evaluation), counted(evaluation.n_scored, "prediction"))?;
        }
        let kept = trainer.experiment().train.keep.name();
        writeln!(out, "{kept}: iteration {}, test {}", report.iteration, shown(&report.fixed))?;
        if let Some(bits) = report.bits_per_byte {
            writeln!(out, "test bits per byte {bits:.4}")?;
        }
    }
    let run = shell::quoted(trainer.run_dir().path());
    if let Some(n_batches) = report.shortened_to {
        let batches = counted(n_batches, "batch");
        writeln!(out, "the training was short: scored on {batches}, not on {FINAL_BATCHES}; minrnn eval {run} takes them all")?;
    }
    for measure in &report.compared {
        writeln!(out, "test {}", measure.describe())?;
    }
    left_out(&report.compared).iter().try_for_each(|told| writeln!(out, "test {told}"))?;
    if let Some(confusion) = &report.confusion {
        write!(out, "{}", confusion_table(confusion))?;
    }
    if report.scored != report.checkpoint {
        let of_before = "scored: the earlier model, which never saw the test part";
        writeln!(out, "{of_before}, after {} ({})", counted(report.iteration, "iteration"), report.scored.display())?;
    }
    if let Some(caveat) = trainer.start_caveat() {
        writeln!(out, "{caveat}")?;
    }
    if let Some(temperature) = report.temperature {
        writeln!(out, "probabilities: calibrated on the held-out part (logits divided by {temperature:.2})")?;
    }
    for sentence in report.spreads.iter().zip(trainer.data().table_task()).flat_map(|(spreads, task)| spreads.describe(&task)) {
        writeln!(out, "{sentence}")?;
    }
    if let Some((chance, scaled)) = trainer.data().chance().and_then(|chance| Some((chance, report.fixed.scaled_accuracy(chance)?))) {
        writeln!(out, "scaled so that guessing ({:.1}%) is 0: {:.1}%", 100.0 * chance, 100.0 * scaled)?;
    }
    if let Some(evaluation) = &report.full_pass {
        writeln!(out, "one pass over the whole test text: {} ({})", shown(evaluation), counted(evaluation.n_scored, "prediction"))?;
    } else if matches!(trainer.data(), Data::Text { .. }) {
        writeln!(out, "the test text is longer than what was trained on: minrnn eval {run} makes one pass over the whole of it")?;
    }
    writeln!(out, "model: {}", report.checkpoint.display())?;
    writeln!(out, "report: {}/{REPORT_FILE}", trainer.run_dir().path().display())?;
    match trainer.data() {
        Data::Text { .. } => writeln!(out, "next: minrnn generate {run} --prompt \"...\"    or: minrnn eval {run}")?,
        Data::Task(_) if trainer.experiment().model.decision => writeln!(out, "next: minrnn rollout {run}    or: minrnn pack {run}")?,
        data @ Data::Task(_) if data.has_parts() => writeln!(out, "next: minrnn predict {run} --data FILE    or: minrnn eval {run}")?,
        Data::Task(_) => writeln!(out, "next: minrnn eval {run}    or train on a text of yours: minrnn train --data FILE")?,
    }
    if let Some(expect) = &trainer.experiment().expect {
        let verdict = match judged(expect, &report.fixed) {
            Some(found) if expect.is_reached_by(found) => format!("reached with {found:.4}"),
            Some(found) => format!("not reached with {found:.4}"),
            None => "cannot be judged, as predicted numbers have no accuracy".to_owned(),
        };
        writeln!(out, "expected {} ± {} ({}): {verdict}", expect.value, expect.tolerance, expect.source)?;
    }
    out.flush()
}

/// The value that `expect` judges by, if it was measured.
fn judged(expect: &Expect, found: &Evaluation) -> Option<f64> {
    match expect.metric {
        Metric::TestLoss => Some(found.loss),
        Metric::TestAccuracy => found.accuracy,
    }
}

fn thousands(x: f64) -> String {
    let digits = format!("{x:.0}");
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(" ")
}
