//! A model's internal activations at every step, besides its predictions.

use alloc::format;

use crate::{Error, Result};

/// Buffers for the internal activations that are wanted; by default none.
#[derive(Debug, Default)]
pub struct Inside<'a> {
    /// A block, counted from 0, and a buffer for its output at every step, `[T, D]`: the residual stream after it.
    pub hidden: Option<(usize, &'a mut [f32])>,
    /// A buffer for the head's input at every step, `[T, D]`: after the last norm and, if there are any, the mean over the past and the
    /// comparison of pairs.
    pub features: Option<&'a mut [f32]>,
}

impl Inside<'_> {
    /// Refuses a block that does not exist, and buffers that do not fit `steps` steps.
    pub(crate) fn expect_fit(&self, n_blocks: usize, steps: usize, d_model: usize) -> Result<()> {
        let layer = self.hidden.as_ref().map(|(layer, _)| *layer).filter(|&layer| layer >= n_blocks);
        if let Some(layer) = layer {
            return Err(Error::Input(format!("the model has {n_blocks} blocks, expected one below that, found {layer}")));
        }
        let rooms = self.hidden.iter().map(|(_, room)| room.len()).chain(self.features.as_ref().map(|room| room.len()));
        match rooms.into_iter().find(|&len| steps.checked_mul(d_model) != Some(len)) {
            None => Ok(()),
            Some(found) => Err(Error::Input(format!("expected room for {steps} steps of {d_model} numbers, found {found}"))),
        }
    }

    /// The room for `steps` steps of `d_model` numbers from step `start` on.
    pub(crate) fn part(&mut self, start: usize, steps: usize, d_model: usize) -> Inside<'_> {
        let places = start * d_model..(start + steps) * d_model;
        Inside {
            hidden: self.hidden.as_mut().map(|(layer, room)| (*layer, &mut room[places.clone()])),
            features: self.features.as_mut().map(|room| &mut room[places]),
        }
    }
}
