//! Missing duplicate: a string, followed by a copy that lacks a symbol.
//!
//! The authors show the copy up to the missing symbol, which is at the same position in every row of a batch. xLSTM and DeepMind put a mask
//! in its place, which with DeepMind may be in either half of a doubled string of bits.

use rand::RngExt;

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

const MASK: u32 = 10;
const BIT_MASK: u32 = 2;
/// Follows a doubled string of bits when the length is odd.
const PAD: u32 = 3;

pub(super) struct MissingDuplicate;

impl Rules for MissingDuplicate {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        Some(match protocol {
            Protocol::Authors => Alphabet { symbols: 9, classes: 9 },
            Protocol::Xlstm => Alphabet { symbols: 11, classes: 9 },
            Protocol::DeepMind => Alphabet { symbols: 4, classes: 2 },
        })
    }

    fn example(&self, protocol: Protocol, length: usize, shared: u64, rng: &mut ChaCha8Rng) -> Example {
        match protocol {
            Protocol::Authors => {
                let string = uniform(length, 0, 9, rng);
                let missing = (shared % length as u64) as usize;
                let answer = string[missing];
                Example::new([&string, &string[..missing]].concat(), vec![answer])
            }
            Protocol::Xlstm => {
                let string = uniform((length.saturating_sub(1) / 2).max(1), 1, 10, rng);
                let missing = rng.random_range(0..string.len() as u64) as usize;
                let mut copy = string.clone();
                copy[missing] = MASK;
                let answer = string[missing];
                Example::new([string, copy].concat(), vec![answer])
            }
            Protocol::DeepMind if length == 1 => Example::new(vec![1], vec![1]),
            Protocol::DeepMind => {
                let string = uniform(length / 2, 0, 2, rng);
                let mut input = [&string[..], &string].concat();
                let missing = rng.random_range(0..input.len() as u64) as usize;
                let answer = std::mem::replace(&mut input[missing], BIT_MASK);
                input.extend((length % 2 == 1).then_some(PAD));
                Example::new(input, vec![answer])
            }
        }
    }
}
