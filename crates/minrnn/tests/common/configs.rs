//! The small models the tests run: every setting of every mixer and block.

use minrnn_model::{
    Candidate, FeedForwardKind, ForgetFloor, ForgetGate, GruForm, InitialState, Initialization, MixerKind, ModelConfig, NormKind, Pooling,
    Positions, S4Init, ScanKind, Setting, WiringKind,
};

use super::{D_MODEL, VOCAB_SIZE};

/// One block of width 8 around `mixer`; filters are shorter than the longest sequences.
pub fn small(mixer: MixerKind) -> ModelConfig {
    ModelConfig { mixer, vocab_size: VOCAB_SIZE, d_model: D_MODEL, n_layers: 1, max_seq_len: 150, ..Default::default() }
}

/// Every combination of the settings that matter to `mixer`, according to its specification.
pub fn mixers(mixer: MixerKind) -> Vec<ModelConfig> {
    let mut configs = vec![small(mixer)];
    if takes(mixer, Setting::InitialState) {
        configs = vary(configs, InitialState::ALL, |config, value| config.initial_state = value);
    }
    if takes(mixer, Setting::LogSpace) {
        configs = vary(configs, ScanKind::ALL, |config, value| config.scan = value);
    }
    let configs = match mixer {
        MixerKind::MinGru | MixerKind::SignedMinGru | MixerKind::DecayMinGru => candidates(configs),
        MixerKind::MinLstm => vary(candidates(configs), &[true, false], |config, value| config.normalize_gates = value),
        MixerKind::Gru => vary(configs, GruForm::ALL, |config, value| config.gru_form = value),
        MixerKind::Mamba => {
            let plain = ModelConfig { n_layers: 2, ..small(mixer) };
            vec![plain.clone(), ModelConfig { d_state: 3, expansion: 1.5, ..plain }]
        }
        MixerKind::S6 => vec![small(mixer), ModelConfig { d_state: 3, dt_rank: 3, ..small(mixer) }],
        MixerKind::Lstm | MixerKind::Gilr | MixerKind::S4 => configs,
        MixerKind::Aaren | MixerKind::LinearAttention => heads(configs, &[4, 1, 16]),
        MixerKind::RetNet => heads(vec![small(mixer), ModelConfig { expansion: 1.5, ..small(mixer) }], &[4, 1, 2]),
        MixerKind::Rwkv4 => vec![small(mixer), ModelConfig { expansion: 1.0, ..small(mixer) }],
        MixerKind::SLstm => {
            let configs = vary(configs, ForgetGate::ALL, |config, value| config.slstm_forget_gate = value);
            vary(configs, &[true, false], |config, value| config.slstm_conv = value)
        }
        MixerKind::MLstm | MixerKind::RgLru => heads(configs, &[4, 1]),
        MixerKind::Attention => attention(),
        MixerKind::S4d => vary(configs, S4Init::ALL, |config, value| config.s4_init = value),
        MixerKind::H3 => {
            vary(vary(configs, &[1, 2], |config, value| config.head_width = value), &[6, 2], |config, value| config.d_state = value)
        }
        MixerKind::Hyena | MixerKind::HyenaFilter => vary(configs, &[150, 2, 20], |config, value| config.max_seq_len = value),
        MixerKind::Delta => heads(configs, &[4, 2]),
    };
    configs.into_iter().chain(beyond_the_paper(mixer)).filter(|config| config.validate().is_ok()).collect()
}

fn takes(mixer: MixerKind, setting: Setting) -> bool {
    mixer.spec().takes().contains(&setting)
}

fn candidates(configs: Vec<ModelConfig>) -> Vec<ModelConfig> {
    vary(configs, Candidate::ALL, |config, value| config.candidate = value)
}

fn heads(configs: Vec<ModelConfig>, choices: &[usize]) -> Vec<ModelConfig> {
    vary(configs, choices, |config, value| config.n_heads = value)
}

/// Highway output and the forget gate's lower bound, for the mixers that have them.
fn beyond_the_paper(mixer: MixerKind) -> Vec<ModelConfig> {
    let learned = ModelConfig { initial_state: InitialState::Learned, ..small(mixer) };
    let highway = ModelConfig { highway: true, ..learned.clone() };
    let floor = ModelConfig { forget_floor: ForgetFloor::Learned, ..learned };
    let floors = vary(candidates(vec![floor]), &[false, true], |config, value| config.highway = value);
    [vec![highway.clone(), ModelConfig { scan: ScanKind::LogSpace, ..highway }], floors].concat()
}

/// Every way to see the past: all of it, a window, and what remains when the cache is full.
fn attention() -> Vec<ModelConfig> {
    let configs = vary(vec![small(MixerKind::Attention)], &[Positions::None, Positions::Rotary], |config, value| config.positions = value);
    let configs = vary(configs, &[(0, 2048), (3, 2048), (70, 2048), (0, 5)], |config, value| {
        (config.window, config.max_seq_len) = value;
    });
    let plain = ModelConfig { bias: false, n_heads: 2, init: Initialization::Gpt, ..small(MixerKind::Attention) };
    [configs, vec![plain]].concat()
}

/// nanoGPT's block: LayerNorm and learned positions, no biases, tied.
pub fn nano_gpt() -> ModelConfig {
    ModelConfig {
        norm: NormKind::Layer,
        positions: Positions::Learned,
        bias: false,
        init: Initialization::Gpt,
        tie_embeddings: true,
        ..small(MixerKind::Attention)
    }
}

/// Llama's block: RMSNorm, rotary positions, SwiGLU, no biases, untied.
pub fn llama() -> ModelConfig {
    ModelConfig {
        positions: Positions::Rotary,
        ff: FeedForwardKind::SwiGlu,
        ff_mult: 8.0 / 3.0,
        bias: false,
        ..small(MixerKind::Attention)
    }
}

/// Every combination of the settings of a block, around a mixer with a learned state.
pub fn blocks() -> Vec<ModelConfig> {
    let config = ModelConfig { initial_state: InitialState::Learned, ff_mult: 1.5, ..small(MixerKind::MinGru) };
    let configs = vary(vec![config], &[false, true], |config, value| config.conv = value);
    let configs = vary(configs, FeedForwardKind::ALL, |config, value| config.ff = value);
    let mut configs = vary(configs, NormKind::ALL, |config, value| config.norm = value);
    let plain = ModelConfig { bias: false, norm: NormKind::Layer, ..configs[0].clone() };
    configs.extend([FeedForwardKind::Mlp, FeedForwardKind::Gated].map(|ff| ModelConfig { ff, ..plain.clone() }));
    configs
}

/// Every wiring around an inner layer of each kind: sequence maps, cells, heads, growing memories.
pub fn wirings() -> Vec<ModelConfig> {
    let of = |mixer| ModelConfig { ff: FeedForwardKind::None, d_state: 6, n_heads: 2, max_seq_len: 70, ..small(mixer) };
    let min_gru = ModelConfig { initial_state: InitialState::Learned, conv: true, ..of(MixerKind::MinGru) };
    let others = [MixerKind::S6, MixerKind::S4, MixerKind::S4d, MixerKind::HyenaFilter, MixerKind::Lstm, MixerKind::RetNet];
    let configs = [vec![min_gru], others.map(of).to_vec(), vec![of(MixerKind::Attention)]].concat();
    vary(configs, &[WiringKind::H3, WiringKind::Mamba], |config, value| config.wiring = value)
}

/// Models that read values, or predict classes or values, or see the mean of the past.
pub fn sequence_models() -> Vec<ModelConfig> {
    let of = |mixer| ModelConfig { n_layers: 2, conv: true, n_outputs: 3, ..small(mixer) };
    let values = ModelConfig { vocab_size: 0, input_width: 2, ..of(MixerKind::Lstm) };
    let mean = |config| ModelConfig { pooling: Pooling::Mean, ..config };
    vec![of(MixerKind::MinLstm), mean(of(MixerKind::MinGru)), mean(values.clone()), values]
}

/// Every kind of input and output of a model, around this mixer: values or tokens, learned positions, the mean of the past, labels of pairs,
/// and values, classes or one number.
pub fn ends(mixer: MixerKind) -> Vec<ModelConfig> {
    let base = ModelConfig { n_layers: 2, max_seq_len: 40, ..small(mixer) };
    let values = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, ..base.clone() };
    let learned = |config| ModelConfig { positions: Positions::Learned, ..config };
    let mean = |config| ModelConfig { pooling: Pooling::Mean, ..config };
    let pair = |config| ModelConfig { pair_head: true, ..config };
    let classes = ModelConfig { n_outputs: 4, ..base.clone() };
    let one = ModelConfig { input_width: 5, n_outputs: 1, ..values.clone() };
    vec![
        values.clone(),
        mean(learned(values.clone())),
        pair(mean(values)),
        mean(one),
        pair(classes.clone()),
        learned(classes),
        pair(base.clone()),
        mean(ModelConfig { tie_embeddings: true, ..base }),
    ]
}

/// Whole models of two blocks: each mixer once, with different blocks around it.
pub fn language_models() -> Vec<ModelConfig> {
    let of = |mixer: &MixerKind| {
        let zero = ModelConfig { n_layers: 2, conv: true, ..small(*mixer) };
        let learned = ModelConfig { initial_state: InitialState::Learned, ..zero.clone() };
        if learned.validate().is_ok() { learned } else { zero }
    };
    let mut configs: Vec<ModelConfig> = MixerKind::ALL.iter().map(of).collect();
    configs.push(ModelConfig { norm: NormKind::Layer, conv: false, tie_embeddings: true, ..of(&MixerKind::MinGru) });
    configs.push(ModelConfig { highway: true, forget_floor: ForgetFloor::Learned, ..of(&MixerKind::MinGru) });
    configs.push(ModelConfig { norm: NormKind::Batch, ff: FeedForwardKind::Gated, ..of(&MixerKind::MinLstm) });
    configs.push(ModelConfig { rms_eps: 0.1, ..of(&MixerKind::MinGru) });
    let rwkv = ModelConfig { norm: NormKind::Layer, ff: FeedForwardKind::ChannelMix, conv: false, ..of(&MixerKind::Rwkv4) };
    configs.push(rwkv);
    // mLSTM last: it divides by sums that may cancel, and a second such division would double the loss of digits.
    configs.push(ModelConfig { norm: NormKind::Rms, mixers: vec![MixerKind::SLstm, MixerKind::MLstm], ..xlstm_stack() });
    // The position of a token is counted by the model and by attention; with 40 positions the longer tests run beyond the last.
    configs.push(ModelConfig { n_layers: 2, max_seq_len: 40, ..nano_gpt() });
    configs.push(ModelConfig { n_layers: 2, ..llama() });
    configs.push(ModelConfig { positions: Positions::Learned, ..of(&MixerKind::MinGru) });
    let stack = vec![MixerKind::MinGru, MixerKind::S6];
    configs.push(ModelConfig {
        wiring: WiringKind::Mamba,
        mixers: stack,
        expansion: 1.5,
        ff: FeedForwardKind::ChannelMix,
        ..of(&MixerKind::S6)
    });
    configs.push(ModelConfig { wiring: WiringKind::H3, highway: true, ..of(&MixerKind::MinGru) });
    configs
}

/// A whole model of both cells of xLSTM with its feed-forward part.
pub fn xlstm_stack() -> ModelConfig {
    let mixers = vec![MixerKind::MLstm, MixerKind::SLstm];
    ModelConfig { mixers, n_layers: 2, norm: NormKind::Layer, ff: FeedForwardKind::GeGlu, ff_mult: 1.3, ..small(MixerKind::MLstm) }
}

/// The settings of `config` that are not defaults.
pub fn label(config: &ModelConfig) -> String {
    let keys = |config: &ModelConfig| serde_json::to_value(config).expect("a configuration is JSON");
    let (own, default) = (keys(config), keys(&ModelConfig::default()));
    let own = own.as_object().expect("an object").iter().filter(|(key, value)| default[key.as_str()] != **value);
    own.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn vary<T: Copy>(configs: Vec<ModelConfig>, choices: &[T], set: impl Fn(&mut ModelConfig, T)) -> Vec<ModelConfig> {
    let each = |config: &ModelConfig, &choice: &T| {
        let mut config = config.clone();
        set(&mut config, choice);
        config
    };
    configs.iter().flat_map(|config| choices.iter().map(|choice| each(config, choice)).collect::<Vec<_>>()).collect()
}
