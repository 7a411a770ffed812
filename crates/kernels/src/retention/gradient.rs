//! The backward pass of one head of one row. For the formulas see [`super`].

use super::chunks::Chunk;
use super::head::{Head, mask, scale_rows};
use super::{CHUNK, EPS};
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply};
use alloc::{vec, vec::Vec};

/// The gradient of the state, and room for those of a chunk.
pub(super) struct Gradient {
    /// D `[K, columns]`.
    pub(super) state: Vec<f32>,
    /// dO `[C, columns]`.
    output: Vec<f32>,
    /// dO times powers of γ.
    scaled: Vec<f32>,
    /// dA `[C, C]`.
    attention: Vec<f32>,
    /// dQ, dK `[C, K]` and dV `[C, columns]`.
    inputs: [Vec<f32>; 3],
}

impl Gradient {
    /// From the gradient of the last state.
    pub(super) fn new(head: &Head<'_>, last: Option<&[f32]>) -> Self {
        let (key, columns) = (head.problem.sizes.key, head.columns);
        Self {
            state: last.map_or_else(|| vec![0.0; key * columns], <[f32]>::to_vec),
            output: vec![0.0; CHUNK * columns],
            scaled: vec![0.0; CHUNK * columns],
            attention: vec![0.0; CHUNK * CHUNK],
            inputs: [key, key, columns].map(|width| vec![0.0; CHUNK * width]),
        }
    }

    /// Goes back over a chunk that `head` has entered and whose A it has computed; `outputs` are the gradients of queries, keys and values.
    pub(super) fn step(&mut self, head: &mut Head<'_>, chunk: &Chunk, d_y: Option<&[f32]>, outputs: &[SharedOut; 3]) {
        self.read(head, chunk, d_y);
        self.products(head, chunk.len);
        if chunk.reset {
            self.state.fill(0.0);
        }
        self.write(head, chunk, outputs);
    }

    /// dO from the gradient of y.
    fn read(&mut self, head: &Head<'_>, chunk: &Chunk, d_y: Option<&[f32]>) {
        let (width, columns) = (head.problem.sizes.value, head.columns);
        let Some(d_y) = d_y else { return self.output.fill(0.0) };
        for i in 0..chunk.len {
            let d_y = &d_y[head.problem.at(head.b, chunk.first + i, head.h, width)..][..width];
            let (d_sums, d_divisor) = self.output[i * columns..][..columns].split_at_mut(width);
            let Some(d_divisor) = d_divisor.first_mut() else {
                d_sums.copy_from_slice(d_y);
                continue;
            };
            let (sums, divisor) = head.output[i * columns..][..columns].split_at(width);
            let factor = 1.0 / (divisor[0] + EPS as f32);
            let along: f32 = d_y.iter().zip(sums).map(|(d, sum)| d * sum).sum();
            *d_divisor = -along * factor * factor;
            d_sums.iter_mut().zip(d_y).for_each(|(d_sum, d)| *d_sum = d * factor);
        }
    }

    /// dQ, dK, dV of the chunk, and D of its beginning.
    fn products(&mut self, head: &mut Head<'_>, n: usize) {
        let (level, key, columns) = (head.problem.level, head.problem.sizes.key, head.columns);
        let powers = head.powers;
        let (queries, keys) = (Matrix::new(&head.queries, key), Matrix::new(&head.keys, key));
        let (values, attention) = (Matrix::new(&head.values, columns), Matrix::new(&head.attention, n));
        let d_output = Matrix::new(&self.output, columns);
        let [d_queries, d_keys, d_values] = &mut self.inputs;

        multiply(level, [n, columns, n], d_output, values.transpose(), Write::Store, &mut self.attention, n);
        mask(&mut self.attention, n, &powers);
        let d_attention = Matrix::new(&self.attention, n);
        multiply(level, [n, n, key], d_attention, keys, Write::Store, d_queries, key);
        multiply(level, [n, n, key], d_attention.transpose(), queries, Write::Store, d_keys, key);
        multiply(level, [n, n, columns], attention.transpose(), d_output, Write::Store, d_values, columns);

        scale_rows(&self.output, columns, n, |i| powers[i + 1], &mut self.scaled);
        let d_faded = Matrix::new(&self.scaled, columns);
        multiply(level, [n, columns, key], d_faded, Matrix::new(&head.state, columns).transpose(), Write::Add, d_queries, key);
        scale_rows(&head.keys, key, n, |i| powers[n - 1 - i], &mut head.scaled);
        multiply(
            level,
            [n, key, columns],
            Matrix::new(&head.scaled, key),
            Matrix::new(&self.state, columns),
            Write::Add,
            d_values,
            columns,
        );
        scale_rows(&head.values, columns, n, |i| powers[n - 1 - i], &mut head.scaled);
        multiply(
            level,
            [n, columns, key],
            Matrix::new(&head.scaled, columns),
            Matrix::new(&self.state, columns).transpose(),
            Write::Add,
            d_keys,
            key,
        );
        self.state.iter_mut().for_each(|x| *x *= powers[n]);
        multiply(level, [key, n, columns], queries.transpose(), d_faded, Write::Add, &mut self.state, columns);
    }

    fn write(&mut self, head: &Head<'_>, chunk: &Chunk, outputs: &[SharedOut; 3]) {
        let (problem, sizes) = (head.problem, head.problem.sizes);
        let begin = problem.rotation.begin(chunk.position);
        let [d_queries, d_keys, d_values] = &mut self.inputs;
        for ((x, d, scale), out) in
            [(problem.inputs[0], d_queries, 1.0), (problem.inputs[1], d_keys, problem.form.key_scale as f32)].into_iter().zip(outputs)
        {
            let d = &mut d[..chunk.len * sizes.key];
            problem.rotation.gradient(problem.level, &begin, scale, problem.rows(x, chunk, head.b, head.h), d);
            for (i, d) in d.chunks_exact(sizes.key.max(1)).enumerate() {
                let at = problem.at(head.b, chunk.first + i, head.h, sizes.key);
                // SAFETY: a task is a head of a row, whose queries and keys no other task writes.
                unsafe { out.slice(at, sizes.key) }.write_copy_of_slice(d);
            }
        }
        for i in 0..chunk.len {
            let at = problem.at(head.b, chunk.first + i, head.h, sizes.value);
            // SAFETY: a task is a head of a row, whose values no other task writes.
            unsafe { outputs[2].slice(at, sizes.value) }.write_copy_of_slice(&d_values[i * head.columns..][..sizes.value]);
        }
    }
}
