//! The mean of everything since the last reset, at every step.
//!
//! ```text
//! s_t = s_{t−1} + x_t        n_t = n_{t−1} + 1        y_t = s_t / n_t
//! ```
//!
//! At the last step of a row it is the mean over the row's real length, whatever padding follows; sum and count carry over between pieces
//! of a sequence like the state of any layer.

use burn::tensor::{Device, Tensor, TensorData};
use minrnn_kernels::segments::{PADDING, RESET};

use crate::memory::activations::{Activations, Op};
use crate::nn::{State, StateZip, expect_rows};
use crate::ops::{Start, StepCodes, StepPositions, linear_scan};

/// The state of a running mean.
#[derive(Debug, Clone)]
pub struct RunningMean {
    /// The sum since the last reset `[B, D]`.
    pub sum: Tensor<2>,
    /// The steps since the last reset `[B, 1]`, as kept by [`minrnn_kernels::count`].
    pub count: Tensor<2>,
}

impl State for RunningMean {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { sum: f.tensor("sum", self.sum, other.sum), count: f.tensor("count", self.count, other.count) }
    }
}

impl RunningMean {
    /// The initial state.
    pub(super) fn init(batch_size: usize, width: usize, device: &Device) -> Self {
        Self { sum: Tensor::zeros([batch_size, width], device), count: Tensor::zeros([batch_size, 1], device) }
    }

    pub(super) fn activations(d: u128, list: &mut Activations) {
        // Ones, and the sums; then the product keeps sums and shares.
        list.op(Op { keeps: &[d; 3], reads: 2 * d, gives: d, ..Op::default() });
        list.op(Op { keeps: &[1], reads: d, gives: d, ..Op::default() });
    }

    /// The means of `x` `[B, T, D]` so far, 0 at padding, and the state to carry.
    pub(super) fn forward(self, x: Tensor<3>, steps: &StepCodes) -> (Tensor<3>, Self) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&self, batch);
            return (x, self);
        }
        let places = StepPositions::count(self.count, seq_len, steps);
        let shares: Vec<f32> = places.of.iter().map(|&place| 1.0 / (place as f32 + 1.0)).collect();
        let device = x.device();
        let shares = Tensor::<3>::from_data(TensorData::new(shares, [batch, seq_len, 1]), &device);
        if places.before.iter().all(|&before| before == 0) {
            let (sums, sum) = linear_scan(x.ones_like(), x, Start::carried(self.sum), steps);
            return (sums * shares, Self { sum, count: places.after });
        }
        // Relative to the mean so far: next to the sum of many steps, rounding would lose what a step adds.
        let until_reset = |b: usize| {
            (0..seq_len).scan(1.0f32, move |carried, t| {
                *carried = if steps.code(b, t) == RESET { 0.0 } else { *carried };
                Some((*carried, steps.code(b, t) == PADDING))
            })
        };
        let carried: Vec<f32> =
            (0..batch).flat_map(until_reset).map(|(carried, is_padding)| if is_padding { 0.0 } else { carried }).collect();
        let stays: Vec<f32> = (0..batch).map(|b| until_reset(b).last().map_or(1.0, |(carried, _)| carried)).collect();
        let column = |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, [batch, 1]), &device);
        let before = column(places.before.iter().map(|&n| n.max(1) as f32).collect());
        let more = |b: usize| stays[b] * (f64::from(places.counts[b]) - f64::from(places.before[b])) as f32;
        let more = column((0..batch).map(more).collect());
        let mean = self.sum.clone() / before;
        let about = mean.clone().unsqueeze_dim::<3>(1) * Tensor::from_data(TensorData::new(carried, [batch, seq_len, 1]), &device);
        let (sums, last) = linear_scan(x.ones_like(), x - about.clone(), Start::carried(mean.zeros_like()), steps);
        // Without a step it stays unchanged, bit for bit.
        let sum = self.sum * column(stays) + (last + mean * more);
        (sums * shares + about, Self { sum, count: places.after })
    }
}

#[cfg(test)]
mod tests {
    use minrnn_kernels::count;

    use super::*;
    use crate::Segments;

    #[test]
    fn the_mean_is_over_the_steps_since_the_last_reset() {
        let device = Device::flex();
        let x = Tensor::<3>::from_data([[[1.0], [3.0], [8.0], [2.0]], [[4.0], [6.0], [9.0], [9.0]]], &device);
        let steps = Segments::from_lengths(vec![4, 2]).with_resets(vec![vec![2], vec![]]).steps(2, 4).unwrap();
        let (means, after) = RunningMean::init(2, 1, &device).forward(x, &steps);
        let means: Vec<f32> = means.into_data().try_to_vec().unwrap();
        assert_eq!(means[..6], [1.0, 2.0, 8.0, 5.0, 4.0, 5.0]);
        let [sum, count] = [after.sum, after.count].map(|x| x.into_data().try_to_vec::<f32>().unwrap());
        assert_eq!((sum, count), (vec![10.0, 10.0], vec![2.0, 2.0]));
    }

    #[test]
    fn a_mean_goes_on_from_many_steps() {
        let device = Device::flex();
        // After 3 · 2²⁴ steps, adding 1 would not change the sum of one row, nor a step its count. Another row has read nothing, a third only padding.
        let n = 3u32 << 24;
        let column = |values: [f32; 3]| Tensor::<2>::from_data(values.map(|value| [value]), &device);
        let (sum, count) = (column([1.5 * n as f32, 0.0, 8.0]), column([count::kept(n), 0.0, 4.0]));
        let x =
            Tensor::<3>::from_data([[[1.25], [1.75], [7.0], [5.0]], [[4.0], [6.0], [9.0], [9.0]], [[1.0], [1.0], [1.0], [1.0]]], &device);
        let steps = Segments::from_lengths(vec![4, 2, 0]).with_resets(vec![vec![2], vec![], vec![]]).steps(3, 4).unwrap();
        let (means, after) = RunningMean { sum: sum.clone(), count: count.clone() }.forward(x.clone(), &steps);
        let means: Vec<f32> = means.into_data().try_to_vec().unwrap();
        assert_eq!(means, [1.5, 1.5, 7.0, 6.0, 4.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let [sums, counts] = [after.sum, after.count].map(|x| x.into_data().try_to_vec::<f32>().unwrap());
        assert_eq!((sums, counts), (vec![12.0, 10.0, 8.0], vec![2.0, 2.0, 4.0]));
        // Steps around the mean leave it where it is, and are counted. Added one by one, none of them would change the sum.
        let alike = Tensor::<1>::from_data([[1.25f32, 1.75]; 32].as_flattened(), &device).reshape([1, 64, 1]).repeat_dim(0, 3);
        let mut state = RunningMean { sum, count };
        for _ in 0..30 {
            state = state.forward(alike.clone(), &Segments::from_lengths(vec![64, 0, 0]).steps(3, 64).unwrap()).1;
        }
        let [sums, counts] = [state.sum, state.count].map(|x| x.into_data().try_to_vec::<f32>().unwrap());
        let after = n + 30 * 64;
        assert_eq!(count::of(counts[0]), after);
        // Each piece rounds once.
        let drift = (f64::from(sums[0]) / f64::from(after) - 1.5).abs();
        assert!(drift < 30.0 * f64::from(f32::EPSILON), "{drift:e}");
    }
}
