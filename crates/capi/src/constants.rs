//! The constants named in the header; a test compares them.

// What a model is for.

pub(crate) const KIND_TEXT: i32 = 1;
pub(crate) const KIND_CLASSIFIER: i32 = 2;
pub(crate) const KIND_FORECASTER: i32 = 3;
pub(crate) const KIND_POLICY: i32 = 4;
pub(crate) const KIND_TOKENS: i32 = 5;
pub(crate) const KIND_VALUES: i32 = 6;
pub(crate) const KIND_REGRESSOR: i32 = 7;

// Sizes of a model.

pub(crate) const SIZE_VOCAB: i32 = 0;
pub(crate) const SIZE_INPUTS: i32 = 1;
pub(crate) const SIZE_OUTPUTS: i32 = 2;
pub(crate) const SIZE_PARAMETERS: i32 = 3;
pub(crate) const SIZE_COLUMNS: i32 = 4;
pub(crate) const SIZE_CLASSES: i32 = 5;
pub(crate) const SIZE_TARGETS: i32 = 6;
pub(crate) const SIZE_HORIZON: i32 = 7;
pub(crate) const SIZE_QUANTILES: i32 = 8;
pub(crate) const SIZE_PREDICTIONS: i32 = 9;
pub(crate) const SIZE_MAY_MISS: i32 = 10;
pub(crate) const SIZE_STEPS_SEEN: i32 = 11;
pub(crate) const SIZE_GROUPS: i32 = 12;

// Sizes of a session.

pub(crate) const SESSION_ROWS: i32 = 0;
pub(crate) const SESSION_BYTES: i32 = 1;

// Settings of a sampler.

pub(crate) const SAMPLING_REPETITION_PENALTY: i32 = 4;
pub(crate) const SAMPLING_TEMPERATURE: i32 = 0;
pub(crate) const SAMPLING_TOP_K: i32 = 1;
pub(crate) const SAMPLING_TOP_P: i32 = 2;
pub(crate) const SAMPLING_MIN_P: i32 = 3;

/// All rows of a session.
pub(crate) const ALL_ROWS: usize = usize::MAX;
