//! The recurrence in order of time.

use super::formulas::Formulas;
use super::handover::{Claim, Handover};
use super::passes::{Advance, Summarize};
use super::plan::{Block, Plan};
use super::problem::{Effect, Prepared, Problem, STREAM_BYTES, aligned, padded};
use super::stretch::{Target, walk};
use crate::grid::{self, SharedOut};
use crate::shape::{Out, Shape, expect_len};
use crate::simd::{Level, stream_fence};

/// Runs `problem`: every state to `h` `[B, T, E]` (0 at padding), each row's end to `h_last` `[B, E]`.
pub fn forward<F: Formulas<N>, const N: usize>(problem: &Problem<F, N>, h: Out, h_last: Out) {
    expect_len("h", h, problem.shape.elements());
    expect_len("h_last", h_last, problem.shape.states());
    let plan = Plan::new(problem.shape, grid::threads(), N);
    let Shape { seq_len, width, .. } = problem.shape;
    if problem.shape.states() == 0 {
        return;
    }
    let prepared = Prepared::new(problem);
    let level = Level::current();
    let streaming = size_of_val(h) >= STREAM_BYTES && aligned(h.as_ptr().addr(), width);
    let out = SharedOut::new(h);
    let task = |claim: &Claim| Task { prepared: &prepared, level, block: plan.block(claim.index), out, streaming };
    Handover::new(&plan).run(
        &plan,
        |claim| {
            let task = task(claim);
            (0 < task.block.chunk && task.block.chunk + 1 < plan.chunks()).then(|| task.summarize())
        },
        |claim, effect, next| {
            let task = task(claim);
            let next = next.map(|next| plan.block(next.index));
            task.run(claim, effect, prepared.prefetch_distance(&task.block, next.as_ref(), 1));
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
    /// Runs the block: the first of a sequence from h0, others from what comes before. `effect` is the block's own, if one follows.
    fn run(&self, claim: &Claim, effect: Option<Effect>, distance: isize) {
        let mut state = padded(self.prepared.h0(&self.block));
        if self.block.chunk > 0 {
            let state = &mut state[..self.block.channels.len()];
            claim.wait(state);
            if let Some(effect) = effect {
                claim.publish(&effect.apply(state));
            }
        }
        self.advance(&mut state, distance);
        if self.block.chunk == 0 {
            claim.publish(&state);
        }
        self.clear_padding();
    }

    /// What the block does to the state that enters it. Only the steps since its last reset matter.
    fn summarize(&self) -> Effect {
        let (prepared, block) = (self.prepared, &self.block);
        let mut effect = Effect::identity(block.channels.len());
        let mut steps = prepared.real(block);
        if let Some(reset) = prepared.last_reset(block, steps.clone()) {
            effect.cut();
            effect.local[..block.channels.len()].copy_from_slice(prepared.init(block));
            steps.start = reset;
        }
        if !steps.is_empty() {
            let feed = prepared.feed(block, steps.start, prepared.prefetch_distance(block, None, 1));
            let body = Summarize::<F, N, false> { feed, d_h: prepared.rows(None, block, 0), summary: effect.summary() };
            // SAFETY: `Problem::new` checked that every input has all rows; the buffers are padded.
            unsafe { walk(self.level, steps.len(), block.channels.len(), body) };
        }
        effect
    }

    /// Runs the block from `state` and leaves there the state at its end.
    fn advance(&self, state: &mut [f32], distance: isize) {
        let (prepared, block) = (self.prepared, &self.block);
        let steps = prepared.real(block);
        let mut t = steps.start;
        while t < steps.end {
            let stop = prepared.next_reset(block, t + 1..steps.end);
            if prepared.is_reset(block, t) {
                state[..block.channels.len()].copy_from_slice(prepared.init(block));
            }
            let body = Advance {
                feed: prepared.feed(block, t, distance),
                state: state.as_mut_ptr(),
                h: self.target(t),
                streaming: self.streaming,
            };
            // SAFETY: `Problem::new` checked that every input has all rows; the state is padded; this block's part of the output belongs to
            // this task alone, and `streaming` implies alignment.
            unsafe { body.run(self.level, stop - t) };
            t = stop;
        }
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
