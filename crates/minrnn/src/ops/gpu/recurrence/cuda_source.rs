//! The recurrences' kernels as CUDA text.

use burn::backend::DType;
use cubecl::prelude::CubeDim;
use minrnn_kernels::{Candidate, Gates};

use super::super::chunks::SizesCompilationArg;
use super::super::cuda_source::{CudaSource, Offline};
use super::super::tensors::{LANES, format};
use super::slice::STEPS;
use super::{Cell, Plan, SLICES, back, walk};

/// Forward, backward and the passes over chunks of the recurrences, for each cell and format, with everything that a block of a model
/// passes to them, for a device like an H100.
pub fn cuda_sources() -> Vec<CudaSource> {
    let cells = [
        ("linear", Cell::Linear),
        ("min-gru", Cell::MinGru(Candidate::Identity)),
        ("min-gru positive", Cell::MinGru(Candidate::Positive)),
        ("min-lstm", Cell::MinLstm(Candidate::Identity, Gates::Normalized)),
    ];
    let formats = [("f32", DType::F32, 1), ("bf16", DType::BF16, 2)];
    cells.into_iter().flat_map(|cell| formats.map(|format| of(cell, format))).flatten().collect()
}

fn of((cell_name, cell): (&str, Cell), (format_name, dtype, channels): (&str, DType, usize)) -> Vec<CudaSource> {
    let offline = Offline::new();
    let plan = |slices| Plan {
        cell,
        channels,
        slices,
        chunked: false,
        bias: cell != Cell::Linear,
        h0: true,
        init: false,
        codes: false,
        d_h: true,
        d_last: false,
    };
    let [ahead, back] = SLICES;
    // A kernel with its buffers by name; what else it is compiled for is the same for all.
    macro_rules! source {
        ($pass:literal, $kernel:path, $slices:expr, [$($buffer:ident)*]) => {{
            let kernel = <$kernel>::new(
                offline.settings(CubeDim::new_2d(LANES as u32, $slices as u32)),
                offline.properties.clone(),
                offline.target.clone(),
                $(offline.buffer(stringify!($buffer)),)*
                SizesCompilationArg { seq_len: (), width: (), groups: (), chunk_len: (), chunks: () },
                (),
                channels,
                plan($slices),
                format(dtype),
            );
            offline.source(format!("{cell_name} {} {format_name}", $pass), [STEPS * channels, $slices], &kernel)
        }};
    }
    vec![
        source!("forward", walk::walk::Walk, ahead, [x0 x1 bias h0 entering init codes h last]),
        source!("forward over chunks", walk::summarise::Summarise, ahead, [x0 x1 bias init codes keeps gained]),
        source!(
            "backward",
            back::walk_back::WalkBack,
            back,
            [x0 x1 bias h h0 d_h d_last entering init codes d_x0 d_x1 d_h0 d_init d_bias]
        ),
        source!("backward over chunks", back::summarise_back::SummariseBack, back, [x0 x1 bias d_h codes keeps gained]),
    ]
}
