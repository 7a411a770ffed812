//! The string itself, rearranged: backwards, again, or every second symbol first.
//!
//! DeepMind's strings are bits, the duplicate answer is the string twice, and "odds first" begins with the second, fourth, … symbol, as
//! its published code does. xLSTM's have ten symbols and end with a token "act"; the answer is the string once, and the first, third, …
//! symbols come first.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

/// Backwards.
pub(super) struct Reverse;
/// Again.
pub(super) struct Duplicate;
/// Every second symbol, then the others.
pub(super) struct OddsFirst;

const ACT: u32 = 11;

fn alphabet(protocol: Protocol) -> Option<Alphabet> {
    match protocol {
        Protocol::Authors => None,
        Protocol::Xlstm => Some(Alphabet { symbols: 12, classes: 10 }),
        Protocol::DeepMind => Some(Alphabet { symbols: 2, classes: 2 }),
    }
}

fn example(protocol: Protocol, length: usize, rng: &mut ChaCha8Rng, answer: impl Fn(&[u32]) -> Vec<u32>) -> Example {
    if protocol == Protocol::Xlstm {
        let mut input = uniform((length.saturating_sub(1) / 2).max(1), 1, ACT, rng);
        let answer = answer(&input);
        input.push(ACT);
        return Example::new(input, answer);
    }
    let input = uniform(length, 0, 2, rng);
    let answer = answer(&input);
    Example::new(input, answer)
}

/// Every second symbol from `first` on, then the others.
pub(super) fn every_second(string: &[u32], first: usize) -> Vec<u32> {
    let from = |start: usize| string.iter().skip(start).step_by(2).copied();
    from(first).chain(from(1 - first)).collect()
}

impl Rules for Reverse {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol)
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        example(protocol, length, rng, |string| string.iter().rev().copied().collect())
    }
}

impl Rules for Duplicate {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol)
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        example(protocol, length, rng, |string| string.repeat(if protocol == Protocol::Xlstm { 1 } else { 2 }))
    }
}

impl Rules for OddsFirst {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol)
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        example(protocol, length, rng, |string| every_second(string, usize::from(protocol != Protocol::Xlstm)))
    }
}
