//! Which steps of a batch are real, as one code per step.

/// The step follows its predecessor.
pub const CONTINUE: i32 = 0;
/// The state is put back to the initial one before this step.
pub const RESET: i32 = 1;
/// The step is not real: the state passes unchanged and the output is 0.
pub const PADDING: i32 = 2;

/// Codes of a batch `[B, T]`, row-major, or dense (every step continues).
///
/// Padding stands only at the end of rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segments<'a> {
    codes: Option<&'a [i32]>,
}

impl<'a> Segments<'a> {
    /// Every step is real and nothing is reset.
    pub const DENSE: Segments<'static> = Segments { codes: None };

    /// Segments from `codes` `[B, T]`: [`CONTINUE`], [`RESET`] or [`PADDING`] for each step.
    ///
    /// # Panics
    /// When a code is unknown or padding is followed by a real step in the same row.
    pub fn new(codes: &'a [i32], seq_len: usize) -> Self {
        for row in codes.chunks(seq_len.max(1)) {
            let real = row.iter().position(|&c| c == PADDING).unwrap_or(row.len());
            assert!(row[..real].iter().all(|&c| c == CONTINUE || c == RESET), "unknown segment code");
            assert!(row[real..].iter().all(|&c| c == PADDING), "padding must stand at the end of its row");
        }
        Self { codes: Some(codes) }
    }

    /// True when there is nothing to honour.
    pub fn is_dense(&self) -> bool {
        self.codes.is_none()
    }

    /// The codes of row `b`, or `None` when dense.
    pub fn row(&self, b: usize, seq_len: usize) -> Option<&'a [i32]> {
        self.codes.map(|codes| &codes[b * seq_len..(b + 1) * seq_len])
    }

    /// Number of real steps of row `b`.
    pub fn length(&self, b: usize, seq_len: usize) -> usize {
        self.row(b, seq_len).map_or(seq_len, |row| row.iter().position(|&c| c == PADDING).unwrap_or(seq_len))
    }

    /// The codes as given, `None` when dense.
    pub fn codes(&self) -> Option<&'a [i32]> {
        self.codes
    }
}
