//! Sums of gradients over rows: one part per task, added up in index order, so that the same bits come out every time.

use super::plan::Plan;
use super::stretch::LANES;
use crate::grid::SharedOut;
use crate::out::Slots;
use crate::simd::{Level, Simd, WithSimd};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// Which sums are wanted: those of some of the N inputs, and one more for the state that resets restore.
pub struct Sums<const N: usize> {
    tasks: usize,
    width: usize,
    inputs: [bool; N],
    init: bool,
}

/// The sums of one task, `[N + 1, width]`; empty when none are wanted.
pub type Totals = Vec<f64>;

/// A task's sums while it runs.
pub struct Part<const N: usize> {
    inputs: [bool; N],
    /// Sums of the latest steps, one padded row per input; empty when no input's sum is wanted.
    recent: Vec<f32>,
    totals: Totals,
    width: usize,
    /// Distance between rows of `recent`.
    padded: usize,
}

impl<const N: usize> Sums<N> {
    /// For blocks of `plan`: the sums of the gradients of `inputs`, and of resets only when `init`.
    pub fn new(plan: &Plan, inputs: [bool; N], init: bool) -> Self {
        Self { tasks: plan.tasks(), width: plan.channel_block(), inputs, init }
    }

    /// A task's sums, initially 0.
    pub fn part(&self) -> Part<N> {
        let padded = self.width.next_multiple_of(LANES);
        let any = self.inputs.contains(&true);
        Part {
            inputs: self.inputs,
            recent: vec![0.0; if any { N * padded } else { 0 }],
            totals: vec![0.0; if any || self.init { (N + 1) * self.width } else { 0 }],
            width: self.width,
            padded,
        }
    }

    /// Runs `work`, which must hand in the part of every task exactly once, with the task's index.
    pub fn collect(&self, work: impl FnOnce(&(dyn Fn(usize, Part<N>) + Sync))) -> Vec<Totals> {
        let mut parts: Vec<MaybeUninit<Totals>> = (0..self.tasks).map(|_| MaybeUninit::new(Vec::new())).collect();
        let shared = SharedOut::of(&mut parts);
        work(&|index, part| {
            // SAFETY: each index is handed in once. What is overwritten is an empty vector, which owns nothing.
            let kept = unsafe { shared.slice(index, 1) };
            kept[0].write(part.totals);
        });
        // SAFETY: every element was initialised above.
        parts.into_iter().map(|part| unsafe { part.assume_init() }).collect()
    }

    /// Adds up sum `j` of all parts into `out` `[E]`.
    pub fn add_up(&self, parts: &[Totals], plan: &Plan, j: usize, out: Slots) {
        let mut totals = vec![0.0; out.len()];
        for (i, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let part = &part[j * self.width..(j + 1) * self.width];
            totals[plan.block(i).channels].iter_mut().zip(part).for_each(|(total, x)| *total += x);
        }
        out.iter_mut().zip(totals).for_each(|(out, total)| {
            out.write(total as f32);
        });
    }
}

impl<const N: usize> Part<N> {
    /// Whether the sum of any input is wanted.
    pub fn any_input(&self) -> bool {
        !self.recent.is_empty()
    }

    /// A buffer for each input to add gradients to; null where its sum is not wanted.
    pub fn buffers(&mut self) -> [*mut f32; N] {
        core::array::from_fn(|j| if self.inputs[j] { self.recent[j * self.padded..].as_mut_ptr() } else { core::ptr::null_mut() })
    }

    /// Moves what the buffers hold to the f64 sums.
    pub fn flush(&mut self, level: Level) {
        struct Flush<'a>(&'a mut [f32], &'a mut [f64]);

        impl WithSimd for Flush<'_> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                for (total, x) in self.1.iter_mut().zip(self.0) {
                    *total += f64::from(core::mem::take(x));
                }
            }
        }

        for (j, recent) in self.recent.chunks_exact_mut(self.padded).enumerate().filter(|&(j, _)| self.inputs[j]) {
            level.run(Flush(recent, &mut self.totals[j * self.width..(j + 1) * self.width]));
        }
    }

    /// Adds the gradient of a reset's state.
    pub fn add_init(&mut self, gradient: &[f32]) {
        let from = self.totals.len() - self.width;
        self.totals[from..].iter_mut().zip(gradient).for_each(|(total, &x)| *total += f64::from(x));
    }
}
