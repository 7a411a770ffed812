//! What a model remembers of the tokens it has read.

mod saved;

use alloc::{format, string::String, vec, vec::Vec};
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::past::{Past, PastShape};
use crate::{CheckedConfig, Error, MixerKind, ModelConfig, Pooling, Result, WiringKind, channel_mix};

/// The sizes that a state's numbers depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateShape {
    d_model: usize,
    conv: bool,
    #[serde(default, skip_serializing_if = "is_none")]
    wiring: WiringKind,
    /// The mixer of each block and how many numbers the block keeps for a session: those of its convolution, its wiring, its mixer, and
    /// its feed-forward part.
    blocks: Vec<(MixerKind, usize)>,
    /// How many numbers the first layers keep for a session, behind those of the blocks, and the last ones behind these.
    #[serde(default, skip_serializing_if = "are_none")]
    ends: [usize; 2],
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pasts: Vec<PastShape>,
}

// States of models without what came later are written as they were before.

fn is_none(wiring: &WiringKind) -> bool {
    *wiring == WiringKind::None
}

fn are_none(ends: &[usize; 2]) -> bool {
    *ends == [0; 2]
}

impl StateShape {
    /// That of a model whose first layers keep `front` numbers.
    pub(crate) fn new(config: &CheckedConfig, front: usize, pasts: Vec<PastShape>) -> Self {
        let ModelConfig { d_model, conv, wiring, .. } = **config;
        let block = |layer| (config.mixer_at(layer), config.block_state_len(layer));
        Self { d_model, conv, wiring, blocks: (0..config.n_layers).map(block).collect(), ends: [front, config.end_state_len()], pasts }
    }

    /// The lists of past tokens that a session keeps.
    pub(crate) fn pasts(&self) -> &[PastShape] {
        &self.pasts
    }

    /// Where the numbers of the first and of the last layers begin in a row, and how many they are.
    pub(crate) fn ends(&self) -> [(usize, usize); 2] {
        let (first, [front, end]) = (self.block_lens().sum(), self.ends);
        [(first, front), (first + front, end)]
    }

    /// The shapes of sessions saved when what rounding loses was not kept, each with the places in a row of this shape where those numbers stand: of the
    /// sums of a mean, and before that of RWKV-4's log-weights either.
    fn without_losses(&self, config: &CheckedConfig) -> [(Self, Vec<Range<usize>>); 2] {
        let (mut later, mut of_mean) = (self.clone(), None);
        if config.pooling == Pooling::Mean {
            let (d, [_, (end, _)]) = (config.d_model, self.ends());
            later.ends[1] -= d;
            of_mean = Some(end + d..end + 2 * d);
        }
        let e = config.inside_wiring().d_inner();
        let (mut earlier, mut gaps, mut end) = (later.clone(), Vec::new(), 0);
        for (layer, (mixer, len)) in earlier.blocks.iter_mut().enumerate() {
            end += *len;
            if *mixer == MixerKind::Rwkv4 {
                let behind = end - channel_mix::state_len(config, layer);
                gaps.push(behind - e..behind);
                *len -= e;
            }
        }
        gaps.extend(of_mean.clone());
        [(later, of_mean.into_iter().collect()), (earlier, gaps)]
    }

    /// What is another one in the `expected` shape, which differs: the first of it, in words.
    fn difference(&self, expected: &Self) -> String {
        let told =
            |what: &str, found: &dyn fmt::Display, expected: &dyn fmt::Display| format!("its {what} is {found}, expected {expected}");
        let switch = |on: bool| if on { "on" } else { "off" };
        let blocks = [self, expected].map(|shape| shape.blocks.len());
        if self.d_model != expected.d_model {
            return told("width", &self.d_model, &expected.d_model);
        }
        if blocks[0] != blocks[1] {
            return told("number of blocks", &blocks[0], &blocks[1]);
        }
        if self.conv != expected.conv {
            return told("convolution", &switch(self.conv), &switch(expected.conv));
        }
        if self.wiring != expected.wiring {
            return told("wiring", &self.wiring, &expected.wiring);
        }
        for (block, (found, expected)) in self.blocks.iter().zip(&expected.blocks).enumerate() {
            if found.0 != expected.0 {
                return told(&format!("mixer of block {block}"), &found.0, &expected.0);
            }
            if found.1 != expected.1 {
                return told(&format!("size of block {block} in numbers"), &found.1, &expected.1);
            }
        }
        for (which, (found, expected)) in ["first", "last"].into_iter().zip(self.ends.iter().zip(&expected.ends)) {
            if found != expected {
                return told(&format!("size of the {which} layers in numbers"), found, expected);
            }
        }
        let lists = [self, expected].map(|shape| shape.pasts.len());
        if lists[0] != lists[1] {
            return told("number of blocks that keep past tokens", &lists[0], &lists[1]);
        }
        let past = |of: &PastShape| format!("{} tokens of {} numbers in block {}", of.tokens, of.width, of.block);
        let differ = self.pasts.iter().zip(&expected.pasts).find(|(found, expected)| found != expected);
        differ.map_or_else(String::new, |(found, expected)| told("past", &past(found), &past(expected)))
    }

    /// Numbers that each block keeps for a session.
    pub(crate) fn block_lens(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().map(|&(_, len)| len)
    }

    /// Numbers kept for a session, those of past tokens left out.
    pub(crate) fn row_len(&self) -> usize {
        self.block_lens().chain(self.ends).sum()
    }

    /// Numbers of the past tokens that were kept, one count for each list of each session; `None` where it is more than a session keeps, or more
    /// than there can be.
    fn past_len(&self, rows: usize, kept: &[usize]) -> Option<usize> {
        if rows.checked_mul(self.pasts.len()) != Some(kept.len()) {
            return None;
        }
        let each = kept.iter().zip(self.pasts.iter().cycle());
        each.map(|(&kept, shape)| if kept <= shape.tokens { kept.checked_mul(shape.width) } else { None })
            .try_fold(0usize, |sum, len| sum.checked_add(len?))
    }
}

/// The memory of one or many sessions, a row for each: hidden states, convolution windows, means, a fixed number of f32 however long the
/// session; and, of models with attention or long filters, past tokens as far back as they are seen. Cloning forks all sessions,
/// [`select`](State::select) some.
#[derive(Clone)]
pub struct State {
    shape: StateShape,
    rows: usize,
    /// `[rows, row_len]`.
    values: Vec<f32>,
    /// `[rows, shape.pasts]`.
    pasts: Vec<Past>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, row, all) = (self.rows, self.bytes_per_row(), self.bytes());
        f.debug_struct("State").field("rows", &rows).field("bytes_per_row", &row).field("bytes", &all).finish_non_exhaustive()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.rows == other.rows && self.values == other.values && self.seen().eq(other.seen())
    }
}

impl State {
    /// `rows` copies of `first`.
    pub(crate) fn new(shape: StateShape, rows: usize, first: &[f32]) -> Result<Self> {
        let mut pasts = Vec::new();
        let lists = rows.saturating_mul(shape.pasts.len());
        pasts.try_reserve_exact(lists).map_err(|_| too_large(rows, &shape))?;
        let mut values = room_for(rows, &shape)?;
        if !first.is_empty() {
            (0..rows).for_each(|_| values.extend_from_slice(first));
        }
        pasts.resize_with(lists, Past::default);
        Ok(Self { shape, rows, values, pasts })
    }

    /// The numbers of all sessions, and their lists of past tokens.
    pub(crate) fn parts_mut(&mut self) -> (&mut [f32], &mut [Past]) {
        (&mut self.values, &mut self.pasts)
    }

    /// What the first layers keep of session `row`.
    pub(crate) fn front(&self, row: usize) -> &[f32] {
        let [(first, len), _] = self.shape.ends();
        &self.values[row * self.shape.row_len() + first..][..len]
    }

    /// Makes room for `upcoming` tokens of session `row`, of which at most `at_once` come in one pass.
    pub(crate) fn reserve(&mut self, row: usize, upcoming: usize, at_once: usize) -> Result<()> {
        let lists = self.shape.pasts.len();
        let mut pasts = self.pasts.iter_mut().skip(row * lists).zip(&self.shape.pasts);
        pasts.try_for_each(|(past, shape)| past.reserve(shape, upcoming, at_once)).map_err(|_| no_room_for_past())
    }

    /// Gives back what session `row` has of room for passes of more than `at_once` tokens.
    pub(crate) fn shrink(&mut self, row: usize, at_once: usize) {
        let lists = self.shape.pasts.len();
        self.pasts.iter_mut().skip(row * lists).zip(&self.shape.pasts).for_each(|(past, shape)| past.shrink(shape, at_once));
    }

    /// The past tokens that each list of each session holds and a next token sees.
    fn seen(&self) -> impl Iterator<Item = &[f32]> {
        self.pasts.iter().zip(self.shape.pasts.iter().cycle()).map(|(past, shape)| past.seen(shape))
    }

    /// What session `row` keeps of past tokens, a list for each block with attention or a long filter, each the numbers of one token after those
    /// of another, the oldest first.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn pasts(&self, row: usize) -> impl ExactSizeIterator<Item = &[f32]> {
        assert!(row < self.rows, "there is no session {row} among {}", self.rows);
        let lists = self.shape.pasts.len();
        self.pasts[row * lists..][..lists].iter().zip(&self.shape.pasts).map(|(past, shape)| past.seen(shape))
    }

    /// Numbers kept of one token by each block with attention or a long filter.
    pub fn past_widths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.shape.pasts.iter().map(|shape| shape.width)
    }

    /// The numbers of every session, one session after the other; past tokens are in [`pasts`](State::pasts).
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Number of sessions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that a session takes, past tokens left out.
    pub fn bytes_per_row(&self) -> usize {
        self.shape.row_len() * size_of::<f32>()
    }

    /// Bytes that all sessions take, with the past tokens that they see.
    pub fn bytes(&self) -> usize {
        self.rows * self.bytes_per_row() + self.seen().map(size_of_val).sum::<usize>()
    }

    /// The sessions `rows`, in that order; a row may be chosen several times.
    ///
    /// # Errors
    /// When there is no such row, or memory cannot hold so many.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let mut values = room_for(rows.len(), &self.shape)?;
        for &row in rows {
            values.extend_from_slice(self.row(row)?);
        }
        let mut pasts = Vec::new();
        let lists = self.shape.pasts.len();
        pasts.try_reserve_exact(rows.len().saturating_mul(lists)).map_err(|_| no_room_for_past())?;
        for &row in rows {
            for (past, shape) in self.pasts[row * lists..][..lists].iter().zip(&self.shape.pasts) {
                pasts.push(past.copied(shape).map_err(|_| no_room_for_past())?);
            }
        }
        Ok(Self { shape: self.shape.clone(), rows: rows.len(), values, pasts })
    }

    /// Replaces session `row` by session `source_row` of `source`.
    ///
    /// # Errors
    /// When there is no such row, the states belong to models of different sizes, or memory cannot hold the past tokens; the row is then as it was.
    pub fn copy_row(&mut self, row: usize, source: &State, source_row: usize) -> Result<()> {
        self.expect_shape(&source.shape)?;
        self.row(row)?;
        let (len, values, lists) = (self.shape.row_len(), source.row(source_row)?, self.shape.pasts.len());
        let sources = &source.pasts[source_row * lists..][..lists];
        // All of them have room before one is replaced.
        for copy in [Past::reserve_copy, Past::copy_from] {
            let mut pasts = self.pasts[row * lists..][..lists].iter_mut().zip(sources).zip(&self.shape.pasts);
            pasts.try_for_each(|((past, source), shape)| copy(past, source, shape)).map_err(|_| no_room_for_past())?;
        }
        self.values[row * len..][..len].copy_from_slice(values);
        Ok(())
    }

    /// Makes session `row` that of which nothing has been read, `first` being its numbers.
    pub(crate) fn restart(&mut self, row: usize, first: &[f32]) -> Result<()> {
        self.row(row)?;
        let (len, lists) = (self.shape.row_len(), self.shape.pasts.len());
        self.values[row * len..][..len].copy_from_slice(first);
        self.pasts[row * lists..][..lists].iter_mut().for_each(Past::clear);
        Ok(())
    }

    /// Adds the sessions of `other` behind these.
    ///
    /// # Errors
    /// When the states belong to models of different sizes, or memory cannot hold both; nothing is then added.
    pub fn append(&mut self, other: &State) -> Result<()> {
        self.expect_shape(&other.shape)?;
        self.values.try_reserve(other.values.len()).map_err(|_| too_large(self.rows.saturating_add(other.rows), &self.shape))?;
        let mut copies = Vec::new();
        copies.try_reserve_exact(other.pasts.len()).map_err(|_| no_room_for_past())?;
        for (past, shape) in other.pasts.iter().zip(other.shape.pasts.iter().cycle()) {
            copies.push(past.copied(shape).map_err(|_| no_room_for_past())?);
        }
        self.pasts.try_reserve(copies.len()).map_err(|_| no_room_for_past())?;
        self.pasts.append(&mut copies);
        self.values.extend_from_slice(&other.values);
        self.rows += other.rows;
        Ok(())
    }

    pub(crate) fn expect_finite(&self) -> Result<()> {
        let refused = |row: usize, value: f32| {
            Err(Error::State(format!("holds {value} in session {row}, expected finite numbers; begin that session anew")))
        };
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            return refused(at / self.shape.row_len(), self.values[at]);
        }
        let flawed = |(list, seen): (usize, &[f32])| Some((list, *seen.iter().find(|value| !value.is_finite())?));
        match self.seen().enumerate().find_map(flawed) {
            None => Ok(()),
            Some((list, value)) => refused(list / self.shape.pasts.len(), value),
        }
    }

    /// The numbers of session `row`.
    pub(crate) fn row(&self, row: usize) -> Result<&[f32]> {
        if row >= self.rows {
            return Err(Error::Input(format!("the state has {} sessions, there is no session {row}", self.rows)));
        }
        let len = self.shape.row_len();
        Ok(&self.values[row * len..][..len])
    }

    /// Checks that `rows` ascend, and are all there.
    pub(crate) fn expect_rows(&self, rows: &[usize]) -> Result<()> {
        let sessions = self.rows;
        if let Some(at) = rows.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (row, before) = (rows[at + 1], rows[at]);
            return Err(Error::Input(format!("expected ascending sessions below {sessions}, found {row} behind {before}")));
        }
        match rows.iter().find(|&&row| row >= sessions) {
            None => Ok(()),
            Some(row) => Err(Error::Input(format!("expected ascending sessions below {sessions}, found {row}"))),
        }
    }

    /// Checks that the numbers are those of a model of this shape.
    pub(crate) fn expect_shape(&self, shape: &StateShape) -> Result<()> {
        if self.shape == *shape {
            return Ok(());
        }
        let difference = self.shape.difference(shape);
        Err(Error::Input(format!("the state belongs to another model: {difference}; make one with init_state")))
    }
}

/// An empty list with room for the numbers of `rows` sessions.
fn room_for(rows: usize, shape: &StateShape) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    match rows.checked_mul(shape.row_len()).map(|len| values.try_reserve_exact(len)) {
        Some(Ok(())) => Ok(values),
        _ => Err(too_large(rows, shape)),
    }
}

fn too_large(rows: usize, shape: &StateShape) -> Error {
    let lists = shape.pasts.len().saturating_mul(size_of::<Past>());
    let bytes = shape.row_len().saturating_mul(size_of::<f32>()).saturating_add(lists);
    Error::Memory(format!("memory cannot hold {rows} sessions of {bytes} bytes each; ask for fewer"))
}

fn no_room_for_past() -> Error {
    Error::Memory("memory cannot hold the past tokens that the sessions see; keep fewer sessions".into())
}

/// Rows of `row_len` numbers with zeros put in, so that they stand at `gaps` of the longer rows.
fn with_zeros(values: &[f32], row_len: usize, gaps: &[Range<usize>]) -> Vec<f32> {
    let mut longer = Vec::with_capacity(values.len() + values.len() / row_len.max(1) * gaps.iter().map(Range::len).sum::<usize>());
    for mut rest in values.chunks_exact(row_len.max(1)) {
        let mut at = 0;
        for gap in gaps {
            let (before, behind) = rest.split_at(gap.start - at);
            longer.extend_from_slice(before);
            longer.resize(longer.len() + gap.len(), 0.0);
            (rest, at) = (behind, gap.end);
        }
        longer.extend_from_slice(rest);
    }
    longer
}

/// The numbers of a session before its first token, block by block.
pub(crate) fn first_row(shape: &StateShape, mut init_block: impl FnMut(usize, &mut [f32])) -> Vec<f32> {
    let mut row = vec![0.0; shape.row_len()];
    let mut rest = row.as_mut_slice();
    for (i, len) in shape.block_lens().enumerate() {
        let (block, behind) = rest.split_at_mut(len);
        init_block(i, block);
        rest = behind;
    }
    // The first and the last layers begin with zeros.
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeedForwardKind;

    #[test]
    fn sessions_from_before_rwkv4_kept_what_rounding_loses_get_zeros_in_its_place() {
        let (mixer, ff) = (MixerKind::Rwkv4, FeedForwardKind::ChannelMix);
        let config = ModelConfig { vocab_size: 3, mixer, ff, d_model: 2, expansion: 1.0, n_layers: 2, conv: false, ..Default::default() };
        let config = config.checked().unwrap();
        let shape = StateShape::new(&config, 0, Vec::new());
        let [(later, none), (earlier, gaps)] = shape.without_losses(&config);
        assert_eq!((later, none), (shape.clone(), Vec::new()));
        // Previous input, mean, log-weight (and now the losses) of the mixer, previous input of the feed-forward part.
        assert_eq!((earlier.row_len(), shape.row_len()), (2 * 8, 2 * 10));
        let block = |first: u8| (first..first + 8).map(f32::from).collect::<Vec<_>>();
        let widened = |first: u8| [&block(first)[..6], &[0.0, 0.0], &block(first)[6..]].concat();
        let saved = [block(10), block(20), block(30), block(40)].concat();
        let expected = [widened(10), widened(20), widened(30), widened(40)].concat();
        assert_eq!(with_zeros(&saved, earlier.row_len(), &gaps), expected);
    }

    #[test]
    fn sessions_of_other_mixers_have_no_numbers_to_add() {
        let config = ModelConfig { vocab_size: 3, d_model: 4, n_layers: 3, ..Default::default() }.checked().unwrap();
        let shape = StateShape::new(&config, 0, Vec::new());
        assert_eq!(shape.without_losses(&config), [(shape.clone(), Vec::new()), (shape.clone(), Vec::new())]);
    }

    #[test]
    fn sessions_from_before_a_mean_kept_what_rounding_adds_get_zeros_in_its_place() {
        let (mixer, pooling, pair_head) = (MixerKind::Rwkv4, Pooling::Mean, true);
        let config = ModelConfig { n_outputs: 3, input_width: 1, mixer, pooling, pair_head, d_model: 2, n_layers: 1, ..Default::default() };
        let config = config.checked().unwrap();
        let shape = StateShape::new(&config, 0, Vec::new());
        let [(later, of_mean), (earlier, of_both)] = shape.without_losses(&config);
        let end = shape.ends()[1].0;
        assert_eq!((later.row_len(), of_mean.len(), of_mean[0].clone()), (shape.row_len() - 2, 1, end + 2..end + 4));
        assert_eq!(earlier.row_len(), later.row_len() - config.inside_wiring().d_inner());
        assert_eq!((of_both.len(), of_both[1].clone()), (2, of_mean[0].clone()));
        // Sums, their count, what was and what is.
        let saved: Vec<f32> = (0..later.row_len() as u8).map(f32::from).collect();
        let expected = [&saved[..end + 2], &[0.0; 2], &saved[end + 2..]].concat();
        assert_eq!(with_zeros(&saved, later.row_len(), &of_mean), expected);
    }
}
