//! An experiment's `[train]` section: the optimiser, its schedule, and when to evaluate and save.

use std::path::PathBuf;

use minrnn_kernels::choices;
use serde::{Deserialize, Serialize};

use crate::ops::Precision;

use super::check::require;
use super::settings::short;
use crate::device::DeviceChoice;
use crate::memory::Size;
use crate::{Error, Result};

/// Maximum number of threads in a pool, more than any machine this is meant for has.
pub const MAX_THREADS: usize = 1024;
/// Maximum tokens of one micro-batch; no machine we know could hold the activations of more.
const MAX_BATCH_TOKENS: usize = 1 << 26;

/// Keys that may change when a run is resumed and that affect how an update learns.
const LEARNING: [&str; 8] = ["lr", "min_lr", "warmup", "schedule", "lr_decay_iterations", "weight_decay", "clip_norm", "precision"];

/// The shape of the learning rate schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// `lr`, after the warm-up.
    Constant,
    /// From `lr` to `min_lr` along half a cosine, after the warm-up.
    #[default]
    Cosine,
}

/// Which parameters weight decay applies to; never state spaces, Hyena's filters, or the decay rates and skips of Mamba and S6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecayGroups {
    /// Those with at least two dimensions, including embeddings.
    #[default]
    Matrices,
    /// Every parameter.
    All,
    /// Every parameter except the mixer's candidate and gate projection, as in the code of minGRU's authors.
    Official,
    /// None.
    None,
}

choices! {
    /// Which weights a training ends with.
    Keep, "choice of weights" {
        /// Those of the checkpoint that is best on held-out data.
        #[default]
        Best = "best",
        /// The last ones.
        Last = "last",
        /// The mean of the weights after each of the last quarter of the updates.
        Average = "average",
    }
}

/// The training settings of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Steps per window T of a text, a forecast sequence or an episode of a policy; other tasks read whole sequences. Default 256.
    pub seq_len: usize,
    /// Sequences per micro-batch B; for tables 0 means 32, down to 8 for long sequences, and fewer if one is much longer than all others.
    /// Default 64.
    pub batch_size: usize,
    /// Number of micro-batches averaged in one update. Default 1.
    pub accumulation: usize,
    /// Number of optimiser updates; for tables 0 means as many as the amount of data requires. Default 1000.
    pub max_iterations: u64,
    /// The highest learning rate. State spaces and Hyena's filters learn with at most 1e-3, the features of a filter with at most 1e-5.
    /// Default 1e-3.
    pub lr: f64,
    /// The learning rate at the end of the cosine; if only `lr` is set, at most that. Default 1e-4.
    pub min_lr: f64,
    /// Iterations over which the learning rate rises to `lr`. Default 100.
    pub warmup: u64,
    /// The shape of the learning rate schedule. Default `cosine`.
    pub schedule: ScheduleKind,
    /// The iteration at which the cosine reaches `min_lr`; 0 means `max_iterations`. Default 0.
    pub lr_decay_iterations: u64,
    /// Decoupled weight decay λ of AdamW. Default 0.1.
    pub weight_decay: f64,
    /// Which parameters weight decay applies to. Default `matrices`.
    pub decay_groups: DecayGroups,
    /// Decay rates β1, β2 of AdamW's moments. Default [0.9, 0.99].
    pub betas: [f64; 2],
    /// Maximum global norm of the gradients; 0 turns clipping off. Default 1.
    pub clip_norm: f64,
    /// Iterations between evaluations. Default 100.
    pub eval_every: u64,
    /// Batches per evaluation. Default 20.
    pub eval_iterations: u64,
    /// Iterations between checkpoints. Default 100.
    pub checkpoint_every: u64,
    /// Which weights a training ends with: the `best` of those evaluated, the `last`, or the `average` of the last quarter of the updates,
    /// for which no part of a table is held out for validation. Default `best`.
    pub keep: Keep,
    /// Whether a table is then learned again, from the same initial weights and all of its data except a test file, for as many updates as
    /// the kept weights took, after these have been scored. Default false.
    pub refit: bool,
    /// Number of evaluations without a better test loss after which training stops; 0 turns this off. Default 0.
    pub patience: u64,
    /// Evaluation accuracy, 0 to 1, at which a task counts as solved and training stops; 0 turns this off, and is required if the task is
    /// scored by its loss (`text`, `nearest-neighbour`, `regress`, `forecast`, `policy`). Default 0.
    pub solved_at: f64,
    /// The number format. Default `f32`.
    pub precision: Precision,
    /// Whether the backward pass recomputes each block instead of keeping its activations: less memory, a third more time. Default false.
    pub checkpoint_blocks: bool,
    /// Where training runs: `cpu`, `vulkan`, `vulkan:1`, …, or `auto`. Default `cpu`.
    pub device: DeviceChoice,
    /// Seed of weights, data and dropout. Default 0.
    pub seed: u64,
    /// Seed of the evaluation batches, if it is not `seed`: runs with several seeds are then scored on the same ones. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_seed: Option<u64>,
    /// Number of threads; 0 uses all cores. Default 0.
    pub threads: usize,
    /// A run or checkpoint whose weights, vocabulary and scaling a training starts from; its model must be the same, except for a head that
    /// predicts something else. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Memory limit beyond which a training is refused, such as `4GiB`; the machine's memory is a limit in any case. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Size>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            seq_len: 256,
            batch_size: 64,
            accumulation: 1,
            max_iterations: 1000,
            lr: 1e-3,
            min_lr: 1e-4,
            warmup: 100,
            schedule: ScheduleKind::Cosine,
            lr_decay_iterations: 0,
            weight_decay: 0.1,
            decay_groups: DecayGroups::Matrices,
            betas: [0.9, 0.99],
            clip_norm: 1.0,
            eval_every: 100,
            eval_iterations: 20,
            checkpoint_every: 100,
            keep: Keep::default(),
            refit: false,
            patience: 0,
            solved_at: 0.0,
            precision: Precision::F32,
            checkpoint_blocks: false,
            device: DeviceChoice::default(),
            seed: 0,
            eval_seed: None,
            threads: 0,
            from: None,
            memory_limit: None,
        }
    }
}

impl TrainConfig {
    /// Whether data are held out to choose a checkpoint or to stop early.
    pub fn validates(&self) -> bool {
        self.keep == Keep::Best
    }

    /// The iteration at which the cosine reaches `min_lr`.
    pub fn lr_horizon(&self) -> u64 {
        if self.lr_decay_iterations == 0 { self.max_iterations } else { self.lr_decay_iterations }
    }

    /// The first key that affects how an update learns and whose value differs from that of `other`, with its value.
    pub(super) fn learns_otherwise(&self, other: &Self) -> Result<Option<(&'static str, serde_json::Value)>> {
        let keys = |train: &Self| serde_json::to_value(train).map_err(|error| Error::Config(error.to_string()));
        let (own, other) = (keys(self)?, keys(other)?);
        Ok(LEARNING.into_iter().find(|&key| own[key] != other[key]).map(|key| (key, own[key].clone())))
    }

    /// The seed of the evaluation batches.
    pub fn scoring_seed(&self) -> u64 {
        self.eval_seed.unwrap_or(self.seed)
    }

    /// Checks every key and every combination of keys.
    ///
    /// # Errors
    /// With a sentence that names the first key out of range.
    pub fn validate(&self) -> Result<()> {
        count("seq_len", self.seq_len as u64, 1 << 24)?;
        at_most("batch_size", self.batch_size as u64, 1 << 20)?;
        count("accumulation", self.accumulation as u64, 1 << 16)?;
        at_most("max_iterations", self.max_iterations, 1 << 40)?;
        count("eval_every", self.eval_every, 1 << 40)?;
        count("eval_iterations", self.eval_iterations, 1 << 30)?;
        count("checkpoint_every", self.checkpoint_every, 1 << 40)?;
        at_most("warmup", self.warmup, 1 << 40)?;
        at_most("lr_decay_iterations", self.lr_decay_iterations, 1 << 40)?;
        at_most("patience", self.patience, 1 << 40)?;
        require(self.batch_size * self.seq_len <= MAX_BATCH_TOKENS, || {
            format!("batch_size · seq_len must be at most {MAX_BATCH_TOKENS} tokens, found {} · {}", self.batch_size, self.seq_len)
        })?;
        // The optimiser uses these as f32.
        require(self.lr as f32 > 0.0 && self.lr <= 100.0, || {
            format!("lr must be above 0, also rounded to 32 bits, and at most 100, found {}", short(self.lr))
        })?;
        require(self.min_lr >= 0.0 && (self.min_lr <= self.lr || self.schedule == ScheduleKind::Constant), || {
            format!("min_lr must be between 0 and lr = {}, found {}", short(self.lr), short(self.min_lr))
        })?;
        require((0.0..=10.0).contains(&self.weight_decay), || {
            format!("weight_decay must be between 0 and 10, found {}", short(self.weight_decay))
        })?;
        require(self.betas.iter().all(|beta| (0.0..1.0).contains(beta) && (*beta as f32) < 1.0), || {
            format!("betas must be two numbers of at least 0 and below 1, also rounded to 32 bits, found {:?}", self.betas)
        })?;
        require(self.clip_norm >= 0.0 && self.clip_norm.is_finite(), || {
            format!("clip_norm must be 0 (off) or above, found {}", short(self.clip_norm))
        })?;
        require((0.0..=1.0).contains(&self.solved_at), || {
            format!("solved_at must be an accuracy between 0 (off) and 1, found {}", short(self.solved_at))
        })?;
        require(self.keep == Keep::Best || self.patience == 0 && self.solved_at == 0.0, || {
            "patience and solved_at wait for the best checkpoint; use keep = best, or leave them out".to_owned()
        })?;
        for (key, seed) in [("seed", Some(self.seed)), ("eval_seed", self.eval_seed)] {
            let seed = seed.unwrap_or(0);
            require(seed <= i64::MAX as u64, || format!("{key} must be at most {}, found {seed}", i64::MAX))?;
        }
        require(self.threads <= MAX_THREADS, || {
            format!("threads must be at most {MAX_THREADS}, with 0 for every core, found {}", self.threads)
        })
    }
}

fn at_most(key: &str, found: u64, limit: u64) -> Result<()> {
    require(found <= limit, || format!("{key} must be at most {limit}, found {found}"))
}

fn count(key: &str, found: u64, limit: u64) -> Result<()> {
    require((1..=limit).contains(&found), || format!("{key} must be between 1 and {limit}, found {found}"))
}
