//! The small models the tests run: every setting of every mixer and block.

use minrnn_stream::{Candidate, FeedForwardKind, GruForm, InitialState, MixerKind, ModelConfig, NormKind, ScanKind};

use super::{D_MODEL, VOCAB_SIZE};

/// One block of width 8 around `mixer`.
pub fn small(mixer: MixerKind) -> ModelConfig {
    ModelConfig { mixer, vocab_size: VOCAB_SIZE, d_model: D_MODEL, n_layers: 1, ..Default::default() }
}

/// Every combination of the settings that matter to `mixer`.
pub fn mixers(mixer: MixerKind) -> Vec<ModelConfig> {
    let configs = vary(vec![small(mixer)], InitialState::ALL, |config, value| config.initial_state = value);
    let configs = match mixer {
        MixerKind::MinGru | MixerKind::MinLstm => {
            let configs = vary(configs, Candidate::ALL, |config, value| config.candidate = value);
            vary(configs, ScanKind::ALL, |config, value| config.scan = value)
        }
        MixerKind::Gru => vary(configs, GruForm::ALL, |config, value| config.gru_form = value),
        MixerKind::Mamba => {
            let plain = ModelConfig { n_layers: 2, ..small(mixer) };
            vec![plain.clone(), ModelConfig { d_state: 3, expansion: 1.5, ..plain }]
        }
        MixerKind::Lstm | MixerKind::Gilr => configs,
        MixerKind::Aaren | MixerKind::LinearAttention => vary(vec![small(mixer)], &[4, 1, 16], |config, value| config.n_heads = value),
        MixerKind::RetNet => {
            let wide = ModelConfig { expansion: 1.5, ..small(mixer) };
            vary(vec![small(mixer), wide], &[4, 1, 2], |config, value| config.n_heads = value)
        }
        MixerKind::Rwkv4 => vec![small(mixer), ModelConfig { expansion: 1.0, ..small(mixer) }],
    };
    let configs = match mixer {
        MixerKind::MinLstm => vary(configs, &[true, false], |config, value| config.normalize_gates = value),
        _ => configs,
    };
    configs.into_iter().filter(|config| config.validate().is_ok()).collect()
}

/// Every combination of the settings of a block, around a mixer with a learned state.
pub fn blocks() -> Vec<ModelConfig> {
    let config = ModelConfig { initial_state: InitialState::Learned, ff_mult: 1.5, ..small(MixerKind::MinGru) };
    let configs = vary(vec![config], &[false, true], |config, value| config.conv = value);
    let configs = vary(configs, FeedForwardKind::ALL, |config, value| config.ff = value);
    vary(configs, NormKind::ALL, |config, value| config.norm = value)
}

/// Whole models of two blocks: each mixer once, with different blocks around it.
pub fn language_models() -> Vec<ModelConfig> {
    let of = |mixer: &MixerKind| ModelConfig { n_layers: 2, conv: true, initial_state: InitialState::Learned, ..small(*mixer) };
    let mut configs: Vec<ModelConfig> = MixerKind::ALL.iter().map(of).collect();
    configs.push(ModelConfig { norm: NormKind::Layer, conv: false, tie_embeddings: true, ..of(&MixerKind::MinGru) });
    configs.push(ModelConfig { norm: NormKind::Batch, ff: FeedForwardKind::Gated, ..of(&MixerKind::MinLstm) });
    configs.push(ModelConfig { rms_eps: 0.1, ..of(&MixerKind::MinGru) });
    let rwkv = ModelConfig { norm: NormKind::Layer, ff: FeedForwardKind::ChannelMix, conv: false, ..of(&MixerKind::Rwkv4) };
    configs.push(rwkv);
    configs
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
