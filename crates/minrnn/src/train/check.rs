//! One-line checks of settings.

use crate::{Error, Result};

/// An [`Error::Config`] with `sentence` unless `fits`.
pub(super) fn require(fits: bool, sentence: impl FnOnce() -> String) -> Result<()> {
    if fits { Ok(()) } else { Err(Error::Config(sentence())) }
}
