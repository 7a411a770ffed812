//! minGRU at irregular times: cuts change nothing, steps of length 1 equal the contract's, and time alone makes the state decay.

use crate::common::configs::small;
use crate::common::{GRADIENT, OUTPUT, assert_close, device, perturbed, random, random_tensor, values};
use burn::tensor::{Tensor, TensorData};
use minrnn::nn::{DecayMinGru, Hidden, Initializer, Mixer};
use minrnn::ops::StepCodes;
use minrnn_model::MixerKind;

const SIZES: [usize; 3] = [2, 9, 8];

fn cell() -> DecayMinGru {
    let config = small(MixerKind::DecayMinGru).checked().expect("a valid model");
    perturbed(DecayMinGru::new(&config, 0, &mut Initializer::new(1, &device())))
}

/// Times between 0 and 2, with gradients.
fn times() -> Tensor<2> {
    let [batch, seq_len, _] = SIZES;
    let times: Vec<f32> = random(batch * seq_len, 2).into_iter().map(|x| x + 1.0).collect();
    Tensor::from_data(TensorData::new(times, [batch, seq_len]), &device()).require_grad()
}

#[test]
fn steps_of_length_one_are_those_of_the_contract() {
    let (cell, x) = (cell(), random_tensor::<3>(SIZES, 1, &device()));
    let [batch, seq_len, _] = SIZES;
    let (y, last) = cell.forward(x.clone(), cell.init_state(batch), &StepCodes::dense());
    let times = Tensor::ones([batch, seq_len], &device());
    let (timed, timed_last) = cell.forward_timed(x, times, cell.init_state(batch), &StepCodes::dense());
    assert_eq!((values(y), values(last.h)), (values(timed), values(timed_last.h)));
}

#[test]
fn a_cut_at_any_time_changes_nothing() {
    let [batch, seq_len, _] = SIZES;
    let (cell, x, weight) = (cell(), random_tensor::<3>(SIZES, 1, &device()), random_tensor::<3>(SIZES, 3, &device()));
    let run = |cut: usize| {
        let (times, mut state, mut outputs) = (times(), cell.init_state(batch), Vec::new());
        for (start, end) in [(0, cut), (cut, seq_len)].into_iter().filter(|(start, end)| start < end) {
            let (x, times) = (x.clone().narrow(1, start, end - start), times.clone().narrow(1, start, end - start));
            let (y, next) = cell.forward_timed(x, times, state, &StepCodes::dense());
            state = next;
            outputs.push(y);
        }
        let y = Tensor::cat(outputs, 1);
        let gradients = (y.clone() * weight.clone()).sum().backward();
        (values(y), values(times.grad(&gradients).expect("gradients reach the times")))
    };
    let (whole, d_whole) = run(0);
    assert!(d_whole.iter().any(|&d| d != 0.0));
    for cut in [1, 4, seq_len] {
        let (y, d) = run(cut);
        assert_close(&format!("outputs, cut at {cut}"), &y, &whole, OUTPUT);
        assert_close(&format!("gradients of the times, cut at {cut}"), &d, &d_whole, GRADIENT);
    }
}

#[test]
fn two_short_waits_are_one_long_wait() {
    let mut cell = cell();
    let h = random_tensor::<2>([1, 16], 5, &device());
    // A closed update gate, so that only time acts.
    let mut bias = values(cell.in_proj.bias.as_ref().expect("there is one").val());
    bias[16..].iter_mut().for_each(|x| *x -= 100.0);
    cell.in_proj.bias = Some(Initializer::new(0, &device()).values([bias.len()], bias));
    let wait = |times: &[f32]| {
        let x = Tensor::zeros([1, times.len(), 8], &device());
        let times = Tensor::from_data(TensorData::new(times.to_vec(), [1, times.len()]), &device());
        values(cell.forward_timed(x, times, Hidden { h: h.clone() }, &StepCodes::dense()).1.h)
    };
    assert_close("the state", &wait(&[0.5, 1.5]), &wait(&[2.0]), OUTPUT);
}
