//! A request for training, by name, file, settings or an earlier run, and the experiment it results in.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointConfig, MixerKind, ModelConfig, Setting, TokenizerKind};

use super::data_config::{DataConfig, Task};
use super::experiment::Experiment;
use super::experiment::keys::SHAPED;
use super::files::{expect_writable_name, readable, readable_folder};
use super::run_dir::{EXPERIMENT_FILE, Pointer, RunDir, find_checkpoint};
use crate::counted::plural;
use crate::data::table::is_named_as_table;
use crate::memory::Size;
use crate::{Error, Needed, Result, RunProblem};

/// The experiment if nothing is asked for.
const DEFAULT_EXPERIMENT: &str = "selective-copying";
/// The experiment for a file given without further information.
const TEXT_EXPERIMENT: &str = "text";
/// What to do with a setting that is not read.
const LEAVE_OUT: &str = "leave it out";

/// A requested experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A built-in one, or the path of a TOML file.
    Named(String),
    /// One given as TOML text.
    Written(String),
}

impl Asked {
    fn load(&self, settings: &[String]) -> Result<Experiment> {
        match self {
            Self::Named(name) => Experiment::load(name, settings),
            Self::Written(text) => Experiment::parse(text, settings),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Written(_) => "experiment",
        }
    }
}

/// A request for training.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The experiment; by default `default_experiment`, otherwise `text` if there are data, otherwise `selective-copying`.
    pub experiment: Option<Asked>,
    /// The built-in experiment of the requested task.
    pub default_experiment: Option<&'static str>,
    /// The text or table that replaces the experiment's own, or the folder of a task with files.
    pub data: Option<PathBuf>,
    /// The run or checkpoint whose model training starts from.
    pub from: Option<PathBuf>,
    /// Whether there is a validation table, by which a built-in experiment then chooses the checkpoint to keep.
    pub validates: bool,
    /// Settings applied on top, as for [`Experiment::load`].
    pub settings: Vec<String>,
    /// The memory limit, replacing the experiment's own.
    pub memory_limit: Option<Size>,
}

impl Request {
    /// The default name of the run: after its experiment, its data, or the default experiment.
    pub fn run_name(&self) -> String {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = match (&self.experiment, &self.data) {
            (Some(experiment), _) => stem(Path::new(experiment.name())),
            (None, Some(data)) => stem(data),
            (None, None) => None,
        };
        name.unwrap_or_else(|| DEFAULT_EXPERIMENT.to_owned())
    }

    /// The name of the experiment of a new run.
    pub fn experiment_name(&self) -> &str {
        let default = if self.data.is_some() { TEXT_EXPERIMENT } else { DEFAULT_EXPERIMENT };
        self.experiment.as_ref().map_or(self.default_experiment.unwrap_or(default), Asked::name)
    }

    /// How messages refer to the training, as in [`find_data`](super::find_data).
    pub fn subject(&self) -> String {
        match &self.from {
            Some(from) if self.experiment.is_none() && self.default_experiment.is_none() => {
                format!("a training from the model of '{}'", from.display())
            }
            _ => format!("the experiment '{}'", self.experiment_name()),
        }
    }

    /// The experiment of a new run, with its data settings changed by `adjust`; whether the data exist is checked by
    /// [`find_data`](super::find_data).
    ///
    /// # Errors
    /// When the experiment, the model to start from or the data cannot be read, or settings do not fit.
    pub fn experiment<E: From<Error>>(&self, adjust: impl FnOnce(&mut DataConfig) -> Result<(), E>) -> Result<Experiment, E> {
        let mut experiment = match (&self.from, &self.experiment) {
            (Some(from), _) => self.continued(from)?,
            (None, Some(asked)) => asked.load(&self.all_settings())?,
            (None, None) => Experiment::load(self.experiment_name(), &self.all_settings())?,
        };
        self.put_into(&mut experiment, adjust)?;
        self.expect_text(&experiment)?;
        self.expect_read(&experiment)?;
        if self.from.is_some() && self.sets("scaling") {
            let sentence =
                "scaling comes with the model that is started from, which sees its numbers so; leave it out, or train a new model";
            return Err(Error::Config(sentence.to_owned()).into());
        }
        if experiment.train.refit && !experiment.data.task.reads_table() {
            let task = experiment.data.task;
            let sentence = format!("train.refit = true learns a table anew, and task = {task} reads none; leave it out");
            return Err(Error::Config(sentence).into());
        }
        expect_accuracy(&experiment)?;
        Ok(experiment)
    }

    /// Whether `key`, without its section, is among the [settings](Self::settings).
    pub fn sets(&self, key: &str) -> bool {
        self.set().any(|(set, _)| set == key)
    }

    /// The keys that are set, without their sections, and their values.
    fn set(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let pairs = self.settings.iter().filter_map(|setting| setting.split_once('='));
        pairs.map(|(key, value)| (key.rsplit('.').next().unwrap_or(key).trim(), value.trim()))
    }

    /// Refuses a setting that the data determine, or that is not read by the task, the tokenizer or any mixer of `experiment`.
    fn expect_read(&self, experiment: &Experiment) -> Result<()> {
        let (task, tokenizer) = (experiment.data.task, experiment.data.text.tokenizer);
        let model = &experiment.model;
        for (key, _) in self.set() {
            if SHAPED.contains(&key) {
                return Err(Error::Config(format!("{key} follows from the data, whatever is set; leave it out")));
            }
            let readers = DataConfig::readers(key);
            if !readers.contains(&task) {
                return Err(unread(key, "task", readers.into_iter().map(Task::name), task, LEAVE_OUT));
            }
            let of_mixers = Setting::ALL.iter().find(|setting| setting.key() == key && !setting.can_be_off());
            if let Some(setting) = of_mixers.filter(|&&setting| !setting.is_read_by(model)) {
                return Err(unread(key, "mixer", setting.readers().map(MixerKind::name), model.mixer_names(), LEAVE_OUT));
            }
            if key == "bpe_vocab_size" && tokenizer != TokenizerKind::Bpe {
                let bpe = TokenizerKind::Bpe.name();
                return Err(unread(key, "tokenizer", std::iter::once(bpe), tokenizer, &format!("set tokenizer={bpe} too, or {LEAVE_OUT}")));
            }
        }
        Ok(())
    }

    /// The settings, preceded by one that keeps the best checkpoint if there is a table to choose it by; an experiment file of the user's and
    /// explicit settings take precedence.
    fn all_settings(&self) -> Vec<String> {
        let is_built_in = match &self.experiment {
            Some(Asked::Named(name)) => super::experiments::text_of(name).is_some(),
            Some(Asked::Written(_)) => false,
            None => true,
        };
        let validates = self.validates || self.set().any(|(key, _)| key == "validation");
        let chosen = (is_built_in && validates).then(|| "train.keep=best".to_owned());
        chosen.into_iter().chain(self.settings.iter().cloned()).collect()
    }

    /// Refuses a table that would be learned as a text because no task was named.
    fn expect_text(&self, experiment: &Experiment) -> Result<()> {
        let is_named = self.experiment.is_some() || self.default_experiment.is_some() || self.from.is_some();
        match self.data.as_deref().filter(|path| !is_named && experiment.data.task == Task::Text && is_named_as_table(path)) {
            Some(path) => {
                let sentence = format!("'{}' is a table by its name, and it is not said what to learn from it", path.display());
                Err(Error::needed(Needed::TableTask, sentence))
            }
            None => Ok(()),
        }
    }

    /// The experiment with which the existing `run` is resumed; `None` if it has not begun and is to be started as a new one.
    ///
    /// # Errors
    /// As [`experiment`](Self::experiment), when an experiment other than the run's is requested, or when the run cannot be resumed and
    /// nothing is requested that could be started.
    pub fn resumed<E: From<Error>>(
        &self,
        run: &RunDir,
        adjust: impl FnOnce(&mut DataConfig) -> Result<(), E>,
    ) -> Result<Option<Experiment>, E> {
        let stored = run.file(EXPERIMENT_FILE);
        if !stored.exists() {
            if run.checkpoint(Pointer::Last)?.is_some() {
                let problem = "it is gone, and without it the run cannot continue; put it back, or start a new run in another directory";
                return Err(Error::malformed(stored, problem).into());
            }
            if self.experiment.is_none() && self.data.is_none() && self.default_experiment.is_none() {
                return Err(Error::run(run.path(), RunProblem::NotBegun).into());
            }
            return Ok(None);
        }
        let mut experiment = Experiment::load_file(&stored, &self.settings)?;
        experiment.data.find_kept(run.path());
        self.expect_own(&experiment, run.path())?;
        // Runs from before this was refused have it in their file, and continue as before.
        if self.sets("solved_at") && experiment.train.solved_at.to_bits() != Experiment::load_file(&stored, &[])?.train.solved_at.to_bits()
        {
            expect_accuracy(&experiment)?;
        }
        self.put_into(&mut experiment, adjust)?;
        Ok(Some(experiment))
    }

    /// Refuses a requested experiment other than the run's, which continues with its own.
    fn expect_own(&self, own: &Experiment, run: &Path) -> Result<()> {
        let Some(asked) = &self.experiment else { return Ok(()) };
        let named = asked.load(&self.settings)?;
        // Settings given at the run's start may be missing now, but every built-in experiment has its own description.
        let same = match named.description.is_empty() {
            false => named.description == own.description && named.data.task == own.data.task,
            true => ModelConfig { vocab_size: own.model.vocab_size, ..named.model } == own.model && named.data.task == own.data.task,
        };
        if same {
            return Ok(());
        }
        let (name, run) = (asked.name(), run.display());
        let sentence = format!("'{name}' is not the experiment of the run in '{run}', which continues with its own; leave '{name}' out");
        Err(Error::MustStay(sentence))
    }

    /// The experiment that starts from the model at `from`.
    fn continued(&self, from: &Path) -> Result<Experiment> {
        let checkpoint = find_checkpoint(from)?.canonicalize().map_err(|source| Error::io("read", from, source))?;
        expect_writable_name(&checkpoint)?;
        let config = CheckpointConfig::read(&checkpoint)?;
        let named = self.experiment.clone().or(self.default_experiment.map(|name| Asked::Named(name.to_owned())));
        let mut experiment = match named {
            Some(asked) => Experiment { model: config.model, ..asked.load(&[])? },
            None => {
                let mut own = Experiment::of_checkpoint(&config, &checkpoint)?;
                // Its data are not those of the new training.
                (own.data.path, own.data.corpus, own.data.table.validation, own.data.table.test) = (None, None, None, None);
                own.description = format!("From {}", from.display());
                // It may have been set without effect.
                if !own.data.task.is_scored_by_accuracy() {
                    own.train.solved_at = 0.0;
                }
                own
            }
        };
        experiment.train.from = Some(checkpoint);
        Experiment::parse(&experiment.to_toml()?, &self.all_settings())
    }

    /// Replaces the experiment's own text or table by the requested one.
    fn put_into<E: From<Error>>(
        &self,
        experiment: &mut Experiment,
        adjust: impl FnOnce(&mut DataConfig) -> Result<(), E>,
    ) -> Result<(), E> {
        experiment.train.memory_limit = self.memory_limit.or(experiment.train.memory_limit);
        if let Some(path) = self.data.as_ref().filter(|_| self.set().any(|(key, _)| key == "path")) {
            let sentence = format!("the data are given twice, as '{}' and by the setting path; leave one of them out", path.display());
            return Err(Error::Config(sentence).into());
        }
        adjust(&mut experiment.data)?;
        let data = &mut experiment.data;
        if data.task.reads_a_folder() {
            let given = self.data.as_deref().or(data.path.as_deref());
            data.path = given.map(readable_folder).transpose()?;
            return Ok(());
        }
        let Some(path) = &self.data else { return Ok(()) };
        if data.task != Task::Text && !data.task.reads_a_file() {
            return Err(Error::DataNotRead.into());
        }
        data.path = Some(readable(path)?);
        Ok(())
    }
}

/// Refuses to wait for an accuracy if the task is scored by its loss.
fn expect_accuracy(experiment: &Experiment) -> Result<()> {
    let task = experiment.data.task;
    if experiment.train.solved_at == 0.0 || task.is_scored_by_accuracy() {
        return Ok(());
    }
    let readers = Task::ALL.iter().copied().filter(|task| task.is_scored_by_accuracy()).map(Task::name);
    let remedy = format!("{LEAVE_OUT}, or end a training that no longer gains by patience");
    Err(unread("solved_at is an accuracy, which", "task", readers, format_args!("{task}, scored by its loss"), &remedy))
}

/// The error that `what` is a setting for `readers`, each a `kind`, none of which was `found`.
fn unread(what: &str, kind: &str, readers: impl Iterator<Item = &'static str>, found: impl Display, remedy: &str) -> Error {
    let readers: Vec<&str> = readers.collect();
    let (kind, readers) = (plural(&readers.len(), kind), readers.join(", "));
    Error::Config(format!("{what} is read by the {kind} {readers} alone, and this one is {found}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Keep;

    fn unchanged(_: &mut DataConfig) -> Result<()> {
        Ok(())
    }

    #[test]
    fn a_run_is_called_after_what_it_learns() {
        let named = |experiment: Option<&str>, data: Option<&str>| {
            let experiment = experiment.map(|name| Asked::Named(name.to_owned()));
            Request { experiment, data: data.map(PathBuf::from), ..Request::default() }.run_name()
        };
        assert_eq!(named(None, None), "selective-copying");
        assert_eq!(named(None, Some("a/my.txt")), "my");
        assert_eq!(named(Some("b/own.toml"), Some("a/my.txt")), "own");
    }

    #[test]
    fn what_is_written_out_is_what_is_named() {
        let settings = vec!["d_model=32".to_owned()];
        let asked = |experiment| Request { experiment: Some(experiment), settings: settings.clone(), ..Request::default() };
        let text = crate::train::experiments::text_of("parity").unwrap();
        let written = asked(Asked::Written(text.to_owned())).experiment(unchanged).unwrap();
        assert_eq!(written, asked(Asked::Named("parity".to_owned())).experiment(unchanged).unwrap());
        assert_eq!(written.model.d_model, 32);
    }

    #[test]
    fn a_table_without_a_task_is_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.CSV");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let request = Request { data: Some(path), ..Request::default() };
        let refused = request.experiment(unchanged).unwrap_err();
        assert!(matches!(refused, Error::Needed { what: Needed::TableTask, .. }), "{refused}");
        let named = Request { experiment: Some(Asked::Named("text".to_owned())), ..request.clone() };
        assert_eq!(named.experiment(unchanged).unwrap().data.task, Task::Text);
        let set = Request { settings: vec!["task=classify".to_owned(), "target=b".to_owned()], ..request };
        assert_eq!(set.experiment(unchanged).unwrap().data.task, Task::Classify);
    }

    #[test]
    fn a_table_to_validate_with_chooses_what_is_kept_unless_a_setting_or_a_file_of_ones_own_does() {
        let keep = |experiment: Option<Asked>, validates: bool, settings: &[&str]| {
            let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
            let default_experiment = experiment.is_none().then_some("classify");
            let request =
                Request { experiment, default_experiment, data: Some("Cargo.toml".into()), validates, settings, ..Request::default() };
            request.experiment(unchanged).unwrap().train.keep
        };
        let named = Some(Asked::Named("classify".to_owned()));
        for experiment in [None, named.clone()] {
            assert_eq!(keep(experiment.clone(), false, &[]), Keep::Last);
            assert_eq!(keep(experiment.clone(), true, &["patience=3"]), Keep::Best);
            assert_eq!(keep(experiment, false, &["validation=Cargo.toml"]), Keep::Best);
        }
        assert_eq!(keep(named, true, &["train.keep=average"]), Keep::Average);
        let text = crate::train::experiments::text_of("classify").unwrap();
        assert_eq!(keep(Some(Asked::Written(text.to_owned())), true, &[]), Keep::Last);
    }

    #[test]
    fn a_setting_that_the_task_does_not_read_is_refused() {
        let refused = |task: &'static str, setting: &str| {
            let (default_experiment, settings) = (Some(task), vec![setting.to_owned()]);
            let request = Request { default_experiment, data: Some("Cargo.toml".into()), settings, ..Request::default() };
            request.experiment(unchanged).err().map(|error| error.to_string())
        };
        assert_eq!(
            refused("classify", "horizon=9").unwrap(),
            "horizon is read by the task forecast alone, and this one is classify; leave it out"
        );
        assert_eq!(refused("text", "model.vocab_size=7").unwrap(), "vocab_size follows from the data, whatever is set; leave it out");
        assert!(refused("forecast", "data.tokenizer=byte").unwrap().starts_with("tokenizer is read by the task text alone"));
        assert!(refused("forecast", "class_weights=balanced").unwrap().contains("classify alone"));
        assert!(refused("text", "missing=mask").unwrap().contains("the tasks classify, regress, forecast alone"));
        let told = refused("policy", "train_fraction=0.5").unwrap();
        assert!(told.starts_with("train_fraction is read by the tasks text, classify, regress, forecast alone"), "{told}");
        assert_eq!(
            refused("text", "model.window=9").unwrap(),
            "window is read by the mixer attention alone, and this one is min-gru; leave it out"
        );
        assert!(refused("text", "d_state=4").unwrap().contains("the mixers mamba, s6, s4, s4d, h3 alone"));
        for setting in ["highway=false", "positions=learned", "expansion=1", "max_seq_len=300"] {
            assert_eq!(refused("text", setting), None, "{setting}");
        }
        assert_eq!(
            refused("text", "data.bpe_vocab_size=300").unwrap(),
            "bpe_vocab_size is read by the tokenizer bpe alone, and this one is char; set tokenizer=bpe too, or leave it out"
        );
        for (task, setting) in
            [("forecast", "horizon=9"), ("classify", "class_weights=balanced"), ("text", "train_fraction=0.5"), ("text", "lr=0.1")]
        {
            assert_eq!(refused(task, setting), None, "{task} {setting}");
        }
    }

    #[test]
    fn an_accuracy_is_waited_for_only_where_a_task_is_scored_by_it() {
        let refusal = |default_experiment: Option<&'static str>, experiment: Option<&str>, settings: &[&str]| {
            let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
            let experiment = experiment.map(|text| Asked::Written(text.to_owned()));
            let request = Request { default_experiment, experiment, data: Some("Cargo.toml".into()), settings, ..Request::default() };
            request.experiment(unchanged).err().map(|error| error.to_string())
        };
        for setting in ["solved_at=0.12", "train.solved_at = 1"] {
            let refused = refusal(Some("text"), None, &[setting]).unwrap();
            assert!(refused.starts_with("solved_at is an accuracy, which is read by the tasks selective-copying,"), "{refused}");
            assert!(refused.contains(" alone, and this one is text, scored by its loss; leave it out"), "{refused}");
        }
        let of_file = "[train]\nsolved_at = 0.5\nkeep = \"best\"\n[data]\ntask = \"regress\"\ntarget = [\"x\"]\n";
        assert!(refusal(None, Some(of_file), &[]).unwrap().contains("this one is regress"));
        for (task, setting) in [("text", "solved_at=0"), ("classify", "solved_at=0.9")] {
            assert_eq!(refusal(Some(task), None, &[setting, "keep=best"]), None, "{task} {setting}");
        }
    }

    #[test]
    fn data_are_given_once_and_only_tables_are_learned_anew() {
        let refused = |settings: &[&str]| {
            let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
            let request = Request { data: Some("Cargo.toml".into()), settings, ..Request::default() };
            request.experiment(unchanged).unwrap_err().to_string()
        };
        assert!(refused(&["data.path = other"]).starts_with("the data are given twice, as 'Cargo.toml' and by the setting path"));
        assert!(refused(&["refit=true"]).starts_with("train.refit = true learns a table anew, and task = text reads none"));
    }

    #[test]
    fn data_are_refused_where_none_are_read() {
        let request =
            Request { data: Some("Cargo.toml".into()), experiment: Some(Asked::Named("parity".to_owned())), ..Request::default() };
        assert!(request.experiment(unchanged).unwrap_err().to_string().contains("makes its own data"));
    }
}
