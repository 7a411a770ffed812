//! The recorded action at every step of an episode, given the return still to be earned.

use minrnn_model::POLICY_PLACES;
use serde::{Deserialize, Serialize};

use super::{DataConfig, Loss, Source, TaskSpec, has_key};
use crate::data::IoKind;
use crate::data::offline_rl::{LeftPadding, OfflineRl, Trajectories};
use crate::train::check::require;
use crate::{Error, Needed};

/// Widths assumed if the file must not be read; those of the benchmarks' simulators are smaller.
const ASSUMED: [usize; 2] = [64, 16];

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Trajectories,
    reads: |data, key| has_key(&data.policy, key),
    keys: |data| {
        let scale = data.policy.return_scale;
        require(scale >= 0.0 && scale.is_finite(), || {
            format!("return_scale must be a number above 0, or 0 for the largest recorded return, found {scale}")
        })
    },
    length: |_, train| Ok(("the three places of each of seq_len steps", train.seq_len.saturating_mul(POLICY_PLACES))),
    steps: |_, train, _| [train.seq_len.saturating_mul(POLICY_PLACES); 2],
    scored: |_, places| places / POLICY_PLACES,
    loss: |_| Loss::SquaredError,
    by_accuracy: false,
    assumed_io: Some(|_| (IoKind::Values { width: ASSUMED[0] + ASSUMED[1] + 2 }, IoKind::Values { width: ASSUMED[1] })),
    // Held as read, along with a table of returns.
    held: DataConfig::file_bytes,
    open: Some(|data, train, _| {
        let missing = || Error::needed(Needed::File, "a policy is learned from recorded episodes: a file of trajectories is needed");
        let path = data.path.as_deref().ok_or_else(missing)?;
        let PolicyConfig { return_scale, left_padding } = data.policy;
        let (trajectories, rest) = Trajectories::read_and_count_rest(path)?;
        let task = OfflineRl::new(trajectories, train.seq_len, Some(return_scale).filter(|&scale| scale > 0.0), left_padding);
        Ok(Box::new(task.map_err(|error| error.in_file(path))?.without_rest(rest)))
    }),
    ..TaskSpec::MADE
};

/// How episodes are read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyConfig {
    /// Returns are divided by this. Default 0: the largest return of a recorded episode, whatever its sign.
    pub return_scale: f64,
    /// How the padding rows before a short window are treated: `cut` starts after them, `seen` reads them, as recurrent models did in the
    /// published experiments. Default `cut`.
    pub left_padding: LeftPadding,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self { return_scale: 0.0, left_padding: LeftPadding::Cut }
    }
}
