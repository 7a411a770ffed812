//! The reverse recurrence: gradients of the inputs, the bias, the carried state and the state that resets restore.

use super::formulas::Formulas;
use super::handover::{Claim, Handover};
use super::kept::{Kept, Room, gate_vectors};
use super::passes::{States, StepBackward, Summarize};
use super::plan::{Block, Plan};
use super::problem::{Effect, Found, Prepared, Problem, STREAM_BYTES, aligned, expect_bias, padded};
use super::stretch::{Target, walk};
use super::sums::{Part, Sums};
use super::{Gradients, Upstream};
use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::shape::expect_len;
use crate::simd::{Level, stream_fence};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Steps whose gradients of a bias or a shared input are added up in f32 before they go to an f64 sum: a few roundings of a number that is
/// still small, at the cost of a few per cent of the pass.
const SUM_STEPS: usize = 32;
/// How many times as long chunks are that are passed once: between the best values for minGRU with AVX2 and with AVX-512.
const ONCE: f64 = 1.4;

/// Where the gradients of one input go: `out` begins at the first one, steps are `stride` floats apart.
#[derive(Clone, Copy)]
struct ColumnOut {
    out: SharedOut,
    offset: usize,
    stride: usize,
}

/// Runs the reverse recurrence of `problem`.
pub fn backward<F: Formulas<N>, const N: usize>(problem: &Problem<F, N>, upstream: &Upstream, gradients: Gradients) {
    let (shape, formulas) = (problem.shape, problem.formulas);
    let Gradients { d_preact, d_bias, d_extra, d_h0, d_init } = gradients;
    expect_len("h", upstream.h, shape.elements());
    upstream.d_h.inspect(|d_h| expect_len("d_h", d_h, shape.elements()));
    upstream.d_h_last.inspect(|d| expect_len("d_h_last", d, shape.states()));
    let (d_bias, [d_preact, d_extra, d_h0, d_init]) = (d_bias.map(Out::slots), [d_preact, d_extra, d_h0, d_init].map(Out::slots));
    expect_len("d_preact", d_preact, F::PARTS * shape.elements());
    expect_bias("d_bias", d_bias.as_deref(), formulas, shape);
    expect_len("d_extra", d_extra, formulas.extra_len(shape));
    expect_len("d_h0", d_h0, shape.states());
    expect_len("d_init", d_init, shape.width);
    let plan = Plan::new(shape, grid::threads(), N + 2, ONCE);
    if shape.states() == 0 {
        d_bias.into_iter().chain([d_extra, d_init]).for_each(|d| d.fill(MaybeUninit::new(0.0)));
        return;
    }
    let d_x = {
        let (parts, extra) = (SharedOut::of(&mut *d_preact), SharedOut::of(&mut *d_extra));
        let part = |j| ColumnOut { out: parts, offset: j * shape.width, stride: F::PARTS * shape.width };
        // For an input with one number per channel, only the sum is written.
        let extra = ColumnOut { out: extra, offset: 0, stride: if F::SHARED { 0 } else { shape.width } };
        core::array::from_fn(|j| if j < F::PARTS { part(j) } else { extra })
    };
    let prepared = Prepared::new(problem);
    let level = Level::current();
    let streaming = N * shape.elements() * size_of::<f32>() >= STREAM_BYTES
        && written::<F, N>(&d_x).iter().all(|d_x| aligned(d_x.out.pointer(d_x.offset).addr(), d_x.stride));
    let summed = core::array::from_fn(|j| if j < F::PARTS { d_bias.is_some() } else { F::SHARED });
    let sums = Sums::<N>::new(&plan, summed, !problem.start.segments.is_dense());
    let d_h0 = SharedOut::of(d_h0);
    // Chunks are claimed from the end of each sequence.
    let index = |claim: &Claim| {
        let chunk = claim.index % plan.chunks();
        claim.index - chunk + plan.chunks() - 1 - chunk
    };
    let task = |claim: &Claim| {
        let block = plan.block(index(claim));
        Task { prepared: &prepared, upstream, level, last: block.chunk + 1 == plan.chunks(), block, d_x, d_h0, streaming }
    };
    let parts = sums.collect(|keep| {
        Handover::new(&plan).run(
            &plan,
            || Room::new(&plan, if F::KEPT { N + gate_vectors::<F, N>()[0] } else { 0 }),
            |claim, room| {
                let (task, mut part) = (task(claim), sums.part());
                // The first to be run knows what enters it, and no chunk waits for the last.
                let twice = plan.is_passed_twice(task.block.chunk) && !task.last && task.block.chunk > 0;
                let found = twice.then(|| task.summarize(room));
                task.run(claim, found, &mut part, room);
                keep(index(claim), part);
                if streaming {
                    stream_fence();
                }
            },
        );
    });
    for (j, d_bias) in d_bias.into_iter().flat_map(|d_bias| d_bias.chunks_exact_mut(shape.width)).enumerate() {
        sums.add_up(&parts, &plan, j, d_bias);
    }
    if F::SHARED {
        sums.add_up(&parts, &plan, N - 1, d_extra);
    }
    sums.add_up(&parts, &plan, N, d_init);
}

/// The columns that are written step by step: all but that of an input with one number per channel.
fn written<F: Formulas<N>, const N: usize>(d_x: &[ColumnOut; N]) -> &[ColumnOut] {
    &d_x[..N - usize::from(F::SHARED)]
}

struct Task<'a, F, const N: usize> {
    prepared: &'a Prepared<'a, F, N>,
    upstream: &'a Upstream<'a>,
    level: Level,
    block: Block,
    /// Whether it ends a sequence.
    last: bool,
    d_x: [ColumnOut; N],
    d_h0: SharedOut,
    streaming: bool,
}

impl<F: Formulas<N>, const N: usize> Task<'_, F, N> {
    /// Runs the block: the last of a sequence from the gradient of the final state, others from what comes after. `found` is given if the
    /// block is passed twice.
    fn run(&self, claim: &Claim, found: Option<Found>, sums: &mut Part<N>, room: &mut Room) {
        let width = self.block.channels.len();
        let first = self.block.chunk == 0;
        let mut carry = padded(&self.prepared.zeros[..width]);
        if self.last {
            if let Some(d_h_last) = self.upstream.d_h_last {
                let from = self.block.b * self.prepared.problem.shape.width + self.block.channels.start;
                carry[..width].copy_from_slice(&d_h_last[from..from + width]);
            }
        } else {
            claim.wait(&mut carry[..width]);
            if let Some(found) = &found {
                claim.publish(&found.effect.apply(&carry[..width]));
            }
        }
        let published = found.is_some();
        self.step_backward(&mut carry, sums, found.map_or(0..0, |found| found.kept), room);
        if !published {
            claim.publish(&carry);
        }
        if first {
            let from = self.block.b * self.prepared.problem.shape.width + self.block.channels.start;
            // SAFETY: only the first chunk of a sequence writes there.
            unsafe { self.d_h0.slice(from, width) }.write_copy_of_slice(&carry[..width]);
        }
        self.clear_padding();
    }

    /// What the block does to the gradient that enters at its end. Only the steps before its first reset matter.
    fn summarize(&self, room: &mut Room) -> Found {
        let (prepared, block) = (self.prepared, &self.block);
        let mut effect = Effect::identity(block.channels.len());
        let steps = prepared.real(block);
        let reset = prepared.next_reset(block, steps.clone());
        if reset < steps.end {
            effect.cut();
        }
        let steps = steps.start..reset;
        if !steps.is_empty() {
            let body = Summarize::<F, N, true> {
                feed: prepared.feed(block, steps.start, -1),
                h: self.states(steps.start),
                d_h: prepared.rows(self.upstream.d_h, block, steps.start),
                summary: effect.summary(),
                kept: room.place(0, if F::KEPT { steps.len() } else { 0 }),
            };
            // SAFETY: lengths were checked by `backward` and `Problem::new`; the buffers are padded, and so is the room of these steps.
            unsafe { walk(self.level, steps.len(), block.channels.len(), body) };
        }
        Found { effect, kept: if F::KEPT { steps } else { 0..0 } }
    }

    /// Runs the block backwards from the gradient `carry` of the state at its end, and leaves there that of the state before it. The room has
    /// slopes and gates of the steps that are `kept`.
    fn step_backward(&self, carry: &mut [f32], sums: &mut Part<N>, kept: Range<usize>, room: &mut Room) {
        let (prepared, block) = (self.prepared, &self.block);
        let steps = prepared.real(block);
        let mut end = steps.end;
        while end > steps.start {
            let reset = prepared.last_reset(block, steps.start..end);
            let run = reset.unwrap_or(steps.start)..end;
            // Short stretches, from the last one: the f32 sums inside each stay exact enough.
            let most = if sums.any_input() { SUM_STEPS } else { run.len() };
            let mut stop = run.end;
            while stop > run.start {
                let from = stop.saturating_sub(most).max(run.start);
                // What is kept ends at a reset or with the block, and no stretch reaches past either.
                match kept.contains(&from) {
                    true => self.stretch::<true>(from..stop, carry, sums, room.place(from - kept.start, stop - from)),
                    false => self.stretch::<false>(from..stop, carry, sums, Kept::NONE),
                }
                stop = from;
            }
            if reset.is_some() {
                sums.add_init(&carry[..block.channels.len()]);
                carry.fill(0.0);
            }
            end = run.start;
        }
    }

    /// The states from step `t` on, which may be a reset.
    fn states(&self, t: usize) -> States {
        let (prepared, block) = (self.prepared, &self.block);
        let before = if prepared.is_reset(block, t) {
            prepared.init(block).as_ptr()
        } else if t == 0 {
            prepared.h0(block).as_ptr()
        } else {
            prepared.rows(Some(self.upstream.h), block, t - 1).first
        };
        States { before, h: prepared.rows(Some(self.upstream.h), block, t) }
    }

    /// One dense stretch; its first step may be a reset.
    fn stretch<const KEPT: bool>(&self, steps: Range<usize>, carry: &mut [f32], sums: &mut Part<N>, kept: Kept) {
        let (prepared, block) = (self.prepared, &self.block);
        let t = steps.start;
        let body = StepBackward::<F, N, KEPT> {
            feed: prepared.feed(block, t, -1),
            kept,
            h: self.states(t),
            d_h: prepared.rows(self.upstream.d_h, block, t),
            carry: carry.as_mut_ptr(),
            d_x: self.d_x.map(|d_x| self.target(d_x, t)),
            sums: sums.buffers(),
            streaming: self.streaming,
        };
        // SAFETY: lengths were checked by `backward` and `Problem::new`; buffers are padded; this block's part of each output
        // belongs to this task alone, and `streaming` implies alignment; with `KEPT` the room has these steps.
        unsafe { walk(self.level, steps.len(), block.channels.len(), body) };
        sums.flush(self.level);
    }

    fn target(&self, d_x: ColumnOut, t: usize) -> Target {
        let row = self.block.b * self.prepared.problem.shape.seq_len + t;
        Target { first: d_x.out.pointer(d_x.offset + row * d_x.stride + self.block.channels.start), stride: d_x.stride }
    }

    fn clear_padding(&self) {
        for t in self.prepared.real(&self.block).end..self.block.steps.end {
            for d_x in written::<F, N>(&self.d_x) {
                let row = self.block.b * self.prepared.problem.shape.seq_len + t;
                let from = d_x.offset + row * d_x.stride + self.block.channels.start;
                // SAFETY: this block's part of the output belongs to this task alone.
                unsafe { d_x.out.slice(from, self.block.channels.len()) }.fill(MaybeUninit::new(0.0));
            }
        }
    }
}
