//! What the sessions of a forecaster expect of their next rows.

use alloc::{format, vec::Vec};

use crate::{Error, Result};

/// The forecast of the next row of each session, `[rows, width]`, as the model gave it.
#[derive(Debug, Clone)]
pub struct Forecasts {
    /// Numbers of each; 0 if none is kept.
    width: usize,
    outputs: Vec<f32>,
    is_known: Vec<bool>,
}

impl Forecasts {
    /// None yet, of `width` numbers each.
    pub fn new(width: usize) -> Self {
        Self { width, outputs: Vec::new(), is_known: Vec::new() }
    }

    /// Makes room for `more`.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        if self.width == 0 {
            return Ok(());
        }
        let refused =
            |_| Error::Memory(format!("memory cannot hold what {more} more sessions expect of their next rows; keep fewer sessions"));
        self.outputs.try_reserve_exact(more.saturating_mul(self.width)).map_err(refused)?;
        self.is_known.try_reserve_exact(more).map_err(refused)
    }

    /// Lets there be one for each of `rows` sessions; those added are not known.
    pub fn resize(&mut self, rows: usize) {
        let rows = if self.width == 0 { 0 } else { rows };
        self.outputs.resize(rows * self.width, 0.0);
        self.is_known.resize(rows, false);
    }

    /// That of session `row`, if it is known.
    pub fn of(&self, row: usize) -> Option<&[f32]> {
        self.is_known.get(row).filter(|&&is_known| is_known).map(|_| &self.outputs[row * self.width..][..self.width])
    }

    /// That of each session, empty where it is not known.
    pub fn each(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.is_known.len()).map(|row| self.of(row).unwrap_or_default())
    }

    /// Keeps the first of `outputs` as that of session `row`; it is not known if one of them is not finite.
    pub fn keep(&mut self, row: usize, outputs: &[f32]) {
        let Some(is_known) = self.is_known.get_mut(row) else { return };
        let outputs = &outputs[..self.width];
        *is_known = outputs.iter().all(|x| x.is_finite());
        self.outputs[row * self.width..][..self.width].copy_from_slice(outputs);
    }

    /// Forgets that of session `row`.
    pub fn forget(&mut self, row: usize) {
        self.is_known.get_mut(row).into_iter().for_each(|is_known| *is_known = false);
    }

    /// Replaces that of session `row` by that of session `source_row` of `source`, which are as wide.
    pub fn copy_row(&mut self, row: usize, source: &Self, source_row: usize) {
        match source.of(source_row) {
            Some(outputs) => self.keep(row, outputs),
            None => self.forget(row),
        }
    }

    /// Those of the sessions `rows`, in that order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut selected = Self::new(self.width);
        selected.resize(rows.len());
        rows.iter().enumerate().for_each(|(at, &row)| selected.copy_row(at, self, row));
        selected
    }

    /// Takes over `each`, one for each session, empty where it is not known; false if one has another width or is not finite.
    pub fn restore(&mut self, each: &[Vec<f32>]) -> bool {
        each.iter().enumerate().all(|(row, outputs)| {
            let fits = outputs.len() == self.width && self.width > 0;
            if fits {
                self.keep(row, outputs);
            }
            outputs.is_empty() || fits && self.of(row).is_some()
        })
    }

    /// Their size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.outputs.as_slice())
    }
}
