//! The examples with their own training loop or network: they learn their task, and what they save or carry gives the same numbers.

#[path = "../examples/own_loop.rs"]
#[allow(dead_code, reason = "the example's own entry is not called")]
mod own_loop;
#[path = "../examples/own_network.rs"]
#[allow(dead_code, reason = "the example's own entry is not called")]
mod own_network;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use minrnn::checkpoint::{load_model, save_model};
use minrnn::data::Carry;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn::rng::Purpose;
use minrnn_model::{CheckpointConfig, likeliest};

#[test]
fn a_loop_of_ones_own_learns_more_where_the_state_is_carried() {
    let [anew, carried] = [Carry::Nowhere, Carry::ToNextBatch].map(|carry| own_loop::learn(carry).unwrap());
    let losses = [anew.before, anew.after, carried.before, carried.after].map(|measured| measured.loss);
    assert!(losses[1] < losses[0] && losses[3] < 0.5 * losses[1], "{losses:?}");

    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("model");
    save_model(&directory, &CheckpointConfig::new(own_loop::config()), &carried.model, None).unwrap();
    let device = Device::flex();
    let loaded = load_model(&directory, &device).unwrap().model;
    for sign in 0..4_u32 {
        let tokens = [sign, 20, 9, 31];
        let last_scores = |model: &minrnn::model::SequenceModel| {
            let read = Tensor::<2, Int>::from_data([tokens.map(i64::from)], &device);
            let (scores, _) = model.forward(read, model.init_state(1), &StepCodes::dense(), Mode::Evaluate);
            scores.into_data().try_to_vec::<f32>().unwrap()[3 * 4..].to_vec()
        };
        let expected = last_scores(&carried.model.valid());
        assert_eq!(last_scores(&loaded), expected, "read by the library, sign {sign}");
        assert_eq!(own_loop::last_sign(&directory, &tokens).unwrap(), likeliest(&expected), "read by the runtime, sign {sign}");
    }
}

#[test]
fn a_network_of_ones_own_learns_and_gives_step_by_step_what_it_gives_at_once() {
    let (network, [before, after]) = own_network::learn().unwrap();
    // Always predicting 0 is off by 0.08.
    assert!(after < before && after < 0.05, "{before} and {after}");
    let [x, _] = own_network::series(Purpose::TestData, 0, &Device::flex());
    let difference = (own_network::at_once(&network, x.clone()) - own_network::step_by_step(&network, x)).abs().max().into_scalar::<f32>();
    assert!(difference < 1e-5, "{difference}");
}
