//! Which rows and channels a task covers.

use crate::grid;
use crate::shape::Shape;
use core::ops::Range;

/// Tasks per thread, so that others can make up for a thread that is held up.
const TASKS: usize = 4;
/// Fewest channels of a task: narrower ones read less than a few cache lines of every step.
const NARROWEST: usize = 64;

/// The batch cut into `groups` of rows, and each of these into `parts` of channels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    shape: Shape,
    pub groups: usize,
    pub parts: usize,
}

impl Grid {
    pub fn new(shape: Shape) -> Self {
        let wanted = if grid::threads() == 1 { 1 } else { TASKS * grid::threads() };
        let groups = wanted.min(shape.batch);
        let parts = wanted.div_ceil(groups.max(1)).min(shape.width.div_ceil(NARROWEST)).max(1);
        Self { shape, groups, parts }
    }

    /// Runs `task(group, its rows, part, its channels)` for every task.
    pub fn for_each(&self, task: impl Fn(usize, Range<usize>, usize, Range<usize>) + Sync + Send) {
        let Shape { batch, width, .. } = self.shape;
        let blocks = width.div_ceil(NARROWEST);
        let cut = |i: usize| (blocks * i / self.parts * NARROWEST).min(width);
        grid::for_each(self.groups * self.parts, |i| {
            let (group, part) = (i / self.parts, i % self.parts);
            task(group, grid::piece(batch, self.groups, group), part, cut(part)..cut(part + 1));
        });
    }
}
