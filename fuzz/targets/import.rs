//! Weights of other libraries: the first byte chooses the format, the rest is the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::interchange::{Form, Format, NamedTensor, Settings, export, import};
use minrnn_fuzz::{file, repository_files, safetensors_file, seeds};
use minrnn_model::{FeedForwardKind, GruForm, MixerKind, ModelConfig, Weights};

/// The settings without which a format cannot be read.
fn settings(format: Format) -> Settings {
    let settings: &[&str] = match format {
        Format::NanoGpt => &["n_heads=2"],
        Format::MinRnns => &["normalize_gates=true"],
        _ => &[],
    };
    Settings::parse(settings).expect("these are settings")
}

/// The minrnn model that single layers are read into, with the shapes of those in the repository.
fn config_of_part(format: Format) -> ModelConfig {
    let mixer = if format == Format::TorchGru { MixerKind::Gru } else { MixerKind::Lstm };
    let base = ModelConfig { vocab_size: 11, d_model: 8, n_layers: 2, ff: FeedForwardKind::None, ..Default::default() };
    ModelConfig { mixer, gru_form: GruForm::Torch, expansion: 1.5, ..base }
}

fn written(name: &str, tensors: Vec<NamedTensor>) -> Weights {
    let named = |(name, tensor): NamedTensor| {
        let (shape, data) = tensor.into_parts();
        (name, shape, data)
    };
    let tensors: Vec<_> = tensors.into_iter().map(named).collect();
    Weights::read(safetensors_file(name, &tensors, None)).expect("what was written is read")
}

fuzz_target!(
    init: seeds("import", || {
        let files = repository_files("crates/minrnn/tests/fixtures/interchange", "safetensors", 1 << 14);
        (0..Format::ALL.len() as u8).flat_map(|format| files.iter().map(move |file| [&[format], &file[..]].concat())).collect()
    }),
    |data: &[u8]| {
        let Some((&first, data)) = data.split_first() else { return };
        let format = Format::ALL[usize::from(first) % Format::ALL.len()];
        let Ok(mut weights) = Weights::read_foreign(file("foreign.safetensors", data)) else { return };
        // The repository's files hold a test case beside the weights.
        let beside: Vec<String> = weights.names().filter(|name| name.starts_with("case.")).map(str::to_owned).collect();
        for name in beside {
            let _ = weights.take_any(&name);
        }
        let config = if format.is_part() { config_of_part(format) } else {
            let Ok(config) = format.config(&weights, &settings(format)) else { return };
            config
        };
        let form = Form::of(&weights);
        let Ok(ours) = import(format, &mut weights, &config) else { return };
        // Whatever can be read can be written, with the same meaning.
        let theirs = export(format, &mut written("ours.safetensors", ours.clone()), &config, form).expect("what was imported is exported");
        let again = import(format, &mut written("theirs.safetensors", theirs), &config).expect("what was exported is imported");
        assert_eq!(again.len(), ours.len());
        for ((name, tensor), (name_again, tensor_again)) in ours.iter().zip(&again) {
            assert_eq!(name, name_again);
            // A gain that is stored as its distance from 1, or the other way round, is rounded once.
            let close = |x: f32, y: f32| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= f32::EPSILON * x.abs().max(1.0);
            assert!(tensor.data().iter().zip(tensor_again.data()).all(|(&x, &y)| close(x, y)), "{name}");
        }
    }
);
