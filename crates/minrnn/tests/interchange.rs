//! Models of other libraries: imported, they give the logits of their library; exported, they are the original tensors.
//!
//! The fixtures are made by `tools/interchange_cases.py` with the libraries themselves. Beside the tensors of a model, a fixture holds
//! `case.tokens`, what the library computed from them as `case.logits`, and the settings of the import in its metadata.

mod common;

use std::path::{Path, PathBuf};

use burn::tensor::{Int, Tensor, TensorData};
use common::{assert_close, device, values};
use minrnn::checkpoint::load_weights;
use minrnn::interchange::{Form, Format, NamedTensor, Settings, export, import};
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn::{Error, Needed};
use minrnn_model::{ModelConfig, WeightFormat, Weights, write_safetensors};
use minrnn_stream::{Model, Workspace};
use serde_json::Value;

const TOLERANCE: f64 = 1e-4;

/// What a library computed from its model.
struct Case {
    format: Format,
    weights: Weights,
    settings: Settings,
    tokens: Vec<u32>,
    batch_size: usize,
    logits: Vec<f32>,
    /// The rest of our model, for formats that hold only a part.
    rest: Option<(ModelConfig, Vec<NamedTensor>)>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/interchange/{name}.safetensors"))
}

impl Case {
    fn read(name: &str) -> Self {
        let mut weights = Weights::read(fixture(name)).unwrap();
        let about: Value = serde_json::from_str(&weights.metadata()["case"]).unwrap();
        let tokens = weights.take_any("case.tokens").unwrap();
        let logits = weights.take_any("case.logits").unwrap().into_data();
        let rest = about["config"].is_object().then(|| {
            let names: Vec<String> = weights.names().filter(|name| name.starts_with("case.rest.")).map(ToOwned::to_owned).collect();
            let rest = names.iter().map(|name| (name["case.rest.".len()..].to_owned(), weights.take_any(name).unwrap())).collect();
            (serde_json::from_value(about["config"].clone()).unwrap(), rest)
        });
        let settings: Vec<String> = serde_json::from_value(about["settings"].clone()).unwrap();
        Self {
            format: about["format"].as_str().unwrap().parse().unwrap(),
            weights,
            settings: Settings::parse(&settings).unwrap(),
            batch_size: tokens.shape()[0],
            tokens: tokens.into_data().into_iter().map(|id| id as u32).collect(),
            logits,
            rest,
        }
    }

    /// The minrnn form of this model: its configuration, and its tensors in a file.
    fn imported(&self) -> (ModelConfig, tempfile::NamedTempFile) {
        let mut weights = self.weights.clone();
        let (config, rest) = match &self.rest {
            Some((config, rest)) => (config.clone(), rest.clone()),
            None => (self.format.config(&weights, &self.settings).unwrap(), Vec::new()),
        };
        let tensors = import(self.format, &mut weights, &config).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), tensors.into_iter().chain(rest));
        (config, file)
    }

    /// Compares logits after every token, by the training model and by the runtime.
    fn compare_logits(&self, config: &ModelConfig, file: &Path) {
        let model = SequenceModel::new(config, 0, &device()).unwrap();
        let mut weights = Weights::read(file).unwrap();
        let model = load_weights(model, &mut weights).unwrap();
        weights.expect_empty().unwrap();
        let seq_len = self.tokens.len() / self.batch_size;
        let ids = TensorData::new(self.tokens.iter().map(|&id| i64::from(id)).collect(), [self.batch_size, seq_len]);
        let tokens = Tensor::<2, Int>::from_data(ids, &device());
        let (logits, _) = model.forward(tokens, model.init_state(self.batch_size), &StepCodes::dense(), Mode::Evaluate);
        assert_close("logits", &values(logits), &self.logits, TOLERANCE);

        let model = Model::new(config, &mut Weights::read(file).unwrap(), WeightFormat::F32).unwrap();
        let v = config.vocab_size;
        for (row, tokens) in self.tokens.chunks(seq_len).enumerate() {
            let (mut state, mut workspace, mut logits) = (model.init_state(1).unwrap(), Workspace::new(), vec![0.0; v]);
            for (t, &token) in tokens.iter().enumerate() {
                model.step(&[token], &mut state, &mut logits, &mut workspace).unwrap();
                assert_close("logits of the runtime", &logits, &self.logits[(row * seq_len + t) * v..][..v], TOLERANCE);
            }
        }
    }

    /// Checks that our tensors in `file` are written as the tensors they were read from.
    fn compare_export(&self, config: &ModelConfig, file: &Path) {
        let form = Form::of(&self.weights);
        let mut found = export(self.format, &mut Weights::read(file).unwrap(), config, form).unwrap();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let names: Vec<&str> = self.weights.names().collect();
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
        for (name, tensor) in found {
            let expected = self.weights.get(&name).unwrap();
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!((tensor.shape(), bits(tensor.data())), (expected.shape(), bits(expected.data())), "{name}");
        }
    }
}

fn write(path: &Path, tensors: impl IntoIterator<Item = NamedTensor>) {
    let tensors = tensors.into_iter().map(|(name, tensor)| {
        let (shape, data) = tensor.into_parts();
        (name, shape, data.into())
    });
    write_safetensors(path, tensors, None).unwrap();
}

/// Import, logits, export.
fn there_and_back(name: &str) {
    let case = Case::read(name);
    let (config, file) = case.imported();
    case.compare_logits(&config, file.path());
    case.compare_export(&config, file.path());
}

/// Import and logits of a model that is not exported in the form it was imported from.
fn there(name: &str) {
    let case = Case::read(name);
    let (config, file) = case.imported();
    case.compare_logits(&config, file.path());
    export(case.format, &mut Weights::read(file.path()).unwrap(), &config, Form::default()).unwrap();
}

#[test]
fn min_gru_pytorch_goes_there_and_back() {
    there_and_back("min_gru_pytorch");
    there_and_back("min_gru_pytorch_lstm_conv");
    there_and_back("min_gru_pytorch_three_taps");
    there("min_gru_pytorch_gru_lm");
}

#[test]
fn min_rnns_goes_there_and_back() {
    there_and_back("min_rnns");
    there_and_back("min_rnns_lstm_batch_norm");
    there("min_rnns_lstm_without_ff");
}

#[test]
fn mamba_of_transformers_goes_there_and_back() {
    there_and_back("mamba_hf");
    there_and_back("mamba_hf_untied");
    there_and_back("mamba_hf_three_taps");
    there_and_back("mamba_hf_without_conv_bias");
}

#[test]
fn a_form_is_given_up_as_far_as_the_model_has_left_it() {
    let of = |name: &str, changed: &str, at: usize| {
        let case = Case::read(name);
        let (config, file) = case.imported();
        let mut weights = Weights::read(file.path()).unwrap();
        let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
        let mut tensors: Vec<NamedTensor> = names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap())).collect();
        tensors.iter_mut().find(|(name, _)| name.ends_with(changed)).unwrap().1.data_mut()[at] = 0.25;
        write(file.path(), tensors);
        export(case.format, &mut Weights::read(file.path()).unwrap(), &config, Form::of(&case.weights)).unwrap()
    };
    let find = |tensors: &[NamedTensor], end: &str| tensors.iter().find(|(name, _)| name.ends_with(end)).map(|(_, tensor)| tensor.clone());
    let filters = find(&of("mamba_hf_three_taps", "1.mixer.conv1d.weight", 4), "layers.0.mixer.conv1d.weight").unwrap();
    assert_eq!(filters.shape()[2], 4);
    assert!(filters.data().iter().step_by(4).all(|&tap| tap == 0.0) && filters.data()[3] != 0.0);
    let bias = find(&of("mamba_hf_without_conv_bias", "1.mixer.conv1d.bias", 3), "layers.1.mixer.conv1d.bias").unwrap();
    assert_eq!(bias.data()[3], 0.25);
}

#[test]
fn projections_with_biases_are_refused_by_name() {
    let biased = changed(&Case::read("mamba_hf"), |tensors| {
        let (_, weight) = tensors.iter().find(|(name, _)| name == "backbone.layers.0.mixer.in_proj.weight").unwrap().clone();
        let rows = weight.shape()[0];
        let bias = minrnn_model::Tensor::new(vec![rows], vec![0.5; rows]).unwrap();
        tensors.push(("backbone.layers.0.mixer.in_proj.bias".to_owned(), bias));
    });
    let told = refusal(&biased);
    assert!(told.contains("tensor 'backbone.layers.0.mixer.in_proj.bias' is a bias") && told.contains("use_bias = False"), "{told}");
}

#[test]
fn numbers_that_are_not_finite_are_refused_under_the_name_they_have_in_the_file() {
    let case = Case::read("mamba_hf");
    for value in [f32::NAN, f32::INFINITY] {
        let damaged = changed(&case, |tensors| {
            tensors.iter_mut().find(|(name, _)| name == "backbone.layers.1.mixer.D").unwrap().1.data_mut()[2] = value;
        });
        let told = refusal(&damaged);
        assert!(told.contains(&format!("tensor 'backbone.layers.1.mixer.D' holds {value} at position 2")), "{told}");
    }
}

#[test]
fn a_form_that_no_file_has_is_refused() {
    let case = Case::read("mamba_hf");
    let (config, file) = case.imported();
    for taps in [0, 5, usize::MAX] {
        let form = Form { taps, ..Form::default() };
        let told = export(case.format, &mut Weights::read(file.path()).unwrap(), &config, form).unwrap_err().to_string();
        assert!(told.contains(&format!("1 to 4 taps, found taps = {taps}")), "{told}");
    }
}

#[test]
fn filters_longer_than_ours_are_refused() {
    let longer = changed(&Case::read("mamba_hf"), |tensors| {
        let filters = tensors.iter_mut().filter(|(name, _)| name.ends_with("conv1d.weight"));
        filters.for_each(|(_, tensor)| {
            let channels = tensor.shape()[0];
            *tensor = minrnn_model::Tensor::new(vec![channels, 1, 5], vec![0.5; channels * 5]).unwrap();
        });
    });
    let told = refusal(&longer);
    assert!(told.contains("filters of 5 taps, expected 1 to 4"), "{told}");
}

#[test]
fn xlstm_goes_there_and_back() {
    there_and_back("xlstm");
    there_and_back("xlstm_one_head");
    there("xlstm_cuda_order");
}

#[test]
fn nano_gpt_goes_there_and_back() {
    there_and_back("nano_gpt");
    there_and_back("nano_gpt_bias");
}

#[test]
fn torch_recurrent_layers_go_there_and_back() {
    there_and_back("torch_gru");
    there_and_back("torch_lstm");
    there("torch_lstm_without_bias");
}

fn refusal(case: &Case) -> String {
    let mut weights = case.weights.clone();
    let config = match case.format.config(&weights, &case.settings) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    import(case.format, &mut weights, &config).unwrap_err().to_string()
}

/// `case` with its tensors changed by `change`.
fn changed(case: &Case, change: impl FnOnce(&mut Vec<NamedTensor>)) -> Case {
    let mut weights = case.weights.clone();
    let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
    let mut tensors = names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap())).collect();
    change(&mut tensors);
    let file = tempfile::NamedTempFile::new().unwrap();
    write(file.path(), tensors);
    Case {
        weights: Weights::read(file.path()).unwrap(),
        settings: case.settings.clone(),
        tokens: vec![],
        logits: vec![],
        rest: None,
        ..*case
    }
}

/// Tensors that nothing depends on, that are zero if missing, and that default to the embedding.
const MAY_BE_MISSING: [&str; 3] = ["num_batches_tracked", "mixer.conv1d.bias", "lm_head.weight"];

#[test]
fn every_tensor_that_is_missing_surplus_or_misshapen_is_named() {
    for name in [
        "min_gru_pytorch",
        "min_gru_pytorch_lstm_conv",
        "min_rnns",
        "min_rnns_lstm_batch_norm",
        "mamba_hf_untied",
        "xlstm",
        "nano_gpt_bias",
    ] {
        let case = Case::read(name);
        let count = case.weights.names().count();
        for at in 0..count {
            let mut without = String::new();
            let case_without = changed(&case, |tensors| without = tensors.remove(at).0);
            if !MAY_BE_MISSING.iter().any(|name| without.ends_with(name)) {
                let told = refusal(&case_without);
                assert!(told.contains("tensor '") && (told.contains("is missing") || told.contains("is not part of")), "{without}: {told}");
            }
            let mut name = String::new();
            let misshapen = changed(&case, |tensors| {
                let (found, tensor) = &mut tensors[at];
                let shape = [&[1][..], tensor.shape()].concat();
                *tensor = minrnn_model::Tensor::new(shape, tensor.data().to_vec()).unwrap();
                name.clone_from(found);
            });
            let told = refusal(&misshapen);
            assert!(told.contains(&format!("tensor '{name}' has shape [1")) && told.contains("expected"), "{name}: {told}");
        }
        let surplus = changed(&case, |tensors| tensors.push(("other.weight".to_owned(), tensors[0].1.clone())));
        assert!(refusal(&surplus).contains("tensor 'other.weight' is not part of this model"));
    }
}

#[test]
fn settings_must_fit_the_file() {
    let mut case = Case::read("min_gru_pytorch");
    case.settings = Settings::parse(&["d_model=12"]).unwrap();
    assert!(refusal(&case).contains("the file says d_model = 8, but d_model = 12 was set"), "{}", refusal(&case));
    case.settings = Settings::parse(&["candidate=tanh"]).unwrap();
    assert!(refusal(&case).contains(r#"the file says candidate = "positive""#));
    assert!(Settings::parse(&["d_modle=12"]).unwrap_err().to_string().contains("did you mean 'd_model'"));
    let mut case = Case::read("min_rnns_lstm_batch_norm");
    case.settings = Settings::default();
    let needed = case.format.config(&case.weights, &case.settings).unwrap_err();
    assert!(matches!(&needed, Error::Needed { what: Needed::ModelKey(key), .. } if key == "normalize_gates"), "{needed}");
}

#[test]
fn what_a_format_cannot_hold_is_a_sentence() {
    let refused = |case: &str, format: Format, change: &dyn Fn(&mut ModelConfig)| {
        let (mut config, file) = Case::read(case).imported();
        change(&mut config);
        export(format, &mut Weights::read(file.path()).unwrap(), &config, Form::default()).unwrap_err().to_string()
    };
    let gru = "min_gru_pytorch";
    let told = refused("torch_gru", Format::MinGruPytorch, &|_| ());
    assert_eq!(told, "a file of format min-gru-pytorch holds models with mixer = min-gru or min-lstm, found mixer = gru");
    assert!(refused(gru, Format::TorchLstm, &|_| ()).contains("found mixer = min-gru"));
    assert!(refused(gru, Format::MinRnns, &|_| ()).contains("ff = gated or none, found ff = mlp"));
    assert!(
        refused(gru, Format::MinGruPytorch, &|config| config.candidate = minrnn_model::Candidate::Tanh).contains("found candidate = tanh")
    );
    for name in ["min_gru_pytorch", "min_rnns", "mamba_hf", "xlstm", "nano_gpt"] {
        let format = Case::read(name).format;
        let told = refused(name, format, &|config| config.pooling = minrnn_model::Pooling::Mean);
        assert_eq!(told, format!("a file of format {format} holds models with pooling = last, found pooling = mean"));
        let told = refused(name, format, &|config| {
            (config.vocab_size, config.input_width, config.n_outputs, config.tie_embeddings) = (0, 3, 2, false);
        });
        assert!(told.ends_with("holds models that read tokens and predict the next one, and this one reads 3 numbers a step"), "{told}");
        let told = refused(name, format, &|config| (config.n_outputs, config.tie_embeddings) = (2, false));
        assert!(told.ends_with("and this one has a head of 2 outputs of its own"), "{told}");
    }
    for (name, format) in [(gru, Format::MinGruPytorch), ("min_rnns", Format::MinRnns)] {
        assert!(refused(name, format, &|config| config.highway = true).contains("with highway = false, found highway = true"));
        let told = refused(name, format, &|config| config.forget_floor = minrnn_model::ForgetFloor::Learned);
        assert!(told.contains("with forget_floor = none, found forget_floor = learned"), "{told}");
    }

    // A bias where the format has none.
    let case = Case::read(gru);
    let (config, file) = case.imported();
    let mut weights = Weights::read(file.path()).unwrap();
    let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
    let mut tensors: Vec<NamedTensor> = names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap())).collect();
    let bias = tensors.iter_mut().find(|(name, _)| name == "backbone.blocks.1.mixer.in_proj.bias").unwrap();
    bias.1.data_mut()[3] = 0.5;
    write(file.path(), tensors);
    let told = export(case.format, &mut Weights::read(file.path()).unwrap(), &config, Form::default()).unwrap_err().to_string();
    assert!(told.contains("no tensor for 'backbone.blocks.1.mixer.in_proj.bias'") && told.contains("it must be zero, found 0.5"), "{told}");
}
