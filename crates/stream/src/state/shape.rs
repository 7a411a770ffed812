//! The sizes that a state depends on, how two of them differ, and those of states saved by earlier versions.

use alloc::{format, string::String, vec::Vec};
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::past::PastShape;
use crate::{CheckedConfig, MixerKind, ModelConfig, Pooling, WiringKind, channel_mix};

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
    /// How many numbers the first layers keep for a session, after those of the blocks, and how many the last layers keep, after these.
    #[serde(default, skip_serializing_if = "are_none")]
    ends: [usize; 2],
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pasts: Vec<PastShape>,
}

// States of models that use no later addition are written as before it.

fn is_none(wiring: &WiringKind) -> bool {
    *wiring == WiringKind::None
}

fn are_none(ends: &[usize; 2]) -> bool {
    *ends == [0; 2]
}

impl StateShape {
    /// The shape for a model whose first layers keep `front` numbers.
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

    /// The shapes of sessions saved before rounding losses were kept, each with the places of the missing numbers in a row of this shape: first
    /// without the losses of a mean's sums, then, still earlier, also without those of RWKV-4's log-weights.
    pub(super) fn without_losses(&self, config: &CheckedConfig) -> [(Self, Vec<Range<usize>>); 2] {
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

    /// The first difference from the `expected` shape, in words.
    pub(super) fn difference(&self, expected: &Self) -> String {
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

    /// Numbers of all past tokens, `kept` being how many each list of each session holds; `None` if the counts do not fit this shape, or their sum
    /// overflows.
    pub(super) fn past_len(&self, rows: usize, kept: &[usize]) -> Option<usize> {
        if rows.checked_mul(self.pasts.len()) != Some(kept.len()) {
            return None;
        }
        let each = kept.iter().zip(self.pasts.iter().cycle());
        each.map(|(&kept, shape)| if kept <= shape.tokens { kept.checked_mul(shape.width) } else { None })
            .try_fold(0usize, |sum, len| sum.checked_add(len?))
    }
}

/// Rows of `row_len` numbers with zeros inserted at `gaps`, which are places in the longer rows.
pub(super) fn with_zeros(values: &[f32], row_len: usize, gaps: &[Range<usize>]) -> Vec<f32> {
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
