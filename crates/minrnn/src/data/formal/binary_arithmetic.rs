//! Sums and products of two binary numbers, written lowest bit first and separated by 2, and integer square roots of one, written highest
//! bit first.

use num_bigint::BigUint;
use rand::RngExt;

use super::stack_manipulation::terminated;
use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

/// The sum.
pub(super) struct Addition;
/// The product.
pub(super) struct Multiplication;
/// The root.
pub(super) struct SquareRoot;

const SEPARATOR: u32 = 2;

fn alphabet(protocol: Protocol, symbols: u32) -> Option<Alphabet> {
    (protocol == Protocol::DeepMind).then_some(Alphabet { symbols, classes: symbols })
}

/// The bits, lowest first, of a number from 1 to 2ⁿ − 1.
fn operand(n: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    loop {
        let bits = uniform(n, 0, 2, rng);
        if bits.contains(&1) {
            return bits;
        }
    }
}

pub(super) fn number(bits: &[u32]) -> BigUint {
    let digits: Vec<u8> = bits.iter().map(|&bit| bit as u8).collect();
    BigUint::from_radix_le(&digits, 2).unwrap_or_default()
}

/// The bits of a number, lowest first, without leading zeros; 0 is one digit.
pub(super) fn bits(number: &BigUint) -> Vec<u32> {
    number.to_radix_le(2).into_iter().map(u32::from).collect()
}

/// Two operands with the separator, n ≥ 3 tokens, and the result.
fn two_operands(n: usize, rng: &mut ChaCha8Rng, result: impl Fn(BigUint, BigUint) -> BigUint) -> (Vec<u32>, Vec<u32>) {
    let first = rng.random_range(1..=(n - 2) as u64) as usize;
    let (a, b) = (operand(first, rng), operand(n - 1 - first, rng));
    let result = bits(&result(number(&a), number(&b)));
    ([a, vec![SEPARATOR], b].concat(), result)
}

/// A number from 0 to 2ⁿ − 2 in n ≤ 2 bits.
fn short(n: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let value: u32 = rng.random_range(0..(1 << n) - 1);
    (0..n).map(|i| value >> i & 1).collect()
}

impl Rules for Addition {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol, 3)
    }

    fn example(&self, _: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (input, sum) = if length <= 2 {
            let input = short(length, rng);
            let sum = bits(&number(&input));
            (input, sum)
        } else {
            two_operands(length, rng, |a, b| a + b)
        };
        Example { input, ..terminated(sum, length + 1) }
    }
}

impl Rules for Multiplication {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol, 3)
    }

    fn example(&self, _: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let (input, product) =
            if length <= 2 { (short(length, rng), vec![0; length - 1]) } else { two_operands(length, rng, |a, b| a * b) };
        Example { input, ..terminated(product, length) }
    }
}

impl Rules for SquareRoot {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        alphabet(protocol, 2)
    }

    fn example(&self, _: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let mut input = operand(length, rng);
        let mut root = bits(&number(&input).sqrt());
        root.resize(length.div_ceil(2), 0);
        input.reverse();
        root.reverse();
        Example::new(input, root)
    }
}
