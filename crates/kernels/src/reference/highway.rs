//! Highway output: y = s value + (1 − s) x with s = σ(gate), biases added to gate and value.

use super::{Float, column_sums, sigmoid, with_bias};
use alloc::vec::Vec;

/// y `[rows, width]` of gate, value and x of that shape; the biases `[width]` are those of gate and value.
pub fn forward<T: Float>(width: usize, [gate, value, x]: [&[T]; 3], biases: [Option<&[T]>; 2]) -> Vec<T> {
    let (gate, value) = (with_bias(gate, width, biases[0]), with_bias(value, width, biases[1]));
    (0..x.len()).map(|i| sigmoid(gate[i]) * value[i] + sigmoid(-gate[i]) * x[i]).collect()
}

/// Gradients of gate, value, x, and of the biases of gate and value.
pub fn backward<T: Float>(width: usize, [gate, value, x]: [&[T]; 3], biases: [Option<&[T]>; 2], d_y: &[T]) -> [Vec<T>; 5] {
    let (gate, value) = (with_bias(gate, width, biases[0]), with_bias(value, width, biases[1]));
    let d_gate: Vec<T> = (0..x.len()).map(|i| d_y[i] * (value[i] - x[i]) * sigmoid(gate[i]) * sigmoid(-gate[i])).collect();
    let d_value: Vec<T> = (0..x.len()).map(|i| d_y[i] * sigmoid(gate[i])).collect();
    let d_x = (0..x.len()).map(|i| d_y[i] * sigmoid(-gate[i])).collect();
    let sums = [column_sums(&d_gate, width), column_sums(&d_value, width)];
    let [d_gate_bias, d_value_bias] = sums;
    [d_gate, d_value, d_x, d_gate_bias, d_value_bias]
}
