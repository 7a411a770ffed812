//! The past tokens that attention and long filters keep: for each session a list that grows until it holds everything that is seen.
//!
//! The oldest token comes first. Tokens that are no longer seen stay until the list is full and are then removed together, so that each
//! token costs only a few copies on average.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::CheckedConfig;

/// How much a block keeps of past tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastShape {
    /// The block.
    pub(crate) block: usize,
    /// Numbers kept of a token, at least 1.
    pub(crate) width: usize,
    /// Most tokens before the current one that are seen.
    pub(crate) tokens: usize,
}

/// What one block keeps of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// `[kept, width]`.
    values: Vec<f32>,
}

impl PastShape {
    /// What the blocks of a model keep, those that keep nothing left out.
    pub(crate) fn of(config: &CheckedConfig) -> Vec<Self> {
        let number = |x: u128| usize::try_from(x).unwrap_or(usize::MAX);
        let of_block = |block: usize| {
            let past = config.block_past(block)?;
            Some(Self { block, width: number(past.len_per_token).max(1), tokens: past.window.saturating_sub(1) })
        };
        (0..config.n_layers).filter_map(of_block).collect()
    }
}

impl Past {
    /// A list with these numbers of kept tokens.
    pub(crate) fn of(values: Vec<f32>) -> Self {
        Self { values }
    }

    /// The tokens that a next one sees, `[kept, width]`, the oldest first.
    pub(crate) fn seen(&self, shape: &PastShape) -> &[f32] {
        let len = self.values.len() / shape.width;
        &self.values[(len - len.min(shape.tokens)) * shape.width..]
    }

    /// Everything that is held, `[held, width]`, the newest token last.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Removes everything and frees the room: the next sequence may stay short.
    pub(crate) fn clear(&mut self) {
        self.values = Vec::new();
    }

    /// Makes room for `upcoming` tokens, of which at most `at_once` come in one pass.
    pub(crate) fn reserve(&mut self, shape: &PastShape, upcoming: usize, at_once: usize) -> Result<(), TryReserveError> {
        let PastShape { width, tokens, .. } = *shape;
        let most = tokens.saturating_add((tokens / 4).max(upcoming.min(at_once)).max(1));
        let held = self.values.len() / width;
        let needed = held.saturating_add(upcoming).min(most);
        if needed.saturating_mul(width) <= self.values.capacity() {
            return Ok(());
        }
        // The room doubles, so that few tokens cause a copy of all before them, but never exceeds the most that is held.
        let room = needed.max(held.saturating_mul(2)).min(most).saturating_mul(width);
        self.values.try_reserve_exact(room - self.values.len())
    }

    /// Gives back the room of a pass of many tokens, except for what is seen and a quarter more, or `at_once` tokens more if that is larger.
    pub(crate) fn shrink(&mut self, shape: &PastShape, at_once: usize) {
        let PastShape { width, tokens, .. } = *shape;
        let most = tokens.saturating_add((tokens / 4).max(at_once)).saturating_mul(width);
        if self.values.capacity() > most {
            let held = self.values.len() / width;
            self.values.drain(..held.saturating_sub(tokens) * width);
            self.values.shrink_to(most);
        }
    }

    /// Drops tokens that are no longer seen if there is no room for `new` ones.
    pub(crate) fn settle(&mut self, shape: &PastShape, new: usize) {
        let held = self.values.len() / shape.width;
        if held > shape.tokens && (held + new) * shape.width > self.values.capacity() {
            self.values.drain(..(held - shape.tokens) * shape.width);
        }
    }

    /// Adds tokens, for which there is room.
    pub(crate) fn push(&mut self, values: &[f32]) {
        debug_assert!(self.values.len() + values.len() <= self.values.capacity(), "tokens without room");
        self.values.extend_from_slice(values);
    }

    /// A copy of what is seen.
    pub(crate) fn copied(&self, shape: &PastShape) -> Result<Self, TryReserveError> {
        let mut copy = Self::default();
        copy.copy_from(self, shape)?;
        Ok(copy)
    }

    /// Makes room for a copy of what is seen of `source`, without changing the content.
    pub(crate) fn reserve_copy(&mut self, source: &Self, shape: &PastShape) -> Result<(), TryReserveError> {
        self.values.try_reserve_exact(source.seen(shape).len().saturating_sub(self.values.len()))
    }

    /// Becomes a copy of what is seen of `source`, unless there is no room for it.
    pub(crate) fn copy_from(&mut self, source: &Self, shape: &PastShape) -> Result<(), TryReserveError> {
        self.reserve_copy(source, shape)?;
        self.values.clear();
        self.values.extend_from_slice(source.seen(shape));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_room_of_a_long_pass_is_given_back() {
        for tokens in [0, 1, 7, 40] {
            let shape = PastShape { block: 0, width: 2, tokens };
            let mut past = Past::default();
            for new in [500, 1, 300] {
                past.reserve(&shape, new, 512).unwrap();
                past.settle(&shape, new);
                (0..new).for_each(|at| past.push(&[at as f32, new as f32]));
                let seen = past.seen(&shape).to_vec();
                past.shrink(&shape, 1);
                assert_eq!(past.seen(&shape), seen);
                assert!(past.values.capacity() <= 2 * (tokens + (tokens / 4).max(1)), "{}", past.values.capacity());
            }
        }
    }

    #[test]
    fn the_newest_tokens_stay_however_they_come() {
        for tokens in [0, 1, 2, 3, 7, 40] {
            let shape = PastShape { block: 0, width: 2, tokens };
            for pieces in [vec![1; 200], vec![50; 4], vec![3, 90, 1, 1, 1, 60, 2, 2], vec![200]] {
                let (mut past, mut read) = (Past::default(), 0);
                for new in pieces {
                    past.reserve(&shape, new, 64).unwrap();
                    let mut left = new;
                    while left > 0 {
                        let now = left.min(64);
                        past.settle(&shape, now);
                        let room = past.values.capacity();
                        for token in read..read + now {
                            past.push(&[token as f32, -(token as f32)]);
                        }
                        assert_eq!(past.values.capacity(), room, "nothing is allocated after the reservation");
                        (read, left) = (read + now, left - now);
                        let expected: Vec<f32> =
                            (read - read.min(tokens)..read).flat_map(|token| [token as f32, -(token as f32)]).collect();
                        assert_eq!(past.seen(&shape), expected);
                    }
                    assert!(past.values.capacity() <= 2 * (tokens + (tokens / 4).max(64)), "{} of {tokens}", past.values.capacity());
                }
            }
        }
    }

    #[test]
    fn a_copy_takes_the_place_of_whatever_was_there() {
        let shape = PastShape { block: 0, width: 2, tokens: 3 };
        let numbers = |n: u8| (0..2 * n).map(f32::from).collect::<Vec<_>>();
        for (there, other) in [(0, 2), (2, 0), (1, 9), (9, 1)] {
            let (mut past, source) = (Past::of(numbers(there)), Past::of(numbers(other)));
            past.reserve_copy(&source, &shape).unwrap();
            assert_eq!(past.values(), numbers(there));
            past.copy_from(&source, &shape).unwrap();
            assert_eq!(past.values(), source.seen(&shape));
        }
    }

    #[test]
    fn room_that_no_memory_has_is_refused() {
        let shape = PastShape { block: 0, width: usize::MAX / 8, tokens: 1 << 24 };
        assert!(Past::default().reserve(&shape, 1, 512).is_err());
        let mut past = Past::default();
        past.reserve(&PastShape { block: 0, width: 4, tokens: 1 << 24 }, 1, 512).unwrap();
        assert!(past.values.capacity() < 100, "room is made as tokens come");
    }
}
