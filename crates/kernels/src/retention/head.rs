//! The forward pass of one head of one row, chunk by chunk.

use super::chunks::Chunk;
use super::{CHUNK, EPS, Problem, Sizes};
use crate::count;
use crate::matmul::{Matrix, Write, multiply};
use crate::out::Slots;
use alloc::{vec, vec::Vec};

/// A row's head on its way through time.
pub(super) struct Head<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) b: usize,
    pub(super) h: usize,
    /// Columns of the state.
    pub(super) columns: usize,
    /// γ^0 … γ^C.
    pub(super) powers: [f32; CHUNK + 1],
    pub(super) first_position: f64,
    /// S `[K, columns]`.
    pub(super) state: Vec<f32>,
    /// Features of the chunk's queries and keys `[C, K]`; the latter with their factor.
    pub(super) queries: Vec<f32>,
    pub(super) keys: Vec<f32>,
    /// `[C, columns]`.
    pub(super) values: Vec<f32>,
    /// A `[C, C]`.
    pub(super) attention: Vec<f32>,
    /// O `[C, columns]`.
    pub(super) output: Vec<f32>,
    /// Rows of queries, keys or values times powers of γ.
    pub(super) scaled: Vec<f32>,
}

impl<'a> Head<'a> {
    pub(super) fn new(problem: &'a Problem<'a>, task: usize) -> Self {
        let Sizes { heads, key, .. } = problem.sizes;
        let (b, h, columns) = (task / heads, task % heads, problem.sizes.columns(&problem.form));
        let mut powers = [1.0; CHUNK + 1];
        let mut power = 1.0;
        for slot in powers.iter_mut().skip(1) {
            power *= problem.form.decays[h];
            *slot = power as f32;
        }
        let len = key * columns;
        Self {
            problem,
            b,
            h,
            columns,
            powers,
            first_position: problem.start.positions.map_or(0.0, |positions| count::of(positions[b]).into()),
            state: problem.start.state.map_or_else(|| vec![0.0; len], |state| state[task * len..][..len].to_vec()),
            queries: vec![0.0; CHUNK * key],
            keys: vec![0.0; CHUNK * key],
            values: vec![1.0; CHUNK * columns],
            attention: vec![0.0; CHUNK * CHUNK],
            output: vec![0.0; CHUNK * columns],
            scaled: vec![0.0; CHUNK * key.max(columns)],
        }
    }

    /// Reads a chunk, and empties the state if a reset comes before it.
    pub(super) fn enter(&mut self, chunk: &Chunk) {
        self.enter_keys(chunk);
        let Problem { level, sizes, inputs, rotation, .. } = self.problem;
        let queries = &mut self.queries[..chunk.len * sizes.key];
        rotation.features(*level, &rotation.begin(chunk.position), 1.0, self.problem.rows(inputs[0], chunk, self.b, self.h), queries);
    }

    /// Reads what the state takes of a chunk, and empties the state if a reset comes before it.
    pub(super) fn enter_keys(&mut self, chunk: &Chunk) {
        let Problem { level, sizes, form, inputs: [_, keys, values], rotation, .. } = self.problem;
        if chunk.reset {
            self.state.fill(0.0);
        }
        let begin = rotation.begin(chunk.position);
        let keys = self.problem.rows(keys, chunk, self.b, self.h);
        rotation.features(*level, &begin, form.key_scale as f32, keys, &mut self.keys[..chunk.len * sizes.key]);
        for i in 0..chunk.len {
            let at = self.problem.at(self.b, chunk.first + i, self.h, sizes.value);
            self.values[i * self.columns..][..sizes.value].copy_from_slice(&values[at..][..sizes.value]);
        }
    }

    /// A of the chunk.
    pub(super) fn attend(&mut self, chunk: &Chunk) {
        let (n, key) = (chunk.len, self.problem.sizes.key);
        let keys = Matrix::new(&self.keys, key).transpose();
        multiply(self.problem.level, [n, key, n], Matrix::new(&self.queries, key), keys, Write::Store, &mut self.attention, n);
        mask(&mut self.attention, n, &self.powers);
    }

    /// O of the chunk, whose A has been computed, before any division; the state is still that before the chunk.
    pub(super) fn sums(&mut self, chunk: &Chunk) {
        let n = chunk.len;
        let (level, key, columns) = (self.problem.level, self.problem.sizes.key, self.columns);
        let values = Matrix::new(&self.values, columns);
        multiply(level, [n, n, columns], Matrix::new(&self.attention, n), values, Write::Store, &mut self.output, columns);
        scale_rows(&self.queries, key, n, |i| self.powers[i + 1], &mut self.scaled);
        let (queries, state) = (Matrix::new(&self.scaled, key), Matrix::new(&self.state, columns));
        multiply(level, [n, key, columns], queries, state, Write::Add, &mut self.output, columns);
    }

    /// Moves the state past the chunk.
    pub(super) fn absorb(&mut self, chunk: &Chunk) {
        let (n, key, columns) = (chunk.len, self.problem.sizes.key, self.columns);
        self.state.iter_mut().for_each(|x| *x *= self.powers[n]);
        scale_rows(&self.keys, key, n, |i| self.powers[n - 1 - i], &mut self.scaled);
        let (keys, values) = (Matrix::new(&self.scaled, key).transpose(), Matrix::new(&self.values, columns));
        multiply(self.problem.level, [key, n, columns], keys, values, Write::Add, &mut self.state, columns);
    }

    /// Writes the output of step `i` of the chunk, divided if the attention is normalised.
    pub(super) fn write_output(&self, i: usize, y: Slots) {
        let (output, divisor) = self.output[i * self.columns..][..self.columns].split_at(y.len());
        let factor = divisor.first().map_or(1.0, |divisor| 1.0 / (divisor + EPS as f32));
        for (y, output) in y.iter_mut().zip(output) {
            y.write(output * factor);
        }
    }
}

/// Keeps a_ij for j ≤ i, times γ^{i−j}; the others become 0.
pub(super) fn mask(a: &mut [f32], n: usize, powers: &[f32]) {
    for (i, row) in a.chunks_exact_mut(n).take(n).enumerate() {
        let (seen, later) = row.split_at_mut(i + 1);
        for (a, power) in seen.iter_mut().rev().zip(powers) {
            *a *= power;
        }
        later.fill(0.0);
    }
}

/// Row i of `out` is that of `x` times `factor(i)`, for `n` rows of `width` elements.
pub(super) fn scale_rows(x: &[f32], width: usize, n: usize, factor: impl Fn(usize) -> f32, out: &mut [f32]) {
    for i in 0..n {
        let factor = factor(i);
        for (out, x) in out[i * width..][..width].iter_mut().zip(&x[i * width..]) {
            *out = factor * x;
        }
    }
}
