//! Products with block-diagonal matrices.

use crate::Result;
use crate::graph::{Graph, Value};

/// Widest block that is multiplied element by element: for blocks up to it, one matmul each would cost more than the arithmetic.
const SMALL: usize = 8;

/// W x of each block of channels of `x` `[B, count · inputs]`: `[B, count · outputs]`.
pub(crate) fn product(g: &mut Graph<'_>, name: &str, [count, outputs, inputs]: [usize; 3], x: Value) -> Result<Value> {
    let shape = [count, outputs, inputs];
    if inputs <= SMALL {
        let weight = g.parameter(name, &shape)?;
        let rows = g.reshape(x, &[count, 1, inputs]);
        let products = g.mul(rows, weight);
        let sums = g.sum(products, -1, false);
        return Ok(g.reshape(sums, &[count * outputs]));
    }
    let weight = g.tensor(name, &shape)?;
    let columns = g.constant(&format!("{name}.columns"), &[count, inputs, outputs], &transposed(&weight, shape));
    let rows = g.reshape(x, &[count, 1, inputs]);
    let products = g.matmul(rows, columns);
    Ok(g.reshape(products, &[count * outputs]))
}

/// Blocks `[count, outputs, inputs]` as `[count, inputs, outputs]`.
pub(crate) fn transposed(weight: &[f32], [_, outputs, inputs]: [usize; 3]) -> Vec<f32> {
    weight.chunks_exact(outputs * inputs).flat_map(|block| minrnn_kernels::matmul::transposed(block, outputs, inputs)).collect()
}
