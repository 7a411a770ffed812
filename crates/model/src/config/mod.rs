//! The configuration of a model: everything its shapes and its arithmetic depend on.

mod checked;
mod cost;
mod count;
mod tensors;
mod validate;
mod wiring;

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::choices::{
    Candidate, DropoutSite, FeedForwardKind, ForgetFloor, ForgetGate, GruForm, InitialState, Initialization, NormKind, Pooling, Positions,
    RecurrentInit, S4Init, ScanKind, WiringKind,
};
use crate::{Error, MixerKind, Result};

pub use checked::CheckedConfig;
pub(crate) use checked::Sizes;
pub use cost::{Cost, KvCache};

const MAX_D_MODEL: usize = 1 << 16;
const MAX_MULTIPLE: f64 = 64.0;
const MAX_LAYERS: usize = 1 << 10;
/// Rows of the residual stream for each step of a policy: the previous action, the return, and the observation.
pub const POLICY_PLACES: usize = 3;
/// Size of a policy's time table; later times use the last vector.
pub const POLICY_TIMES: usize = 1000;
/// Policies divide times by this.
pub const POLICY_TIME_SCALE: f64 = 1000.0;
/// A tensor that only policies have. Policies from before the key `decision` existed are recognised by it.
pub const POLICY_TENSOR: &str = "to_go.weight";
/// Taps of the short convolutions of blocks, Mamba and xLSTM.
pub const CONV_TAPS: usize = 4;
/// The widths of xLSTM's blocks are multiples of this.
const ROUNDED_WIDTH: usize = 64;

/// A sequence model: embedding of tokens or a linear map of values, `n_layers` blocks (convolution, mixer, feed-forward), final norm, head.
///
/// The keys are those of the `[model]` section of an experiment and of `config.json`; missing keys take their defaults, unknown ones are
/// refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The time-mixing layer. Default `min-gru`.
    pub mixer: MixerKind,
    /// The time-mixing layers of the blocks, repeated from the first block to the last. Default empty: `mixer` in every block.
    pub mixers: Vec<MixerKind>,
    /// What each block puts around its mixer. Default `none`.
    pub wiring: WiringKind,
    /// Number of token ids V. The default 0 means "not known yet": training fills it in from the tokenizer.
    pub vocab_size: usize,
    /// Numbers read at every step by a model of values instead of tokens. Default 0: it reads tokens.
    pub input_width: usize,
    /// Classes or numbers predicted at every step. Default 0: the token ids.
    pub n_outputs: usize,
    /// What the head sees of the past. Default `last`.
    pub pooling: Pooling,
    /// Whether the head compares its input with that before the last reset, for labels of pairs. Default false.
    pub pair_head: bool,
    /// Whether it is a policy: it reads return, observation, previous action and time at every step, as three rows of the residual stream,
    /// and predicts an action. Default false.
    pub decision: bool,
    /// Width D of the residual stream. Default 128.
    pub d_model: usize,
    /// Ratio of the recurrent width to `d_model`; their product must be an integer. With `wiring = mamba` it is the ratio of the width
    /// inside the wiring. Default 2.
    pub expansion: f64,
    /// Number of blocks. Default 2.
    pub n_layers: usize,
    /// Whether each block starts with a causal convolution of width 4 followed by a pointwise one. Default false.
    pub conv: bool,
    /// The feed-forward part of a block. Default `mlp`.
    pub ff: FeedForwardKind,
    /// Ratio of the feed-forward width to `d_model`; their product must be an integer (`ge-glu` and `swi-glu` round it up). Default 4.
    pub ff_mult: f64,
    /// The kind of every norm. Default `rms`.
    pub norm: NormKind,
    /// Added to the mean square in an RMSNorm, as in other libraries. Default 0: the norm is floored instead, and computed by a kernel.
    pub rms_eps: f64,
    /// Share of units dropped in training, in [0, 1). Default 0.
    pub dropout: f64,
    /// Where dropout applies. Default: everywhere.
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
    /// Number of heads, for mixers that have heads; it must divide their width. Default 4.
    pub n_heads: usize,
    /// State size N of each channel of a state space model. Default 16.
    pub d_state: usize,
    /// Rank R of the step sizes of Mamba and S6. The default 0 means ⌈`d_model` / 16⌉.
    pub dt_rank: usize,
    /// Initial frequencies of S4D's states. Default `legs`.
    pub s4_init: S4Init,
    /// Channels per head of H3; it must divide `d_model`. Default 1.
    pub head_width: usize,
    /// Longest sequence, for mixers that need to know it: attention, S4's and Hyena's filters, learned positions. Default 1024.
    pub max_seq_len: usize,
    /// How many of the last tokens attention sees, including the current one; 0 means `max_seq_len`. Default 0.
    pub window: usize,
    /// How the model encodes the position of a token: `learned` for any mixer, `rotary` for attention. Default `none`.
    pub positions: Positions,
    /// Whether attention, the feed-forward part and LayerNorm have biases. Default true.
    pub bias: bool,
    /// How weights are initialised; `gpt` for attention. Default `default`.
    pub init: Initialization,
    /// Whether the output of minGRU and minLSTM is a learned mixture of their projected state and their input. Default false.
    pub highway: bool,
    /// The lower bound of minGRU's forget gate. Default `none`.
    pub forget_floor: ForgetFloor,
    /// Where the GRU's reset gate applies. Default `paper`.
    pub gru_form: GruForm,
    /// Whether sLSTM's input and forget gates read through a convolution of width 4 and SiLU. Default true.
    pub slstm_conv: bool,
    /// How sLSTM's forget gate is computed from its pre-activation. Default `sigmoid`.
    pub slstm_forget_gate: ForgetGate,
    /// Initial values of sLSTM's recurrent weights. Default `zeros`.
    pub slstm_recurrent_init: RecurrentInit,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            mixer: MixerKind::MinGru,
            mixers: Vec::new(),
            wiring: WiringKind::None,
            vocab_size: 0,
            input_width: 0,
            n_outputs: 0,
            pooling: Pooling::Last,
            pair_head: false,
            decision: false,
            d_model: 128,
            expansion: 2.0,
            n_layers: 2,
            conv: false,
            ff: FeedForwardKind::Mlp,
            ff_mult: 4.0,
            norm: NormKind::Rms,
            rms_eps: 0.0,
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
            dt_rank: 0,
            s4_init: S4Init::Legs,
            head_width: 1,
            max_seq_len: 1024,
            window: 0,
            positions: Positions::None,
            bias: true,
            init: Initialization::Default,
            highway: false,
            forget_floor: ForgetFloor::None,
            gru_form: GruForm::Paper,
            slstm_conv: true,
            slstm_forget_gate: ForgetGate::Sigmoid,
            slstm_recurrent_init: RecurrentInit::Zeros,
        }
    }
}

impl ModelConfig {
    /// The configuration of a layer of width D = `d_model` in a network of your own, without a model around it.
    ///
    /// It is as valid as that of a whole model: `mixer` names the cell, whose own keys are set beside it. All others keep their defaults,
    /// except those that concern only whole models: one number is read, one is predicted, and there is one block. For stacked layers,
    /// `n_layers` says how many, which some initial values and `forget_floor` depend on.
    ///
    /// ```
    /// # use minrnn_model::{MixerKind, ModelConfig};
    /// let layer = ModelConfig { mixer: MixerKind::MinLstm, expansion: 1.0, ..ModelConfig::of_layer(16) }.checked()?;
    /// assert_eq!(layer.d_inner(), 16);
    /// # Ok::<(), minrnn_model::Error>(())
    /// ```
    pub fn of_layer(d_model: usize) -> Self {
        Self { input_width: 1, n_outputs: 1, d_model, n_layers: 1, ..Self::default() }
    }

    /// The time-mixing layer of block `layer`, counted from 0.
    pub fn mixer_at(&self, layer: usize) -> MixerKind {
        if self.mixers.is_empty() { self.mixer } else { self.mixers[layer % self.mixers.len()] }
    }

    /// Every mixer of the model, once each.
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

    /// The names of [`mixer_kinds`](Self::mixer_kinds), separated by commas.
    pub fn mixer_names(&self) -> String {
        let names: Vec<&str> = self.mixer_kinds().into_iter().map(MixerKind::name).collect();
        names.join(", ")
    }

    /// Number of classes or numbers predicted at every step: `n_outputs`, or else the token ids.
    pub fn outputs(&self) -> usize {
        if self.n_outputs == 0 { self.vocab_size } else { self.n_outputs }
    }

    /// Whether it predicts the next token.
    pub fn is_language_model(&self) -> bool {
        self.input_width == 0 && self.n_outputs == 0
    }

    /// The recurrent width E = `expansion · d_model`.
    ///
    /// # Errors
    /// When the product is not a whole number of at least 1, or is beyond the limits.
    pub(crate) fn d_inner(&self) -> Result<usize> {
        whole_width("expansion", self.expansion, self.d_model)
    }

    /// The rank R of the step sizes of Mamba and S6: `dt_rank`, or else ⌈`d_model` / 16⌉.
    pub fn step_rank(&self) -> usize {
        if self.dt_rank == 0 { self.d_model.div_ceil(16) } else { self.dt_rank }
    }

    /// The feed-forward part of block `layer`: none if the mixer, such as mLSTM, is a whole block by itself.
    pub fn ff_at(&self, layer: usize) -> FeedForwardKind {
        if self.mixer_at(layer).spec().is_whole_block() { FeedForwardKind::None } else { self.ff }
    }

    /// The inner width of mLSTM's block: `expansion · d_model` rounded up to a multiple of 64.
    ///
    /// # Errors
    /// As [`d_inner`](Self::d_inner).
    pub(crate) fn mlstm_inner(&self) -> Result<usize> {
        Ok(self.d_inner()?.next_multiple_of(ROUNDED_WIDTH))
    }

    /// The hidden width of the feed-forward part, `ff_mult · d_model`; of `ge-glu` and `swi-glu` rounded up to a multiple of 64.
    ///
    /// # Errors
    /// When the product is not a whole number of at least 1 (`ge-glu` and `swi-glu` take any), or is beyond the limits.
    pub(crate) fn d_ff(&self) -> Result<usize> {
        if !matches!(self.ff, FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu) {
            return whole_width("ff_mult", self.ff_mult, self.d_model);
        }
        // A ratio such as 8/3 written in decimal still means what it stands for.
        let width = libm::ceil(ratio_of("ff_mult", self.ff_mult, self.d_model)? - 1e-9);
        Ok((width as usize).max(1).next_multiple_of(ROUNDED_WIDTH))
    }

    /// How much each of the `n_heads` heads of `mixer` has of its `width`, which is called `what`.
    ///
    /// # Errors
    /// When the heads do not divide it.
    pub(crate) fn heads_of(&self, mixer: MixerKind, width: usize, what: &str) -> Result<usize> {
        let heads = self.n_heads;
        if heads == 0 || !width.is_multiple_of(heads) {
            let keys = if mixer.is_expanded() { "n_heads, d_model or expansion" } else { "n_heads or d_model" };
            return wrong(format!("n_heads must divide {what}, found {heads} heads for {width} with mixer = {mixer}; change {keys}"));
        }
        Ok(width / heads)
    }

    /// Channels of a head's query and of its value in a retention.
    ///
    /// # Errors
    /// When the heads do not divide the widths, or a query has no pairs of channels.
    pub(crate) fn retention_heads(&self) -> Result<[usize; 2]> {
        let key = self.heads_of(MixerKind::RetNet, self.d_model, "d_model")?;
        let value = self.heads_of(MixerKind::RetNet, self.d_inner()?, "the inner width")?;
        if key % 2 != 0 {
            let (heads, d) = (self.n_heads, self.d_model);
            return wrong(format!("ret-net rotates pairs of channels, but {heads} heads of d_model {d} have {key} each; change n_heads"));
        }
        Ok([key, value])
    }

    /// The upper limit of the forget gate's learned lower bound in block `layer`, counted from 0: it rises evenly to 1 in the last block.
    pub fn forget_ceiling(&self, layer: usize) -> f64 {
        (layer as f64 + 1.0) / self.n_layers.max(1) as f64
    }

    /// How many of the last tokens attention sees: `window`, or else `max_seq_len`.
    pub fn attention_window(&self) -> usize {
        if self.window == 0 { self.max_seq_len } else { self.window }
    }
}

/// `ratio · d_model`.
fn ratio_of(key: &str, ratio: f64, d_model: usize) -> Result<f64> {
    if !(ratio > 0.0 && ratio <= MAX_MULTIPLE) {
        return wrong(format!("{key} must be above 0 and at most {MAX_MULTIPLE}, found {ratio}"));
    }
    within("d_model", d_model, MAX_D_MODEL)?;
    Ok(ratio * d_model as f64)
}

fn whole_width(key: &str, ratio: f64, d_model: usize) -> Result<usize> {
    // A ratio such as 4/3 written in decimal still means a whole width.
    let width = ratio_of(key, ratio, d_model)?;
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

pub(crate) fn wrong<T>(sentence: String) -> Result<T> {
    Err(Error::Config(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults with a vocabulary.
    pub(super) fn valid() -> ModelConfig {
        ModelConfig { vocab_size: 65, ..Default::default() }
    }

    /// The refusal of the defaults after `change`.
    pub(super) fn refusal(change: impl FnOnce(&mut ModelConfig)) -> String {
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
    fn a_layer_of_any_mixer_needs_no_vocabulary() {
        for &mixer in MixerKind::ALL {
            let layer = ModelConfig { mixer, ..ModelConfig::of_layer(64) }.checked().unwrap();
            assert_eq!((layer.d_model, layer.d_inner()), (64, 128), "{mixer}");
        }
        assert!(ModelConfig::of_layer(0).validate().unwrap_err().to_string().contains("d_model must be between 1 and"));
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
    fn the_width_of_swi_glu_is_rounded_up() {
        let width = |d_model, ff_mult| ModelConfig { ff: FeedForwardKind::SwiGlu, d_model, ff_mult, ..valid() }.d_ff().unwrap();
        assert_eq!((width(384, 8.0 / 3.0), width(512, 8.0 / 3.0), width(8, 0.1)), (1024, 1408, 64));
    }

    #[test]
    fn a_fractional_ratio_with_a_whole_product_is_taken() {
        assert_eq!(ModelConfig { d_model: 96, expansion: 1.0 / 3.0, ..valid() }.d_inner().unwrap(), 32);
        assert_eq!(ModelConfig { d_model: 64, ff_mult: 1.5, ..valid() }.d_ff().unwrap(), 96);
    }
}
