//! The kernels of LSTM and sLSTM as CUDA text.

use burn::backend::DType;
use cubecl::prelude::CubeDim;

use super::super::cuda_source::{CudaSource, Offline};
use super::super::tensors::format;
use super::cells::Cell;
use super::{Plan, ROWS, UNITS, back, forward};

/// Both passes of each cell with a bias, for a head of as many channels as a cube has units, and four rows.
pub fn cuda_sources() -> Vec<CudaSource> {
    let cells = [("lstm", Cell::Lstm), ("s-lstm", Cell::SLstmSigmoid)];
    let formats = [("f32", DType::F32), ("bf16", DType::BF16)];
    cells.into_iter().flat_map(|cell| formats.map(|format| of(cell, format))).flatten().collect()
}

fn of((cell_name, cell): (&str, Cell), (format_name, dtype): (&str, DType)) -> Vec<CudaSource> {
    let offline = Offline::new();
    let plan = Plan {
        cell,
        width: UNITS,
        rows: ROWS,
        units: UNITS,
        bias: true,
        recurrent_bias: false,
        carried: [false; 3],
        init: [false; 2],
        codes: false,
        d_h: true,
        d_last: [false; 3],
    };
    macro_rules! source {
        ($pass:literal, $kernel:path, [$($buffer:ident)*], $arrays:expr) => {{
            let kernel = <$kernel>::new(
                offline.settings(CubeDim::new_1d(plan.units as u32)),
                offline.properties.clone(),
                offline.target.clone(),
                $(offline.buffer(stringify!($buffer)),)*
                (),
                (),
                (),
                plan,
                format(dtype),
            );
            let source = offline.source(format!("{cell_name} {} {format_name}", $pass), [ROWS, 1], &kernel);
            CudaSource { arrays: $arrays * size_of::<f32>(), ..source }
        }};
    }
    let held = plan.held();
    vec![
        source!(
            "forward",
            forward::walk::Walk,
            [preact weight bias recurrent_bias h0 c0 n0 m0 init_h init_c codes h c n m h_last c_last n_last m_last],
            4 * held + 4 * ROWS
        ),
        source!(
            "backward",
            back::walk_back::WalkBack,
            [preact product weight bias recurrent_bias c n m c0 n0 m0 init_c codes d_h d_h_last d_c_last d_n_last d_preact d_h0 d_c0 d_n0 d_init_h d_init_c],
            5 * held + ROWS
        ),
    ]
}
