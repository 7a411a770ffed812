//! Modular arithmetic: the value of an expression modulo 5. With xLSTM an equals sign follows the expression.

use super::expression::{self, Codes};
use super::{Alphabet, Example, Protocol, Rules};
use crate::rng::ChaCha8Rng;

/// Without brackets.
pub(super) struct Flat;
/// With brackets.
pub(super) struct Brackets;

const DEEP_MIND: Codes = Codes { zero: 0, plus: 5, minus: 6, times: 7, open: 8, close: 9 };
const XLSTM_FLAT: Codes = Codes { zero: 5, plus: 1, minus: 2, times: 3, open: 0, close: 0 };
const XLSTM_BRACKETS: Codes = Codes { zero: 7, plus: 1, minus: 2, times: 3, open: 5, close: 6 };
const XLSTM_EQUALS: u32 = 4;

/// The expression and, with xLSTM, the equals sign; the answer is a digit.
fn example(protocol: Protocol, mut input: Vec<u32>, value: u32, codes: &Codes) -> Example {
    input.extend((protocol == Protocol::Xlstm).then_some(XLSTM_EQUALS));
    Example::new(input, vec![codes.zero + value])
}

impl Rules for Flat {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        match protocol {
            Protocol::Authors => None,
            Protocol::Xlstm => Some(Alphabet { symbols: 10, classes: 5 }),
            Protocol::DeepMind => Some(Alphabet { symbols: 9, classes: 5 }),
        }
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (codes, length) = match protocol {
            Protocol::Xlstm => (&XLSTM_FLAT, length.saturating_sub(2)),
            _ => (&DEEP_MIND, length),
        };
        // An even length is rounded down to an odd one.
        let tokens = expression::flat(length.saturating_sub(1) | 1, rng);
        example(protocol, codes.ids(&tokens), expression::flat_value(&tokens), codes)
    }
}

impl Rules for Brackets {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        match protocol {
            Protocol::Authors => None,
            Protocol::Xlstm => Some(Alphabet { symbols: 12, classes: 5 }),
            Protocol::DeepMind => Some(Alphabet { symbols: 11, classes: 5 }),
        }
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (codes, length) = match protocol {
            Protocol::Xlstm => (&XLSTM_BRACKETS, length.saturating_sub(2).max(1)),
            _ => (&DEEP_MIND, length),
        };
        let (tokens, value) = expression::bracketed(length, 3, rng);
        example(protocol, codes.ids(&tokens), value, codes)
    }
}
