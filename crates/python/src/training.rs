//! Training in the process: the trainer runs on a thread of its own, while the calling thread watches for signals and reports events.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use minrnn::checkpoint::parameter_count;
use minrnn::data::table::left_out;
use minrnn::memory::rounded;
use minrnn::train::{
    Asked, DataConfig, Ending, Event, Experiment, Request, RunDir, Told, Trainer, Update, find_data, readable, training_memory,
};
use minrnn::{Error, output};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::allocator;
use crate::failure::{Failure, Result, apart, panicked};
use crate::handed::{Handed, table};
use crate::signals::listen;
use crate::threads::new_pool;

/// The training that is asked for. Its paths are not written as JSON, which holds UTF-8 alone.
#[derive(Deserialize)]
struct Wish {
    experiment: Option<String>,
    written: Option<toml::Table>,
    #[serde(skip)]
    data: Option<PathBuf>,
    #[serde(skip)]
    validation: Option<PathBuf>,
    /// Whether there is a table to validate with, in a file or in memory.
    validates: bool,
    #[serde(skip)]
    test: Option<PathBuf>,
    #[serde(skip)]
    from: Option<PathBuf>,
    #[serde(skip)]
    out: PathBuf,
    resume: bool,
    settings: Map<String, Value>,
}

/// Tables in memory, each with its role: `data`, `validation` or `test`.
type Tables = Vec<(String, Handed)>;

/// Trains as ``wish``, a JSON object, says, with ``paths`` by the names ``data``, ``validation``, ``test``, ``from`` and ``out``, and ``tables`` in place of
/// files. Returns the report as JSON, None if training was stopped. ``watch`` is called with every event, as JSON; an exception that it raises stops the
/// training and is raised again.
#[pyfunction]
#[pyo3(signature = (wish, paths, tables, watch))]
pub(crate) fn train(
    py: Python<'_>,
    wish: &str,
    mut paths: HashMap<String, PathBuf>,
    tables: Vec<(String, Bound<'_, PyAny>)>,
    watch: Option<Py<PyAny>>,
) -> Result<Option<String>> {
    let wish: Wish = serde_json::from_str(wish).map_err(|error| Failure::input(format!("the experiment or the settings: {error}")))?;
    let [data, validation, test, from, out] = ["data", "validation", "test", "from", "out"].map(|name| paths.remove(name));
    let wish = Wish { data, validation, test, from, out: out.unwrap_or_default(), ..wish };
    let tables = tables.into_iter().map(|(name, any)| Ok((name, table(&any)?))).collect::<Result<Tables>>()?;
    let opened = apart(py, || open(&wish, tables))?.map_err(|error| match error {
        // Nothing is wrong with the content of a file whose path an experiment cannot hold.
        Error::Malformed { path, problem, .. } if path.to_str().is_none() && !path.starts_with(&wish.out) => {
            Failure::input(format!("'{}': {problem}", path.display()))
        }
        error => error.into(),
    });
    let (experiment, run) = opened?;
    let (kept, given): (Vec<PathBuf>, Vec<PathBuf>) = {
        let data = &experiment.data;
        let paths = [&data.path, &data.table.validation, &data.table.test].into_iter().flatten().cloned();
        paths.partition(|path| path.starts_with(run.path().canonicalize().as_deref().unwrap_or(run.path())))
    };
    // A pool of its own, as the trainer waits in it for `watch`, which may call the library.
    let (pool, stop) = (new_pool(experiment.train.threads)?, AtomicBool::new(false));
    let (tell, told) = sync_channel(0);
    let (answer, answered) = sync_channel(0);
    let is_watched = watch.is_some();
    allocator::retain();
    let (outcome, raised) = std::thread::scope(|scope| {
        let (stop, pool) = (&stop, &pool);
        let worker = scope.spawn(move || {
            pool.install(move || {
                let mut tell = |event: Value| {
                    // Sending fails only if the other thread has failed.
                    if is_watched && tell.send(event).is_ok() && answered.recv() == Ok(false) {
                        stop.store(true, Ordering::Relaxed);
                    }
                };
                learn(experiment, run, stop, &mut tell)
            })
        });
        let raised = listen(py, stop, told, |event: Value| {
            let heard = match &watch {
                Some(watch) if !stop.load(Ordering::Relaxed) => watch.call1(py, (event.to_string(),)).map(|_| ()),
                _ => Ok(()),
            };
            // The trainer waits for this answer, so that a stop takes effect at the next update.
            let _ = answer.send(heard.is_ok());
            heard
        });
        (py.detach(|| worker.join()), raised)
    });
    allocator::release();
    let outcome = outcome.map_err(|panic| panicked(&*panic))?.map_err(|error| match error {
        // Users do not know the file that a table in memory was written to.
        Error::Malformed { path, problem, .. } if kept.contains(&path) => Failure::input(format!("the table: {problem}")),
        Error::Malformed { path, problem, .. } if given.contains(&path) => Failure::input(format!("'{}': {problem}", path.display())),
        error => error.into(),
    });
    match raised {
        Some(raised) => Err(Failure::Raised(raised)),
        None => Ok(outcome?.map(|report| report.to_string())),
    }
}

impl Wish {
    fn request(&self) -> minrnn::Result<Request> {
        let asked = match (&self.written, &self.experiment) {
            (Some(written), _) => Some(Asked::Written(written.to_string())),
            (None, named) => named.clone().map(Asked::Named),
        };
        let settings = self.settings.iter().map(|(key, value)| setting(key, value)).collect::<minrnn::Result<_>>()?;
        let (data, from) = (self.data.clone(), self.from.clone());
        Ok(Request { experiment: asked, default_experiment: None, data, from, validates: self.validates, settings, memory_limit: None })
    }

    /// Adds the paths of further tables to the data.
    fn add_to(&self, data: &mut DataConfig) -> minrnn::Result<()> {
        for (given, path) in [(&self.test, &mut data.table.test), (&self.validation, &mut data.table.validation)] {
            if let Some(given) = given {
                *path = Some(readable(given)?);
            }
        }
        Ok(())
    }

    /// Refuses tables, in memory or further ones in files, for a task that reads none.
    fn expect_read(&self, tables: &[(String, Handed)], experiment: &Experiment, request: &Request) -> minrnn::Result<()> {
        let task = experiment.data.task;
        if task.reads_table() || tables.is_empty() && self.test.is_none() && self.validation.is_none() {
            return Ok(());
        }
        let files = [("test", &self.test), ("validation", &self.validation)];
        let given = tables.iter().map(|(name, _)| name.as_str());
        let given = given.chain(files.into_iter().filter_map(|(name, path)| path.as_ref().map(|_| name))).next().unwrap_or_default();
        let (subject, remedy) = (request.subject(), "name an experiment that does: classify, regress, forecast");
        Err(Error::Config(format!("{subject} learns {task}, which reads no table; leave {given} out, or {remedy}")))
    }
}

/// A setting as text.
fn setting(key: &str, value: &Value) -> minrnn::Result<String> {
    let value = toml::Value::try_from(value).map_err(|error| Error::Config(format!("the setting {key}: {error}")))?;
    Ok(format!("{key}={value}"))
}

/// The experiment and its run directory, new or resumed, with the tables in it.
fn open(wish: &Wish, tables: Tables) -> minrnn::Result<(Experiment, RunDir)> {
    output::expect_outside_runs(&wish.out)?;
    let request = wish.request()?;
    let (mut experiment, run) = if wish.resume {
        let run = RunDir::open(&wish.out)?;
        let resumed = request.resumed(&run, |data| wish.add_to(data))?;
        let experiment = resumed.map_or_else(|| request.experiment(|data| wish.add_to(data)), Ok)?;
        wish.expect_read(&tables, &experiment, &request)?;
        (experiment, run)
    } else {
        let experiment = request.experiment(|data| wish.add_to(data))?;
        wish.expect_read(&tables, &experiment, &request)?;
        experiment.train.device.open()?;
        training_memory(&experiment)?.expect_room(experiment.train.memory_limit)?;
        (experiment, RunDir::create(&wish.out)?)
    };
    for (name, table) in tables {
        let path = Some(run.keep_table(&name, table)?.canonicalize().map_err(|source| Error::io("read", &wish.out, source))?);
        for (_, place) in experiment.data.tables_mut().into_iter().filter(|(own, _)| *own == name) {
            place.clone_from(&path);
        }
    }
    let no_download = |_| Err(Error::Config("its text is a download, which the command makes; give a text as data".to_owned()));
    find_data(&mut experiment, &request.subject(), no_download)?;
    Ok((experiment, run))
}

/// Trains to the end, or until `stop` is set; returns the report.
fn learn(experiment: Experiment, run: RunDir, stop: &AtomicBool, tell: &mut impl FnMut(Value)) -> minrnn::Result<Option<Value>> {
    let mut trainer = Trainer::new(experiment, run)?;
    tell(start(&trainer));
    let (mut end, is_validated) = (trainer.end_of_round(), trainer.data().has_parts());
    let report = trainer.run_to_the_end(stop, |told| match told {
        Told::Event(event) => of_event(event, end, is_validated).into_iter().for_each(&mut *tell),
        Told::RoundOver => {}
        Told::Refit(trainer) => {
            end = trainer.end_of_round();
            tell(json!({"event": "refit", "iteration": trainer.progress().iteration, "iterations": end}));
        }
        Told::Ended(ending, trainer) => {
            let progress = trainer.progress();
            tell(json!({"event": "end", "why": why(ending), "iteration": progress.iteration, "seconds": progress.seconds}));
        }
    });
    let Some(report) = report? else { return Ok(None) };
    let mut found = report.to_json();
    found["told"] = report.compared.iter().map(|measure| measure.describe()).chain(left_out(&report.compared)).collect::<Vec<_>>().into();
    Ok(Some(found))
}

fn start(trainer: &Trainer) -> Value {
    let (experiment, progress) = (trainer.experiment(), trainer.progress());
    json!({
        "event": "start",
        "run": shown(trainer.run_dir().path()),
        "description": experiment.described(),
        "mixer": experiment.model.mixer_names(),
        "layers": experiment.model.n_layers,
        "d_model": experiment.model.d_model,
        "parameters": parameter_count(trainer.model()),
        "iteration": progress.iteration,
        "iterations": trainer.end_of_round(),
        "threads": rayon::current_num_threads(),
        "memory": rounded(trainer.memory().total()),
        "understood": trainer.data().understood(),
        "told": trainer.warnings_at_start(),
    })
}

fn of_event(event: &Event, end: u64, is_validated: bool) -> Option<Value> {
    Some(match event {
        Event::Updated(Update { iteration, loss, lr, grad_norm, tokens_per_s }) => json!({
            "event": "update", "iteration": iteration, "iterations": end, "loss": loss, "lr": lr, "grad_norm": grad_norm,
            "tokens_per_s": tokens_per_s,
        }),
        Event::Evaluated { iteration, evaluation, is_best } => json!({
            "event": "evaluation", "iteration": iteration, "part": if is_validated { "validation" } else { "test" }, "loss": evaluation.loss,
            "accuracy": evaluation.accuracy, "best": is_best,
        }),
        Event::Saved(path) => json!({"event": "checkpoint", "path": shown(path)}),
        _ => return None,
    })
}

fn why(ending: Ending) -> &'static str {
    match ending {
        Ending::EarlyStopped => "early-stopped",
        Ending::Solved => "solved",
        _ => "finished",
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
