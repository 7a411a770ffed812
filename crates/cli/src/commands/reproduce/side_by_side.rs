//! What concurrent trainings show: a bar for each on a terminal, elsewhere one line for all of them now and then.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use minrnn::train::{Ending, Event, duration};
use minrnn::words::counted;
use minrnn_reproduce::Notice;

use crate::say::say;

/// At most one plain line of progress in this time.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

/// The jobs, each with its current training.
pub struct SideBySide {
    bars: Option<MultiProgress>,
    jobs: Vec<Job>,
    last_line: Instant,
}

/// A job as far as it is shown.
#[derive(Default)]
struct Job {
    label: String,
    bar: Option<ProgressBar>,
    /// When and at which iteration the training began here, and its last possible iteration.
    begun: Option<(Instant, u64, u64)>,
    iteration: u64,
    loss: f64,
    /// The last evaluation, in words.
    evaluated: String,
}

impl Job {
    /// `minLSTM, Bucket sort, seed 1: 200/1000 loss 0.5000 accuracy 71.3 %, 10 s left`.
    fn line(&self) -> Option<String> {
        let (started, from, of) = self.begun?;
        let (iteration, done) = (self.iteration, (self.iteration - from.min(self.iteration)) as f64);
        let left = started.elapsed().as_secs_f64() / done.max(1.0) * (of.saturating_sub(iteration)) as f64;
        Some(format!("{}: {iteration}/{of} {}, {} left", self.label, self.numbers(), duration(left)))
    }

    fn numbers(&self) -> String {
        format!("loss {:.4}{}", self.loss, self.evaluated)
    }
}

impl SideBySide {
    pub fn new(jobs: usize) -> Self {
        // None if they cannot be drawn: lines above them would not be printed either.
        let bars = Some(MultiProgress::new()).filter(|bars| !bars.is_hidden());
        Self { bars, jobs: (0..jobs).map(|_| Job::default()).collect(), last_line: Instant::now() }
    }

    pub fn show(&mut self, job: usize, notice: &Notice) {
        let Some(shown) = self.jobs.get_mut(job) else { return };
        let label = |shown: &Job| shown.label.clone();
        match notice {
            Notice::Starting { target, number, of, label } => {
                *shown = Job { label: format!("{target}: {label}"), ..Job::default() };
                self.line(&format!("[{number} of {of}] {target}: {label}"));
            }
            Notice::OtherMachine { iteration, before, now } => {
                let line = format!("{}: {}", label(shown), other_machine(*iteration, before, now));
                self.line(&line);
            }
            Notice::Training(trainer) => {
                let (at, of) = (trainer.progress().iteration, trainer.experiment().train.max_iterations);
                shown.begun = Some((Instant::now(), at, of));
                shown.iteration = at;
                shown.bar = self.bars.as_ref().map(|bars| {
                    let bar = bars.add(ProgressBar::new(of));
                    let style = ProgressStyle::with_template("{bar:10} {pos}/{len} {eta} left  {wide_msg}");
                    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                    bar.set_message(shown.label.clone());
                    bar.set_position(at);
                    bar.reset_eta();
                    bar
                });
                if at > 0 {
                    let line = format!("{}: resumed after {}", label(shown), counted(at, "iteration"));
                    self.line(&line);
                }
            }
            Notice::Event(event) => {
                match event {
                    Event::Updated(update) => {
                        (shown.iteration, shown.loss) = (update.iteration, update.loss);
                    }
                    Event::Evaluated { evaluation, .. } => {
                        let accuracy = evaluation.accuracy.map(|share| format!(" accuracy {:.1} %", 100.0 * share));
                        shown.evaluated = accuracy.unwrap_or_else(|| format!(" validation loss {:.4}", evaluation.loss));
                    }
                    _ => {}
                }
                if let Some(bar) = &shown.bar {
                    bar.set_position(shown.iteration);
                    // The label comes last, so that a terminal that is too narrow cuts it and not the numbers.
                    bar.set_message(format!("{}  {}", shown.numbers(), shown.label));
                } else if self.last_line.elapsed() >= PLAIN_INTERVAL {
                    self.last_line = Instant::now();
                    say(self.jobs.iter().filter_map(Job::line).collect::<Vec<_>>().join("  |  "));
                }
            }
            Notice::Paused => {
                shown.begun = None;
                if let Some(bar) = shown.bar.take() {
                    bar.finish_and_clear();
                }
            }
            Notice::Ended(ending, trainer) => {
                let why = match ending {
                    Ending::Solved => "solved",
                    Ending::EarlyStopped => "no more gain",
                    _ => "all iterations done",
                };
                let (iteration, seconds) = (trainer.progress().iteration, trainer.progress().seconds);
                let iterations = counted(iteration, "iteration");
                let line = format!("{}: {why}: {iterations}, {} of training", label(shown), duration(seconds));
                self.line(&line);
            }
            Notice::NotDone(sentence) => {
                let line = format!("{}: not done: {sentence}", label(shown));
                self.line(&line);
            }
            _ => {}
        }
    }

    /// A line above the bars.
    fn line(&self, text: &str) {
        match &self.bars {
            // If it cannot be printed, nobody would read it.
            Some(bars) => _ = bars.println(text),
            None => say(text),
        }
    }
}

/// Says that a training continues where numbers round differently.
pub(super) fn other_machine(iteration: u64, before: &str, now: &str) -> String {
    format!(
        "continues after {} made on {before}, now on {now}: from here on, rounding differs from that of a single machine",
        counted(iteration, "update")
    )
}
