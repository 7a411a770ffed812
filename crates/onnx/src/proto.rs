//! The ONNX messages needed for a graph, from onnx.proto (IR version 8), with their field numbers. Fields that are never written are
//! omitted.

use prost::{Enumeration, Message, Oneof};

/// A file.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    /// Version of the messages.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The program that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// A description for people.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The computation.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    /// Versions of the operators.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSet>,
    /// Further metadata.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<Entry>,
}

/// A version of the operators of a domain; the standard one has no name.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSet {
    /// The domain.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The computation: operators in an order in which every input is computed before it is used.
#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    /// The operators.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<Node>,
    /// The graph's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<Tensor>,
    /// The inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
}

/// An operator.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Names of its inputs.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its own name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Which operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its settings.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
}

/// A setting of an operator.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which of them is set.
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// None.
    Undefined = 0,
    /// A number.
    Float = 1,
    /// An integer.
    Int = 2,
    /// Integers.
    Ints = 7,
}

/// The type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum DataType {
    /// None.
    Undefined = 0,
    /// f32.
    Float = 1,
    /// i64.
    Int64 = 7,
    /// Booleans.
    Bool = 9,
    /// f64.
    Double = 11,
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    /// Its shape.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The type of its numbers.
    #[prost(enumeration = "DataType", tag = "2")]
    pub data_type: i32,
    /// Its name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Its numbers, little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// The description of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfo {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<Type>,
}

/// The type of a value.
#[derive(Clone, PartialEq, Message)]
pub struct Type {
    /// That of a tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorType>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    /// The type of its numbers.
    #[prost(enumeration = "DataType", tag = "1")]
    pub elem_type: i32,
    /// Its shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    /// Its sizes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// A size.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// The size or its name.
    #[prost(oneof = "Size", tags = "1, 2")]
    pub value: Option<Size>,
}

/// A size or its name.
#[derive(Clone, PartialEq, Oneof)]
pub enum Size {
    /// Known.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// Chosen by the caller.
    #[prost(string, tag = "2")]
    Param(String),
}
