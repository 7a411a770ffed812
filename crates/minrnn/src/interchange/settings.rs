//! Keys of a model's configuration that another library's file does not determine.

use std::path::Path;

use minrnn_model::ModelConfig;
use toml::{Table, Value};

use crate::train::settings::{overlay_section, parse_setting};
use crate::{Error, Needed, Result};

const SECTION: &str = "model";

/// Some keys of a [`ModelConfig`] and their values.
#[derive(Debug, Clone, Default)]
pub struct Settings(Table);

impl Settings {
    /// Parses settings of the form `key=value`.
    ///
    /// # Errors
    /// When a key is unknown or a value has another type.
    pub fn parse<S: AsRef<str>>(settings: &[S]) -> Result<Self> {
        let known = Table::from_iter([(SECTION.to_owned(), Value::Table(table(&ModelConfig::default())?))]);
        let mut given = Table::from_iter([(SECTION.to_owned(), Value::Table(Table::new()))]);
        for setting in settings {
            let (section, key, value) = parse_setting(&known, setting.as_ref())?;
            overlay_section(&mut given, &known, &section, Table::from_iter([(key, value)]))?;
        }
        Ok(Self(given.remove(SECTION).and_then(|keys| keys.try_into().ok()).unwrap_or_default()))
    }

    /// These keys and those of `others`; these take precedence.
    pub(super) fn and(&self, mut others: Self) -> Self {
        others.0.extend(self.0.clone());
        others
    }

    /// The default configuration with these keys.
    pub(super) fn config(&self) -> Result<ModelConfig> {
        self.over(&ModelConfig::default())
    }

    /// `config` with these keys replaced.
    ///
    /// # Errors
    /// When a value is not valid for its key. The configuration is not checked as a whole.
    pub fn over(&self, config: &ModelConfig) -> Result<ModelConfig> {
        let mut keys = table(config)?;
        keys.extend(self.0.clone());
        keys.try_into().map_err(|error: toml::de::Error| Error::Config(error.message().to_owned()))
    }

    /// Whether `key` was given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Refuses to continue without `key`; `why` says why the file does not determine it.
    pub(super) fn demand(&self, key: &str, why: &str) -> Result<()> {
        if self.has(key) {
            return Ok(());
        }
        Err(Error::needed(Needed::ModelKey(key.to_owned()), why))
    }

    /// Checks that `config`, made from the file at `path`, has these keys.
    pub(super) fn expect_in(&self, config: &ModelConfig, path: &Path) -> Result<()> {
        self.expect_no_other(&Self(table(config)?), path)
    }

    /// Checks that none of these keys has another value in `said`, from the file at `path`.
    pub(super) fn expect_no_other(&self, said: &Self, path: &Path) -> Result<()> {
        let mut both = self.0.iter().filter_map(|(key, value)| Some((key, value, said.0.get(key)?)));
        match both.find(|(_, value, file)| value != file) {
            None => Ok(()),
            Some((key, value, file)) => {
                Err(Error::malformed(path, format!("the file says {key} = {file}, but {key} = {value} was set; leave that setting out")))
            }
        }
    }
}

fn table(config: &ModelConfig) -> Result<Table> {
    Table::try_from(config).map_err(|error| Error::Config(error.to_string()))
}
