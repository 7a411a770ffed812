//! Sessions that have read more steps than an f32 can count.

mod common;

use common::{assert_close, drawn_model, numbers, small};
use minrnn_kernels::count;
use minrnn_model::{MixerKind, ModelConfig, Pooling, Positions, WeightFormat};
use minrnn_stream::{Model, State, Workspace};

const WIDTH: usize = 2;
const OUTPUTS: usize = 3;

/// A model of one block, its mixer alone.
fn model(config: ModelConfig) -> Model {
    let config = ModelConfig { vocab_size: 0, input_width: WIDTH, n_outputs: OUTPUTS, n_layers: 1, conv: false, ..config };
    drawn_model(&config, WeightFormat::F32)
}

/// What is predicted after every step.
fn outputs(model: &Model, state: &mut State, values: &[f32]) -> Vec<f32> {
    let mut outputs = vec![f32::NAN; values.len() / WIDTH * OUTPUTS];
    model.forward_values(values, state, &mut outputs, &mut Workspace::new()).unwrap();
    outputs
}

#[test]
fn places_that_turn_count_on_and_only_their_distance_matters() {
    let values = numbers(WIDTH * 40, 3);
    for (mixer, positions) in [(MixerKind::Attention, Positions::Rotary), (MixerKind::RetNet, Positions::None)] {
        let model = model(ModelConfig { positions, window: 8, ..small(mixer) });
        let expected = outputs(&model, &mut model.init_state(1).unwrap(), &values);
        for first in [1 << 20, (1 << 24) - 5, 1 << 24, (1 << 28) + 1] {
            // The place is the last number that a session keeps.
            let mut parts = model.init_state(1).unwrap().values().to_vec();
            *parts.last_mut().unwrap() = count::kept(first);
            let mut state = State::from_parts(&model, 1, parts, vec![Vec::new(); model.init_state(1).unwrap().pasts(0).len()]).unwrap();
            assert_close(&outputs(&model, &mut state, &values), &expected, 2e-4, &format!("{mixer} from {first} on"));
            assert_eq!(state.values().last().copied().map(count::of), Some(first + 40));
        }
    }
}

#[test]
fn a_mean_over_many_steps_stays_a_mean() {
    let model = model(ModelConfig { pooling: Pooling::Mean, ..small(MixerKind::MinGru) });
    let (values, d) = (numbers(WIDTH * 16, 5), small(MixerKind::MinGru).d_model);
    let mut state = model.init_state(1).unwrap();
    let before = outputs(&model, &mut state, &values);
    // The same mean, of 2²² times as many steps, then of as many as are counted.
    for (times, after) in [(1u32 << 22, 16 * (1 << 22) + 16), (count::LAST / 16, count::LAST / 2 + 15 - count::LAST % 16)] {
        let mut parts = state.values().to_vec();
        let end = parts.len() - (2 * d + 1);
        parts[end..end + d].iter_mut().for_each(|sum| *sum *= times as f32);
        *parts.last_mut().unwrap() = count::kept(16 * times);
        let mut long = State::from_values(&model, 1, parts).unwrap();
        let now = outputs(&model, &mut long, &values);
        for now in now.chunks_exact(OUTPUTS) {
            assert_close(now, &before[before.len() - OUTPUTS..], 1e-5, &format!("{times} times"));
        }
        assert_eq!(long.values().last().copied().map(count::of), Some(after));
    }
}

#[test]
fn a_mean_does_not_drift_while_what_is_read_stays_the_same() {
    let model = model(ModelConfig { pooling: Pooling::Mean, ..small(MixerKind::MinGru) });
    let mut state = model.init_state(1).unwrap();
    let settled = [0.3, -0.7].repeat(2000);
    outputs(&model, &mut state, &settled);
    // From here on the features are the same at every step, and the sums grow to a million times as much.
    let many = outputs(&model, &mut state, &[0.3, -0.7].repeat(1_000_000));
    let fresh = outputs(&model, &mut state, &settled);
    let last = &fresh[fresh.len() - OUTPUTS..];
    assert_close(last, &many[many.len() / 2..][..OUTPUTS], 2e-4, "means");
}
