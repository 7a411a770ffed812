//! Even pairs: the number of differing neighbours modulo 2, that is, whether the last symbol differs from the first.

use super::{Alphabet, Example, Protocol, Rules, parity};
use crate::rng::ChaCha8Rng;

pub(super) struct EvenPairs;

/// Pairs of neighbours that differ, modulo 2.
pub(super) fn pairs(bits: &[u32]) -> u32 {
    bits.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32 % 2
}

impl Rules for EvenPairs {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        parity::Parity.alphabet(protocol)
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        parity::of_bits(protocol, length, rng, pairs)
    }
}
