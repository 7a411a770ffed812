//! A graph under construction: constants, operators, and the state carried from step to step.

use std::collections::BTreeMap;

use minrnn_model::Weights;
use serde_json::{Value as Json, json};

use crate::Result;
use crate::proto::{self, Attribute, AttributeType, DataType, Dimension, Node, Size, Tensor, TensorType, Type, ValueInfo};

/// The name of the number of sessions.
const BATCH: &str = "batch";

/// A value of the graph: an input, a constant, or the output of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Value(usize);

/// What is kept before the first step.
#[derive(Debug, Clone)]
pub(crate) enum Initial {
    /// The same number everywhere.
    All(f32),
    /// One number for each place.
    Each(Vec<f32>),
}

/// A part of a session's state.
#[derive(Debug, Clone)]
struct Carried {
    name: String,
    shape: Vec<usize>,
    initial: Initial,
    /// The part whose last value replaces `initial` when a sequence ends and another begins.
    on_reset: Option<String>,
    input: Value,
    current: Value,
}

/// The values of all parts of a state at some place in the graph.
pub(crate) struct Snapshot(Vec<Value>);

/// An operator whose inputs and outputs have no names yet.
struct Operation {
    op: &'static str,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    attributes: Vec<Attribute>,
}

/// The graph of a model whose tensors are `weights`.
pub(crate) struct Graph<'a> {
    weights: &'a mut Weights,
    /// Tensors that were asked for, since a part of a model may be built more than once.
    taken: BTreeMap<String, Vec<f32>>,
    names: Vec<String>,
    operations: Vec<Operation>,
    constants: BTreeMap<String, (Value, Tensor)>,
    inputs: Vec<(Value, DataType, Vec<usize>)>,
    states: Vec<Carried>,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(weights: &'a mut Weights) -> Self {
        let (taken, constants) = (BTreeMap::new(), BTreeMap::new());
        Self { weights, taken, names: Vec::new(), operations: Vec::new(), constants, inputs: Vec::new(), states: Vec::new() }
    }

    /// The numbers of a tensor of the model.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        if let Some(taken) = self.taken.get(name) {
            return Ok(taken.clone());
        }
        let data = self.weights.take(name, shape)?;
        self.taken.insert(name.to_owned(), data.clone());
        Ok(data)
    }

    /// A tensor of the model, unchanged.
    pub(crate) fn parameter(&mut self, name: &str, shape: &[usize]) -> Result<Value> {
        if let Some((value, _)) = self.constants.get(name) {
            return Ok(*value);
        }
        let data = self.tensor(name, shape)?;
        Ok(self.constant(name, shape, &data))
    }

    /// A constant with this name; made again, it is the existing one.
    pub(crate) fn constant(&mut self, name: &str, shape: &[usize], data: &[f32]) -> Value {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len(), "{name}");
        self.raw(name, shape, DataType::Float, || data.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// A constant of f64.
    pub(crate) fn doubles(&mut self, name: &str, shape: &[usize], data: &[f64]) -> Value {
        self.raw(name, shape, DataType::Double, || data.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// A number.
    pub(crate) fn number(&mut self, number: f32) -> Value {
        self.constant(&format!("number.{number:e}"), &[], &[number])
    }

    /// A constant of whole numbers, such as a shape.
    pub(crate) fn whole(&mut self, numbers: &[i64]) -> Value {
        let name = format!("whole.{}", numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("_"));
        self.raw(&name, &[numbers.len()], DataType::Int64, || numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn raw(&mut self, name: &str, shape: &[usize], data_type: DataType, bytes: impl FnOnce() -> Vec<u8>) -> Value {
        if let Some((value, _)) = self.constants.get(name) {
            return *value;
        }
        let value = self.value(name.to_owned());
        let dims = shape.iter().map(|&size| size as i64).collect();
        let tensor = Tensor { dims, data_type: data_type as i32, name: name.to_owned(), raw_data: bytes() };
        self.constants.insert(name.to_owned(), (value, tensor));
        value
    }

    /// A new value.
    fn value(&mut self, name: String) -> Value {
        self.names.push(name);
        Value(self.names.len() - 1)
    }

    /// An input of the graph `[batch, shape]`.
    pub(crate) fn input(&mut self, name: &str, data_type: DataType, shape: &[usize]) -> Value {
        let value = self.value(name.to_owned());
        self.inputs.push((value, data_type, shape.to_vec()));
        value
    }

    /// An operator with `outputs` outputs.
    pub(crate) fn operation(&mut self, op: &'static str, inputs: &[Value], outputs: usize, attributes: Vec<Attribute>) -> Vec<Value> {
        let number = self.operations.len();
        let name = |i: usize| if outputs == 1 { format!("{op}_{number}") } else { format!("{op}_{number}_{i}") };
        let outputs: Vec<Value> = (0..outputs).map(|i| self.value(name(i))).collect();
        self.operations.push(Operation { op, inputs: inputs.to_vec(), outputs: outputs.clone(), attributes });
        outputs
    }

    /// What the session keeps under this name, which is that of a part of the model and what is kept; `[batch, shape]`.
    pub(crate) fn state(&mut self, name: &str, shape: &[usize], initial: Initial) -> Value {
        let name = name.strip_prefix("backbone.").unwrap_or(name);
        if let Some(carried) = self.states.iter().find(|carried| carried.name == name) {
            return carried.current;
        }
        let input = self.value(format!("state.{name}"));
        self.states.push(Carried { name: name.to_owned(), shape: shape.to_vec(), initial, on_reset: None, input, current: input });
        input
    }

    /// Keeps `value` under this name from here on.
    pub(crate) fn keep(&mut self, name: &str, value: Value) {
        self.carried(name).current = value;
    }

    /// When a sequence ends and another begins, `name` becomes what `from` is at that time.
    pub(crate) fn take_on_reset(&mut self, name: &str, from: &str) {
        self.carried(name).on_reset = Some(from.to_owned());
    }

    fn carried(&mut self, name: &str) -> &mut Carried {
        let name = name.strip_prefix("backbone.").unwrap_or(name);
        self.states.iter_mut().find(|carried| carried.name == name).unwrap_or_else(|| panic!("nothing is kept under the name {name}"))
    }

    /// The state at this point.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.states.iter().map(|carried| carried.current).collect())
    }

    /// Where `condition` `[batch, 1]` does not hold, the state goes back to `before`.
    pub(crate) fn only_where(&mut self, condition: Value, before: &Snapshot) {
        for at in 0..self.states.len() {
            let Carried { current, input, ref shape, .. } = self.states[at];
            // Parts added after the snapshot had their input values.
            let old = before.0.get(at).copied().unwrap_or(input);
            if current != old {
                let ones = vec![1; shape.len()];
                let condition = self.reshape(condition, &ones);
                self.states[at].current = self.operation("Where", &[condition, current, old], 1, Vec::new())[0];
            }
        }
    }

    /// The finished graph, whose output is `outputs` `[batch, width]`, and its state: names, shapes and initial values.
    ///
    /// # Errors
    /// When a tensor is left over.
    pub(crate) fn finish(mut self, name: &str, outputs: (&str, Value, usize)) -> Result<(proto::Graph, Json)> {
        self.weights.expect_empty()?;
        let mut infos = vec![self.output(outputs.0.to_owned(), outputs.1, &[outputs.2])];
        let carried: Vec<Json> = self.states.iter().map(Carried::description).collect();
        for at in 0..self.states.len() {
            let Carried { ref name, ref shape, current, .. } = self.states[at];
            let (name, shape) = (format!("next.{name}"), shape.clone());
            infos.push(self.output(name, current, &shape));
        }
        let states = self.states.iter().map(|carried| (carried.input, DataType::Float, carried.shape.clone()));
        let inputs: Vec<_> = self.inputs.iter().cloned().chain(states).collect();
        let names = &self.names;
        let named = |values: &[Value]| values.iter().map(|value| names[value.0].clone()).collect::<Vec<_>>();
        let node = |operation: Operation| Node {
            input: named(&operation.inputs),
            output: named(&operation.outputs),
            name: format!("node.{}", names[operation.outputs[0].0]),
            op_type: operation.op.to_owned(),
            attribute: operation.attributes,
        };
        let graph = proto::Graph {
            node: self.operations.into_iter().map(node).collect(),
            name: name.to_owned(),
            initializer: self.constants.into_values().map(|(_, tensor)| tensor).collect(),
            input: inputs.into_iter().map(|(value, data_type, shape)| info(names[value.0].clone(), data_type, &shape)).collect(),
            output: infos,
        };
        Ok((graph, Json::Array(carried)))
    }

    /// Gives `value` the name of an output of the graph.
    fn output(&mut self, name: String, value: Value, shape: &[usize]) -> ValueInfo {
        let info = info(name.clone(), DataType::Float, shape);
        let is_free = self.operations.iter().any(|operation| operation.outputs.contains(&value)) && !is_outer(&self.names[value.0]);
        let value = if is_free { value } else { self.operation("Identity", &[value], 1, Vec::new())[0] };
        self.names[value.0] = name;
        info
    }
}

/// Whether the name is part of the interface for callers.
fn is_outer(name: &str) -> bool {
    name.starts_with("next.") || name == crate::OUTPUTS
}

impl Carried {
    /// The part's entry in the metadata.
    fn description(&self) -> Json {
        let Self { name, shape, on_reset, .. } = self;
        let initial = match &self.initial {
            Initial::All(number) => json!(number),
            Initial::Each(numbers) => json!(numbers),
        };
        let mut described = json!({"input": format!("state.{name}"), "output": format!("next.{name}"), "shape": shape, "initial": initial});
        if let Some(from) = on_reset {
            described["on_reset"] = json!(format!("state.{from}"));
        }
        described
    }
}

fn info(name: String, data_type: DataType, shape: &[usize]) -> ValueInfo {
    let sizes = shape.iter().map(|&size| Size::Value(size as i64));
    let dim = std::iter::once(Size::Param(BATCH.to_owned())).chain(sizes).map(|value| Dimension { value: Some(value) }).collect();
    let tensor_type = Some(TensorType { elem_type: data_type as i32, shape: Some(proto::Shape { dim }) });
    ValueInfo { name, r#type: Some(Type { tensor_type }) }
}

/// A whole number as an attribute of an operator.
pub(crate) fn int(name: &str, i: i64) -> Attribute {
    Attribute { name: name.to_owned(), i: Some(i), r#type: AttributeType::Int as i32, ..Default::default() }
}

/// Whole numbers as an attribute.
pub(crate) fn ints(name: &str, ints: &[i64]) -> Attribute {
    Attribute { name: name.to_owned(), ints: ints.to_vec(), r#type: AttributeType::Ints as i32, ..Default::default() }
}

/// A number as an attribute.
pub(crate) fn float(name: &str, f: f32) -> Attribute {
    Attribute { name: name.to_owned(), f: Some(f), r#type: AttributeType::Float as i32, ..Default::default() }
}
