//! A model's memory of what it has read.

mod saved;
mod shape;

use alloc::{format, vec, vec::Vec};
use core::fmt;

use crate::past::Past;
use crate::{Error, Result};

pub(crate) use shape::StateShape;

/// The memory of one or many sessions, one row each: hidden states, convolution windows and means, a fixed number of f32 values however
/// long the session; and, for models with attention or long filters, the past tokens that are still seen. Cloning forks all sessions,
/// [`select`](State::select) some.
#[derive(Clone)]
pub struct State {
    shape: StateShape,
    rows: usize,
    /// `[rows, row_len]`.
    values: Vec<f32>,
    /// `[rows, shape.pasts()]`.
    pasts: Vec<Past>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, row, all) = (self.rows, self.bytes_per_row(), self.bytes());
        f.debug_struct("State").field("rows", &rows).field("bytes_per_row", &row).field("bytes", &all).finish_non_exhaustive()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.rows == other.rows && self.values == other.values && self.seen().eq(other.seen())
    }
}

impl State {
    /// `rows` copies of `first`.
    pub(crate) fn new(shape: StateShape, rows: usize, first: &[f32]) -> Result<Self> {
        let mut pasts = Vec::new();
        let lists = rows.saturating_mul(shape.pasts().len());
        pasts.try_reserve_exact(lists).map_err(|_| too_large(rows, &shape))?;
        let mut values = room_for(rows, &shape)?;
        if !first.is_empty() {
            (0..rows).for_each(|_| values.extend_from_slice(first));
        }
        pasts.resize_with(lists, Past::default);
        Ok(Self { shape, rows, values, pasts })
    }

    /// The numbers of all sessions, and their lists of past tokens.
    pub(crate) fn parts_mut(&mut self) -> (&mut [f32], &mut [Past]) {
        (&mut self.values, &mut self.pasts)
    }

    /// What the first layers keep of session `row`.
    pub(crate) fn front(&self, row: usize) -> &[f32] {
        let [(first, len), _] = self.shape.ends();
        &self.values[row * self.shape.row_len() + first..][..len]
    }

    /// Makes room for `upcoming` tokens of session `row`, of which at most `at_once` come in one pass.
    pub(crate) fn reserve(&mut self, row: usize, upcoming: usize, at_once: usize) -> Result<()> {
        let lists = self.shape.pasts().len();
        let mut pasts = self.pasts.iter_mut().skip(row * lists).zip(self.shape.pasts());
        pasts.try_for_each(|(past, shape)| past.reserve(shape, upcoming, at_once)).map_err(|_| no_room_for_past())
    }

    /// Gives back the room of session `row` for passes of more than `at_once` tokens.
    pub(crate) fn shrink(&mut self, row: usize, at_once: usize) {
        let lists = self.shape.pasts().len();
        self.pasts.iter_mut().skip(row * lists).zip(self.shape.pasts()).for_each(|(past, shape)| past.shrink(shape, at_once));
    }

    /// The past tokens in each list of each session that a next token sees.
    fn seen(&self) -> impl Iterator<Item = &[f32]> {
        self.pasts.iter().zip(self.shape.pasts().iter().cycle()).map(|(past, shape)| past.seen(shape))
    }

    /// The past tokens kept by session `row`: a list for each block with attention or a long filter, with the numbers of one token after
    /// those of another, oldest first.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn pasts(&self, row: usize) -> impl ExactSizeIterator<Item = &[f32]> {
        assert!(row < self.rows, "there is no session {row} among {}", self.rows);
        let lists = self.shape.pasts().len();
        self.pasts[row * lists..][..lists].iter().zip(self.shape.pasts()).map(|(past, shape)| past.seen(shape))
    }

    /// The number of values that each block with attention or a long filter keeps for a token.
    pub fn past_widths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.shape.pasts().iter().map(|shape| shape.width)
    }

    /// The values of every session, one session after another; for past tokens see [`pasts`](State::pasts).
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Number of sessions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a session, without past tokens.
    pub fn bytes_per_row(&self) -> usize {
        self.shape.row_len() * size_of::<f32>()
    }

    /// Bytes of all sessions, including the past tokens they see.
    pub fn bytes(&self) -> usize {
        self.rows * self.bytes_per_row() + self.seen().map(size_of_val).sum::<usize>()
    }

    /// The sessions `rows`, in that order; a row may be chosen several times.
    ///
    /// # Errors
    /// When there is no such row, or memory cannot hold so many.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let mut values = room_for(rows.len(), &self.shape)?;
        for &row in rows {
            values.extend_from_slice(self.row(row)?);
        }
        let mut pasts = Vec::new();
        let lists = self.shape.pasts().len();
        pasts.try_reserve_exact(rows.len().saturating_mul(lists)).map_err(|_| no_room_for_past())?;
        for &row in rows {
            for (past, shape) in self.pasts[row * lists..][..lists].iter().zip(self.shape.pasts()) {
                pasts.push(past.copied(shape).map_err(|_| no_room_for_past())?);
            }
        }
        Ok(Self { shape: self.shape.clone(), rows: rows.len(), values, pasts })
    }

    /// Replaces session `row` by session `source_row` of `source`.
    ///
    /// # Errors
    /// When there is no such row, the states belong to models of different sizes, or memory cannot hold the past tokens; the row is then
    /// unchanged.
    pub fn copy_row(&mut self, row: usize, source: &State, source_row: usize) -> Result<()> {
        self.expect_shape(&source.shape)?;
        self.row(row)?;
        let (len, values, lists) = (self.shape.row_len(), source.row(source_row)?, self.shape.pasts().len());
        let sources = &source.pasts[source_row * lists..][..lists];
        // Room is made for all of them before any is replaced.
        for copy in [Past::reserve_copy, Past::copy_from] {
            let mut pasts = self.pasts[row * lists..][..lists].iter_mut().zip(sources).zip(self.shape.pasts());
            pasts.try_for_each(|((past, source), shape)| copy(past, source, shape)).map_err(|_| no_room_for_past())?;
        }
        self.values[row * len..][..len].copy_from_slice(values);
        Ok(())
    }

    /// Resets session `row` to one that has read nothing, with the numbers `first`.
    pub(crate) fn restart(&mut self, row: usize, first: &[f32]) -> Result<()> {
        self.row(row)?;
        let (len, lists) = (self.shape.row_len(), self.shape.pasts().len());
        self.values[row * len..][..len].copy_from_slice(first);
        self.pasts[row * lists..][..lists].iter_mut().for_each(Past::clear);
        Ok(())
    }

    /// Appends the sessions of `other`.
    ///
    /// # Errors
    /// When the states belong to models of different sizes, or memory cannot hold both; nothing is then added.
    pub fn append(&mut self, other: &State) -> Result<()> {
        self.expect_shape(&other.shape)?;
        self.values.try_reserve(other.values.len()).map_err(|_| too_large(self.rows.saturating_add(other.rows), &self.shape))?;
        let mut copies = Vec::new();
        copies.try_reserve_exact(other.pasts.len()).map_err(|_| no_room_for_past())?;
        for (past, shape) in other.pasts.iter().zip(other.shape.pasts().iter().cycle()) {
            copies.push(past.copied(shape).map_err(|_| no_room_for_past())?);
        }
        self.pasts.try_reserve(copies.len()).map_err(|_| no_room_for_past())?;
        self.pasts.append(&mut copies);
        self.values.extend_from_slice(&other.values);
        self.rows += other.rows;
        Ok(())
    }

    pub(crate) fn expect_finite(&self) -> Result<()> {
        let refused = |row: usize, value: f32| {
            Err(Error::State(format!("holds {value} in session {row}, expected finite numbers; begin that session anew")))
        };
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            return refused(at / self.shape.row_len(), self.values[at]);
        }
        let flawed = |(list, seen): (usize, &[f32])| Some((list, *seen.iter().find(|value| !value.is_finite())?));
        match self.seen().enumerate().find_map(flawed) {
            None => Ok(()),
            Some((list, value)) => refused(list / self.shape.pasts().len(), value),
        }
    }

    /// The numbers of session `row`.
    pub(crate) fn row(&self, row: usize) -> Result<&[f32]> {
        if row >= self.rows {
            return Err(Error::Input(format!("the state has {} sessions, there is no session {row}", self.rows)));
        }
        let len = self.shape.row_len();
        Ok(&self.values[row * len..][..len])
    }

    /// Checks that `rows` ascend and that all of them exist.
    pub(crate) fn expect_rows(&self, rows: &[usize]) -> Result<()> {
        let sessions = self.rows;
        if let Some(at) = rows.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (row, before) = (rows[at + 1], rows[at]);
            return Err(Error::Input(format!("expected ascending sessions below {sessions}, found {row} behind {before}")));
        }
        match rows.iter().find(|&&row| row >= sessions) {
            None => Ok(()),
            Some(row) => Err(Error::Input(format!("expected ascending sessions below {sessions}, found {row}"))),
        }
    }

    /// Whether the numbers of `other` are those of a model of the same shape.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape
    }

    /// Checks that the numbers are those of a model of this shape.
    pub(crate) fn expect_shape(&self, shape: &StateShape) -> Result<()> {
        if self.shape == *shape {
            return Ok(());
        }
        let difference = self.shape.difference(shape);
        Err(Error::Input(format!("the state belongs to another model: {difference}; make one with init_state")))
    }
}

/// An empty list with room for the numbers of `rows` sessions.
fn room_for(rows: usize, shape: &StateShape) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    match rows.checked_mul(shape.row_len()).map(|len| values.try_reserve_exact(len)) {
        Some(Ok(())) => Ok(values),
        _ => Err(too_large(rows, shape)),
    }
}

fn too_large(rows: usize, shape: &StateShape) -> Error {
    let lists = shape.pasts().len().saturating_mul(size_of::<Past>());
    let bytes = shape.row_len().saturating_mul(size_of::<f32>()).saturating_add(lists);
    Error::Memory(format!("memory cannot hold {rows} sessions of {bytes} bytes each; ask for fewer"))
}

fn no_room_for_past() -> Error {
    Error::Memory("memory cannot hold the past tokens that the sessions see; keep fewer sessions".into())
}

/// The numbers of a session before its first token, block by block.
pub(crate) fn first_row(shape: &StateShape, mut init_block: impl FnMut(usize, &mut [f32])) -> Vec<f32> {
    let mut row = vec![0.0; shape.row_len()];
    let mut rest = row.as_mut_slice();
    for (i, len) in shape.block_lens().enumerate() {
        let (block, behind) = rest.split_at_mut(len);
        init_block(i, block);
        rest = behind;
    }
    // The first and the last layers begin with zeros.
    row
}
