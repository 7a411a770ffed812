//! The recurrences' kernels as CUDA text.

use burn::backend::DType;
use cubecl::prelude::CubeDim;
use minrnn_kernels::{Candidate, Gates};

use super::super::chunks::SizesCompilationArg;
use super::super::cuda_source::{CudaSource, Offline};
use super::super::tensors::{LANES, format};
use super::walk::STEPS;
use super::{Cell, Plan, SLICES, back, walk};

/// Forward, backward and the passes over chunks of the recurrences, of each cell and format, with everything a block of a model gives them, for a
/// device like an H100.
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
    let (settings, buffer) = (|slices: usize| offline.settings(CubeDim::new_2d(LANES as u32, slices as u32)), || offline.buffer());
    let (properties, target) = (|| offline.properties.clone(), || offline.target.clone());
    let sizes = || SizesCompilationArg { seq_len: (), width: (), groups: (), chunk_len: (), chunks: () };
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
    let name = |pass: &str| format!("{cell_name} {pass} {format_name}");
    let steps = STEPS * channels;
    vec![
        offline.source(
            name("forward"),
            [steps, ahead],
            &walk::walk::Walk::new(
                settings(ahead),
                properties(),
                target(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                sizes(),
                (),
                channels,
                plan(ahead),
                format(dtype),
            ),
        ),
        offline.source(
            name("forward over chunks"),
            [steps, ahead],
            &walk::summarise::Summarise::new(
                settings(ahead),
                properties(),
                target(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                sizes(),
                (),
                channels,
                plan(ahead),
                format(dtype),
            ),
        ),
        offline.source(
            name("backward"),
            [steps, back],
            &back::walk_back::WalkBack::new(
                settings(back),
                properties(),
                target(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                sizes(),
                (),
                channels,
                plan(back),
                format(dtype),
            ),
        ),
        offline.source(
            name("backward over chunks"),
            [steps, back],
            &back::summarise_back::SummariseBack::new(
                settings(back),
                properties(),
                target(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                buffer(),
                sizes(),
                (),
                channels,
                plan(back),
                format(dtype),
            ),
        ),
    ]
}
