//! Products with block-diagonal matrices, one row at a time. They are small and stay f32.

use alloc::vec::Vec;

use minrnn_kernels::matmul::transposed;
use minrnn_kernels::simd::{self, Level, Simd, WithSimd, mul_add};

use crate::Result;
use crate::source::Source;

/// For each block of channels, y = W x.
#[derive(Debug, Clone)]
pub(crate) struct BlockDiagonal {
    outputs: usize,
    inputs: usize,
    /// `[G, inputs, outputs]`: sums run over the inputs in order with every instruction set.
    columns: Vec<f32>,
}

impl BlockDiagonal {
    pub(crate) fn read(source: &mut dyn Source, name: &str, [count, outputs, inputs]: [usize; 3]) -> Result<Self> {
        let weight = source.vector(&alloc::format!("{name}.weight"), &[count, outputs, inputs])?;
        let columns = weight.chunks_exact(outputs * inputs).flat_map(|block| transposed(block, outputs, inputs)).collect();
        Ok(Self { outputs, inputs, columns })
    }

    /// One dense block `[outputs, inputs]`.
    pub(crate) fn new(weight: &[f32], outputs: usize, inputs: usize) -> Self {
        Self { outputs, inputs, columns: transposed(weight, outputs, inputs) }
    }

    /// G, the number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.columns.len() / (self.outputs * self.inputs)
    }

    /// `y` `[G · outputs]` = W `x` `[G · inputs]`.
    pub(crate) fn row(&self, level: Level, x: &[f32], y: &mut [f32]) {
        level.run(Row { blocks: self, x, y });
    }
}

struct Row<'a> {
    blocks: &'a BlockDiagonal,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let BlockDiagonal { outputs, inputs, columns } = self.blocks;
        let parts = self.x.chunks_exact(*inputs).zip(self.y.chunks_exact_mut(*outputs));
        for ((x, y), columns) in parts.zip(columns.chunks_exact(outputs * inputs)) {
            for at in (0..*outputs).step_by(S::F32_LANES) {
                let mut sum = simd.splat_f32s(0.0);
                for (&x, column) in x.iter().zip(columns.chunks_exact(*outputs)) {
                    sum = mul_add(simd, simd.splat_f32s(x), simd::load(simd, column, at), sum);
                }
                simd::put(simd, y, at, sum);
            }
        }
    }
}
