//! LSTM and sLSTM on a device: a cube takes one head of a few rows of the batch through all steps.
//!
//! Hidden states are in shared memory, so a step is one product with the recurrent weight, whose columns are read once for all rows of the
//! cube, and one synchronisation. The gates of the backward pass need the hidden states of all steps, which are known by then: their
//! products are one matrix product over the whole sequence, and so is the gradient of the weight.

mod back;
mod cells;
#[cfg(feature = "cuda-source")]
mod cuda_source;
mod forward;
mod ops;
mod place;

#[cfg(feature = "cuda-source")]
pub use cuda_source::cuda_sources;

use burn::backend::DType;
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::ops::{permute, reshape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::column_sums::column_sums;
use super::matmul::multiplied;
use super::tensors::{LANES, arg, arg_or, cubes, dims, elements, empty, empty_in, empty_like_in, format};

use cells::Cell;

/// Most units of a cube.
const UNITS: usize = 256;
/// Most rows of the batch that share what is read of the weight.
const ROWS: usize = 4;
/// Most shared memory that a cube takes, in bytes: what nearly every device has.
const SHARED: usize = 32 * 1024;

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plan {
    cell: Cell,
    /// H, the channels of a head.
    width: usize,
    /// Rows of the batch of a cube.
    rows: usize,
    units: usize,
    bias: bool,
    recurrent_bias: bool,
    /// Whether h, c and the two more of an sLSTM start from given values.
    carried: [bool; 3],
    /// Whether resets restore given h and c.
    init: [bool; 2],
    codes: bool,
    d_h: bool,
    /// Whether gradients of the last h, c and n arrive.
    d_last: [bool; 3],
}

impl Plan {
    /// Channels of a unit.
    fn channels(&self) -> usize {
        self.width.div_ceil(self.units)
    }

    /// Channels of a cube's rows that a unit holds.
    fn held(&self) -> usize {
        self.channels() * self.rows
    }
}

/// An LSTM or sLSTM on a device.
struct Problem<'a> {
    cell: Cell,
    /// `[B, T, 4E]`.
    preact: &'a CubeTensor,
    /// `[NH, 4H, H]`.
    weight: CubeTensor,
    bias: Option<&'a CubeTensor>,
    recurrent_bias: Option<&'a CubeTensor>,
    /// h, c, and for an sLSTM n and m, `[B, E]`.
    carried: [Option<&'a CubeTensor>; 4],
    /// What a reset restores as h and c of an LSTM, `[E]`.
    init: [Option<&'a CubeTensor>; 2],
    codes: Option<CubeTensor>,
}

/// Gradients, in the order of the fields of [`Problem`].
struct Gradients {
    preact: CubeTensor,
    /// `[NH, 4H, H]`.
    weight: CubeTensor,
    /// Of either bias.
    bias: CubeTensor,
    /// Of h, c and n.
    carried: [CubeTensor; 3],
    init: [CubeTensor; 2],
}

/// Sizes of a problem.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    seq_len: usize,
    heads: usize,
    /// H.
    width: usize,
}

impl Sizes {
    fn steps(&self) -> usize {
        self.batch * self.seq_len
    }

    fn cubes(&self, plan: &Plan) -> usize {
        self.heads * self.batch.div_ceil(plan.rows)
    }

    fn states(&self) -> [usize; 2] {
        [self.batch, self.heads * self.width]
    }

    fn sequence(&self) -> [usize; 3] {
        [self.batch, self.seq_len, self.heads * self.width]
    }
}

impl Problem<'_> {
    fn sizes(&self) -> Sizes {
        let [batch, seq_len, _] = dims(self.preact);
        let [heads, _, width] = dims(&self.weight);
        Sizes { batch, seq_len, heads, width }
    }

    /// The plan of a kernel that shares `shared` numbers per row and channel.
    fn plan(&self, sizes: Sizes, shared: usize) -> Plan {
        let device = &self.preact.client.properties().hardware;
        let fit = SHARED.min(device.max_shared_memory_size) / (shared * sizes.width * size_of::<f32>());
        Plan {
            cell: self.cell,
            width: sizes.width,
            rows: ROWS.min(fit).min(sizes.batch).max(1),
            units: sizes.width.next_multiple_of(LANES).min(UNITS).min(device.max_units_per_cube as usize),
            bias: self.bias.is_some(),
            recurrent_bias: self.recurrent_bias.is_some(),
            carried: [0, 1, 2].map(|i: usize| self.carried[i].is_some()),
            init: self.init.map(|init| init.is_some()),
            codes: self.codes.is_some(),
            d_h: false,
            d_last: [false; 3],
        }
    }

    /// h, c (and n, m) of every step, then the last ones.
    fn forward(&self) -> Vec<CubeTensor> {
        let (sizes, x) = (self.sizes(), self.preact);
        let plan = self.plan(sizes, 2);
        let parts = self.cell.parts();
        let every = |part| empty_in(if part == 0 { x.dtype } else { DType::F32 }, x, sizes.sequence());
        let states: Vec<CubeTensor> = (0..parts).map(every).collect();
        let last: Vec<CubeTensor> = (0..parts).map(|_| empty(x, sizes.states())).collect();
        // Buffers that are written must not be those that are read.
        let spares: Vec<CubeTensor> = (0..4).map(|_| empty(x, [1])).collect();
        let weight = into_contiguous(permute(self.weight.clone(), &[0, 2, 1]));
        let [h0, c0, n0, m0] = self.carried.map(|start| arg_or(start, x));
        // SAFETY: the kernel stays inside the buffers; those it has no use for stand in for absent ones.
        unsafe {
            forward::walk::launch_unchecked(
                &x.client,
                cubes(sizes.cubes(&plan)),
                CubeDim::new_1d(plan.units as u32),
                arg(x),
                arg(&weight),
                arg_or(self.bias, x),
                arg_or(self.recurrent_bias, x),
                h0,
                c0,
                n0,
                m0,
                arg_or(self.init[0], x),
                arg_or(self.init[1], x),
                arg_or(self.codes.as_ref(), x),
                arg(&states[0]),
                arg(&states[1]),
                arg_or(states.get(2), &spares[0]),
                arg_or(states.get(3), &spares[1]),
                arg(&last[0]),
                arg(&last[1]),
                arg_or(last.get(2), &spares[2]),
                arg_or(last.get(3), &spares[3]),
                sizes.batch,
                sizes.seq_len,
                sizes.heads,
                plan,
                format(x.dtype),
            );
        }
        states.into_iter().chain(last).collect()
    }

    /// The gradients from h, c (n, m) of every step and the gradients of h and of the last h, c and n.
    fn backward(&self, states: &[&CubeTensor], d_h: Option<&CubeTensor>, d_last: [Option<&CubeTensor>; 3]) -> Gradients {
        let (sizes, x) = (self.sizes(), self.preact);
        let plan = Plan { d_h: d_h.is_some(), d_last: d_last.map(|d| d.is_some()), ..self.plan(sizes, 4) };
        let before = self.hidden_before(sizes, &plan, states[0]);
        let product = multiplied(before.clone(), permute(self.weight.clone(), &[0, 2, 1]));
        let d_preact = empty_like_in(DType::F32, x);
        let d_carried = [(); 3].map(|()| empty(x, sizes.states()));
        let d_init = [(); 2].map(|()| empty(x, sizes.states()));
        let [_, c0, n0, m0] = self.carried.map(|start| arg_or(start, x));
        let [d_h_last, d_c_last, d_n_last] = d_last.map(|d| arg_or(d, x));
        // SAFETY: gradients have the sizes of states and products; absent inputs are not read.
        unsafe {
            back::walk_back::launch_unchecked(
                &x.client,
                cubes(sizes.cubes(&plan)),
                CubeDim::new_1d(plan.units as u32),
                arg(x),
                arg(&product),
                arg(&self.weight),
                arg_or(self.bias, x),
                arg_or(self.recurrent_bias, x),
                arg(states[1]),
                arg_or(states.get(2).copied(), x),
                arg_or(states.get(3).copied(), x),
                c0,
                n0,
                m0,
                arg_or(self.init[1], x),
                arg_or(self.codes.as_ref(), x),
                arg_or(d_h, x),
                d_h_last,
                d_c_last,
                d_n_last,
                arg(&d_preact),
                arg(&d_carried[0]),
                arg(&d_carried[1]),
                arg(&d_carried[2]),
                arg(&d_init[0]),
                arg(&d_init[1]),
                sizes.batch,
                sizes.seq_len,
                sizes.heads,
                plan,
                format(x.dtype),
            );
        }
        let d_gates = reshape(d_preact.clone(), [sizes.steps(), 4, sizes.heads, sizes.width].into());
        let d_gates = into_contiguous(permute(d_gates, &[2, 1, 3, 0]));
        let d_gates = reshape(d_gates, [sizes.heads, 4 * sizes.width, sizes.steps()].into());
        let [_, _, columns] = dims(x);
        Gradients {
            weight: multiplied(d_gates, before),
            bias: column_sums(&reshape(d_preact.clone(), [sizes.steps(), columns].into())),
            preact: cast(d_preact, x.dtype),
            carried: d_carried,
            init: d_init.map(|partial| column_sums(&partial)),
        }
    }

    /// The hidden state before every step, `[NH, B T, H]`.
    fn hidden_before(&self, sizes: Sizes, plan: &Plan, h: &CubeTensor) -> CubeTensor {
        let before = empty(self.preact, [sizes.heads, sizes.steps(), sizes.width]);
        let count = sizes.heads * sizes.steps() * sizes.width;
        let (grid, dim) = elements(count);
        // SAFETY: one unit writes one element of `before`, whose number is the number of units.
        unsafe {
            back::hidden_before::launch_unchecked(
                &h.client,
                grid,
                dim,
                arg(h),
                arg_or(self.carried[0], h),
                arg_or(self.init[0], h),
                arg_or(self.codes.as_ref(), h),
                arg(&before),
                sizes.steps(),
                sizes.seq_len,
                sizes.heads,
                *plan,
                format(h.dtype),
            );
        }
        before
    }
}
