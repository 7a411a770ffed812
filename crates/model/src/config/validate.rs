//! Validation of a configuration: every key, and every combination of keys.

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
        // The kernels read it as an f32, to which numbers a little below 1 are 1.
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

    /// Checks what is read and what is predicted.
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

    /// Checks what a policy cannot have, once its widths are known.
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

    /// Checks the settings that some mixers do not have.
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
        // One attention among other mixers is enough for something to rotate.
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

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, valid};
    use super::*;
    use crate::MixerKind;
    use crate::choices::{DropoutSite, FeedForwardKind};

    #[test]
    fn each_limit_is_a_sentence_that_names_the_key() {
        assert!(refusal(|c| c.d_model = 0).contains("d_model must be between 1 and"));
        assert!(refusal(|c| c.d_model = usize::MAX).contains("d_model"));
        assert!(refusal(|c| c.vocab_size = usize::MAX).contains("vocab_size"));
        assert!(refusal(|c| c.n_layers = 1 << 20).contains("n_layers"));
        assert!(refusal(|c| c.expansion = 0.7).contains("0.7 · 128"));
        assert!(refusal(|c| c.expansion = f64::NAN).contains("expansion"));
        assert!(refusal(|c| c.expansion = 1e300).contains("expansion"));
        assert!(refusal(|c| c.ff_mult = -1.0).contains("ff_mult"));
        assert!(refusal(|c| c.rms_eps = -1e-5).contains("rms_eps"));
        assert!(refusal(|c| c.dropout = 1.0).contains("dropout"));
        assert!(refusal(|c| c.dropout = f64::NAN).contains("dropout"));
        assert!(refusal(|c| c.dropout = 0.999_999_99).contains("below 1, also rounded to 32 bits, found 0.99999999"));
        ModelConfig { dropout: 0.999_999_9, ..valid() }.validate().unwrap();
        assert!(refusal(|c| c.dropout_sites = vec![DropoutSite::Mixer; 2]).contains("'mixer' twice"));
        assert!(refusal(|c| c.forget_bias = f64::INFINITY).contains("forget_bias"));
        assert!(refusal(|c| (c.d_model, c.n_layers) = (1 << 16, 1 << 10)).contains("weights, expected at most"));
    }

    #[test]
    fn ff_mult_does_not_matter_without_a_feed_forward_part() {
        ModelConfig { ff: FeedForwardKind::None, ff_mult: 0.0, ..valid() }.validate().unwrap();
    }

    #[test]
    fn attention_needs_heads_that_fit_and_rotary_positions_need_attention() {
        let attention =
            |c: &mut ModelConfig, n_heads, positions| (c.mixer, c.n_heads, c.positions) = (MixerKind::Attention, n_heads, positions);
        assert!(
            refusal(|c| attention(c, 5, Positions::None))
                .contains("n_heads must divide d_model, found 5 heads for 128 with mixer = attention; change n_heads or d_model")
        );
        assert!(refusal(|c| attention(c, 128, Positions::Rotary)).contains("even width, found 1"));
        assert!(refusal(|c| c.positions = Positions::Rotary).contains("found mixer = min-gru"));
        assert!(refusal(|c| c.init = Initialization::Gpt).contains("init = gpt exists for attention only"));
        assert!(refusal(|c| c.window = usize::MAX).contains("window"));
        let mut config = valid();
        attention(&mut config, 4, Positions::Rotary);
        config.validate().unwrap();
    }

    #[test]
    fn the_log_space_scan_needs_a_positive_candidate_and_a_minimal_cell() {
        ModelConfig { scan: ScanKind::LogSpace, ..valid() }.validate().unwrap();
        assert!(refusal(|c| (c.scan, c.candidate) = (ScanKind::LogSpace, Candidate::Tanh)).contains("found tanh"));
        assert!(refusal(|c| (c.scan, c.mixer) = (ScanKind::LogSpace, MixerKind::Gru)).contains("mixer = gru"));
    }

    #[test]
    fn heads_divide_the_width_of_their_mixer() {
        let refused = refusal(|c| (c.mixer, c.n_heads) = (MixerKind::Aaren, 3));
        assert!(
            refused.contains(
                "n_heads must divide the inner width, found 3 heads for 256 with mixer = aaren; change n_heads, d_model or expansion"
            ),
            "{refused}"
        );
        assert!(refusal(|c| (c.mixer, c.n_heads) = (MixerKind::RetNet, 3)).contains("n_heads must divide d_model, found 3 heads for 128"));
        assert!(refusal(|c| (c.mixer, c.n_heads) = (MixerKind::RetNet, 128)).contains("128 heads of d_model 128 have 1 each"));
        ModelConfig { n_heads: 3, ..valid() }.validate().unwrap();
    }

    #[test]
    fn xlstm_needs_heads_that_divide_and_begins_empty() {
        let of = |mixer| ModelConfig { mixer, d_model: 80, ff: FeedForwardKind::GeGlu, ff_mult: 1.3, ..valid() };
        of(MixerKind::SLstm).validate().unwrap();
        assert_eq!(of(MixerKind::MLstm).mlstm_inner().unwrap(), 192);
        assert_eq!(of(MixerKind::SLstm).d_ff().unwrap(), 128);
        let mixed = ModelConfig { mixers: vec![MixerKind::MLstm, MixerKind::SLstm], ..of(MixerKind::MinGru) };
        assert_eq!([mixed.ff_at(0), mixed.ff_at(1)], [FeedForwardKind::None, FeedForwardKind::GeGlu]);
        assert!(
            refusal(|c| (c.mixer, c.n_heads) = (MixerKind::SLstm, 3))
                .contains("n_heads must divide d_model, found 3 heads for 128 with mixer = s-lstm")
        );
        let refused = refusal(|c| (c.mixer, c.n_heads) = (MixerKind::MLstm, 3));
        assert!(
            refused.contains("expansion · d_model rounded up to a multiple of 64), found 3 heads for 256 with mixer = m-lstm"),
            "{refused}"
        );
        assert!(refusal(|c| (c.mixer, c.initial_state) = (MixerKind::MLstm, InitialState::Learned)).contains("use zero"));
    }

    #[test]
    fn state_spaces_need_states_in_pairs_and_whole_heads() {
        assert!(refusal(|c| (c.mixer, c.d_state) = (MixerKind::S4d, 7)).contains("even one of at most 256, found 7"));
        assert!(refusal(|c| (c.mixer, c.d_state) = (MixerKind::S4, 512)).contains("found 512"));
        assert!(refusal(|c| (c.mixer, c.head_width) = (MixerKind::H3, 3)).contains("must divide d_model = 128, found 3"));
        assert!(refusal(|c| (c.mixer, c.max_seq_len) = (MixerKind::Hyena, 1)).contains("max_seq_len lags"));
        assert!(refusal(|c| (c.mixer, c.max_seq_len) = (MixerKind::HyenaFilter, 1)).contains("hyena-filter has a filter of max_seq_len"));
        assert!(refusal(|c| c.dt_rank = 1 << 20).contains("dt_rank must be at most"));
    }

    #[test]
    fn a_model_reads_tokens_or_values_and_says_what_it_predicts() {
        ModelConfig { vocab_size: 0, input_width: 3, n_outputs: 1, ..valid() }.validate().unwrap();
        ModelConfig { n_outputs: 10, pooling: Pooling::Mean, ..valid() }.validate().unwrap();
        assert!(refusal(|c| c.input_width = 3).contains("found vocab_size = 65 and input_width = 3"));
        assert!(refusal(|c| (c.vocab_size, c.input_width) = (0, 3)).contains("say with n_outputs"));
        assert!(refusal(|c| (c.tie_embeddings, c.n_outputs) = (true, 2)).contains("use tie_embeddings = false"));
        assert!(refusal(|c| c.n_outputs = usize::MAX).contains("n_outputs must be at most"));
    }

    #[test]
    fn variants_beyond_the_paper_name_the_mixers_they_exist_for() {
        assert!(refusal(|c| (c.highway, c.mixer) = (true, MixerKind::Gru)).contains("mixer = gru"));
        assert!(refusal(|c| (c.forget_floor, c.mixer) = (ForgetFloor::Learned, MixerKind::MinLstm)).contains("mixer = min-lstm"));
        assert!(refusal(|c| (c.forget_floor, c.scan) = (ForgetFloor::Learned, ScanKind::LogSpace)).contains("found log-space"));
        assert!(refusal(|c| (c.mixer, c.n_heads) = (MixerKind::Delta, 3)).contains("found 3 heads for 256"));
        ModelConfig { highway: true, forget_floor: ForgetFloor::Learned, ..valid() }.validate().unwrap();
        ModelConfig { mixer: MixerKind::Delta, ..valid() }.validate().unwrap();
    }
}
