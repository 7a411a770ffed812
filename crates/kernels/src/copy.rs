//! Copying at memory speed, the reference for the speed of the recurrences.

use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::simd::{self, Level, Simd, WithSimd};

/// Copies `from` to `to` with stores that bypass the caches, one piece for each thread of the ambient pool.
///
/// # Panics
/// When the lengths differ.
pub fn past_caches(from: &[f32], to: Out) {
    to.expect_len("to", from.len());
    let level = Level::current();
    let pieces = grid::threads();
    let shared = SharedOut::new(to);
    grid::for_each(pieces, |i| {
        let piece = grid::piece(from.len(), pieces, i);
        // SAFETY: pieces do not overlap, and `to` outlives the loop.
        let to = unsafe { shared.slice(piece.start, piece.len()) };
        level.run(Copy { from: &from[piece], to });
    });
}

struct Copy<'a> {
    from: &'a [f32],
    to: Slots<'a>,
}

impl WithSimd for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = S::F32_LANES;
        let head = self.to.as_ptr().align_offset(size_of::<S::f32s>()).min(self.to.len());
        let (from_head, from) = self.from.split_at(head);
        let (to_head, to) = self.to.split_at_mut(head);
        to_head.write_copy_of_slice(from_head);
        let whole = to.len() / lanes * lanes;
        for at in (0..whole).step_by(lanes) {
            // SAFETY: a whole vector fits at `at`, and the first one is aligned.
            unsafe { simd::stream(simd, to.as_mut_ptr().add(at).cast(), simd::load(simd, from, at)) };
        }
        to[whole..].write_copy_of_slice(&from[whole..]);
        simd::stream_fence();
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_copied() {
        for level in Level::available() {
            for (len, skip) in [(0, 0), (1, 0), (33, 1), (1000, 3), (4096, 0)] {
                let from: Vec<f32> = (0..len).map(|i| i as f32).collect();
                let mut to = vec![f32::NAN; len + skip];
                level.scope(|| past_caches(&from, Out::new(&mut to[skip..])));
                assert_eq!(to[skip..], from, "{} {len} {skip}", level.name());
            }
        }
    }
}
