//! Linear state spaces, number by number. Layouts and equations are those of [`crate::state_space`].

use super::Float;
use crate::segments::{PADDING, RESET, Segments};
use crate::shape::Shape;
use crate::state_space::{Form, SIMPLE};
use alloc::{vec, vec::Vec};

/// What the forward pass reads.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T> {
    /// `[B, T, D]`.
    pub shape: Shape,
    /// N and the planes of `parameters`.
    pub form: Form,
    /// `[B, T, D]`.
    pub u: &'a [T],
    /// `[P, N, D]`.
    pub parameters: &'a [T],
    /// `[D]`.
    pub skip: &'a [T],
    /// `[B, 2N, D]`; `None` is 0.
    pub x0: Option<&'a [T]>,
    /// Which steps are real and where the state is reset.
    pub segments: Segments<'a>,
}

/// Gradients with respect to u, the parameters, the skip and the carried state.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// `[B, T, D]`, 0 at padding.
    pub d_u: Vec<T>,
    /// `[P, N, D]`.
    pub d_parameters: Vec<T>,
    /// `[D]`.
    pub d_skip: Vec<T>,
    /// `[B, 2N, D]`.
    pub d_x0: Vec<T>,
}

impl<T: Float> Inputs<'_, T> {
    /// Real and imaginary part of parameter `which` of state `n`, channel `d`.
    fn parameter(&self, which: usize, n: usize, d: usize) -> [T; 2] {
        [2 * which, 2 * which + 1].map(|plane| self.parameters[(plane * self.form.states + n) * self.shape.width + d])
    }

    fn rank_one(&self) -> bool {
        self.form.planes > SIMPLE
    }

    fn code(&self, b: usize, t: usize) -> i32 {
        self.segments.row(b, self.shape.seq_len).map_or(crate::segments::CONTINUE, |row| row[t])
    }

    /// The states before the first step and after every step of row `b`, channel `d`, and its outputs.
    fn run(&self, b: usize, d: usize) -> (Vec<Vec<[T; 2]>>, Vec<T>) {
        let (n_states, width) = (self.form.states, self.shape.width);
        let at = |part: usize, n: usize| (b * 2 * n_states + part * n_states + n) * width + d;
        let first = (0..n_states).map(|n| [0, 1].map(|part| self.x0.map_or(T::ZERO, |x0| x0[at(part, n)]))).collect();
        let (mut states, mut y): (Vec<Vec<[T; 2]>>, _) = (vec![first], vec![T::ZERO; self.shape.seq_len]);
        for (t, y) in y.iter_mut().enumerate() {
            let mut x = states[t].clone();
            if self.code(b, t) == PADDING {
                states.push(x);
                continue;
            }
            if self.code(b, t) == RESET {
                x.fill([T::ZERO; 2]);
            }
            let u = self.u[(b * self.shape.seq_len + t) * width + d];
            let feedback = if self.rank_one() { twice_real(&x, |n| self.parameter(4, n, d)) } else { T::ZERO };
            for (n, x) in x.iter_mut().enumerate() {
                let moved = times(self.parameter(0, n, d), *x);
                let input = self.parameter(1, n, d);
                let back = if self.rank_one() { self.parameter(3, n, d) } else { [T::ZERO; 2] };
                *x = [0, 1].map(|part| moved[part] + input[part] * u - back[part] * feedback);
            }
            *y = twice_real(&x, |n| self.parameter(2, n, d)) + self.skip[d] * u;
            states.push(x);
        }
        (states, y)
    }
}

fn times<T: Float>([a, b]: [T; 2], [c, d]: [T; 2]) -> [T; 2] {
    [a * c - b * d, a * d + b * c]
}

/// 2 Re Σ_n factor(n) x_n.
fn twice_real<T: Float>(x: &[[T; 2]], factor: impl Fn(usize) -> [T; 2]) -> T {
    let sum = x.iter().enumerate().fold(T::ZERO, |sum, (n, &x)| sum + times(factor(n), x)[0]);
    sum + sum
}

/// (y, x_last); as [`crate::state_space::forward`].
pub fn forward<T: Float>(inputs: Inputs<'_, T>) -> (Vec<T>, Vec<T>) {
    let Shape { batch, seq_len, width } = inputs.shape;
    let n_states = inputs.form.states;
    let (mut y, mut x_last) = (vec![T::ZERO; inputs.shape.elements()], vec![T::ZERO; batch * 2 * n_states * width]);
    for b in 0..batch {
        for d in 0..width {
            let (states, outputs) = inputs.run(b, d);
            for (t, output) in outputs.into_iter().enumerate() {
                y[(b * seq_len + t) * width + d] = output;
            }
            for (n, x) in states[seq_len].iter().enumerate() {
                for part in 0..2 {
                    x_last[(b * 2 * n_states + part * n_states + n) * width + d] = x[part];
                }
            }
        }
    }
    (y, x_last)
}

/// As [`crate::state_space::backward`].
pub fn backward<T: Float>(inputs: Inputs<'_, T>, d_y: Option<&[T]>, d_x_last: Option<&[T]>) -> Gradients<T> {
    let Shape { batch, seq_len, width } = inputs.shape;
    let (n_states, two) = (inputs.form.states, T::ONE + T::ONE);
    let mut d_u = vec![T::ZERO; inputs.shape.elements()];
    let mut d_parameters = vec![T::ZERO; inputs.parameters.len()];
    let mut d_skip = vec![T::ZERO; width];
    let mut d_x0 = d_x_last.map_or_else(|| vec![T::ZERO; batch * 2 * n_states * width], <[T]>::to_vec);
    for b in 0..batch {
        for d in 0..width {
            let mut add = |which: usize, n: usize, value: [T; 2]| {
                for part in 0..2 {
                    d_parameters[((2 * which + part) * n_states + n) * width + d] += value[part];
                }
            };
            let (states, _) = inputs.run(b, d);
            let at = |part: usize, n: usize| (b * 2 * n_states + part * n_states + n) * width + d;
            // The gradient with respect to the state, as (∂/∂Re, ∂/∂Im).
            let mut gamma: Vec<[T; 2]> = (0..n_states).map(|n| [d_x0[at(0, n)], d_x0[at(1, n)]]).collect();
            for t in (0..seq_len).rev().filter(|&t| inputs.code(b, t) != PADDING) {
                let reset = inputs.code(b, t) == RESET;
                let before = if reset { vec![[T::ZERO; 2]; n_states] } else { states[t].clone() };
                let step = (b * seq_len + t) * width + d;
                let (u, d_y) = (inputs.u[step], d_y.map_or(T::ZERO, |d_y| d_y[step]));
                let feedback = if inputs.rank_one() { twice_real(&before, |n| inputs.parameter(4, n, d)) } else { T::ZERO };
                let mut d_feedback = T::ZERO;
                d_skip[d] += d_y * u;
                d_u[step] = d_y * inputs.skip[d];
                for (n, gamma) in gamma.iter_mut().enumerate() {
                    let ([c_re, c_im], [x_re, x_im]) = (inputs.parameter(2, n, d), states[t + 1][n]);
                    add(2, n, [two * d_y * x_re, -two * d_y * x_im]);
                    let g = [gamma[0] + two * d_y * c_re, gamma[1] - two * d_y * c_im];
                    let input = inputs.parameter(1, n, d);
                    d_u[step] += input[0] * g[0] + input[1] * g[1];
                    add(1, n, [u * g[0], u * g[1]]);
                    add(0, n, times([before[n][0], -before[n][1]], g));
                    if inputs.rank_one() {
                        let back = inputs.parameter(3, n, d);
                        d_feedback -= back[0] * g[0] + back[1] * g[1];
                        add(3, n, [-feedback * g[0], -feedback * g[1]]);
                    }
                    let [a_re, a_im] = inputs.parameter(0, n, d);
                    *gamma = times([a_re, -a_im], g);
                }
                if inputs.rank_one() {
                    for (n, gamma) in gamma.iter_mut().enumerate() {
                        let [f_re, f_im] = inputs.parameter(4, n, d);
                        add(4, n, [two * d_feedback * before[n][0], -two * d_feedback * before[n][1]]);
                        *gamma = [gamma[0] + two * d_feedback * f_re, gamma[1] - two * d_feedback * f_im];
                    }
                }
                if reset {
                    gamma.fill([T::ZERO; 2]);
                }
            }
            for (n, gamma) in gamma.into_iter().enumerate() {
                [d_x0[at(0, n)], d_x0[at(1, n)]] = gamma;
            }
        }
    }
    Gradients { d_u, d_parameters, d_skip, d_x0 }
}
