//! Gated linear attention with a constant decay, step by step. For the equations see [`crate::retention`].

use super::Float;
use crate::count;
use crate::retention::{EPS, Features, Form, Inputs, Sizes, angle};
use crate::segments::RESET;
use alloc::{vec, vec::Vec};

/// The outputs of the attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// `[B, T, H·V]`, 0 at padding.
    pub y: Vec<T>,
    /// The state at each row's end.
    pub state_last: Vec<T>,
}

/// Gradients of the attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the queries `[B, T, H·K]`.
    pub d_queries: Vec<T>,
    /// With respect to the keys `[B, T, H·K]`.
    pub d_keys: Vec<T>,
    /// With respect to the values `[B, T, H·V]`.
    pub d_values: Vec<T>,
    /// With respect to the carried state.
    pub d_state: Vec<T>,
}

/// The pieces of one step of one head, and the state after it.
struct Step<T> {
    t: usize,
    reset: bool,
    position: f64,
    query: Vec<T>,
    key: Vec<T>,
    value: Vec<T>,
    after: Vec<T>,
}

fn features<T: Float>(form: &Form, x: &[T], position: f64, scale: f64) -> Vec<T> {
    let scale = T::from_f64(scale);
    match form.features {
        Features::EluPlusOne => x.iter().map(|&x| scale * if x > T::ZERO { x + T::ONE } else { x.exp() }).collect(),
        Features::Rotary => turned(x, position).into_iter().map(|x| scale * x).collect(),
    }
}

fn features_gradient<T: Float>(form: &Form, x: &[T], position: f64, scale: f64, d: &[T]) -> Vec<T> {
    let d = d.iter().map(|&d| T::from_f64(scale) * d);
    match form.features {
        Features::EluPlusOne => d.zip(x).map(|(d, &x)| if x > T::ZERO { d } else { d * x.exp() }).collect(),
        Features::Rotary => turned(&d.collect::<Vec<_>>(), -position),
    }
}

fn turned<T: Float>(x: &[T], position: f64) -> Vec<T> {
    let pairs = x.len() / 2;
    let turn = |j: usize| (libm::cos(position * angle(j, pairs)), libm::sin(position * angle(j, pairs)));
    (0..x.len())
        .map(|c| {
            let (cos, sin) = turn(c / 2);
            let (cos, sin) = (T::from_f64(cos), T::from_f64(sin));
            if c % 2 == 0 { x[c] * cos - x[c + 1] * sin } else { x[c] * cos + x[c - 1] * sin }
        })
        .collect()
}

/// The steps of head `h` of row `b`.
fn steps<T: Float>(sizes: Sizes, form: &Form, inputs: Inputs<T>, b: usize, h: usize) -> Vec<Step<T>> {
    let start = inputs.start;
    let (columns, decay) = (sizes.columns(form), T::from_f64(form.decays[h]));
    let len = sizes.key * columns;
    let mut state = start.state.map_or(vec![T::ZERO; len], |state| state[(b * sizes.heads + h) * len..][..len].to_vec());
    let mut position = start.positions.map_or(0.0, |positions| f64::from(count::of(positions[b])));
    let codes = start.segments.row(b, sizes.seq_len);
    let step = |t| {
        let reset = codes.is_some_and(|codes| codes[t] == RESET);
        if reset {
            state.fill(T::ZERO);
            position = 0.0;
        }
        let at = |x: &[T], width: usize| x[((b * sizes.seq_len + t) * sizes.heads + h) * width..][..width].to_vec();
        let query = features(form, &at(inputs.queries, sizes.key), position, 1.0);
        let key = features(form, &at(inputs.keys, sizes.key), position, form.key_scale);
        let mut value = at(inputs.values, sizes.value);
        value.resize(columns, T::ONE);
        for (i, x) in state.iter_mut().enumerate() {
            *x = decay * *x + key[i / columns] * value[i % columns];
        }
        position += 1.0;
        Step { t, reset, position: position - 1.0, query, key, value, after: state.clone() }
    };
    (0..start.segments.length(b, sizes.seq_len)).map(step).collect()
}

/// o of a step.
fn sums<T: Float>(step: &Step<T>, columns: usize) -> Vec<T> {
    let mut sums = vec![T::ZERO; columns];
    for (i, &x) in step.after.iter().enumerate() {
        sums[i % columns] += step.query[i / columns] * x;
    }
    sums
}

/// Outputs and the last state.
pub fn forward<T: Float>(sizes: Sizes, form: Form, inputs: Inputs<T>) -> Outputs<T> {
    let carried = inputs.start.state;
    let columns = sizes.columns(&form);
    let mut out =
        Outputs { y: vec![T::ZERO; sizes.values()], state_last: carried.map_or(vec![T::ZERO; sizes.states(&form)], <[T]>::to_vec) };
    for task in 0..sizes.batch * sizes.heads {
        let (b, h) = (task / sizes.heads, task % sizes.heads);
        for step in steps(sizes, &form, inputs, b, h) {
            let sums = sums(&step, columns);
            let divisor = if form.normalized { sums[sizes.value] + T::from_f64(EPS) } else { T::ONE };
            let y = &mut out.y[((b * sizes.seq_len + step.t) * sizes.heads + h) * sizes.value..][..sizes.value];
            y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = sum / divisor);
            out.state_last[task * step.after.len()..][..step.after.len()].copy_from_slice(&step.after);
        }
    }
    out
}

/// Gradients given those of the outputs; `None` is 0.
pub fn backward<T: Float>(sizes: Sizes, form: Form, inputs: Inputs<T>, d_y: Option<&[T]>, d_state_last: Option<&[T]>) -> Gradients<T> {
    let (columns, zeros) = (sizes.columns(&form), |n| vec![T::ZERO; n]);
    let mut d = Gradients {
        d_queries: zeros(sizes.keys()),
        d_keys: zeros(sizes.keys()),
        d_values: zeros(sizes.values()),
        d_state: d_state_last.map_or(zeros(sizes.states(&form)), <[T]>::to_vec),
    };
    for task in 0..sizes.batch * sizes.heads {
        let (b, h) = (task / sizes.heads, task % sizes.heads);
        let (decay, len) = (T::from_f64(form.decays[h]), sizes.key * columns);
        let d_state = &mut d.d_state[task * len..][..len];
        for step in steps(sizes, &form, inputs, b, h).iter().rev() {
            let first = (b * sizes.seq_len + step.t) * sizes.heads + h;
            let mut d_sums = zeros(columns);
            if let Some(d_y) = d_y {
                let sums = sums(step, columns);
                let divisor = if form.normalized { sums[sizes.value] + T::from_f64(EPS) } else { T::ONE };
                for c in 0..sizes.value {
                    let d_y = d_y[first * sizes.value + c];
                    d_sums[c] = d_y / divisor;
                    if form.normalized {
                        d_sums[sizes.value] += -(d_y * sums[c] / (divisor * divisor));
                    }
                }
            }
            let (mut d_query, mut d_key) = (zeros(sizes.key), zeros(sizes.key));
            for (i, d_x) in d_state.iter_mut().enumerate() {
                let (row, column) = (i / columns, i % columns);
                d_query[row] += step.after[i] * d_sums[column];
                *d_x += step.query[row] * d_sums[column];
                d_key[row] += *d_x * step.value[column];
                if column < sizes.value {
                    d.d_values[first * sizes.value + column] += *d_x * step.key[row];
                }
                *d_x = if step.reset { T::ZERO } else { decay * *d_x };
            }
            let part = first * sizes.key..(first + 1) * sizes.key;
            let d_query = features_gradient(&form, &inputs.queries[part.clone()], step.position, 1.0, &d_query);
            let d_key = features_gradient(&form, &inputs.keys[part.clone()], step.position, form.key_scale, &d_key);
            d.d_queries[part.clone()].copy_from_slice(&d_query);
            d.d_keys[part].copy_from_slice(&d_key);
        }
    }
    d
}
