//! The contract's law, for every mixer, block and language model: gradients included, from a state that is not zero.
//!
//! Every mixer of the library appears as `law::MinGru::…`, with its settings from `common/configs.rs`.

mod common;

use common::{configs, laws, subject};
use minrnn_model::MixerKind;

macro_rules! laws {
    ($($name:ident: $subjects:expr,)+) => {
        $(laws!(@claims $name, $subjects);)+
    };
    (@claims $name:ident, $subjects:expr) => {
        #[allow(non_snake_case, reason = "mixers have the names of their variants")]
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

macro_rules! laws_of_mixers {
    ($($kind:ident)+) => {
        laws! { $($kind: subject::mixers(configs::mixers(MixerKind::$kind)),)+ }
    };
}

minrnn_model::each_mixer!(laws_of_mixers);

laws! {
    blocks: subject::blocks(configs::blocks()),
    wirings: subject::blocks(configs::wirings()),
    language_models: subject::language_models([configs::language_models(), configs::sequence_models()].concat()),
}
