//! Stack manipulation: a stack from bottom to top, then pushes and pops; the answer is the final stack from top to bottom.
//!
//! DeepMind: bits; pop = 2, push 0 = 3, push 1 = 4; popping the empty stack does nothing; the answer is followed by a terminator 2 and
//! zeros up to length n + 1, and is scored up to the terminator. xLSTM: values 1 to 4, pushes 5 to 8, pop 9, act 10; the last push is never
//! undone, so there is always an answer.

use rand::RngExt;

use super::{Alphabet, Example, Protocol, Rules, uniform};
use crate::rng::ChaCha8Rng;

pub(super) struct StackManipulation;

const TERMINATOR: u32 = 2;

/// An operation on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Pop,
    Push(u32),
}

/// The stack after `actions`, from top to bottom.
pub(super) fn finish(mut stack: Vec<u32>, actions: &[Action]) -> Vec<u32> {
    for action in actions {
        match *action {
            Action::Pop => {
                stack.pop();
            }
            Action::Push(value) => stack.push(value),
        }
    }
    stack.reverse();
    stack
}

/// The initial size of the stack and the number of actions, together n ≥ 2 tokens.
fn split(n: usize, rng: &mut ChaCha8Rng) -> (usize, usize) {
    let size = rng.random_range(1..n as u64) as usize;
    (size, n - size)
}

impl Rules for StackManipulation {
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet> {
        match protocol {
            Protocol::Authors => None,
            Protocol::Xlstm => Some(Alphabet { symbols: 11, classes: 4 }),
            Protocol::DeepMind => Some(Alphabet { symbols: 5, classes: 3 }),
        }
    }

    fn example(&self, protocol: Protocol, length: usize, _: u64, rng: &mut ChaCha8Rng) -> Example {
        let values = if protocol == Protocol::Xlstm { 4 } else { 2 };
        let n = if protocol == Protocol::Xlstm { (length.saturating_sub(1) / 2).max(2) } else { length };
        let (size, count) = if n < 2 { (n, 0) } else { split(n, rng) };
        let stack = uniform(size, 0, values, rng);
        let action = |code: u32| if code == 0 { Action::Pop } else { Action::Push(code - 1) };
        let mut actions: Vec<Action> = uniform(count, 0, values + 1, rng).into_iter().map(action).collect();
        if protocol == Protocol::Xlstm
            && let Some(last) = actions.last_mut()
        {
            *last = Action::Push(rng.random_range(0..values));
        }
        let answer = finish(stack.clone(), &actions);
        let code = |action: &Action| match (protocol, *action) {
            (Protocol::Xlstm, Action::Pop) => 9,
            (Protocol::Xlstm, Action::Push(value)) => 5 + value,
            (_, Action::Pop) => 2,
            (_, Action::Push(value)) => 3 + value,
        };
        let codes = actions.iter().map(code);
        if protocol == Protocol::Xlstm {
            let input = stack.iter().map(|value| 1 + value).chain(codes).chain([10]).collect();
            return Example::new(input, answer.into_iter().map(|value| 1 + value).collect());
        }
        Example { input: stack.iter().copied().chain(codes).collect(), ..terminated(answer, n + 1) }
    }
}

/// `answer`, the terminator, and zeros up to `len`; the string is left empty.
pub(super) fn terminated(mut answer: Vec<u32>, len: usize) -> Example {
    answer.push(TERMINATOR);
    let scored = answer.len();
    answer.resize(len.max(scored), 0);
    Example { input: Vec::new(), answer, scored }
}
