//! The linear recurrences: how they are split and launched.
//!
//! Rows and groups of 32 channels are cubes, or of 32 pairs of channels for 16-bit numbers, and a cube works on several stretches of time
//! at once (`walk`). If there are too few rows and groups to fill a device, time is split into chunks: one pass computes the effect of
//! every chunk on a state, the recurrence over these effects (the linear cell again) gives the states between chunks, and the walk then
//! runs in all chunks at once.

mod back;
pub(in crate::ops) mod cells;
#[cfg(feature = "cuda-source")]
mod cuda_source;
mod cut;
mod meeting;
mod slice;
mod walk;

#[cfg(feature = "cuda-source")]
pub use cuda_source::cuda_sources;

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::BufferArg;

use super::super::recurrence::Op;
use super::column_sums::column_sums;
use super::op::GpuOp;
use super::tensors::{LANES, Like, arg, arg_or, cubes, dims, empty, empty_in, empty_like, format};
use cells::Cell;
use cut::Cut;

/// Most slices of a cube, forward and backward: a unit that computes gradients holds so much that a multiprocessor has room for 1024 of them.
const SLICES: [usize; 2] = [16, 8];

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plan {
    cell: Cell,
    /// Channels of a unit, side by side in memory.
    channels: usize,
    slices: usize,
    chunked: bool,
    bias: bool,
    h0: bool,
    init: bool,
    codes: bool,
    d_h: bool,
    d_last: bool,
}

/// A recurrence on a device: its inputs, and what it starts from.
struct Problem<'a> {
    cell: Cell,
    /// One or two, each `[B, T, ·]`.
    inputs: Vec<&'a CubeTensor>,
    bias: Option<&'a CubeTensor>,
    h0: Option<&'a CubeTensor>,
    init: Option<&'a CubeTensor>,
    codes: Option<CubeTensor>,
}

/// The inputs as arguments of a kernel; the first one stands in for those that are absent, which are not read.
struct Args {
    x0: BufferArg,
    x1: BufferArg,
    bias: BufferArg,
    h0: BufferArg,
    init: BufferArg,
    codes: BufferArg,
}

/// Gradients of a recurrence, in the order of its inputs.
struct Gradients {
    inputs: Vec<CubeTensor>,
    bias: Option<CubeTensor>,
    h0: CubeTensor,
    init: Option<CubeTensor>,
}

impl Problem<'_> {
    fn first(&self) -> &CubeTensor {
        self.inputs[0]
    }

    fn args(&self) -> Args {
        let first = self.first();
        Args {
            x0: arg(first),
            x1: arg(self.inputs.last().expect("a recurrence has inputs")),
            bias: arg_or(self.bias, first),
            h0: arg_or(self.h0, first),
            init: arg_or(self.init, first),
            codes: arg_or(self.codes.as_ref(), first),
        }
    }

    /// How it is cut where a cube has at most so many `slices`.
    fn cut(&self, slices: usize) -> Cut {
        let [batch, seq_len, columns] = dims(self.first());
        let width = columns / self.cell.parts();
        let units = self.first().client.properties().hardware.max_units_per_cube as usize;
        // 32 units then read as many bytes at once as of f32.
        let pairs = self.first().dtype.size() == 2 && width.is_multiple_of(2) && width >= 2 * LANES;
        Cut::new([batch, seq_len, width], 1 + usize::from(pairs), slices.min((units / LANES).max(1)))
    }

    fn plan(&self, cut: &Cut) -> Plan {
        Plan {
            cell: self.cell,
            channels: cut.channels,
            slices: cut.slices,
            chunked: cut.chunks > 1,
            bias: self.bias.is_some(),
            h0: self.h0.is_some(),
            init: self.init.is_some(),
            codes: self.codes.is_some(),
            d_h: false,
            d_last: false,
        }
    }

    /// The states `[B, T, E]` and the last one `[B, E]`.
    fn forward(&self) -> (CubeTensor, CubeTensor) {
        let cut = self.cut(SLICES[0]);
        let first = self.first();
        let h = empty_in(first.dtype, first, [cut.batch, cut.seq_len, cut.width]);
        let last = empty(first, [cut.batch, cut.width]);
        let plan = self.plan(&cut);
        let entering = plan.chunked.then(|| self.between_chunks(&cut));
        let Args { x0, x1, bias, h0, init, codes } = self.args();
        // SAFETY: the kernel stays inside the buffers; those it has no use for stand in for absent ones.
        unsafe {
            walk::walk::launch_unchecked(
                &first.client,
                cubes(cut.cubes()),
                cut.cube(),
                cut.channels,
                x0,
                x1,
                bias,
                h0,
                arg_or(entering.as_ref(), first),
                init,
                codes,
                arg(&h),
                arg(&last),
                cut.sizes(),
                cut.cubes(),
                plan,
                format(first.dtype),
            );
        }
        (h, last)
    }

    /// The states that leave the chunks, `[B, chunks, E]`.
    fn between_chunks(&self, cut: &Cut) -> CubeTensor {
        let first = self.first();
        let effects = ChunkEffects::empty(first, [cut.batch, cut.chunks, cut.width]);
        let Args { x0, x1, bias, init, codes, .. } = self.args();
        // SAFETY: one unit writes one chunk of one channel, which the effects have room for; inputs that are absent are not read.
        unsafe {
            walk::summarise::launch_unchecked(
                &first.client,
                cubes(cut.cubes()),
                cut.cube(),
                cut.channels,
                x0,
                x1,
                bias,
                init,
                codes,
                arg(&effects.keeps),
                arg(&effects.gained),
                cut.sizes(),
                cut.cubes(),
                self.plan(cut),
                format(first.dtype),
            );
        }
        effects.states(self.h0)
    }

    /// The gradients of everything, from the states and the gradients of the outputs.
    fn backward(&self, h: &CubeTensor, d_h: Option<&CubeTensor>, d_last: Option<&CubeTensor>) -> Gradients {
        let cut = self.cut(SLICES[1]);
        let first = self.first();
        let plan = Plan { d_h: d_h.is_some(), d_last: d_last.is_some(), ..self.plan(&cut) };
        let entering = plan.chunked.then(|| self.between_chunks_back(&cut, d_h, d_last));
        let d_inputs: Vec<CubeTensor> = self.inputs.iter().map(|input| empty_like(input)).collect();
        let d_h0 = empty(first, [cut.batch, cut.width]);
        let pieces = cut.batch * cut.chunks;
        let d_init = self.init.map(|_| empty(first, [pieces, cut.width]));
        let d_bias = self.bias.map(|_| empty(first, [pieces, self.cell.parts() * cut.width]));
        let Args { x0, x1, bias, h0, init, codes } = self.args();
        // A buffer to write must not be one that is read, and needs no room where nothing is written.
        let [spare_input, spare_init, spare_bias] = [(); 3].map(|()| empty(first, [cut.channels]));
        // SAFETY: gradients have the sizes of their inputs, sums a row for each piece; spares stand where nothing is written.
        unsafe {
            back::walk_back::launch_unchecked(
                &first.client,
                cubes(cut.cubes()),
                cut.cube(),
                cut.channels,
                x0,
                x1,
                bias,
                arg(h),
                h0,
                arg_or(d_h, first),
                arg_or(d_last, first),
                arg_or(entering.as_ref(), first),
                init,
                codes,
                arg(&d_inputs[0]),
                arg_or(d_inputs.get(1), &spare_input),
                arg(&d_h0),
                arg_or(d_init.as_ref(), &spare_init),
                arg_or(d_bias.as_ref(), &spare_bias),
                cut.sizes(),
                cut.cubes(),
                plan,
                format(first.dtype),
            );
        }
        Gradients { inputs: d_inputs, bias: d_bias.as_ref().map(column_sums), h0: d_h0, init: d_init.as_ref().map(column_sums) }
    }

    /// The gradients that leave the chunks to the left, `[B, chunks, E]`, the last chunk first.
    fn between_chunks_back(&self, cut: &Cut, d_h: Option<&CubeTensor>, d_last: Option<&CubeTensor>) -> CubeTensor {
        let first = self.first();
        let effects = ChunkEffects::empty(first, [cut.batch, cut.chunks, cut.width]);
        let Args { x0, x1, bias, codes, .. } = self.args();
        // SAFETY: one unit writes one chunk of one channel, which the effects have room for; inputs that are absent are not read.
        unsafe {
            back::summarise_back::launch_unchecked(
                &first.client,
                cubes(cut.cubes()),
                cut.cube(),
                cut.channels,
                x0,
                x1,
                bias,
                arg_or(d_h, first),
                codes,
                arg(&effects.keeps),
                arg(&effects.gained),
                cut.sizes(),
                cut.cubes(),
                Plan { d_h: d_h.is_some(), ..self.plan(cut) },
                format(first.dtype),
            );
        }
        effects.states(d_last)
    }
}

impl Op {
    fn gpu_cell(&self) -> Cell {
        Cell::of(self.cell).expect("sent here because it has kernels")
    }

    fn problem<'a>(&self, input: impl Fn(usize) -> Option<&'a CubeTensor>) -> Problem<'a> {
        let inputs: Vec<&CubeTensor> = std::iter::once(0).chain(self.extra).map(|i| input(i).expect("kept")).collect();
        let codes = self.steps.on_device(inputs[0]);
        let [bias, h0, init] = [self.bias, self.h0, self.init].map(|i| i.and_then(&input));
        Problem { cell: self.gpu_cell(), inputs, bias, h0, init, codes }
    }
}

impl GpuOp for Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let [batch, seq_len, columns] = inputs[0].shape.dims();
        let width = columns / self.gpu_cell().parts();
        vec![inputs[0].reshaped([batch, seq_len, width]), Like::f32([batch, width])]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let (h, last) = self.problem(|i| Some(&inputs[i])).forward();
        vec![h, last]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let problem = self.problem(|i| inputs[i].as_ref());
        let d = problem.backward(outputs[0].as_ref().expect("kept"), d_outputs[0].as_ref(), d_outputs[1].as_ref());
        let d_h0 = self.h0.map(|_| d.h0);
        d.inputs.into_iter().chain(d.bias).chain(d_h0).chain(d.init).collect()
    }
}

/// What every chunk does to a state, h ↦ `keeps` h + `gained`: both `[B, chunks, E]`.
pub(super) struct ChunkEffects {
    pub keeps: CubeTensor,
    pub gained: CubeTensor,
}

impl ChunkEffects {
    /// Room for them on the device of `like`.
    pub(super) fn empty(like: &CubeTensor, shape: [usize; 3]) -> Self {
        let [keeps, gained] = [(); 2].map(|()| empty(like, shape));
        Self { keeps, gained }
    }

    /// The states that leave the chunks, `[B, chunks, E]`, from `h0` `[B, E]`: the recurrence over chunks.
    pub(super) fn states(&self, h0: Option<&CubeTensor>) -> CubeTensor {
        let inputs = vec![&self.keeps, &self.gained];
        Problem { cell: Cell::Linear, inputs, bias: None, h0, init: None, codes: None }.forward().0
    }
}
