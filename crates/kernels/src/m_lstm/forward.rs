//! The forward pass of one head of one row, chunk by chunk.

use super::chunk::{Chunk, Memory};
use super::vectors::{scale_all, scaled};
use super::{CHUNK, Head, Inputs, Piece};
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply};
use crate::shape::Out;
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
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let e = inputs.width;
        Self { chunk: Chunk::new(e), memory: Memory::new(e), numerators: vec![0.0; CHUNK * e] }
    }

    /// Writes the outputs of `head` and its memory at the end.
    pub fn run(&mut self, inputs: &Inputs<'_>, head: Head, h: &SharedOut, last: [Out; 3]) {
        inputs.clear_padding(head, h);
        self.memory.begin(inputs, head);
        for piece in inputs.pieces(head.row) {
            if piece.reset {
                self.memory.clear();
            }
            self.piece(inputs, head, piece, h);
        }
        let [c, n, m] = last;
        c.write_copy_of_slice(&self.memory.c);
        n.write_copy_of_slice(&self.memory.n);
        m.fill(MaybeUninit::new(self.memory.m));
    }

    fn piece(&mut self, inputs: &Inputs<'_>, head: Head, piece: Piece, h: &SharedOut) {
        let Self { chunk, memory, numerators } = self;
        let (len, e, stride, level) = (piece.len, inputs.width, inputs.shape.width, inputs.level);
        let rows = inputs.rows(head, piece);
        chunk.read_gates(inputs, head, piece, memory.m);
        chunk.score(inputs, rows, memory);
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
            let h = unsafe { h.slice(inputs.at(head, piece.start + t), e) };
            scaled(level, chunk.inverse[t], row, h);
        }
        chunk.remember(inputs, rows, memory);
    }
}
