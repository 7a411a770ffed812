//! What a training writes to its run directory beside checkpoints: the log, TensorBoard events and the picture of its curves.

use std::sync::atomic::AtomicBool;

use super::curves::{CurveLabels, draw_curves};
use super::metrics::{MetricsLog, Record, read_metrics};
use super::tensorboard::EventsFile;
use super::trainer::{Ending, Event, Trainer, Update};
use crate::Result;

/// The log of a run, in its directory.
pub const METRICS_FILE: &str = "metrics.jsonl";

impl Trainer {
    /// As [`run`](Self::run), writing metrics, TensorBoard events and pictures to the run directory. With several processes, only the first
    /// writes and watches.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when one of these files cannot be written.
    pub fn run_and_record(&mut self, stop: &AtomicBool, mut watch: impl FnMut(&Event)) -> Result<Ending> {
        let out = self.run_dir().path().to_owned();
        let group = self.group().clone();
        let opened = group.is_first().then(|| {
            let metrics = MetricsLog::open(out.join(METRICS_FILE), self.progress())?;
            Ok((metrics, EventsFile::create(&out, Some(self.progress().iteration + 1))?))
        });
        let Some((mut metrics, mut events)) = group.agree(opened.transpose())? else {
            let ending = self.run(stop, |_| Ok(()))?;
            return group.agree(Ok(ending));
        };
        let outcome = self.run(stop, |event| {
            if matches!(event, Event::Saving) {
                // A checkpoint never accounts for more than the log holds, even after a power failure.
                metrics.sync()?;
            }
            if let Some(record) = record_of(&event) {
                metrics.append(&record)?;
                events.record(&record)?;
            }
            watch(&event);
            Ok(())
        });
        let refit_at = self.progress().refit.map(|refit| refit.began_at);
        let title = self.experiment().described();
        let labels = CurveLabels { title: &title, loss: self.experiment().loss(), refit_at };
        let drawn = read_metrics(out.join(METRICS_FILE)).and_then(|records| draw_curves(&records, labels, &out));
        // An error that ended the training takes precedence over one in drawing its curves.
        let ending = outcome?;
        group.agree(metrics.sync().and(drawn).map(|_| ending))
    }
}

/// The line of the log that belongs to an event.
fn record_of(event: &Event) -> Option<Record> {
    match event {
        Event::Updated(Update { iteration, loss, lr, grad_norm, tokens_per_s }) => {
            Some(Record::Train { iteration: *iteration, loss: *loss, lr: *lr, grad_norm: *grad_norm, tokens_per_s: *tokens_per_s })
        }
        Event::Evaluated { iteration, evaluation, .. } => {
            Some(Record::Eval { iteration: *iteration, train_loss: None, test_loss: evaluation.loss, test_accuracy: evaluation.accuracy })
        }
        _ => None,
    }
}

/// Seconds in readable form: `1 min 30 s`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
