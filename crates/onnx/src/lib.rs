#![doc = include_str!("../README.md")]
//!
//! # The graph
//! [`step_graph`] returns the bytes of a file with one graph, a step for any number of sessions B:
//!
//! | input | |
//! |---|---|
//! | `token` `[B]`, int64, or `values` `[B, F]` | the input; a policy's row is `[return \| observation \| previous action \| time]` |
//! | `state.…` `[B, …]` | the state of every part of the model |
//!
//! | output | |
//! |---|---|
//! | `outputs` `[B, V]` | logits, classes, values or an action |
//! | `next.…` | the state of the next step, under the same names |
//!
//! The metadata entry `minrnn.state` lists the parts of the state, each with `input`, `output`, `shape` (without B) and `initial`, one
//! number for all elements or a list with one for each, row by row. If a part has `on_reset`, a sequence that follows another one starts it
//! with the previous value of the part named there. Other entries: `minrnn.model` (the configuration), `minrnn.reads`, `minrnn.predicts`,
//! and as far as they are known `minrnn.columns`, `minrnn.classes`, `minrnn.target`, `minrnn.task`, `minrnn.policy`, `minrnn.tokenizer`
//! (the kind) and `minrnn.tokenizer.json`.
//!
//! A step computes the same as in `minrnn-stream`; the source files are named as there.
#![deny(missing_docs)]

mod block;
mod block_diagonal;
mod end;
mod feed_forward;
mod formulas;
mod front;
mod graph;
mod metadata;
mod mixer;
mod norm;
mod operators;
pub mod proto;
mod state_space;
mod token_shift;
mod window;
mod wiring;

use minrnn_model::{CheckedConfig, ModelConfig, Weights};
use prost::Message;

pub use metadata::Attached;
pub use minrnn_model::{Error, Result};

/// The version of the standard operators that the graphs use.
pub const OPSET: i64 = 17;
/// The version of the messages: that of the first ONNX release with these operators.
pub const IR_VERSION: i64 = 8;
/// The input of a model that reads tokens.
pub const TOKEN: &str = "token";
/// The input of a model that reads values.
pub const VALUES: &str = "values";
/// The model's predictions.
pub const OUTPUTS: &str = "outputs";
/// The name of the graphs' producer.
const PRODUCER: &str = "minrnn";
/// Most bytes of a protobuf message.
const MAX_BYTES: usize = i32::MAX as usize;

/// An ONNX file with one step of the model of `config`, with its tensors in `weights`, all of which are taken out.
///
/// # Errors
/// When the configuration is wrong; when a mixer keeps a past that grows with every step, which a graph of fixed shapes cannot hold; when a
/// tensor is missing, surplus, of another shape or not finite; or when the file would be larger than the format allows.
pub fn step_graph(config: &ModelConfig, weights: &mut Weights, attached: Attached<'_>) -> Result<Vec<u8>> {
    let config = config.checked()?;
    let mut graph = graph::Graph::new(weights);
    let outputs = step(&mut graph, &config)?;
    let (graph, state) = graph.finish("step", (OUTPUTS, outputs, config.outputs()))?;
    let model = proto::Model {
        ir_version: IR_VERSION,
        producer_name: PRODUCER.to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        doc_string: "One step of a recurrent model: what is read and the state in, what is predicted and the next state out.".to_owned(),
        graph: Some(graph),
        opset_import: vec![proto::OperatorSet { domain: String::new(), version: OPSET }],
        metadata_props: metadata::entries(&config, attached, state)?,
    };
    let len = model.encoded_len();
    if len > MAX_BYTES {
        return Err(Error::Config(format!(
            "the graph would take {len} bytes, and an ONNX file holds at most {MAX_BYTES}; export a smaller model"
        )));
    }
    Ok(model.encode_to_vec())
}

/// Whether a file that begins with `start` holds a graph made by [`step_graph`], of any version.
pub fn begins_as_graph(start: &[u8]) -> bool {
    // The version of the messages, then the producer, each after the tag of its field.
    let [8, _, 18, len, rest @ ..] = start else { return false };
    usize::from(*len) == PRODUCER.len() && rest.starts_with(PRODUCER.as_bytes())
}

/// The prediction after one step.
fn step(g: &mut graph::Graph<'_>, config: &CheckedConfig) -> Result<graph::Value> {
    let blocks = |g: &mut graph::Graph<'_>, x| (0..config.n_layers).try_fold(x, |x, layer| block::block(g, config, layer, x));
    if !config.decision {
        let x = front::row(g, config)?;
        let x = blocks(g, x)?;
        return end::predict(g, config, x);
    }
    let ([action, to_go, observation], has_begun) = front::policy_rows(g, config)?;
    let before = g.snapshot();
    blocks(g, action)?;
    g.only_where(has_begun, &before);
    blocks(g, to_go)?;
    let x = blocks(g, observation)?;
    end::predict(g, config, x)
}

/// The path of a part.
fn join(name: &str, part: &str) -> String {
    format!("{name}.{part}")
}
