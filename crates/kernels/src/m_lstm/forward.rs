//! The forward pass of one head of one row, chunk by chunk.

use super::chunk::{Chunk, Memory};
use super::vectors::{scale_all, scaled};
use super::{CHUNK, Head, Piece, Problem};
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply};
use crate::out::Slots;
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// The memory of a task.
pub(super) struct Forward {
    chunk: Chunk,
    memory: Memory,
    /// h before its division `[L, e]`.
    numerators: Vec<f32>,
}

impl Forward {
    pub fn new(problem: &Problem<'_>) -> Self {
        let e = problem.width;
        Self { chunk: Chunk::new(e), memory: Memory::new(e), numerators: vec![0.0; CHUNK * e] }
    }

    /// Writes the outputs of `head` and its memory at the end.
    pub fn run(&mut self, problem: &Problem<'_>, head: Head, h: &SharedOut, last: [Slots; 3]) {
        problem.clear_padding(head, h);
        self.memory.begin(problem, head);
        for piece in problem.pieces(head.row) {
            if piece.reset {
                self.memory.clear();
            }
            self.piece(problem, head, piece, h);
        }
        let [c, n, m] = last;
        c.write_copy_of_slice(&self.memory.c);
        n.write_copy_of_slice(&self.memory.n);
        m.fill(MaybeUninit::new(self.memory.m));
    }

    fn piece(&mut self, problem: &Problem<'_>, head: Head, piece: Piece, h: &SharedOut) {
        let Self { chunk, memory, numerators } = self;
        let (len, e, stride, level) = (piece.len, problem.width, problem.shape.width, problem.level);
        let rows = problem.rows(head, piece);
        chunk.read_gates(problem, head, piece, memory.m);
        chunk.score(problem, rows, memory);
        let into = if memory.is_empty() {
            Write::Store
        } else {
            multiply(level, [len, e, e], Matrix::new(rows[0], stride), Matrix::new(&memory.c, e), Write::Store, numerators, e);
            for (t, row) in numerators.chunks_exact_mut(e.max(1)).enumerate().take(len) {
                scale_all(level, chunk.delta[t], row);
            }
            Write::Add
        };
        multiply(level, [len, len, e], Matrix::new(&chunk.scores, len), Matrix::new(rows[2], stride), into, numerators, e);
        for (t, row) in numerators.chunks_exact(e.max(1)).enumerate().take(len) {
            // SAFETY: this head's channels alone.
            let h = unsafe { h.slice(problem.at(head, piece.start + t), e) };
            scaled(level, chunk.inverse[t], row, h);
        }
        chunk.remember(problem, rows, memory);
    }
}
