//! Every model of the library's laws as a graph: well-formed, of standard operators, with all that the runtime keeps. A model that no graph can hold
//! is refused. Whether the numbers are right is checked by `.ci/onnx`.

mod common;

use std::collections::BTreeSet;

use common::drawn::{drawn, weights};
use common::{configs, every_config, has_fixed_state};
use minrnn_model::{InitialState, MixerKind, ModelConfig, TableTask, Tokenizer, WeightFormat};
use minrnn_onnx::proto::{self, Model, Size, ValueInfo};
use minrnn_onnx::{Attached, IR_VERSION, OPSET, begins_as_graph, step_graph};
use prost::Message;

/// The operators used, all of which are in version 17 of the standard.
const STANDARD: [&str; 37] = [
    "Abs",
    "Add",
    "Cast",
    "Concat",
    "Cos",
    "Div",
    "Erf",
    "Exp",
    "Floor",
    "Gather",
    "Gemm",
    "Greater",
    "Identity",
    "LayerNormalization",
    "Less",
    "Log",
    "MatMul",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "ReduceL2",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Slice",
    "Softplus",
    "Split",
    "Sqrt",
    "Sub",
    "Tanh",
    "Where",
];

fn graph(config: &ModelConfig, attached: Attached<'_>) -> Model {
    let bytes = step_graph(config, &mut weights(&drawn(config, 7)), attached).unwrap();
    Model::decode(&bytes[..]).unwrap()
}

fn refusal(config: &ModelConfig, change: impl FnOnce(&mut common::drawn::Tensors)) -> String {
    let mut tensors = drawn(config, 7);
    change(&mut tensors);
    step_graph(config, &mut weights(&tensors), Attached::default()).unwrap_err().to_string()
}

fn entry(model: &Model, key: &str) -> String {
    let found = model.metadata_props.iter().find(|entry| entry.key == format!("minrnn.{key}"));
    found.unwrap_or_else(|| panic!("no entry {key}")).value.clone()
}

/// The sizes of a value, whose first one is the number of sessions.
fn sizes(info: &ValueInfo) -> Vec<usize> {
    let shape = info.r#type.as_ref().and_then(|of| of.tensor_type.as_ref()).and_then(|of| of.shape.as_ref()).expect("a shape");
    assert_eq!(shape.dim[0].value, Some(Size::Param("batch".to_owned())), "{}", info.name);
    let known =
        |dim: &proto::Dimension| if let Some(Size::Value(size)) = dim.value { size as usize } else { panic!("a size without a number") };
    shape.dim[1..].iter().map(known).collect()
}

fn expect_well_formed(model: &Model, what: &str) {
    assert_eq!((model.ir_version, model.opset_import.len(), model.opset_import[0].version), (IR_VERSION, 1, OPSET));
    let graph = model.graph.as_ref().expect("a graph");
    let mut known = BTreeSet::new();
    let mut define = |name: &str| assert!(known.insert(name.to_owned()), "{name} twice in {what}");
    graph.initializer.iter().for_each(|constant| define(&constant.name));
    graph.input.iter().for_each(|input| define(&input.name));
    let mut used = BTreeSet::new();
    let mut operators = BTreeSet::new();
    for node in &graph.node {
        assert!(STANDARD.contains(&node.op_type.as_str()), "{} in {what}", node.op_type);
        assert!(operators.insert(node.name.clone()), "{} twice in {what}", node.name);
        for input in &node.input {
            assert!(known.contains(input), "{input} of {} is not there before it, in {what}", node.name);
            used.insert(input.clone());
        }
        for output in &node.output {
            assert!(known.insert(output.clone()), "{output} twice in {what}");
        }
    }
    for output in &graph.output {
        assert!(known.contains(&output.name), "{} is never computed, in {what}", output.name);
    }
    for constant in &graph.initializer {
        assert!(used.contains(&constant.name), "{} is not used, in {what}", constant.name);
        let each = if constant.data_type == proto::DataType::Float as i32 { 4 } else { 8 };
        assert_eq!(constant.dims.iter().product::<i64>() as usize * each, constant.raw_data.len(), "{} in {what}", constant.name);
    }
}

#[test]
fn every_model_of_a_fixed_state_is_a_well_formed_graph_that_keeps_what_the_runtime_keeps() {
    for config in every_config().iter().filter(|config| has_fixed_state(config)) {
        let what = configs::label(config);
        let model = graph(config, Attached::default());
        expect_well_formed(&model, &what);
        let graph = model.graph.as_ref().unwrap();
        let states: Vec<_> = graph.input[1..].iter().map(|input| (input.name.replacen("state.", "", 1), sizes(input))).collect();
        let next: Vec<_> = graph.output[1..].iter().map(|output| (output.name.replacen("next.", "", 1), sizes(output))).collect();
        assert_eq!(states, next, "{what}");
        let kept: usize = states.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        let runtime = minrnn_stream::Model::new(config, &mut weights(&drawn(config, 7)), WeightFormat::F32).unwrap();
        assert_eq!(4 * kept as u128, runtime.session_bytes(0), "{what}");
        let reads = if config.input_width == 0 { ("token", vec![]) } else { ("values", vec![config.input_width]) };
        assert_eq!((graph.input[0].name.as_str(), sizes(&graph.input[0])), reads, "{what}");
        assert_eq!((graph.output[0].name.as_str(), sizes(&graph.output[0])), ("outputs", vec![config.outputs()]), "{what}");
    }
}

#[test]
fn mixers_whose_past_grows_are_refused_by_name_and_no_other() {
    let mut refused = BTreeSet::new();
    for config in every_config().iter().filter(|config| !has_fixed_state(config)) {
        let grows = (0..config.n_layers).map(|layer| config.mixer_at(layer)).find(|kind| {
            let alone = ModelConfig { mixers: Vec::new(), mixer: *kind, n_layers: 1, ..config.clone() };
            !has_fixed_state(&alone)
        });
        let kind = grows.expect("a mixer that keeps past tokens");
        let sentence = refusal(config, |_| ());
        assert!(sentence.contains(&format!("mixer = {kind}: what it keeps of the past grows")), "{sentence}");
        refused.insert(kind.name());
    }
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), ["attention", "hyena", "hyena-filter"]);
}

#[test]
fn tensors_that_are_missing_surplus_or_of_another_shape_are_named() {
    let config = configs::small(MixerKind::MinGru);
    let name = "backbone.blocks.0.mixer.in_proj.weight";
    assert!(refusal(&config, |tensors| drop(tensors.remove(name))).contains("in_proj.weight' is missing"));
    let surplus = refusal(&config, |tensors| drop(tensors.insert("other".to_owned(), (vec![1], vec![0.0]))));
    assert!(surplus.contains("tensor 'other' is not part of this model"), "{surplus}");
    let reshaped = refusal(&config, |tensors| tensors.get_mut(name).unwrap().0.reverse());
    assert!(reshaped.contains("has shape"), "{reshaped}");
    let infinite = refusal(&config, |tensors| tensors.get_mut(name).unwrap().1[3] = f32::NAN);
    assert!(infinite.contains("holds NaN at position 3"), "{infinite}");
    let wrong = ModelConfig { n_layers: 0, ..config.clone() };
    assert!(step_graph(&wrong, &mut weights(&drawn(&config, 7)), Attached::default()).unwrap_err().to_string().contains("n_layers"));
}

#[test]
fn the_metadata_say_what_is_kept_before_the_first_step() {
    let config = ModelConfig { initial_state: InitialState::Learned, pair_head: true, n_outputs: 2, ..configs::small(MixerKind::Lstm) };
    let model = graph(&config, Attached::default());
    let state: serde_json::Value = serde_json::from_str(&entry(&model, "state")).unwrap();
    let part = |name: &str| state.as_array().unwrap().iter().find(|part| part["input"] == format!("state.{name}")).unwrap().clone();
    let drawn = drawn(&config, 7);
    let (_, cell) = &drawn["backbone.blocks.0.mixer.initial_cell"];
    let listed: Vec<f32> = part("blocks.0.mixer.c")["initial"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
    assert_eq!(&listed, cell);
    let before = part("end.before");
    assert_eq!(
        (&before["output"], &before["on_reset"], &before["initial"]),
        (&"next.end.before".into(), &"state.end.last".into(), &0.0.into())
    );
    assert_eq!(serde_json::from_str::<ModelConfig>(&entry(&model, "model")).unwrap(), config);
}

#[test]
fn the_metadata_name_columns_classes_and_vocabulary() {
    let columns = serde_json::json!({
        "task": "classify", "columns": ["x", "y"], "group": "id", "target": "kind", "classes": ["a", "b", "c"],
        "normalization": {"mean": [0.0, 1.0], "deviation": [1.0, 2.0]},
    });
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, ..configs::small(MixerKind::MinGru) };
    let task = TableTask::from_json(columns, 2, 3).unwrap();
    let model = graph(&config, Attached { task: Some(&task), ..Attached::default() });
    assert_eq!((entry(&model, "columns").as_str(), entry(&model, "classes").as_str()), (r#"["x","y"]"#, r#"["a","b","c"]"#));
    assert!(entry(&model, "task").contains("normalization"));

    let tokenizer = Tokenizer::characters_of("hello");
    let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..configs::small(MixerKind::MinGru) };
    let model = graph(&config, Attached { tokenizer: Some(&tokenizer), ..Attached::default() });
    assert_eq!(entry(&model, "tokenizer"), "char");
    let again = Tokenizer::from_json(entry(&model, "tokenizer.json").as_bytes()).unwrap();
    assert_eq!(again.decode(&tokenizer.encode("hole").unwrap()).unwrap(), "hole");
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let config = configs::xlstm_stack();
    let bytes = || step_graph(&config, &mut weights(&drawn(&config, 7)), Attached::default()).unwrap();
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_graph_is_told_from_other_files_by_how_it_begins() {
    let config = configs::xlstm_stack();
    let bytes = step_graph(&config, &mut weights(&drawn(&config, 7)), Attached::default()).unwrap();
    assert!(begins_as_graph(&bytes) && begins_as_graph(&bytes[..16]));
    for other in [&b""[..], &bytes[1..17], &bytes[..9], b"Chapter 1, of which"] {
        assert!(!begins_as_graph(other), "{other:?}");
    }
}
