//! The small models the tests run: every setting of every mixer and block.

use minrnn_stream::{Candidate, FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, ModelConfig, NormKind, ScanKind};

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
        MixerKind::Lstm => configs,
        MixerKind::SignedMinGru | MixerKind::DecayMinGru => vary(configs, Candidate::ALL, |config, value| config.candidate = value),
        MixerKind::Delta => vary(vec![small(mixer)], &[4, 2], |config, value| config.n_heads = value),
    };
    let configs = match mixer {
        MixerKind::MinLstm => vary(configs, &[true, false], |config, value| config.normalize_gates = value),
        _ => configs,
    };
    let configs = configs.into_iter().chain(beyond_the_paper(mixer));
    configs.filter(|config| config.validate().is_ok()).collect()
}

/// Highway output and the lower bound of the forget gate, of those that have them.
fn beyond_the_paper(mixer: MixerKind) -> Vec<ModelConfig> {
    let learned = ModelConfig { initial_state: InitialState::Learned, ..small(mixer) };
    let highway = ModelConfig { highway: true, ..learned.clone() };
    let floor = ModelConfig { forget_floor: ForgetFloor::Learned, ..learned };
    match mixer {
        MixerKind::MinGru => {
            let both = ModelConfig { highway: true, candidate: Candidate::Tanh, ..floor.clone() };
            let log_space = ModelConfig { scan: ScanKind::LogSpace, ..highway.clone() };
            vec![highway, log_space, floor, both]
        }
        MixerKind::MinLstm => vec![highway],
        _ => Vec::new(),
    }
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
    configs.push(ModelConfig { highway: true, forget_floor: ForgetFloor::Learned, ..of(&MixerKind::MinGru) });
    configs.push(ModelConfig { norm: NormKind::Batch, ff: FeedForwardKind::Gated, ..of(&MixerKind::MinLstm) });
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
