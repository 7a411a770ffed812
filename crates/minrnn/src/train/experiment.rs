//! An experiment: a model, its data and its training, read from a small file of differences from the defaults.

pub(super) mod keys;

use std::borrow::Cow;
use std::path::Path;

use minrnn_model::{CheckpointConfig, MixerKind, ModelConfig, NormKind, Positions, TokenizerKind, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use self::keys::{known_keys, overlay_top, syntax_error, to_table};
use super::check::require;
use super::data_config::{DataConfig, Task, WindowSampling};
use super::loss::Loss;
use super::presets::{READINGS, preset};
use super::rates::{Layer, Rates};
use super::run_dir::run_of;
use super::settings::{parse_setting, short, suggestion, with_suggestion};
use super::train_config::TrainConfig;
use crate::{Error, Result};

/// Maximum size of an experiment file in bytes.
pub const MAX_EXPERIMENT_BYTES: u64 = 1 << 20;

/// Everything that determines the outcome of a training run.
///
/// In a file: the sections `[model]`, `[data]`, `[train]` and `[expect]`, preceded by `description` and `preset` (`default`, `paper` or
/// `official`), which is applied before the file's own values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Experiment {
    /// A one-line description.
    pub description: String,
    /// The model. Its `vocab_size` is 0 until the data are known.
    pub model: ModelConfig,
    /// The data.
    pub data: DataConfig,
    /// The training.
    pub train: TrainConfig,
    /// The expected result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// A measure that an experiment is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Mean cross-entropy on the test part, in nats per token; smaller is better.
    TestLoss,
    /// Share of right answers on the test part, 0 to 1; larger is better.
    TestAccuracy,
}

/// The result an experiment should reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The measure.
    pub metric: Metric,
    /// Its expected value.
    pub value: f64,
    /// How much worse a result may be and still count as reached.
    pub tolerance: f64,
    /// The source of the expected value.
    pub source: String,
}

impl Expect {
    fn validate(&self) -> Result<()> {
        let Self { metric, value, tolerance, .. } = *self;
        match metric {
            Metric::TestLoss => require(value.is_finite(), || format!("expect.value must be a number, found {}", short(value)))?,
            Metric::TestAccuracy => require((0.0..=1.0).contains(&value), || {
                format!("expect.value must be an accuracy between 0 and 1, found {}", short(value))
            })?,
        }
        require(tolerance >= 0.0 && tolerance.is_finite(), || format!("expect.tolerance must be 0 or above, found {}", short(tolerance)))
    }

    /// Whether `found` is at least as good as expected, within the tolerance.
    pub fn is_reached_by(&self, found: f64) -> bool {
        match self.metric {
            Metric::TestLoss => found <= self.value + self.tolerance,
            Metric::TestAccuracy => found >= self.value - self.tolerance,
        }
    }
}

impl Experiment {
    /// The built-in experiment of that name, otherwise the one in the file of that name, with `settings` applied on top.
    ///
    /// A setting is `section.key=value`, or `key=value` if the key exists in one section only, or `preset=name`.
    ///
    /// # Errors
    /// When there is neither such an experiment nor such a file, a key or value is not valid, or [`validate`](Self::validate) refuses the
    /// result.
    pub fn load(name_or_path: &str, settings: &[String]) -> Result<Self> {
        if let Some(text) = super::experiments::text_of(name_or_path) {
            return Self::parse(text, settings);
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            let names = super::experiments::NAMES.iter().copied();
            return Err(Error::Config(format!("there is no file and no experiment '{name_or_path}'{}", suggestion(name_or_path, names))));
        }
        Self::load_file(path, settings)
    }

    /// The experiment in a file, with `settings` applied on top.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_file(path: impl AsRef<Path>, settings: &[String]) -> Result<Self> {
        let path = path.as_ref();
        let text = read_text(path, MAX_EXPERIMENT_BYTES)?;
        // Errors in the file name the file; errors in the settings do not.
        Self::parse(&text, &[]).map_err(|error| Error::malformed(path, error.to_string()))?;
        Self::parse(&text, settings)
    }

    /// The data and training settings in the configuration of the checkpoint at `checkpoint`, with its model; defaults if it was not
    /// trained here, with windows that fit the model. The path of a text is left out: the run keeps its tokens, so the text itself is no
    /// longer needed.
    ///
    /// # Errors
    /// When a section is damaged, or settings do not fit together.
    pub fn of_checkpoint(config: &CheckpointConfig, checkpoint: &Path) -> Result<Self> {
        let model = config.model.clone();
        let (data, train) = (section_of(config, checkpoint, "data")?, section_of(config, checkpoint, "train")?);
        let mut experiment = Self { model, data, train, ..Self::default() };
        if let Some(most) = experiment.most_steps().filter(|_| !config.sections.contains_key("train")) {
            experiment.train.seq_len = experiment.train.seq_len.min(most);
        }
        let task = experiment.data.task;
        experiment.data.path = experiment.data.path.filter(|_| task.reads_a_folder() || task.reads_a_file());
        if let Ok(run) = run_of(checkpoint) {
            experiment.data.find_kept(&run);
        }
        experiment.validate()?;
        Ok(experiment)
    }

    /// The experiment written in `text`, with `settings` applied on top.
    ///
    /// # Errors
    /// When the text is not TOML, a key or value is not valid, or [`validate`](Self::validate) refuses the result.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self> {
        let mut file: Table = text.parse().map_err(|error| syntax_error(text, &error))?;
        let known = known_keys()?;
        let mut table = to_table(&Self::default())?;
        let preset_of =
            |setting: &String| setting.split_once('=').filter(|(key, _)| key.trim() == "preset").map(|(_, name)| name.trim().to_owned());
        let chosen = match (file.remove("preset"), settings.iter().rev().find_map(preset_of)) {
            (_, Some(name)) => Some(name),
            (Some(Value::String(name)), None) => Some(name),
            (Some(other), None) => return Err(Error::Config(format!("preset must be a text, found {other}"))),
            (None, None) => None,
        };
        let mut rates = Rates::default();
        for (section, values) in chosen.as_deref().map(preset).transpose()?.into_iter().flatten() {
            rates.see(Layer::Preset, &section, &values);
            overlay_top(&mut table, &known, &section, values)?;
        }
        for (section, values) in file {
            rates.see(Layer::File, &section, &values);
            overlay_top(&mut table, &known, &section, values)?;
        }
        for setting in settings.iter().filter(|setting| preset_of(setting).is_none()) {
            let (section, key, value) = parse_setting(&known, setting)?;
            let values = Value::Table(Table::from_iter([(key, value)]));
            rates.see(Layer::Settings, &section, &values);
            overlay_top(&mut table, &known, &section, values)?;
        }
        let mut experiment: Self = table.try_into().map_err(|error: toml::de::Error| Error::Config(with_suggestion(error.message())))?;
        rates.settle(&mut experiment.train);
        experiment.validate()?;
        Ok(experiment)
    }

    /// The description, with the kind of tokens that a text is read as: built-in experiments describe their characters, and `tokenizer` can be set.
    pub fn described(&self) -> Cow<'_, str> {
        let kind = match self.data.text.tokenizer {
            TokenizerKind::Byte => "byte",
            TokenizerKind::Bpe => "BPE",
            TokenizerKind::Character => "character",
        };
        match self.description.strip_prefix("A character model ") {
            Some(rest) if self.data.task == Task::Text => Cow::Owned(format!("A {kind} model {rest}")),
            _ => Cow::Borrowed(&self.description),
        }
    }

    /// The whole experiment as TOML, including defaults; [`parse`](Self::parse) reads it back unchanged.
    ///
    /// # Errors
    /// When a number cannot be represented in TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::Config(format!("the experiment cannot be written as TOML: {error}")))
    }

    /// The preset that matches its variant of minGRU and minLSTM, `paper` or `official`; `None` for other mixers, or if it matches neither.
    pub fn reading(&self) -> Option<&'static str> {
        let mixers = self.model.mixer_kinds();
        if mixers.iter().any(|mixer| ![MixerKind::MinGru, MixerKind::MinLstm].contains(mixer)) {
            return None;
        }
        // minGRU has one gate, which these keys of minLSTM do not affect.
        let of_min_lstm = |key: &str| ["normalize_gates", "forget_bias"].contains(&key) && !mixers.contains(&MixerKind::MinLstm);
        let own = to_table(self).ok()?;
        READINGS.into_iter().find(|name| {
            let sections = preset(name).unwrap_or_default();
            let mut keys =
                sections.iter().flat_map(|(section, keys)| keys.as_table().into_iter().flatten().map(move |pair| (section, pair)));
            keys.all(|(section, (key, value))| of_min_lstm(key) || own[section].get(key) == Some(value))
        })
    }

    /// What its training minimises.
    pub fn loss(&self) -> Loss {
        (self.data.task.spec().loss)(&self.data)
    }

    /// Checks every key and every combination of keys. A `vocab_size` of 0, not known yet, is accepted.
    ///
    /// # Errors
    /// With a sentence that names the first key out of range, or the keys that contradict each other.
    pub fn validate(&self) -> Result<()> {
        // What the data determine may not be known yet.
        let known = match self.model.clone() {
            model if model.input_width > 0 => model,
            model if model.decision => ModelConfig { input_width: 4, n_outputs: 1, ..model },
            model => ModelConfig { vocab_size: model.vocab_size.max(1), ..model },
        };
        known.validate()?;
        self.data.validate()?;
        self.train.validate()?;
        self.expect.as_ref().map_or(Ok(()), Expect::validate)?;
        let open = [("batch_size", self.train.batch_size == 0), ("max_iterations", self.train.max_iterations == 0)];
        if let Some((key, _)) = open.iter().find(|(_, is_open)| *is_open && !self.data.task.reads_table()) {
            let task = self.data.task;
            return Err(Error::Config(format!(
                "{key} = 0 leaves it to the amount of data of a table; of task = {task} it must be above 0"
            )));
        }
        self.validate_length()?;
        require(self.model.pair_head == (self.data.task == Task::Retrieval), || {
            "pair_head = true compares two sequences, which is what task = retrieval is about and no other task has; set both or neither"
                .to_owned()
        })?;
        require(self.model.decision == (self.data.task == Task::Policy), || {
            "decision = true makes a model a policy, which is what task = policy trains and no other task; set both or neither".to_owned()
        })?;
        require(!(self.train.checkpoint_blocks && self.model.norm == NormKind::Batch), || {
            "checkpoint_blocks computes every block twice, and norm = batch would count each batch twice in its running statistics; use \
             norm = layer or rms"
                .to_owned()
        })
    }

    /// Checks that sequences are no longer than `max_seq_len`, if the positions of tokens, or what attention sees of them, end there.
    fn validate_length(&self) -> Result<()> {
        let learned = self.model.positions == Positions::Learned;
        let (key, length) = (self.data.task.spec().length)(&self.data, &self.train)?;
        self.expect_room(key, length)?;
        require(!(learned && self.data.task == Task::Text && self.data.text.sampling != WindowSampling::Random), || {
            "sampling = stream and lanes count positions on from window to window, beyond those of positions = learned; use sampling = random or \
             positions = rotary"
                .to_owned()
        })
    }

    /// Checks that sequences of up to `longest` steps fit, if there is a longest.
    pub(super) fn expect_room_for(&self, longest: Option<usize>) -> Result<()> {
        longest.map_or(Ok(()), |length| self.expect_room("the longest sequence", length))
    }

    fn expect_room(&self, what: &str, length: usize) -> Result<()> {
        let Some(limit) = self.most_steps() else { return Ok(()) };
        require(length <= limit, || {
            format!("{what} = {length} is beyond max_seq_len = {limit}, where positions or the cache of attention end; raise max_seq_len")
        })
    }

    /// The maximum number of steps of a sequence, if there is a limit.
    fn most_steps(&self) -> Option<usize> {
        let model = &self.model;
        let unlimited = model.window == 0 && model.mixer_kinds().contains(&MixerKind::Attention);
        (unlimited || model.positions == Positions::Learned).then_some(model.max_seq_len)
    }
}

fn section_of<T: DeserializeOwned>(config: &CheckpointConfig, checkpoint: &Path, name: &str) -> Result<T> {
    let unusable = || {
        let problem = format!("its config.json has no usable section '{name}', which says how to score it; take a checkpoint of a run");
        Error::malformed(checkpoint, problem)
    };
    let value = config.sections.get(name).cloned().unwrap_or_else(|| serde_json::json!({}));
    let known = known_keys()?;
    let is_known = |key: &String| known.get(name).is_some_and(|keys| keys.get(key).is_some());
    if !value.as_object().is_some_and(|keys| keys.keys().all(is_known)) {
        return Err(unusable());
    }
    serde_json::from_value(value).map_err(|_| unusable())
}

#[cfg(test)]
mod tests {
    use minrnn_model::{Candidate, DropoutSite, InitialState, MixerKind, NormKind};
    use proptest::prelude::*;

    use super::super::train_config::{DecayGroups, ScheduleKind};
    use super::*;

    fn parse(text: &str) -> Result<Experiment> {
        Experiment::parse(text, &[])
    }

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    fn set(setting: &str) -> Result<Experiment> {
        Experiment::parse("", &[setting.to_owned()])
    }

    #[test]
    fn the_reading_of_a_model_is_the_preset_it_agrees_with() {
        let reading = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
            Experiment::parse("", &settings).unwrap().reading()
        };
        assert_eq!(reading(&["preset=paper", "mixer=min-lstm", "d_model=24"]), Some("paper"));
        assert_eq!(reading(&["preset=official", "mixer=min-gru"]), Some("official"));
        assert_eq!(reading(&["preset=official", "mixer=min-lstm", "normalize_gates=true"]), None);
        // minGRU has no such gates.
        assert_eq!(reading(&["preset=official", "mixer=min-gru", "normalize_gates=true"]), Some("official"));
        assert_eq!(reading(&["preset=paper", "mixer=gru"]), None);
    }

    #[test]
    fn a_model_of_a_text_is_described_by_its_tokens() {
        let described = |name: &str, setting: &str| Experiment::load(name, &[setting.to_owned()]).unwrap().described().into_owned();
        assert!(described("text", "tokenizer=char").starts_with("A character model of your own text file"));
        assert!(described("text", "tokenizer=byte").starts_with("A byte model of your own text file"));
        assert!(described("text", "tokenizer=bpe").starts_with("A BPE model of your own text file"));
        // The experiment is still recognised by what it records.
        let recorded = Experiment::load("text", &["tokenizer=bpe".to_owned()]).unwrap().description;
        assert_eq!(recorded, Experiment::load("text", &[]).unwrap().description);
        assert_eq!(described("parity", "lr=0.1"), Experiment::load("parity", &[]).unwrap().description);
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        assert_eq!(parse("").unwrap(), Experiment::default());
    }

    #[test]
    fn what_is_written_is_read_back_equal() {
        let text = "description = 'x'\npreset = 'official'\n[model]\nmixer = 'min-lstm'\n[data]\npath = 'a b.txt'\n[train]\nlr = 3e-4\n\
                    [expect]\nmetric = 'test-loss'\nvalue = 1.5\ntolerance = 0.1\nsource = 'y'";
        let experiment = parse(text).unwrap();
        assert_eq!(experiment.model.mixer, MixerKind::MinLstm);
        assert_eq!(parse(&experiment.to_toml().unwrap()).unwrap(), experiment);
        assert_eq!(parse(&Experiment::default().to_toml().unwrap()).unwrap(), Experiment::default());
    }

    #[test]
    fn settings_lie_over_the_file_which_lies_over_the_preset() {
        let text = "preset = 'official'\n[model]\nnorm = 'batch'\nd_model = 32";
        let experiment = Experiment::parse(text, &["d_model=64".to_owned(), "train.lr=1e-2".to_owned()]).unwrap();
        assert_eq!((experiment.model.norm, experiment.model.d_model, experiment.train.lr), (NormKind::Batch, 64, 1e-2));
        assert_eq!((experiment.model.initial_state, experiment.model.forget_bias), (InitialState::Learned, 3.0));
        assert_eq!(experiment.train.decay_groups, DecayGroups::Official);
        let paper = Experiment::parse(text, &["preset = paper".to_owned()]).unwrap();
        assert_eq!((paper.model.initial_state, paper.model.norm), (InitialState::Zero, NormKind::Batch));
    }

    #[test]
    fn settings_reach_every_section_and_every_kind_of_value() {
        assert_eq!(set("model.candidate=tanh").unwrap().model.candidate, Candidate::Tanh);
        assert_eq!(set("dropout_sites=mixer").unwrap().model.dropout_sites, [DropoutSite::Mixer]);
        assert_eq!(set("betas=0.8,0.95").unwrap().train.betas, [0.8, 0.95]);
        assert_eq!(set("path=12").unwrap().data.path.unwrap(), Path::new("12"));
        assert_eq!(set("max_iterations=1e4").unwrap().train.max_iterations, 10_000);
        assert!(set("conv=true").unwrap().model.conv);
    }

    #[test]
    fn an_expectation_that_nothing_could_reach_or_miss_is_refused() {
        let expect = |metric: &str, value: &str, tolerance: &str| {
            refusal(&format!("[expect]\nmetric = '{metric}'\nvalue = {value}\ntolerance = {tolerance}\nsource = 'x'"))
        };
        assert_eq!(expect("test-loss", "nan", "0.1"), "expect.value must be a number, found NaN");
        assert_eq!(expect("test-loss", "inf", "0.1"), "expect.value must be a number, found inf");
        assert_eq!(expect("test-accuracy", "99.5", "0.1"), "expect.value must be an accuracy between 0 and 1, found 99.5");
        assert_eq!(expect("test-loss", "1.5", "-1.0"), "expect.tolerance must be 0 or above, found -1");
        assert_eq!(expect("test-accuracy", "0.5", "nan"), "expect.tolerance must be 0 or above, found NaN");
    }

    #[test]
    fn the_loss_is_named_by_what_the_task_predicts() {
        let loss = |text: &str| parse(text).unwrap().loss().label();
        assert_eq!(loss(""), "loss (nats per token)");
        assert_eq!(loss("[data]\ntask = 'selective-copying'"), "loss (nats per answer)");
        assert_eq!(loss("[data]\ntask = 'nearest-neighbour'"), "mean squared error");
        assert_eq!(loss("[model]\ndecision = true\n[data]\ntask = 'policy'"), "mean squared error");
        assert_eq!(loss("[data]\ntask = 'forecast'"), "mean squared error");
        assert_eq!(loss("[data]\ntask = 'forecast'\nquantiles = [0.1, 0.5, 0.9]"), "pinball loss");
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (setting, key) in [
            ("d_model=0", "d_model"),
            ("expansion=0.3", "expansion"),
            ("dropout=1", "dropout"),
            ("dropout=0.99999999", "dropout"),
            ("seq_len=0", "seq_len"),
            ("batch_size=1048576", "batch_size · seq_len"),
            ("lr=0", "lr"),
            ("lr=nan", "lr"),
            ("lr=1e-60", "lr"),
            ("min_lr=1", "min_lr"),
            ("betas=0.9,1", "betas"),
            ("betas=0.99999999,0.9", "betas"),
            ("clip_norm=-1", "clip_norm"),
            ("clip_norm=inf", "clip_norm"),
            ("eval_every=0", "eval_every"),
            ("threads=4096", "threads"),
            ("train_fraction=1", "train_fraction"),
            ("bpe_vocab_size=3", "bpe_vocab_size"),
            ("copy_tokens=5000", "copy_tokens"),
            ("max_iterations=9e15", "max_iterations"),
        ] {
            let refused = set(setting).unwrap_err().to_string();
            assert!(refused.starts_with(key), "{setting}: {refused}");
        }
    }

    #[test]
    fn a_length_beyond_the_places_is_refused() {
        let attention = "[model]\nmixer = 'attention'\nmax_seq_len = 100\n";
        assert!(refusal(attention).starts_with("seq_len = 256 is beyond max_seq_len = 100"));
        parse(&format!("{attention}window = 20")).unwrap();
        let learned = "[model]\npositions = 'learned'\n";
        parse(learned).unwrap();
        assert!(refusal(&format!("{learned}[data]\ntask = 'selective-copying'")).starts_with("copy_length + copy_tokens = 4112"));
        assert!(refusal(&format!("{learned}[data]\nsampling = 'stream'")).contains("positions = learned"));
    }

    #[test]
    fn a_model_that_was_not_trained_here_is_scored_in_windows_that_it_has_room_for() {
        let seq_len = |model: ModelConfig| {
            let config = CheckpointConfig::new(ModelConfig { vocab_size: 9, max_seq_len: 64, ..model });
            Experiment::of_checkpoint(&config, Path::new("imported")).unwrap().train.seq_len
        };
        assert_eq!(seq_len(ModelConfig { mixer: MixerKind::Attention, ..Default::default() }), 64);
        assert_eq!(seq_len(ModelConfig { positions: Positions::Learned, ..Default::default() }), 64);
        assert_eq!(seq_len(ModelConfig::default()), 256);
    }

    #[test]
    fn a_missing_file_and_a_damaged_file_are_named() {
        let refused = Experiment::load("shakespear-min-gru", &[]).unwrap_err().to_string();
        assert_eq!(refused, "there is no file and no experiment 'shakespear-min-gru'; did you mean 'shakespeare-min-gru'?");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[model]\nd_modle = 3").unwrap();
        let path = file.path().to_str().unwrap();
        let refused = Experiment::load(path, &[]).unwrap_err().to_string();
        assert!(refused.contains(path) && refused.contains("d_modle"), "{refused}");
        std::fs::write(file.path(), b"\xff").unwrap();
        assert!(Experiment::load(path, &[]).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn an_expectation_allows_its_tolerance_on_the_worse_side() {
        let expect = |metric| Expect { metric, value: 0.5, tolerance: 0.1, source: String::new() };
        assert!(expect(Metric::TestLoss).is_reached_by(0.59) && !expect(Metric::TestLoss).is_reached_by(0.61));
        assert!(expect(Metric::TestAccuracy).is_reached_by(0.41) && !expect(Metric::TestAccuracy).is_reached_by(0.39));
        assert!(!expect(Metric::TestLoss).is_reached_by(f64::NAN));
    }

    proptest! {
        #[test]
        fn numbers_are_read_back_to_the_last_bit(bits: u64, fraction in 0.0..1.0f64) {
            for number in [f64::from_bits(bits), fraction] {
                let mut experiment = Experiment::default();
                (experiment.train.lr, experiment.train.schedule) = (number, ScheduleKind::Constant);
                if experiment.validate().is_ok() {
                    let read = Experiment::parse(&experiment.to_toml().unwrap(), &[]).unwrap();
                    prop_assert_eq!(read.train.lr.to_bits(), number.to_bits());
                }
            }
        }

        #[test]
        fn no_text_panics(text in "[a-z\\[\\]=.'0-9\n_]{0,60}", setting in "\\PC{0,30}") {
            let _ = Experiment::parse(&text, &[]);
            let _ = Experiment::parse("", &[setting]);
        }
    }
}
