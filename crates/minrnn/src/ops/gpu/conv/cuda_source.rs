//! The kernels of the convolution as CUDA text.

use burn::backend::DType;
use minrnn_model::CONV_TAPS;

use super::super::cuda_source::{CudaSource, Offline};
use super::super::tensors::{format, square};
use super::{Plan, SizesCompilationArg, back, forward};

/// Both passes with everything that a block of a model passes to them.
pub fn cuda_sources() -> Vec<CudaSource> {
    let offline = Offline::new();
    let plan = Plan { past: CONV_TAPS - 1, window: false, codes: false, d_y: true, d_next: false, d_residual: true };
    macro_rules! source {
        ($name:expr, $kernel:path, $dtype:expr, [$($buffer:ident)*]) => {{
            let kernel = <$kernel>::new(
                offline.settings(square()),
                offline.properties.clone(),
                offline.target.clone(),
                $(offline.buffer(stringify!($buffer)),)*
                SizesCompilationArg { seq_len: (), width: (), groups: (), blocks: (), block_len: () },
                (),
                plan,
                format($dtype),
            );
            offline.source($name, [1, 1], &kernel)
        }};
    }
    let formats = [("f32", DType::F32), ("bf16", DType::BF16)];
    let of = |(name, dtype): (&str, DType)| {
        [
            source!(format!("convolution forward {name}"), forward::forward::Forward, dtype, [x weight bias window codes y]),
            source!(
                format!("convolution backward {name}"),
                back::backward::Backward,
                dtype,
                [x weight window codes d_y d_next d_residual d_x sums]
            ),
        ]
    };
    formats.into_iter().flat_map(of).collect()
}
