//! Bucket sort: the symbols of the string in ascending order.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

pub(super) struct BucketSort;

impl Rules for BucketSort {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        Some(match protocol {
            Protocol::Authors => Alphabet { symbols: 10, classes: 10 },
            Protocol::Xlstm => Alphabet { symbols: 11, classes: 10 },
            Protocol::DeepMind => Alphabet { symbols: 5, classes: 5 },
        })
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let input = match protocol {
            Protocol::Authors => uniform(length, 0, 10, rng),
            Protocol::Xlstm => uniform((length / 2).max(1), 1, 11, rng),
            Protocol::DeepMind => uniform(length, 0, 5, rng),
        };
        let mut answer = input.clone();
        answer.sort_unstable();
        Example::new(input, answer)
    }
}
