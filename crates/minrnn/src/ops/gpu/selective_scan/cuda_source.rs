//! The selective scan's kernels as CUDA text.

use super::super::chunks::SizesCompilationArg;
use super::super::cuda_source::{CudaSource, Offline};
use super::{Plan, STEPS, back, forward, line};

/// States of a channel: what Mamba has.
const D_STATE: usize = 16;

/// Both passes and those over chunks, with everything that a block of a model passes to them. A step is one iteration of the loop over
/// states.
pub fn cuda_sources() -> Vec<CudaSource> {
    let offline = Offline::new();
    let plan = |chunked| Plan { d_state: D_STATE, chunked, z: true, h0: false, codes: false, d_y: true, d_last: false };
    // Buffers by name, numbers as they come behind the sizes, numbers of f32 in arrays.
    macro_rules! source {
        ($pass:literal, $kernel:path, [$($buffer:ident)*], [$($number:tt)*], $arrays:expr) => {{
            let kernel = <$kernel>::new(
                offline.settings(line()),
                offline.properties.clone(),
                offline.target.clone(),
                $(offline.buffer(stringify!($buffer)),)*
                SizesCompilationArg { seq_len: (), width: (), groups: (), chunk_len: (), chunks: () },
                $($number,)*
                plan(false),
            );
            CudaSource { arrays: $arrays * size_of::<f32>(), ..offline.source(format!("selective scan {}", $pass), [STEPS, 1], &kernel) }
        }};
    }
    vec![
        source!(
            "forward",
            forward::walk::Walk,
            [u delta delta_bias a bc skip z h0 entering codes y last boundaries],
            [() ()],
            D_STATE
        ),
        source!("forward over chunks", forward::summarise::Summarise, [u delta delta_bias a bc codes keeps gained], [()], D_STATE),
        source!(
            "backward",
            back::walk_back::WalkBack,
            [u delta delta_bias a bc skip z boundaries d_y d_last entering codes d_u d_delta d_z d_bc d_a d_delta_bias d_skip d_h0],
            [() ()],
            2 * D_STATE
        ),
        source!("backward over chunks", back::summarise_back::SummariseBack, [u delta delta_bias a bc z d_y codes keeps gained], [()], D_STATE),
    ]
}
