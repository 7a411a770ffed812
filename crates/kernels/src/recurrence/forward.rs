//! The recurrence in order of time.

use super::formulas::Formulas;
use super::handover::{Claim, Handover};
use super::kept::{Kept, Room, gate_vectors};
use super::passes::{Advance, States, Summarize};
use super::plan::{Block, Plan};
use super::problem::{Effect, Found, Prepared, Problem, STREAM_BYTES, aligned, padded};
use super::stretch::{Target, walk};
use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::shape::Shape;
use crate::simd::{Level, stream_fence};
use core::ops::Range;

/// How many times as long chunks are that are passed once, measured with minGRU.
const ONCE: f64 = 1.5;

/// Runs `problem`: writes every state to `h` `[B, T, E]` (0 at padding), and each row's last to `h_last` `[B, E]`.
pub fn forward<F: Formulas<N>, const N: usize>(problem: &Problem<F, N>, h: Out, h_last: Out) {
    h.expect_len("h", problem.shape.elements());
    h_last.expect_len("h_last", problem.shape.states());
    let (h, h_last) = (h.slots(), h_last.slots());
    let plan = Plan::new(problem.shape, grid::threads(), N, ONCE);
    let Shape { seq_len, width, .. } = problem.shape;
    if problem.shape.states() == 0 {
        return;
    }
    let prepared = Prepared::new(problem);
    let level = Level::current();
    let streaming = size_of_val(h) >= STREAM_BYTES && aligned(h.as_ptr().addr(), width);
    let out = SharedOut::of(h);
    let task = |claim: &Claim| Task { prepared: &prepared, level, block: plan.block(claim.index), out, streaming };
    Handover::new(&plan).run(
        &plan,
        || Room::new(&plan, if F::KEPT { gate_vectors::<F, N>()[1] } else { 0 }),
        |claim, room| {
            let task = task(claim);
            // No chunk waits for the end of the last one.
            let twice = plan.is_passed_twice(task.block.chunk) && task.block.chunk + 1 < plan.chunks();
            let found = twice.then(|| task.summarize(room));
            task.run(claim, found, room);
            if streaming {
                stream_fence();
            }
        },
    );
    for (b, last) in h_last.chunks_exact_mut(width).enumerate() {
        let row = match prepared.lengths[b] {
            0 => problem.start.h0.map_or(&prepared.zeros[..width], |h0| &h0[b * width..(b + 1) * width]),
            // SAFETY: the tasks wrote every element, and they are over.
            n => unsafe { core::slice::from_raw_parts(out.pointer((b * seq_len + n - 1) * width), width) },
        };
        last.write_copy_of_slice(row);
    }
}

struct Task<'a, F, const N: usize> {
    prepared: &'a Prepared<'a, F, N>,
    level: Level,
    block: Block,
    out: SharedOut,
    streaming: bool,
}

impl<F: Formulas<N>, const N: usize> Task<'_, F, N> {
    /// Runs the block: the first of a sequence from h0, others from what comes before. `found` is given if the block is passed twice.
    fn run(&self, claim: &Claim, found: Option<Found>, room: &mut Room) {
        let mut state = padded(self.prepared.h0(&self.block));
        if self.block.chunk > 0 {
            let state = &mut state[..self.block.channels.len()];
            claim.wait(state);
            if let Some(found) = &found {
                claim.publish(&found.effect.apply(state));
            }
        }
        let published = found.is_some();
        self.advance(&mut state, found.map_or(0..0, |found| found.kept), room);
        if !published {
            claim.publish(&state);
        }
        self.clear_padding();
    }

    /// What the block does to the state that enters it. Only the steps since its last reset matter.
    fn summarize(&self, room: &mut Room) -> Found {
        let (prepared, block) = (self.prepared, &self.block);
        let mut effect = Effect::identity(block.channels.len());
        let mut steps = prepared.real(block);
        if let Some(reset) = prepared.last_reset(block, steps.clone()) {
            effect.cut();
            effect.local[..block.channels.len()].copy_from_slice(prepared.init(block));
            steps.start = reset;
        }
        if !steps.is_empty() {
            let feed = prepared.feed(block, steps.start, 1);
            let nothing = prepared.rows(None, block, 0);
            let body = Summarize::<F, N, false> {
                feed,
                h: States { before: nothing.first, h: nothing },
                d_h: nothing,
                summary: effect.summary(),
                kept: room.place(0, if F::KEPT { steps.len() } else { 0 }),
            };
            // SAFETY: `Problem::new` checked that every input has all rows; the buffers are padded, and so is the room of these steps.
            unsafe { walk(self.level, steps.len(), block.channels.len(), body) };
        }
        Found { effect, kept: if F::KEPT { steps } else { 0..0 } }
    }

    /// Runs the block from `state` and leaves there the state at its end. The room has the gates of the steps that are `kept`.
    fn advance(&self, state: &mut [f32], kept: Range<usize>, room: &mut Room) {
        let (prepared, block) = (self.prepared, &self.block);
        let steps = prepared.real(block);
        let mut t = steps.start;
        while t < steps.end {
            let stop = prepared.next_reset(block, t + 1..steps.end);
            if prepared.is_reset(block, t) {
                state[..block.channels.len()].copy_from_slice(prepared.init(block));
            }
            // What is kept begins at a reset or with the block, and so does every stretch.
            match kept.contains(&t) {
                true => self.stretch::<true>(t..stop, state, room.place(t - kept.start, stop - t)),
                false => self.stretch::<false>(t..stop, state, Kept::NONE),
            }
            t = stop;
        }
    }

    /// One dense stretch.
    fn stretch<const KEPT: bool>(&self, steps: Range<usize>, state: &mut [f32], kept: Kept) {
        let body = Advance::<F, N, KEPT> {
            feed: self.prepared.feed(&self.block, steps.start, 1),
            kept,
            state: state.as_mut_ptr(),
            h: self.target(steps.start),
            streaming: self.streaming,
        };
        // SAFETY: `Problem::new` checked that every input has all rows; the state is padded; this block's part of the output belongs to
        // this task alone, and `streaming` implies alignment; with `KEPT` the room has these steps.
        unsafe { body.run(self.level, steps.len()) };
    }

    fn target(&self, t: usize) -> Target {
        let Shape { seq_len, width, .. } = self.prepared.problem.shape;
        Target { first: self.out.pointer((self.block.b * seq_len + t) * width + self.block.channels.start), stride: width }
    }

    fn clear_padding(&self) {
        let Shape { seq_len, width, .. } = self.prepared.problem.shape;
        for t in self.prepared.real(&self.block).end..self.block.steps.end {
            let from = (self.block.b * seq_len + t) * width + self.block.channels.start;
            // SAFETY: this block's part of the output belongs to this task alone.
            unsafe { self.out.slice(from, self.block.channels.len()) }.fill(core::mem::MaybeUninit::new(0.0));
        }
    }
}
