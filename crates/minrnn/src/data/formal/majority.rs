//! Majority: the most frequent of 63 symbols, or its count. In a tie the largest id wins, as in the authors' code; xLSTM does not specify.
//! Counts are ids: the count itself, capped at the largest id.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

const SYMBOLS: u32 = 63;

pub(super) struct Majority {
    /// Whether the count is asked for rather than the symbol.
    pub(super) count: bool,
}

/// The most frequent symbol (the largest in a tie) and its count.
pub(super) fn majority(string: &[u32]) -> (u32, u32) {
    let mut counts = [0; SYMBOLS as usize + 1];
    string.iter().for_each(|&symbol| counts[symbol as usize] += 1);
    let most = (0..=SYMBOLS).max_by_key(|&symbol| (counts[symbol as usize], symbol)).unwrap_or(0);
    (most, counts[most as usize])
}

impl Rules for Majority {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        match protocol {
            Protocol::Authors => Some(Alphabet { symbols: SYMBOLS, classes: SYMBOLS }),
            Protocol::Xlstm => Some(Alphabet { symbols: SYMBOLS + 1, classes: SYMBOLS }),
            Protocol::DeepMind => None,
        }
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (input, largest) = match protocol {
            Protocol::Xlstm => (uniform((length - 1).max(1), 1, SYMBOLS + 1, rng), SYMBOLS),
            _ => (uniform(length, 0, SYMBOLS, rng), SYMBOLS - 1),
        };
        let (symbol, count) = majority(&input);
        Example::new(input, vec![if self.count { count.min(largest) } else { symbol }])
    }
}
