//! Recalling scattered tokens in order.

use super::{TaskSpec, has_key};
use crate::train::check::require;

pub(super) const SPEC: TaskSpec = TaskSpec {
    reads: |data, key| has_key(&data.copying, key),
    keys: |data| {
        let (length, tokens) = (data.copying.length, data.copying.n_tokens);
        require((1..=1 << 24).contains(&length), || format!("copy_length must be between 1 and 16777216, found {length}"))?;
        require((1..=length).contains(&tokens), || format!("copy_tokens must be between 1 and copy_length = {length}, found {tokens}"))
    },
    length: |data, _| Ok(("copy_length + copy_tokens", data.copying.length.saturating_add(data.copying.n_tokens))),
    scored: |data, _| data.copying.n_tokens,
    open: Some(|data, _, _| Ok(Box::new(data.copying.clone()))),
    ..TaskSpec::MADE
};
