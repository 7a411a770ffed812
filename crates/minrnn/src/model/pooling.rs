//! The mean of everything since the last reset, at every step.
//!
//! ```text
//! s_t = s_{t−1} + x_t        n_t = n_{t−1} + 1        y_t = s_t / n_t
//! ```
//!
//! At the last step of a row it is the mean over the row's real length, whatever padding follows; sum and count carry over from one
//! piece of a sequence to the next like the state of any layer.

use burn::tensor::{Device, Tensor, TensorData};

use crate::memory::activations::{Activations, Op};
use crate::nn::positions::StepPositions;
use crate::nn::{State, StateZip};
use crate::ops::{Start, StepCodes, linear_scan};

/// What a running mean carries.
#[derive(Debug, Clone)]
pub struct RunningMean {
    /// The sum since the last reset `[B, D]`.
    pub sum: Tensor<2>,
    /// The steps since the last reset `[B, 1]`.
    pub count: Tensor<2>,
}

impl State for RunningMean {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { sum: f.tensor("sum", self.sum, other.sum), count: f.tensor("count", self.count, other.count) }
    }
}

impl RunningMean {
    /// Of nothing yet.
    pub(super) fn init(batch_size: usize, width: usize, device: &Device) -> Self {
        Self { sum: Tensor::zeros([batch_size, width], device), count: Tensor::zeros([batch_size, 1], device) }
    }

    pub(super) fn activations(d: u128, list: &mut Activations) {
        // Ones, and the sums; then the product keeps sums and shares.
        list.op(Op { keeps: &[d; 3], reads: 2 * d, gives: d, ..Op::default() });
        list.op(Op { keeps: &[1], reads: d, gives: d, ..Op::default() });
    }

    /// The means of `x` `[B, T, D]` so far, and what carries on; 0 at padding.
    pub(super) fn forward(self, x: Tensor<3>, steps: &StepCodes) -> (Tensor<3>, Self) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            return (x, self);
        }
        let places = StepPositions::count(self.count, seq_len, steps);
        let shares: Vec<f32> = places.of.iter().map(|&place| 1.0 / (place as f32 + 1.0)).collect();
        let shares = Tensor::<3>::from_data(TensorData::new(shares, [batch, seq_len, 1]), &x.device());
        let (sums, sum) = linear_scan(x.ones_like(), x, Start::carried(self.sum), steps);
        (sums * shares, Self { sum, count: places.after })
    }
}

#[cfg(test)]
mod tests {
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
}
