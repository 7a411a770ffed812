//! Accuracies in records: an impossible one makes a record malformed.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Parses an accuracy, between 0 and 1.
///
/// # Errors
/// When it is not a number or out of range.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let found = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&found) {
        Ok(found)
    } else {
        Err(D::Error::custom(format!("an accuracy must be between 0 and 1, found {found}")))
    }
}

/// The same for an optional one.
///
/// # Errors
/// As [`share`].
pub fn share_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    /// A number that was read as a share.
    #[derive(Deserialize)]
    struct Share(#[serde(deserialize_with = "share")] f64);

    Ok(Option::<Share>::deserialize(deserializer)?.map(|Share(share)| share))
}
