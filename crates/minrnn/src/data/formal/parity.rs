//! Parity: the number of ones modulo 2. With xLSTM the bits 0 and 1 have the ids 1 and 2, in strings and answers.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

pub(super) struct Parity;

/// Ones, modulo 2.
pub(super) fn parity(bits: &[u32]) -> u32 {
    bits.iter().sum::<u32>() % 2
}

/// A question about a string of bits whose answer is a bit.
pub(super) fn of_bits(protocol: Protocol, length: usize, rng: &mut ChaCha8Rng, question: impl Fn(&[u32]) -> u32) -> Example {
    if protocol == Protocol::Xlstm {
        let bits = uniform((length - 1).max(1), 0, 2, rng);
        let answer = 1 + question(&bits);
        return Example::new(bits.into_iter().map(|bit| 1 + bit).collect(), vec![answer]);
    }
    let bits = uniform(length, 0, 2, rng);
    let answer = question(&bits);
    Example::new(bits, vec![answer])
}

impl Rules for Parity {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        Some(match protocol {
            Protocol::Authors | Protocol::DeepMind => Alphabet { symbols: 2, classes: 2 },
            Protocol::Xlstm => Alphabet { symbols: 3, classes: 2 },
        })
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        of_bits(protocol, length, rng, parity)
    }
}
