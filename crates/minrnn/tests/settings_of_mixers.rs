//! A mixer's layer reads exactly the settings that its specification lists.

mod common;

use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{VOCAB_SIZE, configs::small, random_below, values};
use minrnn::Segments;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn_model::{
    Candidate, ForgetFloor, ForgetGate, GruForm, InitialState, Initialization, MixerKind, ModelConfig, Positions, RecurrentInit, S4Init,
    ScanKind, Setting, WiringKind,
};

const LEN: usize = 12;

/// `config` with another value of `setting`.
fn changed(config: &ModelConfig, setting: Setting) -> ModelConfig {
    let mut config = config.clone();
    match setting {
        // mLSTM rounds its width up to a multiple of 64.
        Setting::Expansion => config.expansion = 16.0,
        Setting::Candidate => config.candidate = Candidate::Identity,
        Setting::NormalizeGates => config.normalize_gates = !config.normalize_gates,
        Setting::ForgetBias => config.forget_bias = 1.0,
        Setting::InitialState => config.initial_state = InitialState::Learned,
        Setting::LogSpace => config.scan = ScanKind::LogSpace,
        Setting::Heads => config.n_heads = 2,
        Setting::StateSize => config.d_state = 6,
        Setting::StepRank => config.dt_rank = 3,
        Setting::S4Init => config.s4_init = S4Init::Lin,
        Setting::HeadWidth => config.head_width = 2,
        Setting::Window => config.window = 3,
        Setting::Rotary => config.positions = Positions::Rotary,
        Setting::GptInit => config.init = Initialization::Gpt,
        Setting::Highway => config.highway = true,
        Setting::ForgetFloor => config.forget_floor = ForgetFloor::Learned,
        Setting::GruForm => config.gru_form = GruForm::Torch,
        Setting::SLstmConv => config.slstm_conv = !config.slstm_conv,
        Setting::SLstmForgetGate => config.slstm_forget_gate = ForgetGate::Exponential,
        Setting::SLstmRecurrentInit => config.slstm_recurrent_init = RecurrentInit::Normal,
    }
    config
}

/// The outputs of a model of `config`, with a fixed seed, for a fixed text.
fn outputs(config: &ModelConfig) -> Vec<f32> {
    let device = Device::flex();
    let model: SequenceModel = SequenceModel::new(config, 7, &device).unwrap();
    let tokens = random_below(VOCAB_SIZE, LEN, 3).into_iter().map(|token| token as i64).collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [1, LEN]), &device);
    let steps = Segments::dense().steps(1, LEN).unwrap();
    values(model.forward(tokens, model.init_state(1), &steps, Mode::Evaluate).0)
}

fn assert_reads(base: &ModelConfig) {
    let before = outputs(base);
    for &setting in Setting::ALL {
        let (config, what) = (changed(base, setting), format!("{} of {} in wiring {}", setting.key(), base.mixer, base.wiring));
        assert_ne!(config, *base, "{what}");
        match (setting.is_read_by(base), setting.can_be_off()) {
            (true, _) => assert!(outputs(&config) != before, "{what} is listed as read, and changes nothing"),
            (false, true) => assert!(config.validate().is_err(), "{what} is not listed as read, and accepted"),
            (false, false) => assert!(outputs(&config) == before, "{what} is not listed as read, and changes something"),
        }
    }
}

#[test]
fn a_mixer_reads_the_settings_that_its_specification_lists_and_no_others() {
    MixerKind::ALL.iter().for_each(|&mixer| assert_reads(&small(mixer)));
}

#[test]
fn a_wiring_reads_its_own_whatever_the_mixer() {
    for wiring in [WiringKind::H3, WiringKind::Mamba] {
        for mixer in [MixerKind::MinGru, MixerKind::HyenaFilter, MixerKind::S4d] {
            assert_reads(&ModelConfig { wiring, ..small(mixer) });
        }
    }
}
