//! Causal softmax attention with heads, a window and a cache of past keys and values, in memory that is linear in time.
//!
//! With rows q_t, k_s, v_s of one head, s running over the R_t steps that step t sees:
//!
//! ```text
//! y_t = Σ_s p_ts v_s      p_ts = exp(x_ts − l_t)      x_ts = q_t · k_s / √dₕ      l_t = ln Σ_s exp(x_ts)
//! ```
//! where: dₕ is the width of a head; step t sees the steps s ≤ t of its own segment with t − s < `window`, including those in the cache.
//!
//! Backward, with δ_t = d_y_t · y_t (the gradient of a softmax p is p ⊙ (dp − Σ p dp)):
//!
//! ```text
//! d_x_ts = p_ts (d_y_t · v_s − δ_t) / √dₕ      d_q_t = Σ_s d_x_ts k_s      d_k_s = Σ_t d_x_ts q_t      d_v_s = Σ_t p_ts d_y_t
//! ```
//!
//! Departures from these sums: queries meet keys in tiles, so only one tile of the T×T matrix of scores exists at a time; the softmax keeps
//! a running maximum and sum and corrects the output of earlier tiles when the maximum grows; the forward pass stores l, from which the
//! backward pass recomputes every p.
//!
//! A value that is not finite makes the outputs of its tile non-finite, even those of steps that do not see it, since it is multiplied by
//! weights of 0.
//!
//! A task is one head of one row of the batch, or a share of its query tiles if there are fewer heads than threads; gradients of keys and
//! values are summed over shares in order.

mod backward;
mod cache;
mod forward;
mod tiles;

pub use backward::{Upstream, backward};
pub use forward::forward;

use crate::segments::{PADDING, RESET, Segments};
use crate::shape::{elements, expect_len};
use core::ops::Range;

/// Sizes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// `B`, number of sequences.
    pub batch: usize,
    /// `T`, new steps of a sequence.
    pub seq_len: usize,
    /// `P`, steps in the cache before them.
    pub past: usize,
    /// `N`, steps in the cache after them.
    pub next: usize,
    /// Number of heads.
    pub heads: usize,
    /// Width dₕ of a head.
    pub head_width: usize,
    /// How many of the last steps a step sees, including itself; at least 1.
    pub window: usize,
}

impl Sizes {
    /// `D`, width of all heads.
    ///
    /// # Panics
    /// When that is more than memory can hold.
    pub fn width(&self) -> usize {
        elements([self.heads, self.head_width])
    }
}

/// The rows of a batch before the new steps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The cache `[B, P, 2D]`, keys then values of each step, latest step last.
    pub past: &'a [T],
    /// How many of the P steps each row has `[B]`, counted from the end; earlier ones are not seen.
    pub lengths: &'a [usize],
    /// Which new steps are real, and where segments begin: a segment sees nothing before it.
    pub segments: Segments<'a>,
}

impl<T> Start<'_, T> {
    fn expect_fits(&self, sizes: &Sizes) {
        elements([sizes.batch, sizes.next, 2, sizes.width()]);
        expect_len("past", self.past, elements([sizes.batch, sizes.past, 2, sizes.width()]));
        expect_len("lengths", self.lengths, sizes.batch);
        assert!(self.lengths.iter().all(|&length| length <= sizes.past), "a row has more past steps than the cache");
        assert!(sizes.window > 0, "a step sees itself at least");
        self.segments.expect_fits(sizes.batch, sizes.seq_len);
    }
}

/// Steps of the cache and new steps of one row, counted together: 0 is the oldest of the cache, P the first new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    sizes: Sizes,
    /// First step of the cache that the row has.
    oldest: usize,
    codes: Option<&'a [i32]>,
    /// Number of real new steps.
    pub length: usize,
}

impl<'a> Row<'a> {
    pub fn new<T>(sizes: &Sizes, start: &Start<'a, T>, b: usize) -> Self {
        let codes = start.segments.row(b, sizes.seq_len);
        let length = codes.map_or(sizes.seq_len, |codes| codes.iter().position(|&code| code == PADDING).unwrap_or(codes.len()));
        Self { sizes: *sizes, oldest: sizes.past - start.lengths[b], codes, length }
    }

    /// The last reset before new step `end`.
    fn reset_before(&self, end: usize) -> Option<usize> {
        let reset = self.codes.and_then(|codes| codes[..end].iter().rposition(|&code| code == RESET));
        reset.map(|t| self.sizes.past + t)
    }

    /// The steps that new step `t` sees, given where its segment begins.
    fn seen_from(&self, segment: usize, t: usize) -> Range<usize> {
        let end = self.sizes.past + t + 1;
        segment.max(end.saturating_sub(self.sizes.window))..end
    }

    /// The steps that each of the new steps `steps` sees.
    pub fn seen(&self, steps: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut segment = self.reset_before(steps.start).unwrap_or(self.oldest);
        steps.map(move |t| {
            if self.codes.is_some_and(|codes| codes[t] == RESET) {
                segment = self.sizes.past + t;
            }
            self.seen_from(segment, t)
        })
    }

    /// The step at position `i` of the next cache, if any. Without a reset it may be a position of the old cache that the row does not have: a
    /// cache to which nothing is added stays as it is, and so do its gradients.
    pub fn kept(&self, i: usize) -> Option<usize> {
        let end = self.sizes.past + self.length;
        let step = (end + i).checked_sub(self.sizes.next)?;
        (step >= self.reset_before(self.length).unwrap_or(0)).then_some(step)
    }
}
