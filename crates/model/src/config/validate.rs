//! What a configuration must satisfy: every key by itself, and every combination of keys.

use alloc::format;

use super::CheckedConfig;
use super::{MAX_D_MODEL, MAX_LAYERS, ModelConfig, within, wrong};
use crate::choices::{Candidate, ForgetFloor, InitialState, Initialization, Pooling, Positions, ScanKind, WiringKind};
use crate::spec::{Setting, names_with};
use crate::{Error, Result};

const MAX_VOCAB_SIZE: usize = 1 << 22;
const MAX_STATE: usize = 1 << 12;
const MAX_SEQ_LEN: usize = 1 << 24;
/// 16 GiB of f32 weights.
const MAX_PARAMETERS: u128 = 1 << 32;

impl ModelConfig {
    /// Checks every key and every combination of keys.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    pub fn validate(&self) -> Result<()> {
        self.checked().map(drop)
    }

    /// Checks all but the sizes that `checked` was made with.
    pub(super) fn validate_sized(&self, checked: &CheckedConfig) -> Result<()> {
        self.validate_ends()?;
        within("d_model", self.d_model, MAX_D_MODEL)?;
        within("n_layers", self.n_layers, MAX_LAYERS)?;
        if let Some(unused) = self.mixers.get(self.n_layers) {
            let (found, n_layers) = (self.mixers.len(), self.n_layers);
            return wrong(format!("mixers lists {found} mixers for {n_layers} blocks, '{unused}' would not be used; raise n_layers"));
        }
        within("n_heads", self.n_heads, MAX_D_MODEL)?;
        within("d_state", self.d_state, MAX_STATE)?;
        within("max_seq_len", self.max_seq_len, MAX_SEQ_LEN)?;
        if self.window > MAX_SEQ_LEN {
            return wrong(format!("window must be at most {MAX_SEQ_LEN}, with 0 for max_seq_len, found {}", self.window));
        }
        if self.dt_rank > MAX_D_MODEL {
            return wrong(format!("dt_rank must be at most {MAX_D_MODEL}, with 0 for ⌈d_model / 16⌉, found {}", self.dt_rank));
        }
        self.validate_wiring()?;
        let inside = checked.inside_wiring();
        self.mixer_kinds().into_iter().try_for_each(|kind| kind.spec().validate(&inside)).map_err(|error| match (self.wiring, error) {
            (WiringKind::Mamba, Error::Config(sentence)) => {
                Error::Config(format!("{sentence} (inside wiring = mamba, the mixer's d_model is expansion · d_model)"))
            }
            (_, error) => error,
        })?;
        let weights = checked.cost().parameters;
        if weights > MAX_PARAMETERS {
            return wrong(format!(
                "the model would have {weights} weights, expected at most {MAX_PARAMETERS}; lower d_model, n_layers or vocab_size"
            ));
        }
        if !(0.0..=1.0).contains(&self.rms_eps) {
            return wrong(format!("rms_eps must be between 0 and 1, found {}", self.rms_eps));
        }
        // The kernels have it as an f32, which is 1 from a little below it on.
        if !((0.0..1.0).contains(&self.dropout) && (self.dropout as f32) < 1.0) {
            return wrong(format!("dropout must be at least 0 and below 1, also rounded to 32 bits, found {}", self.dropout));
        }
        if let Some((_, site)) = self.dropout_sites.iter().enumerate().find(|(i, site)| self.dropout_sites[..*i].contains(site)) {
            return wrong(format!("dropout_sites lists '{site}' twice; list each site once"));
        }
        if !(self.forget_bias.is_finite() && self.forget_bias.abs() <= 1e3) {
            return wrong(format!("forget_bias must be a number between -1000 and 1000, found {}", self.forget_bias));
        }
        self.validate_settings()
    }

    /// What is read and what is predicted.
    fn validate_ends(&self) -> Result<()> {
        if self.input_width == 0 {
            within("vocab_size", self.vocab_size, MAX_VOCAB_SIZE)?;
        } else {
            within("input_width", self.input_width, MAX_D_MODEL)?;
            if self.vocab_size != 0 {
                let (width, tokens) = (self.input_width, self.vocab_size);
                return wrong(format!(
                    "a model reads tokens or values, found vocab_size = {tokens} and input_width = {width}; set one of them to 0"
                ));
            }
            if self.n_outputs == 0 {
                return wrong("a model of values predicts no tokens; say with n_outputs how many classes or numbers".into());
            }
        }
        if self.n_outputs > MAX_VOCAB_SIZE {
            return wrong(format!("n_outputs must be at most {MAX_VOCAB_SIZE}, found {}", self.n_outputs));
        }
        if self.tie_embeddings && !self.is_language_model() {
            return wrong("tie_embeddings = true needs a model that predicts the tokens it reads; use tie_embeddings = false".into());
        }
        if self.tie_embeddings && self.pair_head {
            return wrong("pair_head = true has nothing to do with the tokens that are read; use tie_embeddings = false".into());
        }
        if self.decision { self.validate_policy() } else { Ok(()) }
    }

    /// What a policy cannot have, once its widths are known.
    fn validate_policy(&self) -> Result<()> {
        if self.positions == Positions::Learned {
            return wrong("a policy has a time table of its own, found positions = learned; use positions = none".into());
        }
        if self.pooling != Pooling::Last {
            return wrong(format!("a policy reads every step by itself, found pooling = {}; use pooling = last", self.pooling));
        }
        if self.pair_head {
            return wrong("a policy compares nothing, found pair_head = true; use pair_head = false".into());
        }
        let (width, action) = (self.input_width, self.n_outputs);
        if width.checked_sub(action).is_none_or(|rest| rest < 3) || action == 0 {
            return wrong(format!(
                "a policy reads return, observation, last action and time, so input_width must be at least n_outputs + 3 and n_outputs at \
                 least 1, found {width} and {action}"
            ));
        }
        Ok(())
    }

    /// The settings that some mixers do not have.
    fn validate_settings(&self) -> Result<()> {
        let kinds = self.mixer_kinds();
        let without = |setting: Setting| kinds.iter().find(|kind| !kind.spec().takes().contains(&setting));
        let exists = |is_set: bool, setting: Setting, on: &str, off: &str| match without(setting) {
            Some(kind) if is_set => {
                let names = names_with(setting);
                wrong(format!("{on} exists for {names} only, found mixer = {kind}; use {off}"))
            }
            _ => Ok(()),
        };
        if let (true, Some(kind)) = (self.initial_state != InitialState::Zero, without(Setting::InitialState)) {
            return wrong(format!("initial_state = {} does not exist for mixer = {kind}; use zero", self.initial_state));
        }
        exists(self.init == Initialization::Gpt, Setting::GptInit, "init = gpt", "init = default")?;
        exists(self.highway, Setting::Highway, "highway = true", "highway = false")?;
        exists(self.forget_floor != ForgetFloor::None, Setting::ForgetFloor, "forget_floor = learned", "forget_floor = none")?;
        exists(self.scan != ScanKind::Linear, Setting::LogSpace, "scan = log-space", "scan = linear")?;
        // One attention among other mixers is enough for something to turn.
        if self.positions == Positions::Rotary && !kinds.iter().any(|kind| kind.spec().takes().contains(&Setting::Rotary)) {
            let kind = kinds.first().copied().unwrap_or_default();
            return wrong(format!(
                "positions = rotary rotates the queries and keys of attention, found mixer = {kind}; use positions = none"
            ));
        }
        if self.scan != ScanKind::Linear && self.candidate != Candidate::Positive {
            return wrong(format!(
                "scan = log-space takes the logarithm of the candidate and so needs candidate = positive, found {}; use scan = linear",
                self.candidate
            ));
        }
        Ok(())
    }
}
