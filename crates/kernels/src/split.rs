//! Splits the columns of a matrix into two matrices, and joins two matrices side by side: what is needed between a product and the readers
//! of its parts.

use crate::grid::SharedOut;
use crate::out::Out;
use crate::rows;
use crate::shape::{elements, expect_len};
use core::mem::MaybeUninit;

/// Copies the first columns of `x` to `left`, the others to `right`.
///
/// # Shapes
/// `x` `[rows, width of left + width of right]`, `left` and `right` `[rows, ·]`
///
/// # Panics
/// When a length does not fit.
pub fn split(rows: usize, [left_width, right_width]: [usize; 2], x: &[f32], left: Out, right: Out) {
    let width = left_width.saturating_add(right_width);
    expect_len("x", x, elements([rows, width]));
    left.expect_len("left", elements([rows, left_width]));
    right.expect_len("right", elements([rows, right_width]));
    let (left, right) = (SharedOut::new(left), SharedOut::new(right));
    rows::for_each_block(rows, width, 0, |range, _| {
        for row in range {
            let (first, second) = x[row * width..(row + 1) * width].split_at(left_width);
            // SAFETY: blocks have rows of their own.
            unsafe {
                left.slice(row * left_width, left_width).write_copy_of_slice(first);
                right.slice(row * right_width, right_width).write_copy_of_slice(second);
            }
        }
    });
}

/// The inverse; a side of `None` is 0.
///
/// # Panics
/// When a length does not fit.
pub fn join(rows: usize, [left_width, right_width]: [usize; 2], left: Option<&[f32]>, right: Option<&[f32]>, x: Out) {
    let width = left_width.saturating_add(right_width);
    left.inspect(|left| expect_len("left", left, elements([rows, left_width])));
    right.inspect(|right| expect_len("right", right, elements([rows, right_width])));
    x.expect_len("x", elements([rows, width]));
    let x = SharedOut::new(x);
    rows::for_each_block(rows, width, 0, |range, _| {
        for row in range {
            // SAFETY: blocks have rows of their own.
            let (first, second) = unsafe { x.slice(row * width, width) }.split_at_mut(left_width);
            for (side, part) in [(left, first), (right, second)] {
                match side {
                    Some(side) => _ = part.write_copy_of_slice(&side[row * part.len()..][..part.len()]),
                    None => part.fill(MaybeUninit::new(0.0)),
                }
            }
        }
    });
}
