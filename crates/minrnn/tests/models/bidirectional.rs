//! The bidirectional encoder reverses inside each segment of each row, and nowhere else.

use crate::common::configs::mixers;
use crate::common::{D_MODEL, OUTPUT, assert_close, random_tensor, values};
use burn::tensor::{Device, Tensor};
use minrnn::Segments;
use minrnn::nn::{AnyMixer, Bidirectional, Initializer, Mixer};
use minrnn::ops::StepCodes;
use minrnn_model::MixerKind;

const SEQ_LEN: usize = 9;

#[test]
fn each_segment_is_encoded_as_if_alone() {
    let segments = Segments::from_lengths(vec![9, 5, 0]).with_resets(vec![vec![3, 4], vec![0, 2, 7], vec![1]]);
    let pieces: [&[(usize, usize)]; 3] = [&[(0, 3), (3, 4), (4, 9)], &[(0, 2), (2, 5)], &[]];
    for kind in MixerKind::ALL {
        let config = mixers(*kind).pop().expect("a configuration");
        let init = &mut Initializer::new(2, &Device::flex());
        let mut mixer = || crate::common::perturbed(AnyMixer::new(&config.checked().unwrap(), 0, init));
        let encoder = Bidirectional { forward: mixer(), backward: mixer() };
        let x = random_tensor([3, SEQ_LEN, D_MODEL], 1, &Device::flex());
        let y = encoder.encode(x.clone(), &segments).unwrap();
        for (row, pieces) in pieces.into_iter().enumerate() {
            for &(start, end) in pieces {
                let part = |x: &Tensor<3>| x.clone().slice([row..row + 1, start..end]);
                let expected = alone(&encoder.forward, part(&x)) + alone(&encoder.backward, part(&x).flip([1])).flip([1]);
                assert_close(&format!("{kind}, row {row}, {start}..{end}"), &values(part(&y)), &values(expected), OUTPUT);
            }
        }
    }
}

#[test]
fn a_dense_batch_is_one_segment_per_row() {
    let config = mixers(MixerKind::MinGru).remove(0);
    let init = &mut Initializer::new(2, &Device::flex());
    let mut mixer = || AnyMixer::new(&config.checked().unwrap(), 0, init);
    let encoder = Bidirectional { forward: mixer(), backward: mixer() };
    let x = random_tensor([2, SEQ_LEN, D_MODEL], 1, &Device::flex());
    let expected = alone(&encoder.forward, x.clone()) + alone(&encoder.backward, x.clone().flip([1])).flip([1]);
    assert_close("y", &values(encoder.encode(x.clone(), &Segments::dense()).unwrap()), &values(expected), OUTPUT);
    assert!(encoder.encode(x, &Segments::from_lengths(vec![1])).unwrap_err().to_string().contains("2 rows"));
}

#[test]
fn an_empty_batch_is_encoded() {
    let config = mixers(MixerKind::Lstm).remove(0);
    let init = &mut Initializer::new(2, &Device::flex());
    let mut mixer = || AnyMixer::new(&config.checked().unwrap(), 0, init);
    let encoder = Bidirectional { forward: mixer(), backward: mixer() };
    let x = Tensor::zeros([2, 0, D_MODEL], &Device::flex());
    assert_eq!(encoder.encode(x, &Segments::dense()).unwrap().dims(), [2, 0, D_MODEL]);
}

fn alone(mixer: &AnyMixer, x: Tensor<3>) -> Tensor<3> {
    let state = mixer.init_state(x.dims()[0]);
    mixer.forward(x, state, &StepCodes::dense()).0
}
