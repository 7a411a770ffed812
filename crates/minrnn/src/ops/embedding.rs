//! Tokens looked up in a table.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor};
use minrnn_kernels::embedding as kernel;

use super::flex::{Output, dims, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};

/// The rows of `table` that `tokens` name.
///
/// # Shapes
/// * `tokens` `[B, T]`, each below V; `table` `[V, D]` → `[B, T, D]`
///
/// # Panics
/// When a token is not below V.
pub fn embedding(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    let [batch, seq_len] = tokens.dims();
    let [vocab_size, width] = table.dims();
    if batch * seq_len == 0 {
        return Tensor::zeros([batch, seq_len, width], &table.device());
    }
    if !has_kernels(&table.device()) {
        return composed(tokens, table);
    }
    // A negative number becomes one that no table has.
    let tokens = tokens.into_data().iter::<i64>().map(|token| u32::try_from(token).unwrap_or(u32::MAX)).collect();
    output(run(Embedding { tokens, vocab_size, shape: [batch, seq_len, width] }, vec![input(table)]).pop())
}

pub(super) fn composed(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    burn::tensor::module::embedding(table, tokens)
}

/// The tokens are no tensor here: they have no gradient, and the CPU reads them as they are.
#[derive(Debug)]
struct Embedding {
    tokens: Vec<u32>,
    vocab_size: usize,
    shape: [usize; 3],
}

impl FusedOp for Embedding {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [_, width] = dims(&inputs[0]);
        let mut y = Output::new(self.shape);
        kernel::forward(width, &self.tokens, slice(&inputs[0]), y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [_, _, width] = self.shape;
        let mut d_table = Output::new([self.vocab_size, width]);
        kernel::backward(width, &self.tokens, slice(d_y), d_table.out());
        // SAFETY: the kernel writes the gradient whole.
        unsafe { vec![d_table.finish()] }
    }
}
