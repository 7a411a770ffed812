//! Recalling scattered tokens in order.

use super::TaskSpec;
use crate::data::SelectiveCopyingConfig;
use crate::train::check::require;

pub(super) const SPEC: TaskSpec = TaskSpec {
    keys: |data| {
        require((1..=1 << 24).contains(&data.copy_length), || {
            format!("copy_length must be between 1 and 16777216, found {}", data.copy_length)
        })?;
        require((1..=data.copy_length).contains(&data.copy_tokens), || {
            format!("copy_tokens must be between 1 and copy_length = {}, found {}", data.copy_length, data.copy_tokens)
        })
    },
    length: |data, _| Ok(("copy_length + copy_tokens", data.copy_length.saturating_add(data.copy_tokens))),
    scored: |data, _| data.copy_tokens,
    open: Some(|data, _, _| {
        Ok(Box::new(SelectiveCopyingConfig {
            length: data.copy_length,
            n_tokens: data.copy_tokens,
            encoding: data.copy_encoding,
            ..SelectiveCopyingConfig::default()
        }))
    }),
    ..TaskSpec::MADE
};
