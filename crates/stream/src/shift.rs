//! H3's shift: k̄_t = Σ_{l<N} K_l ⊙ k_{t−l} + D_k ⊙ k_t. Its memory is a window of the last N − 1 keys, oldest first.

use alloc::vec::Vec;

use minrnn_kernels::matmul::transposed;

use crate::Result;
use crate::pass::Memory;
use crate::source::{Source, join};

/// The filters of D channels.
#[derive(Debug, Clone)]
pub(crate) struct Shift {
    /// `[N, D]`; the last row meets the current step and holds D_k too.
    taps: Vec<f32>,
    /// D.
    width: usize,
}

/// Numbers kept for a session.
pub(crate) fn state_len(width: usize, d_state: usize) -> usize {
    (d_state - 1) * width
}

impl Shift {
    pub(crate) fn read(source: &mut dyn Source, name: &str, width: usize, d_state: usize) -> Result<Self> {
        let mut taps = transposed(&source.vector(&join(name, "taps"), &[width, 1, d_state])?, width, d_state);
        let skip = source.vector(&join(name, "skip"), &[width])?;
        taps[(d_state - 1) * width..].iter_mut().zip(&skip).for_each(|(tap, skip)| *tap += skip);
        Ok(Self { taps, width })
    }

    /// N.
    pub(crate) fn d_state(&self) -> usize {
        self.taps.len() / self.width
    }

    pub(crate) fn state_len(&self) -> usize {
        state_len(self.width, self.d_state())
    }

    /// k̄ of channel `c`, whose newest key is `key`; advances the keys, with which the memory begins.
    ///
    /// # Safety
    /// Nothing else may use this channel of the session.
    pub(crate) unsafe fn step(&self, memory: Memory<'_>, session: usize, c: usize, key: f32) -> f32 {
        let (d, past) = (self.width, self.d_state() - 1);
        let mut sum = self.taps[past * d + c] * key;
        for slot in 0..past {
            // SAFETY: the caller's promise; one slot is in use at a time.
            let kept = |slot: usize| unsafe { &mut memory.part(session, slot * d + c, slot * d + c + 1)[0] };
            sum += self.taps[slot * d + c] * *kept(slot);
            *kept(slot) = if slot + 1 < past { *kept(slot + 1) } else { key };
        }
        sum
    }
}
