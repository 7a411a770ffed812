//! Expressions of digits modulo 5, with and without brackets.

use rand::RngExt;

use crate::rng::ChaCha8Rng;

/// The modulus.
pub(super) const MODULUS: i64 = 5;

/// A token of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Digit(u32),
    Plus,
    Minus,
    Times,
    Open,
    Close,
}

/// Digits at even places and operators between them; `length` is odd.
pub(super) fn flat(length: usize, rng: &mut ChaCha8Rng) -> Vec<Token> {
    (0..length).map(|i| if i % 2 == 0 { digit(rng) } else { operator(3, rng) }).collect()
}

/// The value of an expression without brackets, products first.
pub(super) fn flat_value(tokens: &[Token]) -> u32 {
    let (mut sum, mut sign, mut product) = (0, 1, 0);
    let mut multiplies = false;
    for token in tokens {
        match *token {
            Token::Digit(digit) => product = (if multiplies { product } else { 1 }) * i64::from(digit) % MODULUS,
            Token::Times => multiplies = true,
            Token::Plus | Token::Minus => {
                sum += sign * product;
                sign = if *token == Token::Plus { 1 } else { -1 };
                multiplies = false;
            }
            Token::Open | Token::Close => unreachable!("a flat expression has no brackets"),
        }
    }
    (sum + sign * product).rem_euclid(MODULUS) as u32
}

/// A random expression of exactly `length` ≥ 1 tokens and its value, with the first `operators` of +, −, ×. One to four tokens are a digit,
/// a negated digit, a bracketed digit, or a bracketed negated digit; longer expressions are ( left operator right ).
pub(super) fn bracketed(length: usize, operators: u32, rng: &mut ChaCha8Rng) -> (Vec<Token>, u32) {
    let mut tokens = Vec::with_capacity(length);
    let value = append(length, operators, rng, &mut tokens);
    (tokens, value.rem_euclid(MODULUS) as u32)
}

fn append(length: usize, operators: u32, rng: &mut ChaCha8Rng, tokens: &mut Vec<Token>) -> i64 {
    if length <= 4 {
        let digit = rng.random_range(0..MODULUS as u32);
        let (brackets, negative) = (length >= 3, length.is_multiple_of(2));
        tokens.extend(brackets.then_some(Token::Open));
        tokens.extend(negative.then_some(Token::Minus));
        tokens.push(Token::Digit(digit));
        tokens.extend(brackets.then_some(Token::Close));
        return if negative { -i64::from(digit) } else { i64::from(digit) };
    }
    let left = rng.random_range(1..=(length - 4) as u64) as usize;
    tokens.push(Token::Open);
    let a = append(left, operators, rng, tokens);
    let operator = operator(operators, rng);
    tokens.push(operator);
    let b = append(length - 3 - left, operators, rng, tokens);
    tokens.push(Token::Close);
    let value = match operator {
        Token::Plus => a + b,
        Token::Minus => a - b,
        _ => a * b,
    };
    value % MODULUS
}

fn digit(rng: &mut ChaCha8Rng) -> Token {
    Token::Digit(rng.random_range(0..MODULUS as u32))
}

fn operator(operators: u32, rng: &mut ChaCha8Rng) -> Token {
    [Token::Plus, Token::Minus, Token::Times][rng.random_range(0..operators) as usize]
}

/// The ids of tokens other than digits, and of the digit 0.
pub(super) struct Codes {
    pub(super) zero: u32,
    pub(super) plus: u32,
    pub(super) minus: u32,
    pub(super) times: u32,
    pub(super) open: u32,
    pub(super) close: u32,
}

impl Codes {
    /// The id of a token.
    pub(super) fn id(&self, token: Token) -> u32 {
        match token {
            Token::Digit(digit) => self.zero + digit,
            Token::Plus => self.plus,
            Token::Minus => self.minus,
            Token::Times => self.times,
            Token::Open => self.open,
            Token::Close => self.close,
        }
    }

    /// The ids of an expression.
    pub(super) fn ids(&self, tokens: &[Token]) -> Vec<u32> {
        tokens.iter().map(|&token| self.id(token)).collect()
    }
}
