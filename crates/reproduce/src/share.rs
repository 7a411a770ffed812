//! Accuracies in records: what cannot be one makes a record malformed.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads an accuracy, which is between 0 and 1.
///
/// # Errors
/// When it is no number or lies outside.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let found = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&found) {
        Ok(found)
    } else {
        Err(D::Error::custom(format!("an accuracy must be between 0 and 1, found {found}")))
    }
}

/// The same where there may be none.
///
/// # Errors
/// As [`share`].
pub fn share_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    /// A number that was read as a share.
    #[derive(Deserialize)]
    struct Share(#[serde(deserialize_with = "share")] f64);

    Ok(Option::<Share>::deserialize(deserializer)?.map(|Share(share)| share))
}
