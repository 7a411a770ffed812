//! The ONNX operators used in the graphs. Axes include the batch, which is axis 0; shapes exclude it.

use crate::graph::{Graph, Value, float, int, ints};
use crate::proto::DataType;

/// Operators without attributes.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($($input:ident),+) = $op:literal;)+) => {
        impl Graph<'_> {
            $($(#[$doc])*
            pub(crate) fn $name(&mut self, $($input: Value),+) -> Value {
                self.operation($op, &[$($input),+], 1, Vec::new())[0]
            })+
        }
    };
}

plain! {
    /// a + b.
    add(a, b) = "Add";
    /// a − b.
    sub(a, b) = "Sub";
    /// a ⊙ b.
    mul(a, b) = "Mul";
    /// a / b.
    div(a, b) = "Div";
    /// The larger one.
    max(a, b) = "Max";
    /// The smaller one.
    min(a, b) = "Min";
    /// −x.
    neg(x) = "Neg";
    /// |x|.
    abs(x) = "Abs";
    /// −1, 0 or 1.
    sign(x) = "Sign";
    /// e^x.
    exp(x) = "Exp";
    /// ln x.
    log(x) = "Log";
    /// √x.
    sqrt(x) = "Sqrt";
    /// cos x.
    cos(x) = "Cos";
    /// sin x.
    sin(x) = "Sin";
    /// The largest whole number ≤ x.
    floor(x) = "Floor";
    /// The nearest whole number; ties go to the even one.
    round(x) = "Round";
    /// tanh x.
    tanh(x) = "Tanh";
    /// σ(x).
    sigmoid(x) = "Sigmoid";
    /// ln(1 + e^x).
    softplus(x) = "Softplus";
    /// The error function.
    erf(x) = "Erf";
    /// max(x, 0).
    relu(x) = "Relu";
    /// Whether a < b.
    less(a, b) = "Less";
    /// Whether a > b.
    greater(a, b) = "Greater";
    /// The matrix product of the last two axes.
    matmul(a, b) = "MatMul";
    /// a where the condition holds, else b.
    choose(condition, a, b) = "Where";
}

impl Graph<'_> {
    /// `x` W (+ bias), W `[outputs, inputs]` being multiplied by its rows.
    pub(crate) fn gemm(&mut self, x: Value, weight: Value, bias: Option<Value>) -> Value {
        let inputs: Vec<Value> = [x, weight].into_iter().chain(bias).collect();
        self.operation("Gemm", &inputs, 1, vec![int("transB", 1)])[0]
    }

    /// `x` as `[batch, shape]`.
    pub(crate) fn reshape(&mut self, x: Value, shape: &[usize]) -> Value {
        let sizes: Vec<i64> = std::iter::once(-1).chain(shape.iter().map(|&size| size as i64)).collect();
        let sizes = self.whole(&sizes);
        self.operation("Reshape", &[x, sizes], 1, Vec::new())[0]
    }

    /// `x` as `[batch]`.
    pub(crate) fn flatten(&mut self, x: Value) -> Value {
        self.reshape(x, &[])
    }

    /// The parts of `x` with these sizes along `axis`.
    pub(crate) fn split<const N: usize>(&mut self, x: Value, axis: i64, sizes: [usize; N]) -> [Value; N] {
        let sizes = self.whole(&sizes.map(|size| size as i64));
        let parts = self.operation("Split", &[x, sizes], N, vec![int("axis", axis)]);
        std::array::from_fn(|i| parts[i])
    }

    /// The places `start..end` along `axis`.
    pub(crate) fn slice(&mut self, x: Value, axis: i64, start: usize, end: usize) -> Value {
        let inputs = [&[start as i64][..], &[end as i64], &[axis]].map(|numbers| self.whole(numbers));
        self.operation("Slice", &[x, inputs[0], inputs[1], inputs[2]], 1, Vec::new())[0]
    }

    /// Concatenates `parts` along `axis`.
    pub(crate) fn concat(&mut self, parts: &[Value], axis: i64) -> Value {
        self.operation("Concat", parts, 1, vec![int("axis", axis)])[0]
    }

    /// The sum over `axis`.
    pub(crate) fn sum(&mut self, x: Value, axis: i64, keeps: bool) -> Value {
        let axis = self.whole(&[axis]);
        self.operation("ReduceSum", &[x, axis], 1, vec![int("keepdims", i64::from(keeps))])[0]
    }

    /// The mean over the last axis, which stays as one place.
    pub(crate) fn mean(&mut self, x: Value) -> Value {
        self.operation("ReduceMean", &[x], 1, vec![ints("axes", &[-1]), int("keepdims", 1)])[0]
    }

    /// The Euclidean norm over the last axis, which stays as one place.
    pub(crate) fn length(&mut self, x: Value) -> Value {
        self.operation("ReduceL2", &[x], 1, vec![ints("axes", &[-1]), int("keepdims", 1)])[0]
    }

    /// LayerNorm over the last axis.
    pub(crate) fn layer_norm(&mut self, x: Value, gain: Value, shift: Option<Value>, eps: f32) -> Value {
        let inputs: Vec<Value> = [x, gain].into_iter().chain(shift).collect();
        self.operation("LayerNormalization", &inputs, 1, vec![int("axis", -1), float("epsilon", eps)])[0]
    }

    /// Rows `places` of `table`.
    pub(crate) fn gather(&mut self, table: Value, places: Value) -> Value {
        self.operation("Gather", &[table, places], 1, vec![int("axis", 0)])[0]
    }

    /// `x` as numbers of another type.
    pub(crate) fn cast(&mut self, x: Value, to: DataType) -> Value {
        self.operation("Cast", &[x], 1, vec![int("to", i64::from(to as i32))])[0]
    }
}
