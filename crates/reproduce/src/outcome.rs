//! The result of a piece of work, as stored in the results folder.

use std::fs;

use minrnn::train::{Ending, FinalReport, Record, Task, Trainer, scaled_accuracy};
use minrnn_kernels::simd::Level;
use serde::{Deserialize, Serialize};

use crate::lengths::AtLength;
use crate::share::share_if_any;

/// The machine and program of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Processor and cores.
    pub machine: String,
    /// Threads of the CPU.
    pub threads: usize,
    /// `cpu`, `vulkan`, …
    pub device: String,
    /// The commit of the program.
    pub commit: String,
}

impl Origin {
    /// This machine, and the program of that commit.
    pub(crate) fn here(device: String, commit: String) -> Self {
        Self { machine: processor(), threads: rayon::current_num_threads(), device, commit }
    }

    /// Whether everything that numbers depend on is the same; the program's commit may differ.
    fn is_like(&self, other: &Self) -> bool {
        (&self.machine, self.threads, &self.device) == (&other.machine, other.threads, &other.device)
    }
}

/// The processor's name, its family and model (which distinguish processors of one name), the instructions in use, and the cores.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        info.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    };
    let mut parts: Vec<String> =
        [("cpu family", "family"), ("model", "model")].iter().filter_map(|(key, word)| Some(format!("{word} {}", value(key)?))).collect();
    parts.push(Level::current().name().to_owned());
    let name = minrnn_bench::machine::name();
    let (name, cores) = name.rsplit_once(", ").unwrap_or((&name, ""));
    format!("{name} ({}), {cores}", parts.join(", "))
}

/// Updates of a training made on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The machine and program.
    pub origin: Origin,
    /// Number of updates before it.
    pub from: u64,
    /// Number of updates at its end.
    pub to: u64,
}

impl Stretch {
    /// Records in `stretches` that the training continues at `origin` after `iteration` updates. Later updates are dropped as lost; earlier ones that no
    /// stretch covers were made at `origin`, where their checkpoint is.
    pub(crate) fn go_on(stretches: &mut Vec<Self>, origin: Origin, iteration: u64) {
        stretches.retain(|stretch| stretch.from < iteration || stretch.from == 0 && iteration == 0);
        stretches.iter_mut().for_each(|stretch| stretch.to = stretch.to.min(iteration));
        match stretches.last_mut() {
            Some(last) if last.origin == origin => last.to = iteration,
            Some(last) if last.from == iteration => last.origin = origin,
            last => {
                let from = last.map_or(iteration, |last| last.to);
                stretches.push(Self { origin, from, to: iteration });
            }
        }
    }

    /// Whether both would give the same numbers as one machine.
    pub fn is_like(&self, other: &Self) -> bool {
        self.origin.is_like(&other.origin)
    }
}

/// Why a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All iterations are done.
    Finished,
    /// `patience` evaluations in a row brought no gain.
    EarlyStopped,
    /// An evaluation reached `solved_at`.
    Solved,
}

/// An evaluation during training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of updates before it.
    pub iteration: u64,
    /// The loss on the validation batches.
    pub loss: f64,
    /// 0 to 1, if the task is scored by it.
    #[serde(default, deserialize_with = "share_if_any")]
    pub accuracy: Option<f64>,
}

impl Point {
    /// The evaluation in a line of the log of a training of `task`, if it is one.
    pub(crate) fn of(record: &Record, task: Task) -> Option<Self> {
        match *record {
            Record::Eval { iteration, test_loss: loss, test_accuracy, .. } => {
                Some(Self { iteration, loss, accuracy: task.scored_accuracy(test_accuracy) })
            }
            Record::Train { .. } => None,
        }
    }
}

/// `result.json` of a training: its best checkpoint on the test batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Seed of the training.
    pub seed: u64,
    /// Test loss.
    pub loss: f64,
    /// 0 to 1, if the task is scored by it.
    #[serde(default, deserialize_with = "share_if_any")]
    pub accuracy: Option<f64>,
    /// The accuracy of guessing, if defined.
    #[serde(default, deserialize_with = "share_if_any")]
    pub chance: Option<f64>,
    /// Loss of one pass over a whole test text.
    pub full_pass_loss: Option<f64>,
    /// Number of updates before the best checkpoint.
    pub best_iteration: u64,
    /// Number of updates.
    pub iterations: u64,
    /// Why it ended.
    pub end: End,
    /// Seconds spent in updates.
    pub seconds: f64,
    /// Trainable parameters.
    pub parameters: usize,
    /// Its evaluations.
    pub curve: Vec<Point>,
    /// The accuracy by string length, for a formal language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<AtLength>,
    /// The accuracy at greater lengths than it was trained on, if the target asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub longer: Vec<AtLength>,
    /// Where it ended.
    pub origin: Origin,
    /// Where its updates were made, if not all in the same place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Stretch>,
    /// Seed of the test batches; in results of older versions, which lack it, the training's own seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_seed: Option<u64>,
    /// The digest of the text it was trained on, if that was given instead of the experiment's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_sha256: Option<String>,
}

impl Outcome {
    /// The outcome of a training that ended, with its log; accuracies by length are added later.
    pub(crate) fn new(trainer: &Trainer, ending: Ending, report: &FinalReport, log: &[Record], origin: Origin) -> Self {
        let task = trainer.experiment().data.task;
        let progress = trainer.progress();
        Self {
            seed: trainer.experiment().train.seed,
            loss: report.fixed.loss,
            accuracy: task.scored_accuracy(report.fixed.accuracy),
            chance: trainer.data().chance(),
            full_pass_loss: report.full_pass.map(|evaluation| evaluation.loss),
            best_iteration: report.iteration,
            iterations: progress.iteration,
            end: match ending {
                Ending::EarlyStopped => End::EarlyStopped,
                Ending::Solved => End::Solved,
                _ => End::Finished,
            },
            seconds: progress.seconds,
            parameters: minrnn::checkpoint::parameter_count(trainer.model()),
            curve: log.iter().filter_map(|record| Point::of(record, task)).collect(),
            lengths: Vec::new(),
            longer: Vec::new(),
            origin,
            stretches: Vec::new(),
            eval_seed: trainer.experiment().train.eval_seed,
            text_sha256: None,
        }
    }

    /// Every machine and program involved.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.stretches.iter().map(|stretch| &stretch.origin).chain([&self.origin])
    }

    /// The accuracy on the scale where guessing is 0.
    pub fn scaled_accuracy(&self) -> Option<f64> {
        Some(scaled_accuracy(self.accuracy?, self.chance?))
    }

    /// Number of updates before the first evaluation with an accuracy of at least `goal`.
    pub fn iterations_to(&self, goal: f64) -> Option<u64> {
        self.curve.iter().find(|point| point.accuracy.is_some_and(|accuracy| accuracy >= goal)).map(|point| point.iteration)
    }
}

/// `failed.json` of a training that diverged (NaN): it would diverge again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub sentence: String,
    pub origin: Origin,
    /// As in [`Outcome`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_sha256: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A solved training with that accuracy.
    pub fn outcome(seed: u64, accuracy: f64) -> Outcome {
        let point = |(iteration, accuracy)| Point { iteration, loss: 1.0 - accuracy, accuracy: Some(accuracy) };
        Outcome {
            seed,
            loss: 0.25,
            accuracy: Some(accuracy),
            chance: Some(0.2),
            full_pass_loss: None,
            best_iteration: 40,
            iterations: 50,
            end: End::Solved,
            seconds: 90.0,
            parameters: 1234,
            curve: [(0, 0.1), (20, 0.6), (40, accuracy)].map(point).to_vec(),
            lengths: [(8, 1.0), (16, accuracy)].map(|(length, accuracy)| AtLength { length, accuracy }).to_vec(),
            longer: Vec::new(),
            stretches: Vec::new(),
            eval_seed: Some(0),
            text_sha256: None,
            origin: Origin { machine: "box, 2 cores".to_owned(), threads: 2, device: "cpu".to_owned(), commit: "abc1234".to_owned() },
        }
    }

    #[test]
    fn a_training_that_goes_on_adds_a_stretch_only_elsewhere() {
        let origin =
            |machine: &str| Origin { machine: machine.to_owned(), threads: 1, device: "cpu".to_owned(), commit: "abc1234".to_owned() };
        let mut stretches = Vec::new();
        let mut go_on = |machine, at, to| {
            Stretch::go_on(&mut stretches, origin(machine), at);
            stretches.last_mut().unwrap().to = to;
            stretches.iter().map(|stretch| (stretch.origin.machine.clone(), stretch.from, stretch.to)).collect::<Vec<_>>()
        };
        let named =
            |parts: &[(&str, u64, u64)]| parts.iter().map(|&(machine, from, to)| (machine.to_owned(), from, to)).collect::<Vec<_>>();
        assert_eq!(go_on("a", 0, 50), named(&[("a", 0, 50)]));
        assert_eq!(go_on("a", 50, 60), named(&[("a", 0, 60)]));
        // From an older checkpoint.
        assert_eq!(go_on("b", 40, 70), named(&[("a", 0, 40), ("b", 40, 70)]));
        assert_eq!(go_on("a", 30, 90), named(&[("a", 0, 90)]));
        assert_eq!(go_on("b", 0, 10), named(&[("b", 0, 10)]));
    }

    #[test]
    fn a_record_with_an_accuracy_that_cannot_be_is_no_record() {
        let record = serde_json::to_value(outcome(1, 0.75)).unwrap();
        let read = |name: &str, value: &str| {
            let mut text = serde_json::to_string(&record).unwrap();
            let own = format!("\"{name}\":{}", record[name]);
            assert!(text.contains(&own), "{text}");
            text = text.replacen(&own, &format!("\"{name}\":{value}"), 1);
            serde_json::from_str::<Outcome>(&text)
        };
        assert_eq!(read("accuracy", "0.75").unwrap(), outcome(1, 0.75));
        assert_eq!(read("accuracy", "null").unwrap().accuracy, None);
        let refusal = |name: &str, value: &str| read(name, value).unwrap_err().to_string();
        for (name, value) in [
            ("accuracy", "1.5"),
            ("accuracy", "-0.25"),
            ("chance", "2"),
            ("curve", "[{\"iteration\":0,\"loss\":1,\"accuracy\":75}]"),
            ("lengths", "[{\"length\":8,\"accuracy\":75}]"),
        ] {
            assert!(refusal(name, value).contains("an accuracy must be between 0 and 1, found "), "{name}: {}", refusal(name, value));
        }
        // JSON has no NaN and no infinity, and what is too large for a number is refused.
        for value in ["1e999", "null", "\"0.25\""] {
            refusal("loss", value);
        }
    }

    #[test]
    fn processors_of_one_name_are_told_apart() {
        let name = processor();
        assert!(name.ends_with(" cores") && name.contains(Level::current().name()), "{name}");
    }

    #[test]
    fn accuracy_is_scaled_by_chance_and_followed_over_the_iterations() {
        let outcome = outcome(1, 0.95);
        assert!((outcome.scaled_accuracy().unwrap() - 0.9375).abs() < 1e-12);
        assert_eq!((outcome.iterations_to(0.5), outcome.iterations_to(0.9), outcome.iterations_to(0.99)), (Some(20), Some(40), None));
        assert_eq!(Outcome { chance: None, ..outcome }.scaled_accuracy(), None);
    }
}
