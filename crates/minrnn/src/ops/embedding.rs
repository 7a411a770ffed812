//! Looks up tokens in a table.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor};
use minrnn_kernels::embedding as kernel;

use super::flex::{dims, outputs, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;

/// The rows of `table` for the given `tokens`.
///
/// # Shapes
/// * `tokens` `[B, T]`, each below V; `table` `[V, D]` → `[B, T, D]`
///
/// # Panics
/// When a token is V or more, on a CPU.
pub fn embedding(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    let [batch, seq_len] = tokens.dims();
    let [vocab_size, width] = table.dims();
    if batch * seq_len == 0 {
        return Tensor::zeros([batch, seq_len, width], &table.device());
    }
    if !has_kernels(&table) || !is_on_cpu(&table.device()) && vocab_size > LARGEST_ON_GPU {
        return composed(tokens, table);
    }
    output(run(Embedding { tokens: Tokens::new(tokens), vocab_size, shape: [batch, seq_len, width] }, vec![input(table)]).pop())
}

/// Maximum number of rows of a table whose gradient the GPU kernel sums, as every row scans all tokens.
const LARGEST_ON_GPU: usize = 4096;

pub(super) fn composed(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    burn::tensor::module::embedding(table, tokens)
}

/// The tokens, where they are stored. They are not an input of the operation, because they have no gradient.
#[derive(Debug)]
pub(super) enum Tokens {
    Host(Vec<u32>),
    /// Numbers of V or more stand for the last row: nothing is read back to find them.
    #[cfg(feature = "gpu")]
    Gpu(Box<burn_cubecl::tensor::CubeTensor>),
}

impl Tokens {
    fn new(tokens: Tensor<2, Int>) -> Self {
        #[cfg(feature = "gpu")]
        if let Some(on_gpu) = super::gpu::tensors::ints_on_gpu(tokens.clone()) {
            return Self::Gpu(Box::new(on_gpu));
        }
        // A negative number becomes one beyond every table.
        Self::Host(tokens.into_data().iter::<i64>().map(|token| u32::try_from(token).unwrap_or(u32::MAX)).collect())
    }

    fn on_host(&self) -> &[u32] {
        match self {
            Self::Host(tokens) => tokens,
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => unreachable!("tokens and table are on one device"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Embedding {
    pub(super) tokens: Tokens,
    pub(super) vocab_size: usize,
    pub(super) shape: [usize; 3],
}

impl FusedOp for Embedding {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [_, width] = dims(&inputs[0]);
        outputs([self.shape.into()], |[y]| kernel::forward(width, self.tokens.on_host(), slice(&inputs[0]), y))
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [_, _, width] = self.shape;
        outputs([[self.vocab_size, width].into()], |[d_table]| kernel::backward(width, self.tokens.on_host(), slice(d_y), d_table))
    }
}
