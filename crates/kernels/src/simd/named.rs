//! Levels by name: displayed, parsed, and read from the environment.

use super::Level;
use crate::choice::UnknownChoice;
use core::fmt;
use core::str::FromStr;

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Level {}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses only the levels that this machine can run.
impl FromStr for Level {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        named("instruction set", text)
    }
}

/// The level that `text` names; an error calls it `what`.
fn named(what: &'static str, text: &str) -> Result<Level, UnknownChoice> {
    let levels = Level::available();
    let found = levels.iter().copied().find(|level| level.name() == text);
    found.ok_or_else(|| UnknownChoice::new(what, text, levels.iter().map(|level| level.name())))
}

#[cfg(feature = "std")]
impl Level {
    /// The environment variable that names the level kernels use.
    pub const VARIABLE: &'static str = "MINRNN_SIMD";

    /// The level requested by [`Level::VARIABLE`], `None` if it is unset or empty. [`Level::current`] cannot fail and ignores what is an
    /// error here: programs whose users may set the variable should call this first.
    ///
    /// # Errors
    /// When the variable names no level that this machine can run.
    pub fn from_env() -> Result<Option<Self>, UnknownChoice> {
        asked_for(&std::env::var_os(Self::VARIABLE).unwrap_or_default().to_string_lossy())
    }
}

/// The level that the variable's `value` asks for.
#[cfg(feature = "std")]
fn asked_for(value: &str) -> Result<Option<Level>, UnknownChoice> {
    if value.is_empty() { Ok(None) } else { named(Level::VARIABLE, value).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_lead_back_to_their_levels() {
        let levels = Level::available();
        for (i, level) in levels.iter().enumerate() {
            assert_eq!(level.to_string().parse(), Ok(*level));
            assert!(levels[..i].iter().all(|other| other != level), "{level} stands for two levels");
        }
    }

    #[test]
    fn a_name_that_stands_for_no_level_is_refused_with_those_that_do() {
        let refused = "fast".parse::<Level>().unwrap_err();
        assert_eq!(refused.expected.len(), Level::available().len());
        assert!(refused.to_string().starts_with("unknown instruction set 'fast'; expected one of "), "{refused}");
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_variable_that_names_no_level_is_refused_and_an_empty_one_asks_for_none() {
        assert_eq!(asked_for(""), Ok(None));
        assert_eq!(asked_for("plain"), Ok(Some(Level::Plain)));
        let refused = asked_for("fast").unwrap_err().to_string();
        assert!(refused.starts_with("unknown MINRNN_SIMD 'fast'; expected one of plain"), "{refused}");
    }
}
