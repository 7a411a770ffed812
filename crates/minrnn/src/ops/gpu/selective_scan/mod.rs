//! The selective scan on a device: every unit takes one channel and walks through the steps, tile by tile.
//!
//! A tile is [`STEPS`] steps, whose B and C are shared by all units of a cube. The values of a step stay in registers while the N states of
//! the channel pass through the tile one after another. The state before every tile is kept for the backward pass, which reruns the tile
//! from it. As in `recurrence`, time is split into chunks if there are too few rows and groups of channels for a device.

mod back;
#[cfg(feature = "cuda-source")]
mod cuda_source;
mod cut;
mod forward;
mod tile;

#[cfg(feature = "cuda-source")]
pub use cuda_source::cuda_sources;

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::{permute, reshape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::selective_scan::Op;
use super::column_sums::column_sums;
use super::op::GpuOp;
use super::recurrence::ChunkEffects;
use super::tensors::{LANES, Like, arg, arg_or, cubes, dims, empty, empty_like};
use cut::Cut;

/// Steps of a tile.
const STEPS: usize = 8;

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plan {
    /// N.
    d_state: usize,
    chunked: bool,
    z: bool,
    h0: bool,
    codes: bool,
    d_y: bool,
    d_last: bool,
}

/// Of a cube: one unit for each of [`LANES`] channels.
fn line() -> CubeDim {
    CubeDim::new_1d(LANES as u32)
}

/// `[B, E, N]` as `[B, N, E]` or back.
fn turned(states: CubeTensor) -> CubeTensor {
    into_contiguous(permute(states, &[0, 2, 1]))
}

/// The states that leave the chunks, `[B, chunks, N E]`, from `start` `[B, N, E]`.
fn between(cut: &Cut, effects: &ChunkEffects, start: Option<&CubeTensor>) -> CubeTensor {
    let start = start.map(|start| reshape(start.clone(), [cut.batch, cut.d_state * cut.width].into()));
    effects.states(start.as_ref())
}

/// The tensors of a scan on a device.
struct Problem<'a> {
    u: &'a CubeTensor,
    delta: &'a CubeTensor,
    delta_bias: &'a CubeTensor,
    a: &'a CubeTensor,
    bc: &'a CubeTensor,
    skip: &'a CubeTensor,
    z: Option<&'a CubeTensor>,
    /// `[B, N, E]`.
    h0: Option<CubeTensor>,
    codes: Option<CubeTensor>,
}

/// The inputs as arguments of a kernel; u stands in for those that are absent, which are not read.
struct Args {
    u: BufferArg,
    delta: BufferArg,
    delta_bias: BufferArg,
    a: BufferArg,
    bc: BufferArg,
    skip: BufferArg,
    z: BufferArg,
    h0: BufferArg,
    codes: BufferArg,
}

impl Problem<'_> {
    fn args(&self) -> Args {
        Args {
            u: arg(self.u),
            delta: arg(self.delta),
            delta_bias: arg(self.delta_bias),
            a: arg(self.a),
            bc: arg(self.bc),
            skip: arg(self.skip),
            z: arg_or(self.z, self.u),
            h0: arg_or(self.h0.as_ref(), self.u),
            codes: arg_or(self.codes.as_ref(), self.u),
        }
    }

    fn cut(&self) -> Cut {
        let [_, d_state] = dims(self.a);
        Cut::new(dims(self.u), d_state)
    }

    fn plan(&self, cut: &Cut) -> Plan {
        Plan {
            d_state: cut.d_state,
            chunked: cut.chunks > 1,
            z: self.z.is_some(),
            h0: self.h0.is_some(),
            codes: self.codes.is_some(),
            d_y: false,
            d_last: false,
        }
    }

    /// y, the last state `[B, N, E]` and the states before every tile.
    fn forward(&self) -> [CubeTensor; 3] {
        let (cut, u) = (self.cut(), self.u);
        let plan = self.plan(&cut);
        let entering = plan.chunked.then(|| self.between_chunks(&cut));
        let y = empty_like(u);
        let last = empty(u, [cut.batch, cut.d_state, cut.width]);
        let boundaries = empty(u, cut.boundaries());
        let args = self.args();
        // SAFETY: the kernel stays inside the buffers; those it has no use for stand in for absent ones.
        unsafe {
            forward::walk::launch_unchecked(
                &u.client,
                cubes(cut.cubes()),
                line(),
                args.u,
                args.delta,
                args.delta_bias,
                args.a,
                args.bc,
                args.skip,
                args.z,
                args.h0,
                arg_or(entering.as_ref(), u),
                args.codes,
                arg(&y),
                arg(&last),
                arg(&boundaries),
                cut.sizes(),
                cut.tiles,
                cut.cubes(),
                plan,
            );
        }
        [y, last, boundaries]
    }

    /// The states after the chunks, `[B, chunks, N E]`.
    fn between_chunks(&self, cut: &Cut) -> CubeTensor {
        let (effects, args) = (self.effects(cut), self.args());
        // SAFETY: one unit writes the states of one chunk and channel, which the effects have room for.
        unsafe {
            forward::summarise::launch_unchecked(
                &self.u.client,
                cubes(cut.cubes()),
                line(),
                args.u,
                args.delta,
                args.delta_bias,
                args.a,
                args.bc,
                args.codes,
                arg(&effects.keeps),
                arg(&effects.gained),
                cut.sizes(),
                cut.cubes(),
                self.plan(cut),
            );
        }
        between(cut, &effects, self.h0.as_ref())
    }

    /// Room for what every chunk does to the states.
    fn effects(&self, cut: &Cut) -> ChunkEffects {
        ChunkEffects::empty(self.u, [cut.batch, cut.chunks, cut.d_state * cut.width])
    }

    /// The gradients of everything, in the order of the operation's inputs and with that of an h0; `d_last` `[B, N, E]`.
    fn backward(&self, boundaries: &CubeTensor, d_y: Option<&CubeTensor>, d_last: Option<&CubeTensor>) -> Vec<CubeTensor> {
        let (cut, u) = (self.cut(), self.u);
        let plan = Plan { d_y: d_y.is_some(), d_last: d_last.is_some(), ..self.plan(&cut) };
        let entering = plan.chunked.then(|| self.between_chunks_back(&cut, d_y, d_last));
        let [d_u, d_delta] = [u, self.delta].map(empty_like);
        let d_z = self.z.map(empty_like);
        let pieces = cut.batch * cut.chunks;
        let d_a = empty(u, [pieces, cut.d_state * cut.width]);
        let [d_delta_bias, d_skip] = [(); 2].map(|()| empty(u, [pieces, cut.width]));
        let d_bc = empty(u, [cut.groups, cut.batch * cut.seq_len * 2 * cut.d_state]);
        let d_h0 = empty(u, [cut.batch, cut.d_state, cut.width]);
        let args = self.args();
        // A buffer to write must not be one that is read.
        let spare = empty(u, [1]);
        // SAFETY: gradients have the sizes of their inputs, those of B and C one copy for each group; the spare stands where nothing is written.
        unsafe {
            back::walk_back::launch_unchecked(
                &u.client,
                cubes(cut.cubes()),
                line(),
                args.u,
                args.delta,
                args.delta_bias,
                args.a,
                args.bc,
                args.skip,
                args.z,
                arg(boundaries),
                arg_or(d_y, u),
                arg_or(d_last, u),
                arg_or(entering.as_ref(), u),
                args.codes,
                arg(&d_u),
                arg(&d_delta),
                arg_or(d_z.as_ref(), &spare),
                arg(&d_bc),
                arg(&d_a),
                arg(&d_delta_bias),
                arg(&d_skip),
                arg(&d_h0),
                cut.sizes(),
                cut.tiles,
                cut.cubes(),
                plan,
            );
        }
        let d_a = reshape(column_sums(&d_a), [cut.d_state, cut.width].into());
        let d_a = into_contiguous(permute(d_a, &[1, 0]));
        let [d_delta_bias, d_skip] = [d_delta_bias, d_skip].map(|partial| column_sums(&partial));
        let d_bc = reshape(column_sums(&d_bc), [cut.batch, cut.seq_len, 2 * cut.d_state].into());
        [d_u, d_delta, d_delta_bias, d_a, d_bc, d_skip].into_iter().chain(d_z).chain([turned(d_h0)]).collect()
    }

    /// The gradients that leave the chunks to the left, `[B, chunks, N E]`, the last chunk first.
    fn between_chunks_back(&self, cut: &Cut, d_y: Option<&CubeTensor>, d_last: Option<&CubeTensor>) -> CubeTensor {
        let (effects, args) = (self.effects(cut), self.args());
        // SAFETY: one unit writes the gradients of one chunk and channel, which the effects have room for.
        unsafe {
            back::summarise_back::launch_unchecked(
                &self.u.client,
                cubes(cut.cubes()),
                line(),
                args.u,
                args.delta,
                args.delta_bias,
                args.a,
                args.bc,
                args.z,
                arg_or(d_y, self.u),
                args.codes,
                arg(&effects.keeps),
                arg(&effects.gained),
                cut.sizes(),
                cut.cubes(),
                Plan { d_y: d_y.is_some(), ..self.plan(cut) },
            );
        }
        between(cut, &effects, d_last)
    }
}

impl Op {
    fn problem<'a>(&self, input: impl Fn(usize) -> Option<&'a CubeTensor>) -> Problem<'a> {
        let required = |i: usize| input(i).expect("kept");
        let [u, delta, delta_bias, a, bc, skip] = [0, 1, 2, 3, 4, 5].map(required);
        // The backward pass does not need it: the first boundary is the same.
        let h0 = self.h0.and_then(&input).map(|h0| turned(h0.clone()));
        Problem { u, delta, delta_bias, a, bc, skip, z: self.z.and_then(&input), h0, codes: self.steps.on_device(u) }
    }
}

impl GpuOp for Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let [_, d_state] = inputs[3].shape.dims();
        let cut = Cut::new(inputs[0].shape.dims(), d_state);
        vec![inputs[0].clone(), Like::f32([cut.batch, cut.width, d_state]), Like::f32(cut.boundaries())]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [y, last, boundaries] = self.problem(|i| Some(&inputs[i])).forward();
        vec![y, turned(last), boundaries]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let boundaries = outputs[2].as_ref().expect("kept");
        let d_last = d_outputs[1].clone().map(turned);
        let mut d = self.problem(|i| inputs[i].as_ref()).backward(boundaries, d_outputs[0].as_ref(), d_last.as_ref());
        if self.h0.is_none() {
            d.pop();
        }
        d
    }
}
