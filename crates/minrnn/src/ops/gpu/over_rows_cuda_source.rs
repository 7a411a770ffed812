//! The kernels over rows and elements as CUDA text.

use burn::backend::DType;
use cubecl::prelude::CubeDim;

use super::cuda_source::{CudaSource, Offline};
use super::norm::Norm;
use super::tensors::{UNITS, format, square};
use super::{adamw, column_sums, columns, cross_entropy, dropout, embedding, gelu, norm, positive, sums_of_squares};

/// Numbers of a vector: what a width of a multiple of four gets.
const VECTOR: usize = 4;

/// Norms, GELU, dropout, embedding, cross-entropy, column sums, AdamW, the norm of gradients and the positive activation, with everything
/// that a block of a model passes to them.
pub fn cuda_sources() -> Vec<CudaSource> {
    let offline = Offline::new();
    let elements = CubeDim::new_1d(UNITS as u32);
    // A kernel with its buffers by name, those first that are as many, its numbers, and what it is compiled for.
    macro_rules! source {
        ($name:expr, $kernel:path, $dim:expr, $({$($many:ident)*} * $count:expr,)? [$($buffer:ident)*], [$($number:expr),*], [$($compiled:expr),*]) => {{
            let kernel = <$kernel>::new(
                offline.settings($dim),
                offline.properties.clone(),
                offline.target.clone(),
                $($(offline.buffers(stringify!($many), $count),)*)?
                $(offline.buffer(stringify!($buffer)),)*
                $($number,)*
                $($compiled,)*
            );
            offline.source($name, [1, 1], &kernel)
        }};
    }
    let named = |name: &str| name.to_owned();
    let mut sources = vec![
        source!(named("embedding forward"), embedding::forward::Forward, elements, [tokens table y], [(), (), ()], [VECTOR]),
        source!(named("embedding backward"), embedding::backward::Backward, square(), [tokens d_y d_table], [(), (), (), (), ()], []),
        source!(named("cross-entropy forward"), cross_entropy::forward::Forward, square(), [logits targets weights losses], [(), (), (), ()], [true]),
        source!(
            named("cross-entropy backward"),
            cross_entropy::backward::Backward,
            square(),
            [logits targets weights d_loss d_logits],
            [(), (), (), ()],
            [true]
        ),
        source!(named("column sums"), column_sums::kernel::Kernel, square(), [partial sums], [(), (), ()], [VECTOR]),
        source!(
            named("adamw"),
            adamw::update::Update,
            elements,
            {parameters gradients firsts seconds} * adamw::TOGETHER,
            [updated next_first next_second places rates],
            [()],
            [VECTOR]
        ),
        source!(
            named("norm of gradients"),
            sums_of_squares::squares::Squares,
            square(),
            {xs} * sums_of_squares::TOGETHER,
            [partial lengths],
            [(), (), ()],
            []
        ),
        source!(named("positive forward"), positive::forward::Forward, elements, [v y], [()], []),
        source!(named("positive backward"), positive::backward::Backward, elements, [v d_y d_v], [()], []),
    ];
    for (format_name, dtype) in [("f32", DType::F32), ("bf16", DType::BF16)] {
        let of = |name: &str| format!("{name} {format_name}");
        for (name, norm) in [("layer norm", Norm::Layer), ("rms norm", Norm::Rms)] {
            sources.push(source!(
                of(&format!("{name} forward")),
                norm::forward::Forward,
                square(),
                [x gamma beta y],
                [(), (), (), ()],
                [VECTOR, norm, format(dtype)]
            ));
            sources.push(source!(
                of(&format!("{name} backward")),
                norm::backward::Backward,
                square(),
                [x gamma d_y d_residual d_x rows_statistics],
                [(), (), (), ()],
                [VECTOR, true, norm, format(dtype)]
            ));
        }
        let sizes = || columns::SizesCompilationArg { rows: (), width: (), groups: (), block_rows: () };
        let mask = || dropout::MaskCompilationArg { key_low: (), key_high: (), threshold: (), scale: () };
        let plan = dropout::Plan { drops: true, bias: true, residual: true };
        sources.extend([
            source!(
                of("dropout forward"),
                dropout::forward::Forward,
                elements,
                [x bias residual y],
                [(), (), mask()],
                [VECTOR, plan, format(dtype), format(DType::F32)]
            ),
            source!(
                of("dropout backward"),
                dropout::backward::Backward,
                square(),
                [d_y d_x sums],
                [sizes(), (), mask()],
                [VECTOR, plan, format(dtype), format(DType::F32)]
            ),
            source!(
                of("norm parameters"),
                norm::parameters::Parameters,
                square(),
                [x d_y rows_statistics d_gamma d_beta],
                [sizes(), ()],
                [VECTOR, format(dtype)]
            ),
            source!(of("gelu forward"), gelu::forward::Forward, elements, [x bias y], [(), ()], [VECTOR, format(dtype)]),
            source!(
                of("gelu backward"),
                gelu::backward::Backward,
                square(),
                [x bias d_y d_x sums],
                [sizes(), ()],
                [VECTOR, format(dtype)]
            ),
            source!(of("gated gelu forward"), gelu::forward_gated::ForwardGated, elements, [x bias scale y], [(), ()], [VECTOR, format(dtype)]),
            source!(
                of("gated gelu backward"),
                gelu::backward_gated::BackwardGated,
                square(),
                [x bias scale d_y d_x bias_sums scale_sums],
                [sizes(), ()],
                [VECTOR, format(dtype)]
            ),
        ]);
    }
    sources
}
