//! The Decision wiring around every mixer, and policies in action.

use burn::tensor::{Device, Tensor, TensorData};
use minrnn::data::offline_rl::{Behavior, Ending, Environment, LeftPadding, PointMass, StepEncoding, Trajectory, Transition};
use minrnn::deployed::{Deployed, DeployedPolicy};
use minrnn::model::Decision;
use minrnn::nn::{Mode, State};
use minrnn::ops::StepCodes;
use minrnn::rng::{ChaCha8Rng, Purpose};
use minrnn::rollout::{Actor, Memory, Rollout, Shown, normalized_score};
use minrnn::{Policy, Segments};
use minrnn_model::{MixerKind, ModelConfig};

use crate::common::configs::small;
use crate::common::{
    GRADIENT, OUTPUT, assert_all_close, assert_close, device, parameter_gradients, perturbed, random, random_tensor, values,
};

/// Numbers in an observation, in an action and in a row.
const WIDTHS: [usize; 3] = [4, 2, 8];

fn config(mixer: MixerKind) -> ModelConfig {
    ModelConfig { vocab_size: 0, input_width: WIDTHS[2], n_outputs: WIDTHS[1], max_seq_len: 400, ..small(mixer) }
}

fn policy(mixer: MixerKind, device: &Device) -> Decision {
    perturbed(Decision::new(&config(mixer), 1, device).expect("a valid policy"))
}

/// Rows whose times rise from 0.
fn rows(batch: usize, n_steps: usize, device: &Device) -> Tensor<3> {
    let mut rows = random(batch * n_steps * WIDTHS[2], 5);
    for (i, row) in rows.chunks_exact_mut(WIDTHS[2]).enumerate() {
        row[WIDTHS[2] - 1] = (i % n_steps) as f32 / 1000.0;
    }
    Tensor::from_data(TensorData::new(rows, [batch, n_steps, WIDTHS[2]]), device)
}

#[test]
fn an_action_for_every_step_within_its_bounds_and_a_gradient_for_every_parameter() {
    for mixer in MixerKind::ALL {
        let policy = policy(*mixer, &device());
        let inputs = rows(2, 5, &device());
        let (actions, _) = policy.forward(inputs.clone(), None, &StepCodes::dense(), Mode::Evaluate);
        assert_eq!(actions.dims(), [2, 5, WIDTHS[1]], "{mixer}");
        assert!(values(actions).iter().all(|action| action.abs() < 1.0), "{mixer}");
        let targets: std::sync::Arc<[f32]> = random(2 * 5 * WIDTHS[1], 6).into();
        let targets = minrnn::model::Targets::Values(targets);
        let loss = policy.loss(inputs, targets, None, &StepCodes::dense(), Mode::Train { dropout_key: 1 });
        for (name, gradient) in parameter_gradients(&policy, &loss.backward()) {
            assert!(gradient.iter().all(|g| g.is_finite()) && gradient.iter().any(|&g| g != 0.0), "{mixer}: {name}");
        }
    }
}

#[test]
fn an_action_depends_on_its_own_row_and_on_those_before() {
    for mixer in MixerKind::ALL {
        let policy = policy(*mixer, &Device::flex());
        let inputs = rows(1, 6, &Device::flex());
        let act = |inputs: &Tensor<3>| values(policy.forward(inputs.clone(), None, &StepCodes::dense(), Mode::Evaluate).0);
        let before = act(&inputs);
        for column in [0, 1, 5] {
            let cell = [0..1, 3..4, column..column + 1];
            let changed = act(&inputs.clone().slice_assign(cell.clone(), inputs.clone().slice(cell) + 0.5));
            assert_eq!((before.iter().zip(&changed)).position(|(a, b)| a != b).map(|i| i / WIDTHS[1]), Some(3), "{mixer}: column {column}");
        }
        // There is no action before the first step.
        let cell = [0..1, 0..1, 5..7];
        assert_eq!(before, act(&inputs.clone().slice_assign(cell, random_tensor([1, 1, 2], 9, &Device::flex()))), "{mixer}");
    }
}

#[test]
fn a_cut_changes_nothing() {
    for mixer in MixerKind::ALL {
        let policy = policy(*mixer, &device());
        let (batch, n_steps) = (2, 9);
        let inputs = rows(batch, n_steps, &device());
        let segments = Segments::dense().with_resets(vec![vec![5], vec![]]);
        let weights: Tensor<3> = random_tensor([batch, n_steps, WIDTHS[1]], 7, &device());
        let gradients = |actions: Tensor<3>| parameter_gradients(&policy, &(actions * weights.clone()).sum().backward());
        let steps = segments.steps(batch, n_steps).unwrap();
        let (whole, state) = policy.forward(inputs.clone(), None, &steps, Mode::Evaluate);
        let (expected, expected_gradients) = (values(whole.clone()), gradients(whole));
        for cut in [1, 4, 5, 8] {
            let (first, second) = segments.split(cut);
            let (first, second) = (first.steps(batch, cut).unwrap(), second.steps(batch, n_steps - cut).unwrap());
            let (a, carried) = policy.forward(inputs.clone().narrow(1, 0, cut), None, &first, Mode::Evaluate);
            let (b, last) = policy.forward(inputs.clone().narrow(1, cut, n_steps - cut), Some(carried), &second, Mode::Evaluate);
            let actions = Tensor::cat(vec![a, b], 1);
            assert_close(&format!("{mixer} cut {cut}"), &values(actions.clone()), &expected, OUTPUT);
            assert_all_close(&format!("{mixer} cut {cut}: gradient"), &gradients(actions), &expected_gradients, GRADIENT);
            assert_eq!(last.tensors().len(), state.tensors().len());
            for ((name, found), (_, expected)) in last.tensors().into_iter().zip(state.tensors()) {
                let (found, expected): (Vec<f32>, Vec<f32>) = (found.try_to_vec().unwrap(), expected.try_to_vec().unwrap());
                assert_close(&format!("{mixer} cut {cut}: state {name}"), &found, &expected, OUTPUT);
            }
        }
    }
}

#[test]
fn what_stands_before_a_reset_does_not_matter() {
    for mixer in [MixerKind::MinGru, MixerKind::Attention, MixerKind::Mamba] {
        let policy = policy(mixer, &Device::flex());
        let steps = LeftPadding::Cut.segments(&[3, 0]).steps(2, 6).unwrap();
        let act = |inputs| values(policy.forward(inputs, None, &steps, Mode::Evaluate).0);
        let inputs = rows(2, 6, &Device::flex());
        let other = inputs.clone().slice_assign([0..1, 0..3, 0..7], random_tensor([1, 3, 7], 11, &Device::flex()));
        let (before, after) = (act(inputs), act(other));
        assert_ne!(before[..6], after[..6], "{mixer}");
        assert_eq!(before[6..], after[6..], "{mixer}");
    }
}

/// The rows of an episode that was played for `target_return`.
fn replayed(episode: Trajectory<'_>, encoding: &StepEncoding, target_return: f64) -> Vec<f32> {
    let (mut rows, mut to_go) = (vec![0.0; episode.n_steps() * WIDTHS[2]], target_return);
    for (t, row) in rows.chunks_exact_mut(WIDTHS[2]).enumerate() {
        let previous = if t == 0 { &[0.0; 2] } else { &episode.actions[2 * t - 2..2 * t] };
        encoding.write(row, to_go, &episode.observations[4 * t..4 * t + 4], previous, t);
        to_go -= f64::from(episode.rewards[t]);
    }
    rows
}

#[test]
fn a_windowed_roll_out_acts_as_the_forward_pass_of_each_window() {
    const CONTEXT: usize = 7;
    let encoding = StepEncoding::fit(&PointMass::record(Behavior::Medium, 4, 1, Purpose::TrainData), 100.0).unwrap();
    for (mixer, padding) in [(MixerKind::MinGru, LeftPadding::Seen), (MixerKind::Attention, LeftPadding::Cut)] {
        let policy = policy(mixer, &Device::flex());
        let rollout = Rollout { target_return: 60.0, memory: Memory::Window { context: CONTEXT, padding }, seed: 3 };
        let played = rollout.play(&policy, &encoding, &mut [PointMass::default(), PointMass::default()]).unwrap();
        for episode in played.iter() {
            assert_eq!((episode.n_steps(), episode.ending), (100, Ending::Timeout));
            let rows = replayed(episode, &encoding, 60.0);
            for t in [0, 3, 6, 7, 50, 99] {
                let from = (t + 1usize).saturating_sub(CONTEXT);
                let padded = CONTEXT - (t + 1 - from);
                let mut window = vec![0.0; padded * WIDTHS[2]];
                window.extend(&rows[from * WIDTHS[2]..(t + 1) * WIDTHS[2]]);
                let window = Tensor::<3>::from_data(TensorData::new(window, [1, CONTEXT, WIDTHS[2]]), &Device::flex());
                let steps = padding.segments(&[padded]).steps(1, CONTEXT).unwrap();
                let actions = values(policy.forward(window, None, &steps, Mode::Evaluate).0);
                assert_close(&format!("{mixer} step {t}"), &episode.actions[2 * t..2 * t + 2], &actions[2 * CONTEXT - 2..], OUTPUT);
            }
        }
    }
}

#[test]
fn a_roll_out_that_carries_its_state_acts_as_the_forward_pass_from_the_start() {
    let encoding = StepEncoding::fit(&PointMass::record(Behavior::Medium, 4, 1, Purpose::TrainData), 100.0).unwrap();
    for mixer in MixerKind::ALL {
        let policy = policy(*mixer, &Device::flex());
        let rollout = Rollout { target_return: 60.0, memory: Memory::Carried, seed: 3 };
        let played = rollout.play(&policy, &encoding, &mut [PointMass::default(), PointMass::default()]).unwrap();
        assert_ne!(played.get(0).observations[..4], played.get(1).observations[..4], "episodes begin differently");
        for episode in played.iter() {
            let rows = replayed(episode, &encoding, 60.0);
            let rows = Tensor::<3>::from_data(TensorData::new(rows, [1, 100, WIDTHS[2]]), &Device::flex());
            let (actions, _) = policy.forward(rows, None, &StepCodes::dense(), Mode::Evaluate);
            assert_close(&format!("{mixer}"), episode.actions, &values(actions), 10.0 * OUTPUT);
        }
    }
}

/// Ends after `left` steps, each of which earns 2.
struct Countdown {
    left: usize,
}

impl Environment for Countdown {
    fn widths(&self) -> [usize; 2] {
        [4, 2]
    }

    fn max_steps(&self) -> usize {
        6
    }

    fn reset(&mut self, _: &mut ChaCha8Rng) -> Vec<f32> {
        vec![0.0; 4]
    }

    fn step(&mut self, _: &[f32]) -> Transition {
        self.left -= 1;
        Transition { observation: vec![self.left as f32; 4], reward: 2.0, terminal: self.left == 0 }
    }
}

#[test]
fn episodes_side_by_side_end_each_in_its_own_time() {
    let encoding = StepEncoding { mean: vec![0.0; 4], deviation: vec![1.0; 4], action_width: 2, return_scale: 1.0, best_return: None };
    let policy = policy(MixerKind::MinGru, &Device::flex());
    let window = Memory::Window { context: 3, padding: LeftPadding::Seen };
    for memory in [window, Memory::Carried] {
        let mut countdowns = [2, 9, 1, 6].map(|left| Countdown { left });
        let played = Rollout { target_return: 0.0, memory, seed: 0 }.play(&policy, &encoding, &mut countdowns).unwrap();
        let ends: Vec<_> = played.iter().map(|episode| (episode.n_steps(), episode.ending)).collect();
        assert_eq!(ends, [(2, Ending::Terminal), (6, Ending::Timeout), (1, Ending::Terminal), (6, Ending::Terminal)]);
        assert_eq!(normalized_score(played.mean_return(), 7.5, 17.5), 0.0);
    }
    let none: &mut [Countdown] = &mut [];
    assert!(Rollout { target_return: 0.0, memory: window, seed: 0 }.play(&policy, &encoding, none).unwrap().is_empty());
}

#[test]
fn a_policy_that_does_not_fit_its_environment_is_refused() {
    let encoding = StepEncoding { mean: vec![0.0; 3], deviation: vec![1.0; 3], action_width: 2, return_scale: 1.0, best_return: None };
    let rollout = Rollout { target_return: 0.0, memory: Memory::Carried, seed: 0 };
    let policy = policy(MixerKind::MinGru, &Device::flex());
    let refusal = rollout.play(&policy, &encoding, &mut [PointMass::default()]).unwrap_err().to_string();
    assert!(refusal.contains("[7, 2]") && refusal.contains("[8, 2]"), "{refusal}");
}

/// Answers with NaN.
struct Mute;

impl Actor for Mute {
    fn widths(&self) -> [usize; 2] {
        [8, 2]
    }

    fn act(&mut self, _: Shown<'_>) -> minrnn::Result<Vec<f32>> {
        Ok(vec![0.0, f32::NAN])
    }
}

#[test]
fn a_return_that_a_policy_has_no_numbers_for_is_named_beside_one_that_it_has() {
    let encoding = StepEncoding { mean: vec![0.0; 4], deviation: vec![1.0; 4], action_width: 2, return_scale: 1.0, best_return: Some(7.5) };
    let refused = |target_return: f64| {
        let rollout = Rollout { target_return, memory: Memory::Carried, seed: 0 };
        rollout.play_with(&mut Mute, &encoding, &mut [PointMass::default()]).unwrap_err()
    };
    let far = refused(-1e30);
    let sentence = "no number when it is asked for a return of -1e30; ask for one near 7.5";
    assert!(far.to_string().contains(sentence) && far.is_wrong_input(), "{far}");
    // A return it should know.
    let near = refused(7.5);
    assert!(near.to_string().contains("output for a return of 7.5 is not finite") && !near.is_wrong_input(), "{near}");
}

#[test]
fn a_deployed_policy_plays_the_same_episodes() {
    let encoding = StepEncoding::fit(&PointMass::record(Behavior::Medium, 4, 1, Purpose::TrainData), 100.0).unwrap();
    for mixer in MixerKind::ALL {
        let policy = Policy { config: config(*mixer), encoding: encoding.clone(), model: policy(*mixer, &Device::flex()) };
        let directory = tempfile::tempdir().unwrap();
        let saved = directory.path().join("policy");
        policy.save(&saved).unwrap();
        let deployed = Deployed::load(&saved).unwrap();
        let windows = [LeftPadding::Seen, LeftPadding::Cut].map(|padding| Memory::Window { context: 7, padding });
        for memory in [Memory::Carried, windows[0], windows[1]] {
            let rollout = Rollout { target_return: 60.0, memory, seed: 3 };
            let points = || [PointMass::default(), PointMass::default()];
            let expected = rollout.play(&policy.model, &encoding, &mut points()).unwrap();
            let found = rollout.play_with(&mut DeployedPolicy::new(&deployed).unwrap(), &encoding, &mut points()).unwrap();
            assert_eq!(found.iter().count(), expected.iter().count());
            for (found, expected) in found.iter().zip(expected.iter()) {
                // Differences by rounding affect what is observed next.
                assert_close(&format!("{mixer} {memory:?}"), found.actions, expected.actions, 10.0 * OUTPUT);
            }
        }
    }
}
