//! What a configuration must satisfy: every key by itself, and every combination of keys.

use alloc::format;

use super::{MAX_D_MODEL, MAX_LAYERS, ModelConfig, within, wrong};
use crate::choices::{Candidate, FeedForwardKind, ForgetFloor, InitialState, Initialization, MixerKind, Positions, ScanKind, WiringKind};
use crate::{Error, Result};

const MAX_VOCAB_SIZE: usize = 1 << 22;
const MAX_STATE: usize = 1 << 12;
/// Largest state of the mixers that begin with the eigenvectors of a matrix of this size.
const MAX_HIPPO: usize = 1 << 8;
/// Most lags of a filter that is kept as a window.
const MAX_LAGS: usize = 1 << 16;
const MAX_SEQ_LEN: usize = 1 << 24;
/// 16 GiB of f32 weights.
const MAX_PARAMETERS: u128 = 1 << 32;

impl ModelConfig {
    /// Checks every key and every combination of keys.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    pub fn validate(&self) -> Result<()> {
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
        self.d_inner()?;
        if self.ff != FeedForwardKind::None {
            self.d_ff()?;
        }
        self.validate_wiring()?;
        self.inside_wiring()?.validate_widths().map_err(|error| match (self.wiring, error) {
            (WiringKind::Mamba, Error::Config(sentence)) => {
                Error::Config(format!("{sentence} (inside wiring = mamba, the mixer's d_model is expansion · d_model)"))
            }
            (_, error) => error,
        })?;
        let weights = self.cost()?.parameters;
        if weights > MAX_PARAMETERS {
            return wrong(format!(
                "the model would have {weights} weights, expected at most {MAX_PARAMETERS}; lower d_model, n_layers or vocab_size"
            ));
        }
        if !(0.0..=1.0).contains(&self.rms_eps) {
            return wrong(format!("rms_eps must be between 0 and 1, found {}", self.rms_eps));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return wrong(format!("dropout must be at least 0 and below 1, found {}", self.dropout));
        }
        if let Some((_, site)) = self.dropout_sites.iter().enumerate().find(|(i, site)| self.dropout_sites[..*i].contains(site)) {
            return wrong(format!("dropout_sites lists '{site}' twice; list each site once"));
        }
        if !(self.forget_bias.is_finite() && self.forget_bias.abs() <= 1e3) {
            return wrong(format!("forget_bias must be a number between -1000 and 1000, found {}", self.forget_bias));
        }
        self.validate_initial_state()?;
        self.validate_state_spaces()?;
        self.validate_variants()?;
        self.validate_scan()
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
        Ok(())
    }

    /// What depends on the width of the mixers.
    fn validate_widths(&self) -> Result<()> {
        for kind in self.mixer_kinds() {
            self.validate_heads(kind)?;
        }
        self.validate_attention()?;
        self.validate_xlstm()
    }

    fn validate_heads(&self, kind: MixerKind) -> Result<()> {
        match kind {
            MixerKind::Aaren | MixerKind::LinearAttention | MixerKind::Delta => {
                self.heads_of(self.d_inner()?, "the inner width")?;
            }
            MixerKind::RetNet => {
                self.retention_heads()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Keys that change minGRU and minLSTM alone.
    fn validate_variants(&self) -> Result<()> {
        let other_than = |own: &[MixerKind]| self.mixer_kinds().into_iter().find(|kind| !own.contains(kind));
        if let (true, Some(kind)) = (self.highway, other_than(&[MixerKind::MinGru, MixerKind::MinLstm])) {
            return wrong(format!("highway = true exists for min-gru and min-lstm only, found mixer = {kind}; use highway = false"));
        }
        if self.forget_floor == ForgetFloor::None {
            return Ok(());
        }
        if let Some(kind) = other_than(&[MixerKind::MinGru]) {
            return wrong(format!("forget_floor = learned exists for min-gru only, found mixer = {kind}; use forget_floor = none"));
        }
        if self.scan != ScanKind::Linear {
            return wrong(format!("forget_floor = learned needs scan = linear, found {}", self.scan));
        }
        Ok(())
    }

    fn validate_initial_state(&self) -> Result<()> {
        const WITH_ONE: [MixerKind; 7] = [
            MixerKind::MinGru,
            MixerKind::MinLstm,
            MixerKind::Gru,
            MixerKind::Lstm,
            MixerKind::Gilr,
            MixerKind::SignedMinGru,
            MixerKind::DecayMinGru,
        ];
        match self.mixer_kinds().iter().find(|kind| !WITH_ONE.contains(kind)) {
            Some(kind) if self.initial_state != InitialState::Zero => {
                wrong(format!("initial_state = {} does not exist for mixer = {kind}; use zero", self.initial_state))
            }
            _ => Ok(()),
        }
    }

    fn validate_attention(&self) -> Result<()> {
        let kinds = self.mixer_kinds();
        let other = kinds.iter().find(|kind| **kind != MixerKind::Attention);
        if let (Initialization::Gpt, Some(kind)) = (self.init, other) {
            return wrong(format!("init = gpt exists for attention only, found mixer = {kind}; use init = default"));
        }
        let head_width = self.d_model / self.n_heads;
        if kinds.contains(&MixerKind::Attention) && head_width * self.n_heads != self.d_model {
            let (d_model, n_heads) = (self.d_model, self.n_heads);
            return wrong(format!("n_heads must divide d_model = {d_model} with mixer = attention, found {n_heads}; change one of them"));
        }
        if self.positions != Positions::Rotary {
            return Ok(());
        }
        if !kinds.contains(&MixerKind::Attention) {
            let kind = kinds.first().copied().unwrap_or_default();
            return wrong(format!(
                "positions = rotary turns the queries and keys of attention, found mixer = {kind}; use positions = none"
            ));
        }
        if !head_width.is_multiple_of(2) {
            let n_heads = self.n_heads;
            return wrong(format!(
                "positions = rotary needs heads of even width, found {head_width} with n_heads = {n_heads}; change n_heads"
            ));
        }
        Ok(())
    }

    fn validate_xlstm(&self) -> Result<()> {
        for kind in self.mixer_kinds() {
            let (width, is) = match kind {
                MixerKind::SLstm => (self.d_model, "d_model"),
                MixerKind::MLstm => (self.mlstm_inner()?, "the inner width, expansion · d_model rounded up to a multiple of 64"),
                _ => continue,
            };
            if !width.is_multiple_of(self.n_heads) {
                return wrong(format!("n_heads = {} does not divide {width}, {is} of mixer = {kind}; use one that does", self.n_heads));
            }
        }
        Ok(())
    }

    fn validate_state_spaces(&self) -> Result<()> {
        for kind in self.mixer_kinds() {
            if matches!(kind, MixerKind::S4 | MixerKind::S4d | MixerKind::H3) && (self.d_state % 2 == 1 || self.d_state > MAX_HIPPO) {
                let found = self.d_state;
                return wrong(format!("{kind} keeps half of d_state numbers and needs an even one of at most {MAX_HIPPO}, found {found}"));
            }
            if kind == MixerKind::H3 && !self.d_model.is_multiple_of(self.head_width) {
                return wrong(format!("head_width must divide d_model = {}, found {}", self.d_model, self.head_width));
            }
            if matches!(kind, MixerKind::Hyena | MixerKind::HyenaFilter) && !(2..=MAX_LAGS).contains(&self.max_seq_len) {
                let found = self.max_seq_len;
                return wrong(format!("{kind} has a filter of max_seq_len lags, expected between 2 and {MAX_LAGS}, found {found}"));
            }
        }
        Ok(())
    }

    fn validate_scan(&self) -> Result<()> {
        if self.scan == ScanKind::Linear {
            return Ok(());
        }
        if let Some(kind) = self.mixer_kinds().iter().find(|kind| !matches!(kind, MixerKind::MinGru | MixerKind::MinLstm)) {
            return wrong(format!("scan = log-space exists for min-gru and min-lstm only, found mixer = {kind}; use scan = linear"));
        }
        if self.candidate != Candidate::Positive {
            return wrong(format!(
                "scan = log-space takes the logarithm of the candidate and so needs candidate = positive, found {}; use scan = linear",
                self.candidate
            ));
        }
        Ok(())
    }
}
