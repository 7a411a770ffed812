//! Saved states: the first byte chooses the model, the rest is the file, or its header and numbers with a valid checksum.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::{assert_same, configs, joined, parts, sealed, seeds, tensors, weights};
use minrnn_model::WeightFormat;
use minrnn_stream::{Model, Reads, State, Workspace};

const MAGIC: &[u8] = b"\x89minrnnS";

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let model = |config| Model::new(config, &mut weights(&tensors(config)), WeightFormat::F32).expect("the weights are those of the model");
    configs().iter().map(model).collect()
});

fn made(input: &[u8]) -> Option<Vec<u8>> {
    let [header, numbers] = parts(input)?;
    let length = u32::try_from(header.len()).ok()?.to_le_bytes();
    Some(sealed([MAGIC, &length, header, numbers].concat()))
}

fuzz_target!(
    init: seeds("state", || {
        let mut files = Vec::new();
        for (number, model) in MODELS.iter().enumerate() {
            let mut state = model.init_state(2).expect("there is room for two sessions");
            match model.reads() {
                Reads::Tokens { .. } => model.advance(&[&[0, 1, 2][..], &[3]], &mut state, &mut Workspace::new()),
                Reads::Values { width } => model.advance_values(&[vec![0.5; 3 * width], vec![0.25; width]], &mut state, &mut Workspace::new()),
            }
            .expect("the steps are the model's");
            let file = state.to_bytes().expect("its numbers are finite");
            let end = 12 + u32::from_le_bytes(file[8..12].try_into().expect("four bytes")) as usize;
            files.push([&[number as u8], &joined(&[&file[12..end], &file[end..file.len() - 4]])[..]].concat());
            if number == 0 {
                files.push([&[0], &file[..]].concat());
            }
        }
        files
    }),
    |data: &[u8]| {
        let Some((&first, data)) = data.split_first() else { return };
        let model = &MODELS[usize::from(first) % MODELS.len()];
        let made = if data.starts_with(MAGIC) { None } else { made(data) };
        let Ok(mut state) = State::from_bytes(made.as_deref().unwrap_or(data), model) else { return };
        assert!(state.bytes() <= data.len());
        let saved = state.to_bytes().expect("what is loaded is finite");
        let again = State::from_bytes(&saved, model).expect("what was saved is loaded");
        assert_same(again.values(), state.values());
        let mut both = state.clone();
        both.append(&again).expect("the models are the same");
        assert_eq!(both.rows(), 2 * state.rows());
        let step = |state: &mut State| {
            let (mut workspace, mut outputs) = (Workspace::new(), vec![0.0; state.rows() * model.outputs()]);
            match model.reads() {
                Reads::Tokens { .. } => model.step(&vec![1; state.rows()], state, &mut outputs, &mut workspace),
                Reads::Values { width } => model.step_values(&vec![0.5; state.rows() * width], state, &mut outputs, &mut workspace),
            }
            .expect("the state is the model's");
            outputs
        };
        let outputs = step(&mut state);
        if state.rows() > 0 {
            let mut last = both.select(&[both.rows() - 1]).expect("there is one");
            assert_same(&step(&mut last), &outputs[outputs.len() - model.outputs()..]);
        }
    }
);
