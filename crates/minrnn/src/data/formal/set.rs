//! Set: the distinct symbols of the string in order of first occurrence. The study that defines the task does not specify an order; this
//! one is ours.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

pub(super) struct Set;

const ACT: u32 = 127;

/// The distinct symbols in the order of their first occurrence.
pub(super) fn distinct(string: &[u32]) -> Vec<u32> {
    let mut seen = Vec::new();
    for symbol in string {
        if !seen.contains(symbol) {
            seen.push(*symbol);
        }
    }
    seen
}

impl Rules for Set {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        (protocol == Protocol::Xlstm).then_some(Alphabet { symbols: 128, classes: 126 })
    }

    fn example(&self, _: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let mut input = uniform((length.saturating_sub(1) / 2).max(1), 1, ACT, rng);
        let answer = distinct(&input);
        input.push(ACT);
        Example::new(input, answer)
    }
}
