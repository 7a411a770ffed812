//! Checks before anything is read.

use alloc::vec::Vec;
use alloc::{format, string::String};

use super::Model;
use crate::reads::{Reads, Steps};
use crate::state::State;
use crate::{Error, Result};

impl Model {
    pub(super) fn expect_rows(&self, state: &State, found: usize) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if found == state.rows() {
            return Ok(());
        }
        input(format!("the state has {} sessions, expected steps for each, found steps for {found}", state.rows()))
    }

    /// Checks that `rows` are sessions of `state`, and that the `found` inputs are one for each.
    pub(super) fn expect_some(&self, rows: &[usize], found: usize, state: &State) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if rows.len() != found {
            return input(format!("expected one step for each of {} sessions, found {found}", rows.len()));
        }
        state.expect_rows(rows)
    }

    pub(super) fn expect_room(&self, rows: usize, outputs: &[f32]) -> Result<()> {
        if rows.checked_mul(self.outputs()) == Some(outputs.len()) {
            return Ok(());
        }
        input(format!("expected room for {rows} rows of {} outputs, found {}", self.outputs(), outputs.len()))
    }

    /// `tokens`, all of them known.
    pub(super) fn tokens<'a>(&self, tokens: &'a [u32]) -> Result<Steps<'a>> {
        let Reads::Tokens { vocab } = self.reads() else { return Err(Error::Reads { expected: self.reads(), found: "tokens" }) };
        match tokens.iter().find(|&&token| token as usize >= vocab) {
            None => Ok(Steps::Tokens(tokens)),
            Some(&token) => Err(Error::UnknownToken { token, vocab_size: vocab }),
        }
    }

    /// `values`, all of them finite, as whole steps: of session `session`, or one step each of that session and those after it.
    pub(super) fn values<'a>(&self, values: &'a [f32], session: usize) -> Result<Steps<'a>> {
        let Reads::Values { width } = self.reads() else { return Err(Error::Reads { expected: self.reads(), found: "numbers" }) };
        if !values.len().is_multiple_of(width) {
            return input(format!("expected steps of {width} numbers, found {} numbers", values.len()));
        }
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(Steps::Values { values, width }),
            Some(at) => Err(Error::NotFinite { sequence: session, step: at / width, column: at % width, value: values[at] }),
        }
    }

    /// Asks each prompt for its tokens once, so that the tokens checked are those that are read.
    pub(super) fn prompts<'a, P: AsRef<[u32]>>(&self, prompts: &'a [P]) -> Result<Vec<Steps<'a>>> {
        prompts.iter().map(|prompt| self.tokens(prompt.as_ref())).collect()
    }

    pub(super) fn sequences<'a, P: AsRef<[f32]>>(&self, sequences: &'a [P]) -> Result<Vec<Steps<'a>>> {
        sequences.iter().enumerate().map(|(session, values)| self.values(values.as_ref(), session)).collect()
    }
}

pub(super) fn input<T>(sentence: String) -> Result<T> {
    Err(Error::Input(sentence))
}
