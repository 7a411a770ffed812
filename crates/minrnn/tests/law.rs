//! The contract's law, for every mixer, block and language model: gradients included, from a state that is not zero.
//!
//! A new mixer is one line in the list below (and its settings in `common/configs.rs`).

mod common;

use common::{configs, laws, subject};
use minrnn_model::MixerKind;

macro_rules! laws {
    (mixers { $($mixer:ident: $kind:ident,)+ } others { $($other:ident: $subjects:expr,)+ }) => {
        $(laws!(@claims $mixer, subject::mixers(configs::mixers(MixerKind::$kind)));)+
        $(laws!(@claims $other, $subjects);)+

        #[test]
        fn every_mixer_of_the_library_is_listed() {
            assert_eq!([$(MixerKind::$kind),+], MixerKind::ALL);
        }
    };
    (@claims $name:ident, $subjects:expr) => {
        mod $name {
            use super::*;

            laws!(@test a_cut_changes_nothing, $subjects);
            laws!(@test forward_equals_steps, $subjects);
            laws!(@test segments_equal_sequences_alone, $subjects);
            laws!(@test no_step_returns_the_carried_state, $subjects);
            laws!(@test rows_are_chosen_and_reset, $subjects);
            laws!(@test a_state_is_a_value, $subjects);
        }
    };
    (@test $law:ident, $subjects:expr) => {
        #[test]
        fn $law() {
            for (i, (name, subject)) in $subjects.enumerate() {
                laws::$law(&name, &subject, if i == 0 { laws::ALL } else { laws::SHORT });
            }
        }
    };
}

laws! {
    mixers {
        min_gru: MinGru,
        min_lstm: MinLstm,
        gru: Gru,
        lstm: Lstm,
        mamba: Mamba,
        s6: S6,
        gilr: Gilr,
        rwkv4: Rwkv4,
        aaren: Aaren,
        linear_attention: LinearAttention,
        ret_net: RetNet,
        s_lstm: SLstm,
        m_lstm: MLstm,
        attention: Attention,
        s4: S4,
        s4d: S4d,
        h3: H3,
        hyena: Hyena,
        hyena_filter: HyenaFilter,
        signed_min_gru: SignedMinGru,
        decay_min_gru: DecayMinGru,
        delta: Delta,
    }
    others {
        blocks: subject::blocks(configs::blocks()),
        wirings: subject::blocks(configs::wirings()),
        language_models: subject::language_models([configs::language_models(), configs::sequence_models()].concat()),
    }
}
