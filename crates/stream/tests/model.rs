//! Models against the plain reference, and the laws of prompts, steps and batches.

mod common;

use common::reference::Reference;
use common::{REFERENCED, assert_close, assert_same, configs, model, small, stepped, tensors, tokens, weights};
use minrnn_model::{MixerKind, ModelConfig, WeightFormat};
use minrnn_stream::{Model, Workspace};

#[test]
fn steps_match_the_reference_for_every_mixer_and_switch() {
    for config in configs() {
        let tensors = tensors(&config, 3);
        let model = Model::new(&config, &mut weights(&tensors), WeightFormat::F32).unwrap();
        let tokens = tokens(&config, 20, 1);
        let mut reference = Reference::new(&config, &tensors);
        let expected: Vec<f32> = tokens.iter().flat_map(|&token| reference.step(token)).collect();
        assert_close(&stepped(&model, &tokens), &expected, 2e-6, &format!("{config:?}"));
    }
}

#[test]
fn a_prompt_cut_anywhere_gives_the_logits_of_steps() {
    for config in configs() {
        let model = model(&config, WeightFormat::F32);
        let (v, tokens) = (config.vocab_size, tokens(&config, 70, 2));
        let expected = stepped(&model, &tokens);
        let (mut workspace, mut logits) = (Workspace::new(), vec![f32::NAN; v]);
        for cut in [0, 1, 2, 3, 5, 33, 69, 70] {
            let mut state = model.init_state(1).unwrap();
            model.advance(&[&tokens[..cut]], &mut state, &mut workspace).unwrap();
            if cut < tokens.len() {
                model.prefill(&[&tokens[cut..]], &mut state, &mut logits, &mut workspace).unwrap();
                assert_same(&logits, &expected[69 * v..], &format!("cut at {cut} {config:?}"));
            }
        }
        let mut all = vec![f32::NAN; tokens.len() * v];
        model.forward(&tokens, &mut model.init_state(1).unwrap(), &mut all, &mut workspace).unwrap();
        assert_same(&all, &expected, &format!("forward {config:?}"));
    }
}

#[test]
fn a_prompt_longer_than_a_pass_gives_the_logits_of_steps() {
    for mixer in REFERENCED {
        let config = ModelConfig { conv: true, n_layers: 1, ..small(mixer) };
        let model = model(&config, WeightFormat::F32);
        let tokens = tokens(&config, 1500, 4);
        let (mut workspace, mut logits) = (Workspace::new(), vec![f32::NAN; config.vocab_size]);
        model.prefill(&[&tokens], &mut model.init_state(1).unwrap(), &mut logits, &mut workspace).unwrap();
        let held = workspace.bytes();
        assert_same(&logits, &stepped(&model, &tokens)[1499 * config.vocab_size..], mixer.name());
        model.advance(&[tokens.repeat(4)], &mut model.init_state(1).unwrap(), &mut workspace).unwrap();
        assert_eq!(workspace.bytes(), held, "memory grows with the prompt");
    }
}

#[test]
fn sessions_of_a_batch_equal_each_alone() {
    for config in configs() {
        let (model, v) = (model(&config, WeightFormat::F32), config.vocab_size);
        let prompts: Vec<Vec<u32>> = [5, 1, 60, 17].into_iter().map(|len| tokens(&config, len, len as u64)).collect();
        let mut workspace = Workspace::new();
        let mut together = model.init_state(4).unwrap();
        let (mut first, mut second) = (vec![f32::NAN; 4 * v], vec![f32::NAN; 4 * v]);
        model.prefill(&prompts, &mut together, &mut first, &mut workspace).unwrap();
        model.step(&[1, 2, 3, 4], &mut together, &mut second, &mut workspace).unwrap();
        let mut some = vec![f32::NAN; 2 * v];
        model.step_rows(&[1, 3], &[6, 5], &mut together, &mut some, &mut workspace).unwrap();
        for (row, prompt) in prompts.iter().enumerate() {
            let (mut alone, mut logits) = (model.init_state(1).unwrap(), vec![f32::NAN; v]);
            model.prefill(&[prompt], &mut alone, &mut logits, &mut workspace).unwrap();
            assert_same(&first[row * v..][..v], &logits, "prefill");
            model.step(&[row as u32 + 1], &mut alone, &mut logits, &mut workspace).unwrap();
            assert_same(&second[row * v..][..v], &logits, "step");
            if row == 1 {
                model.step(&[6], &mut alone, &mut logits, &mut workspace).unwrap();
                assert_same(&some[..v], &logits, "step of chosen rows");
            }
        }
    }
}

/// Large enough for every product to be cut over threads.
#[test]
fn the_number_of_threads_changes_no_result() {
    for mixer in REFERENCED {
        let config = ModelConfig { d_model: 256, conv: true, ..small(mixer) };
        let model = model(&config, WeightFormat::F32);
        let tokens = tokens(&config, 40, 9);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (mut state, mut workspace) = (model.init_state(3).unwrap(), Workspace::new());
                let mut logits = vec![f32::NAN; 3 * config.vocab_size];
                model.prefill(&[&tokens, &tokens[3..], &tokens[..9]], &mut state, &mut logits, &mut workspace).unwrap();
                model.step(&[1, 2, 3], &mut state, &mut logits, &mut workspace).unwrap();
                logits
            })
        };
        let expected = run(1);
        for threads in [2, 3, 5] {
            assert_same(&run(threads), &expected, mixer.name());
        }
    }
}

#[test]
fn what_does_not_fit_is_a_sentence_and_reads_nothing() {
    let config = small(MixerKind::MinGru);
    let model = model(&config, WeightFormat::F32);
    let other = common::model(&ModelConfig { conv: true, ..config.clone() }, WeightFormat::F32);
    let (mut state, mut workspace, mut logits) = (model.init_state(2).unwrap(), Workspace::new(), vec![0.0; 2 * 37]);
    let before = state.clone();
    let mut refusals = vec![
        (model.step(&[1, 37], &mut state, &mut logits, &mut workspace), "token id 37"),
        (model.step(&[1], &mut state, &mut logits, &mut workspace), "2 sessions"),
        (model.step(&[1, 2], &mut state, &mut logits[1..], &mut workspace), "room for 2 rows of 37 outputs"),
        (model.step_rows(&[1, 0], &[1, 2], &mut state, &mut logits, &mut workspace), "ascending"),
        (model.step_rows(&[0, 2], &[1, 2], &mut state, &mut logits, &mut workspace), "below 2"),
        (model.step_rows(&[0], &[1, 2], &mut state, &mut logits, &mut workspace), "one step for each"),
        (model.prefill(&[&[1][..], &[]], &mut state, &mut logits, &mut workspace), "sequence of session 1 is empty"),
        (model.prefill(&[[1, 2], [3, 99]], &mut state, &mut logits, &mut workspace), "token id 99"),
        (model.prefill(&[[1]], &mut state, &mut logits[..37], &mut workspace), "2 sessions"),
        (model.forward(&[1], &mut state, &mut logits[..37], &mut workspace), "2 sessions"),
        (model.step(&[1, 2], &mut other.init_state(2).unwrap(), &mut logits, &mut workspace), "another model"),
    ];
    for (refused, words) in refusals.drain(..) {
        let sentence = refused.unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
    assert_eq!(state, before);
    // Zero sessions and zero tokens are valid.
    model.step(&[], &mut model.init_state(0).unwrap(), &mut [], &mut workspace).unwrap();
    model.prefill::<Vec<u32>>(&[], &mut model.init_state(0).unwrap(), &mut [], &mut workspace).unwrap();
    model.forward(&[], &mut model.init_state(1).unwrap(), &mut [], &mut workspace).unwrap();
}

#[test]
fn weights_of_another_model_are_refused() {
    let config = small(MixerKind::Lstm);
    let refusal = |change: &dyn Fn(&mut common::Tensors)| {
        let mut tensors = tensors(&config, 1);
        change(&mut tensors);
        Model::new(&config, &mut weights(&tensors), WeightFormat::F32).unwrap_err().to_string()
    };
    assert!(refusal(&|t| _ = t.remove("head.weight")).contains("'head.weight' is missing"));
    assert!(refusal(&|t| t.get_mut("head.weight").unwrap().0.reverse()).contains("has shape"));
    assert!(refusal(&|t| _ = t.insert("extra".into(), (vec![1], vec![0.0]))).contains("not part of this model"));
}
