//! Which steps of a batch are real, as one code per step.

use core::fmt;

use crate::shape::{elements, expect_len};

/// The step follows the previous one.
pub const CONTINUE: i32 = 0;
/// The state is reset to the initial one before this step.
pub const RESET: i32 = 1;
/// The step is not real: the state is unchanged and the output is 0.
pub const PADDING: i32 = 2;

/// An unknown code, or one that is not allowed at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongSegments {
    /// Its row, from 0.
    pub row: usize,
    /// Its step in the row, from 0.
    pub step: usize,
    /// The code.
    pub found: i32,
}

impl fmt::Display for WrongSegments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, step, found } = self;
        write!(
            f,
            "segments: expected {CONTINUE} (goes on), {RESET} (reset) or, at the ends of rows, {PADDING} (padding), found {found} at step {step} of \
             row {row} (counted from 0)"
        )
    }
}

impl core::error::Error for WrongSegments {}

/// Codes of a batch `[B, T]`, row-major, or dense (every step continues).
///
/// Padding is only allowed at the end of rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segments<'a> {
    codes: Option<&'a [i32]>,
    /// T of the rows that `codes` were made for.
    seq_len: usize,
}

impl<'a> Segments<'a> {
    /// Every step is real and nothing is reset.
    pub const DENSE: Segments<'static> = Segments { codes: None, seq_len: 0 };

    /// Segments from `codes` `[B, T]`, T being `seq_len`: [`CONTINUE`], [`RESET`] or [`PADDING`] for each step. They can only be used for
    /// rows of `seq_len` steps.
    ///
    /// # Panics
    /// When a code is unknown or padding is followed by a real step in the same row; [`Segments::try_new`] does not.
    #[track_caller]
    pub fn new(codes: &'a [i32], seq_len: usize) -> Self {
        match Self::try_new(codes, seq_len) {
            Ok(segments) => segments,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`Segments::new`], for untrusted codes.
    ///
    /// # Errors
    /// When a code is unknown or padding is followed by a real step in the same row.
    pub fn try_new(codes: &'a [i32], seq_len: usize) -> Result<Self, WrongSegments> {
        for (row, codes) in codes.chunks(seq_len.max(1)).enumerate() {
            let real = codes.iter().position(|&c| c == PADDING).unwrap_or(codes.len());
            let is_wrong = |(step, &code): (usize, &i32)| if step < real { code != CONTINUE && code != RESET } else { code != PADDING };
            if let Some(step) = codes.iter().enumerate().position(is_wrong) {
                return Err(WrongSegments { row, step, found: codes[step] });
            }
        }
        Ok(Self { codes: Some(codes), seq_len })
    }

    /// Whether there are no resets and no padding.
    pub fn is_dense(&self) -> bool {
        self.codes.is_none()
    }

    /// The codes of row `b`, or `None` when dense.
    ///
    /// # Panics
    /// When there are codes, and they were made for another `seq_len` or have no such row.
    #[track_caller]
    pub fn row(&self, b: usize, seq_len: usize) -> Option<&'a [i32]> {
        let codes = self.codes?;
        self.expect_steps(seq_len);
        let first = b.checked_mul(seq_len).filter(|&first| codes.len().checked_sub(first).is_some_and(|rest| rest >= seq_len));
        let Some(first) = first else {
            panic!("segments: expected a row below {}, found row {b}; give codes for every row", codes.len() / seq_len.max(1))
        };
        Some(&codes[first..][..seq_len])
    }

    /// Number of real steps of row `b`.
    ///
    /// # Panics
    /// As [`Segments::row`].
    #[track_caller]
    pub fn length(&self, b: usize, seq_len: usize) -> usize {
        self.row(b, seq_len).map_or(seq_len, |row| row.iter().position(|&c| c == PADDING).unwrap_or(seq_len))
    }

    /// The codes as given, `None` when dense.
    pub fn codes(&self) -> Option<&'a [i32]> {
        self.codes
    }

    /// Asserts that these are the segments of a batch `[batch, seq_len]`.
    ///
    /// # Panics
    /// When there are codes, and they are not `batch · seq_len` or were made for another `seq_len`.
    #[track_caller]
    pub(crate) fn expect_fits(&self, batch: usize, seq_len: usize) {
        if let Some(codes) = self.codes {
            expect_len("segments", codes, elements([batch, seq_len]));
            self.expect_steps(seq_len);
        }
    }

    /// Rows of another length can have the same number of codes in all, and would then end in the middle of a row.
    #[track_caller]
    fn expect_steps(&self, seq_len: usize) {
        let made_for = self.seq_len;
        assert!(made_for == seq_len, "segments: expected those of rows of {seq_len} steps, found those of {made_for}; make them anew");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_those_of_their_own_rows() {
        let codes = [CONTINUE, PADDING, RESET, CONTINUE];
        let segments = Segments::new(&codes, 2);
        assert_eq!(segments.row(1, 2), Some(&codes[2..]));
        assert_eq!((segments.length(0, 2), segments.length(1, 2)), (1, 2));
        assert_eq!((Segments::DENSE.row(0, 4), Segments::DENSE.length(0, 4)), (None, 4));
    }

    #[test]
    fn codes_that_are_unknown_or_follow_padding_are_refused_with_their_place() {
        for (codes, step) in [([CONTINUE, RESET, 3, PADDING], 0), ([CONTINUE, RESET, PADDING, RESET], 1), ([RESET, CONTINUE, -1, 0], 0)] {
            let found = codes[2 + step];
            assert_eq!(Segments::try_new(&codes, 2).unwrap_err(), WrongSegments { row: 1, step, found });
        }
        let refused = Segments::try_new(&[PADDING, RESET], 2).unwrap_err().to_string();
        let expected =
            "segments: expected 0 (goes on), 1 (reset) or, at the ends of rows, 2 (padding), found 1 at step 1 of row 0 (counted from 0)";
        assert_eq!(refused, expected);
        assert!(Segments::try_new(&[], 0).is_ok());
    }

    #[test]
    #[should_panic(expected = "found 7 at step 1 of row 0")]
    fn segments_of_a_caller_who_knows_better_panic() {
        let _ = Segments::new(&[CONTINUE, 7], 2);
    }

    #[test]
    #[should_panic(expected = "segments: expected those of rows of 4 steps, found those of 2")]
    fn a_row_of_other_segments_has_no_length() {
        let codes = [CONTINUE, PADDING, RESET, CONTINUE];
        let _ = Segments::new(&codes, 2).length(0, 4);
    }
}
