//! The memory held by a model's operations, one after another, in numbers of 4 bytes.
//!
//! In a forward pass without autodiff an operation holds its input and its output. With autodiff it also leaves behind what its backward
//! pass reads; that remains until the backward pass, which runs in reverse order and holds the gradients of output and input while it
//! computes. So the peak is somewhere in the backward pass:
//!
//! ```text
//! kept by this operation and those before it + gradient of its output + gradient of its input + what waits aside + its workspace
//! ```
//!
//! What waits aside is what another branch of the computation will read, such as the residual stream, and in the backward pass that
//! branch's gradient.

use super::F32;

/// One operation; numbers of a whole batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Operation {
    /// Size of its inputs.
    pub reads: u128,
    /// Size of its outputs.
    pub gives: u128,
    /// Size of the tensors waiting for another operation.
    pub aside: u128,
    /// Size of the workspaces of its backward pass.
    pub works: u128,
}

/// The operations of a part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tape {
    /// Kept between the two passes.
    pub kept: u128,
    /// The peak when nothing is kept.
    pub forward: u128,
    /// The peak of both passes, including what is kept.
    pub backward: u128,
    /// Held through both passes in addition to all of this: states.
    pub held: u128,
    /// The long tensors among what is kept and held.
    pub long: Long,
    /// The long tensors among what else is held at the peak of both passes.
    pub passing: Long,
}

/// Tensors longer than a piece of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Long {
    /// How many numbers would fit into the unused ends of their last pieces.
    pub left: u128,
}

impl Long {
    /// Adds a tensor, if it is long.
    pub(super) fn add(&mut self, numbers: u128) {
        let taken = numbers.saturating_add(HEADER);
        if taken > PIECE {
            self.left += taken.next_multiple_of(PIECE) - taken;
        }
    }
}

impl std::ops::Add for Long {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { left: self.left + other.left }
    }
}

/// Numbers in a piece of the command's allocator, mimalloc: 32 MiB. A longer tensor starts a new piece and takes whole ones, including the
/// header of the first; shorter tensors share pieces.
const PIECE: u128 = (32 << 20) / F32;
/// Size of a header, in numbers.
const HEADER: u128 = (64 << 10) / F32;

impl Tape {
    /// A tensor that the next operation keeps for the backward pass, unless an earlier one keeps the same.
    pub(super) fn keep(&mut self, numbers: u128) {
        self.kept += numbers;
        self.long.add(numbers);
    }

    /// Appends an operation.
    pub(super) fn push(&mut self, Operation { reads, gives, aside, works }: Operation) {
        let moving = reads + gives + aside;
        self.forward = self.forward.max(moving);
        let most = self.kept + moving + works;
        if most > self.backward {
            self.backward = most;
            self.passing = Long::default();
            // The gradient of its input and the workspace; its output is short compared with them where it matters.
            [reads, works].into_iter().for_each(|numbers| self.passing.add(numbers));
        }
    }
}
