//! Storage for the lines of a matrix: their own memory, shared memory, or a program's constants.

use super::layout::{BLOCK, LINE_BYTES, Line, from_bytes};
use alloc::collections::TryReserveError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, Range};

/// Immutable bytes aligned to 64, shared by all holders: the content of a file, whose matrices are then used in place
/// ([`WeightMatrix::from_shared`](super::WeightMatrix::from_shared)). Clones share them too.
#[derive(Clone)]
pub struct AlignedBytes {
    lines: Arc<Vec<Line>>,
    len: usize,
}

impl AlignedBytes {
    /// `len` bytes, all written by `fill`.
    ///
    /// # Errors
    /// When there is not enough memory, and those of `fill`.
    pub fn filled_by<E: From<TryReserveError>>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let (mut lines, count) = (Vec::new(), len.div_ceil(LINE_BYTES));
        lines.try_reserve_exact(count)?;
        lines.resize(count, Line([0; BLOCK]));
        // SAFETY: lines are words without gaps between them, for which any bytes are valid, and hold at least `len` of these.
        let bytes = unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<u8>(), len) };
        fill(bytes)?;
        Ok(Self { lines: Arc::new(lines), len })
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// When memory cannot hold them.
    pub fn copied(bytes: &[u8]) -> Result<Self, TryReserveError> {
        Self::filled_by(bytes.len(), |copy| {
            copy.copy_from_slice(bytes);
            Ok(())
        })
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: lines are words without gaps between them, and hold at least `len` bytes.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast::<u8>(), self.len) }
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish()
    }
}

/// The lines of a matrix.
#[derive(Clone)]
pub(super) enum Lines {
    Own(Vec<Line>),
    Shared(Arc<Vec<Line>>, Range<usize>),
    Constant(&'static [Line]),
}

impl Lines {
    /// The lines that the little-endian `bytes` represent.
    pub fn copied(bytes: &[u8]) -> Self {
        Self::Own(from_bytes(bytes))
    }

    /// The lines of a part of `memory`, used in place, if it begins and ends at lines and this processor is little-endian.
    pub fn shared(memory: &AlignedBytes, part: Range<usize>) -> Option<Self> {
        let whole = part.start.is_multiple_of(LINE_BYTES) && part.len().is_multiple_of(LINE_BYTES) && part.end <= memory.len;
        let fits = whole && cfg!(target_endian = "little");
        fits.then(|| Self::Shared(Arc::clone(&memory.lines), part.start / LINE_BYTES..part.end / LINE_BYTES))
    }

    /// The same for constants.
    pub fn constant(bytes: &'static [u8]) -> Option<Self> {
        // SAFETY: lines are words without gaps between them, for which any bytes are valid.
        let (before, lines, behind) = unsafe { bytes.align_to::<Line>() };
        let fits = before.is_empty() && behind.is_empty() && cfg!(target_endian = "little");
        fits.then_some(Self::Constant(lines))
    }

    /// Lines to be changed: a copy, unless they are the matrix's own.
    pub fn to_mut(&mut self) -> &mut Vec<Line> {
        if !matches!(self, Self::Own(_)) {
            *self = Self::Own(self.to_vec());
        }
        match self {
            Self::Own(lines) => lines,
            _ => unreachable!("they have just become the matrix's own"),
        }
    }
}

impl Deref for Lines {
    type Target = [Line];

    #[inline(always)]
    fn deref(&self) -> &[Line] {
        match self {
            Self::Own(lines) => lines,
            Self::Shared(lines, part) => &lines[part.clone()],
            Self::Constant(lines) => lines,
        }
    }
}
