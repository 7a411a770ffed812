//! Cycle navigation: moves of −1, 0 or +1 on a cycle of five positions, starting at 0.
//!
//! The moves are ids 0, 1, 2; with xLSTM 1 stays, 2 goes forward, 3 back, and position p is id 4 + p.

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

const PLACES: i64 = 5;

pub(super) struct CycleNavigation;

/// The place after `moves`.
pub(super) fn place(moves: impl Iterator<Item = i64>) -> u32 {
    moves.sum::<i64>().rem_euclid(PLACES) as u32
}

impl Rules for CycleNavigation {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        Some(match protocol {
            Protocol::Authors | Protocol::DeepMind => Alphabet { symbols: 3, classes: 5 },
            Protocol::Xlstm => Alphabet { symbols: 9, classes: 5 },
        })
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        if protocol == Protocol::Xlstm {
            let input = uniform((length - 1).max(1), 1, 4, rng);
            let answer = 4 + place(input.iter().map(|&id| [0, 1, -1][id as usize - 1]));
            return Example::new(input, vec![answer]);
        }
        let input = uniform(length, 0, 3, rng);
        let answer = place(input.iter().map(|&id| i64::from(id) - 1));
        Example::new(input, vec![answer])
    }
}
