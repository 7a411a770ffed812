//! The configuration of a model: everything its shapes and its arithmetic depend on.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::choices::{
    Candidate, DropoutSite, FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, NormKind, Positions, ScanKind,
};
use crate::{Error, Result};

const MAX_VOCAB_SIZE: usize = 1 << 22;
const MAX_D_MODEL: usize = 1 << 16;
const MAX_MULTIPLE: f64 = 64.0;
const MAX_LAYERS: usize = 1 << 10;
const MAX_STATE: usize = 1 << 12;
const MAX_SEQ_LEN: usize = 1 << 24;
/// 16 GiB of f32 weights.
const MAX_PARAMETERS: u128 = 1 << 32;

/// A language model: embedding, `n_layers` blocks (convolution, mixer, feed-forward), final norm, head.
///
/// The keys are those of the `[model]` section of an experiment and of `config.json`; a missing key takes its default,
/// an unknown one is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The time-mixing layer. Default `min-gru`.
    pub mixer: MixerKind,
    /// The time-mixing layers of the blocks, repeated from the first block to the last. Default empty: `mixer` in every block.
    pub mixers: Vec<MixerKind>,
    /// Number of token ids V. The default 0 stands for "not known yet": training fills it in from the tokenizer.
    pub vocab_size: usize,
    /// Width D of the residual stream. Default 128.
    pub d_model: usize,
    /// Ratio of the recurrent width to `d_model`; their product must be whole. Default 2.
    pub expansion: f64,
    /// Number of blocks. Default 2.
    pub n_layers: usize,
    /// Whether each block opens with a causal convolution of width 4 and a pointwise one. Default false.
    pub conv: bool,
    /// The feed-forward part of a block. Default `mlp`.
    pub ff: FeedForwardKind,
    /// Ratio of the feed-forward width to `d_model`; their product must be whole. Default 4.
    pub ff_mult: f64,
    /// The kind of every norm. Default `rms`.
    pub norm: NormKind,
    /// Share of units dropped while training, in [0, 1). Default 0.
    pub dropout: f64,
    /// Where dropout acts. Default: everywhere.
    pub dropout_sites: Vec<DropoutSite>,
    /// Whether the head shares the embedding's matrix. Default false.
    pub tie_embeddings: bool,
    /// The candidate map of minGRU and minLSTM. Default `positive`.
    pub candidate: Candidate,
    /// Whether minLSTM's gates are divided by their sum. Default true.
    pub normalize_gates: bool,
    /// Added to minLSTM's forget-gate bias after initialisation. Default 0.
    pub forget_bias: f64,
    /// The state before the first token. Default `zero`.
    pub initial_state: InitialState,
    /// How the recurrence is evaluated over time. Default `linear`.
    pub scan: ScanKind,
    /// Number of heads of mixers that have some; it must divide their width. Default 4.
    pub n_heads: usize,
    /// State size N of each channel of a state space model. Default 16.
    pub d_state: usize,
    /// Longest sequence of mixers that need to know: attention, S4's and Hyena's filters, learned positions. Default 1024.
    pub max_seq_len: usize,
    /// How many of the last tokens attention sees; 0 stands for all of them. Default 0.
    pub window: usize,
    /// How attention knows the place of a token. Default `none`.
    pub positions: Positions,
    /// Whether the output of minGRU and minLSTM is a learned mixture of their projected state and their input. Default false.
    pub highway: bool,
    /// The lower bound of minGRU's forget gate. Default `none`.
    pub forget_floor: ForgetFloor,
    /// Where the GRU's reset gate acts. Default `paper`.
    pub gru_form: GruForm,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            mixer: MixerKind::MinGru,
            mixers: Vec::new(),
            vocab_size: 0,
            d_model: 128,
            expansion: 2.0,
            n_layers: 2,
            conv: false,
            ff: FeedForwardKind::Mlp,
            ff_mult: 4.0,
            norm: NormKind::Rms,
            dropout: 0.0,
            dropout_sites: DropoutSite::ALL.to_vec(),
            tie_embeddings: false,
            candidate: Candidate::Positive,
            normalize_gates: true,
            forget_bias: 0.0,
            initial_state: InitialState::Zero,
            scan: ScanKind::Linear,
            n_heads: 4,
            d_state: 16,
            max_seq_len: 1024,
            window: 0,
            positions: Positions::None,
            highway: false,
            forget_floor: ForgetFloor::None,
            gru_form: GruForm::Paper,
        }
    }
}

impl ModelConfig {
    /// The time-mixing layer of block `layer`.
    pub fn mixer_at(&self, layer: usize) -> MixerKind {
        if self.mixers.is_empty() { self.mixer } else { self.mixers[layer % self.mixers.len()] }
    }

    /// Every mixer of the model once.
    pub fn mixer_kinds(&self) -> Vec<MixerKind> {
        let mut kinds = Vec::new();
        for layer in 0..self.n_layers.min(self.mixers.len().max(1)) {
            let kind = self.mixer_at(layer);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The recurrent width E = `expansion · d_model`.
    ///
    /// # Errors
    /// When the product is not a whole number of at least 1, or is beyond the limits.
    pub fn d_inner(&self) -> Result<usize> {
        whole_width("expansion", self.expansion, self.d_model)
    }

    /// The hidden width of the feed-forward part, `ff_mult · d_model`.
    ///
    /// # Errors
    /// When the product is not a whole number of at least 1, or is beyond the limits.
    pub fn d_ff(&self) -> Result<usize> {
        whole_width("ff_mult", self.ff_mult, self.d_model)
    }

    /// What the forget gate's learned lower bound of block `layer` stays below: it rises evenly to 1 in the last block.
    pub fn forget_ceiling(&self, layer: usize) -> f64 {
        (layer + 1) as f64 / self.n_layers.max(1) as f64
    }

    /// Number of matrix weights (biases, norms and convolution filters left out): what the model costs in memory.
    ///
    /// # Errors
    /// As [`d_inner`](Self::d_inner) and [`d_ff`](Self::d_ff).
    pub fn matrix_weights(&self) -> Result<u128> {
        let (d, e) = (self.d_model as u128, self.d_inner()? as u128);
        let highway = if self.highway { d * d } else { 0 };
        let mixer = |kind: MixerKind| match kind {
            MixerKind::MinGru => 3 * d * e + highway,
            MixerKind::MinLstm => 4 * d * e + highway,
            MixerKind::SignedMinGru => 4 * d * e,
            MixerKind::DecayMinGru => 3 * d * e,
            MixerKind::Delta => d * (4 * e + self.n_heads as u128),
            MixerKind::Gru => 3 * (d + e) * e + e * d,
            MixerKind::Lstm => 4 * (d + e) * e + e * d,
        };
        let mixers: u128 = (0..self.n_layers.min(MAX_LAYERS)).map(|layer| mixer(self.mixer_at(layer))).sum();
        let ff = match self.ff {
            FeedForwardKind::None => 0,
            FeedForwardKind::Mlp => 2 * d * self.d_ff()? as u128,
            FeedForwardKind::Gated => 3 * d * self.d_ff()? as u128,
        };
        let conv = if self.conv { d * d } else { 0 };
        let vocabulary = self.vocab_size as u128 * d * if self.tie_embeddings { 1 } else { 2 };
        Ok(mixers + self.n_layers as u128 * (conv + ff) + vocabulary)
    }

    /// Checks every key and every combination of keys.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    pub fn validate(&self) -> Result<()> {
        within("vocab_size", self.vocab_size, MAX_VOCAB_SIZE)?;
        within("d_model", self.d_model, MAX_D_MODEL)?;
        within("n_layers", self.n_layers, MAX_LAYERS)?;
        if let Some(unused) = self.mixers.get(self.n_layers) {
            let (found, n_layers) = (self.mixers.len(), self.n_layers);
            return wrong(format!("mixers lists {found} mixers for {n_layers} blocks, '{unused}' would not be used; raise n_layers"));
        }
        within("n_heads", self.n_heads, MAX_D_MODEL)?;
        within("d_state", self.d_state, MAX_STATE)?;
        within("max_seq_len", self.max_seq_len, MAX_SEQ_LEN)?;
        self.d_inner()?;
        if self.ff != FeedForwardKind::None {
            self.d_ff()?;
        }
        let weights = self.matrix_weights()?;
        if weights > MAX_PARAMETERS {
            return wrong(format!(
                "the model would have {weights} weights, expected at most {MAX_PARAMETERS}; lower d_model, n_layers or vocab_size"
            ));
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
        self.validate_heads()?;
        self.validate_variants()?;
        self.validate_scan()
    }

    fn validate_heads(&self) -> Result<()> {
        let d_inner = self.d_inner()?;
        if self.mixer_kinds().contains(&MixerKind::Delta) && !d_inner.is_multiple_of(self.n_heads) {
            return wrong(format!("n_heads must divide the inner width expansion · d_model = {d_inner}, found {}", self.n_heads));
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

fn whole_width(key: &str, ratio: f64, d_model: usize) -> Result<usize> {
    if !(ratio > 0.0 && ratio <= MAX_MULTIPLE) {
        return wrong(format!("{key} must be above 0 and at most {MAX_MULTIPLE}, found {ratio}"));
    }
    within("d_model", d_model, MAX_D_MODEL)?;
    // A ratio such as 4/3 written in decimal still means a whole width.
    let width = ratio * d_model as f64;
    let rounded = libm::round(width);
    if rounded < 1.0 || (width - rounded).abs() > 1e-9 * width {
        return wrong(format!("{key} · d_model must be a whole number of at least 1, found {ratio} · {d_model} = {width}"));
    }
    Ok(rounded as usize)
}

fn within(key: &str, found: usize, limit: usize) -> Result<()> {
    if (1..=limit).contains(&found) {
        return Ok(());
    }
    wrong(format!("{key} must be between 1 and {limit}, found {found}"))
}

fn wrong<T>(sentence: String) -> Result<T> {
    Err(Error::Config(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> ModelConfig {
        ModelConfig { vocab_size: 65, ..Default::default() }
    }

    fn refusal(change: impl FnOnce(&mut ModelConfig)) -> String {
        let mut config = valid();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_valid_once_the_vocabulary_is_known() {
        valid().validate().unwrap();
        assert_eq!(valid().d_inner().unwrap(), 256);
        assert_eq!(valid().d_ff().unwrap(), 512);
        assert!(ModelConfig::default().validate().unwrap_err().to_string().contains("vocab_size"));
    }

    #[test]
    fn json_round_trips_in_kebab_case() {
        let config = ModelConfig { mixer: MixerKind::MinLstm, scan: ScanKind::LogSpace, ..valid() };
        let text = serde_json::to_string(&config).unwrap();
        assert!(text.contains(r#""mixer":"min-lstm""#) && text.contains(r#""scan":"log-space""#) && text.contains(r#""feed-forward""#));
        assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), config);
        assert_eq!(serde_json::from_str::<ModelConfig>(r#"{"vocab_size": 65}"#).unwrap(), valid());
        assert!(serde_json::from_str::<ModelConfig>(r#"{"d_modle": 65}"#).unwrap_err().to_string().contains("d_modle"));
    }

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
        assert!(refusal(|c| c.dropout = 1.0).contains("dropout"));
        assert!(refusal(|c| c.dropout = f64::NAN).contains("dropout"));
        assert!(refusal(|c| c.dropout_sites = vec![DropoutSite::Mixer; 2]).contains("'mixer' twice"));
        assert!(refusal(|c| c.forget_bias = f64::INFINITY).contains("forget_bias"));
        assert!(refusal(|c| (c.d_model, c.n_layers) = (1 << 16, 1 << 10)).contains("weights, expected at most"));
    }

    #[test]
    fn ff_mult_does_not_matter_without_a_feed_forward_part() {
        ModelConfig { ff: FeedForwardKind::None, ff_mult: 0.0, ..valid() }.validate().unwrap();
    }

    #[test]
    fn a_fractional_ratio_with_a_whole_product_is_taken() {
        assert_eq!(ModelConfig { d_model: 96, expansion: 1.0 / 3.0, ..valid() }.d_inner().unwrap(), 32);
        assert_eq!(ModelConfig { d_model: 64, ff_mult: 1.5, ..valid() }.d_ff().unwrap(), 96);
    }

    #[test]
    fn the_log_space_scan_needs_a_positive_candidate_and_a_minimal_cell() {
        ModelConfig { scan: ScanKind::LogSpace, ..valid() }.validate().unwrap();
        assert!(refusal(|c| (c.scan, c.candidate) = (ScanKind::LogSpace, Candidate::Tanh)).contains("found tanh"));
        assert!(refusal(|c| (c.scan, c.mixer) = (ScanKind::LogSpace, MixerKind::Gru)).contains("mixer = gru"));
    }

    #[test]
    fn variants_beyond_the_paper_name_the_mixers_they_exist_for() {
        assert!(refusal(|c| (c.highway, c.mixer) = (true, MixerKind::Gru)).contains("mixer = gru"));
        assert!(refusal(|c| (c.forget_floor, c.mixer) = (ForgetFloor::Learned, MixerKind::MinLstm)).contains("mixer = min-lstm"));
        assert!(refusal(|c| (c.forget_floor, c.scan) = (ForgetFloor::Learned, ScanKind::LogSpace)).contains("found log-space"));
        assert!(refusal(|c| (c.mixer, c.n_heads) = (MixerKind::Delta, 3)).contains("256, found 3"));
        ModelConfig { highway: true, forget_floor: ForgetFloor::Learned, ..valid() }.validate().unwrap();
        ModelConfig { mixer: MixerKind::Delta, ..valid() }.validate().unwrap();
    }

    #[test]
    fn names_parse_back_and_unknown_ones_list_the_choices() {
        for &mixer in MixerKind::ALL {
            assert_eq!(mixer.name().parse::<MixerKind>().unwrap(), mixer);
        }
        let refused = "min-gruu".parse::<MixerKind>().unwrap_err().to_string();
        assert!(refused.starts_with("unknown mixer 'min-gruu'; expected one of min-gru, min-lstm, gru, lstm"), "{refused}");
    }
}
