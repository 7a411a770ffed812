//! Solve an equation modulo 5: an expression of + and − with brackets in which x stands for a digit, "=" and its value; the answer is the
//! digit.

use rand::RngExt;

use super::expression::{self, Codes, Token};
use super::{Alphabet, Example, Protocol, Rules};
use crate::rng::ChaCha8Rng;

pub(super) struct SolveEquation;

const DEEP_MIND: Codes = Codes { zero: 0, plus: 5, minus: 6, times: 0, open: 7, close: 8 };
const XLSTM: Codes = Codes { zero: 9, plus: 1, minus: 2, times: 3, open: 5, close: 6 };

/// The ids of x and "=".
fn unknown_and_equals(protocol: Protocol) -> (u32, u32) {
    if protocol == Protocol::Xlstm { (7, 4) } else { (9, 10) }
}

impl Rules for SolveEquation {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        match protocol {
            Protocol::Authors => None,
            Protocol::Xlstm => Some(Alphabet { symbols: 14, classes: 5 }),
            Protocol::DeepMind => Some(Alphabet { symbols: 11, classes: 5 }),
        }
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (codes, length) = match protocol {
            Protocol::Xlstm => (&XLSTM, length.saturating_sub(1).max(3)),
            _ => (&DEEP_MIND, length),
        };
        if length < 3 {
            return Example::new(vec![0; length], vec![0]);
        }
        let (unknown, equals) = unknown_and_equals(protocol);
        let (tokens, value) = expression::bracketed(length - 2, 2, rng);
        let from = rng.random_range(0..tokens.len() as u64) as usize;
        let hidden = (0..tokens.len()).map(|i| (from + i) % tokens.len()).find_map(|at| match tokens[at] {
            Token::Digit(digit) => Some((at, digit)),
            _ => None,
        });
        let (at, digit) = hidden.expect("every expression has a digit");
        let mut input = codes.ids(&tokens);
        input[at] = unknown;
        input.extend([equals, codes.zero + value]);
        Example::new(input, vec![codes.zero + digit])
    }
}
