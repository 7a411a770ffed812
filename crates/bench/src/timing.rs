//! Repetitions and their statistics.

use std::time::Instant;

use burn::tensor::Device;
use minrnn::device::name_of;
use minrnn::statistics::median;

use crate::{Error, Result};

/// The number of repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Warm-up iterations, which are not timed.
    pub warmup: usize,
    /// Timed iterations, at least 1.
    pub iterations: usize,
}

/// Wall time of each iteration, in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Times(Vec<f64>);

impl Plan {
    /// Times `iteration`.
    pub(crate) fn time(self, mut iteration: impl FnMut()) -> Times {
        (0..self.warmup).for_each(|_| iteration());
        Times((0..self.iterations).map(|_| milliseconds(&mut iteration)).collect())
    }

    /// Times `iteration` on `device`, each until the device has done all of it.
    pub(crate) fn time_on(self, device: &Device, mut iteration: impl FnMut()) -> Result<Times> {
        let mut failure = None;
        let times = self.time(|| {
            iteration();
            failure = failure.take().or(device.sync().err());
        });
        match failure {
            Some(error) => Err(Error::Device { device: name_of(device), problem: error.to_string() }),
            None => Ok(times),
        }
    }
}

impl Times {
    /// From separately measured iterations, at least one.
    pub fn new(milliseconds: Vec<f64>) -> Self {
        Self(milliseconds)
    }

    /// The median time, the mean of the middle two if their number is even.
    pub fn median(&self) -> f64 {
        median(self.0.iter().copied()).unwrap_or(f64::NAN)
    }

    /// The minimum time.
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The number of times.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Wall time of `work`.
pub(crate) fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    1e3 * start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_and_warm_up_does_not_count() {
        assert_eq!(Times::new(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Times::new(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert_eq!(Times::new(vec![3.0, 1.0]).min(), 1.0);
        let mut calls = 0;
        let times = Plan { warmup: 2, iterations: 3 }.time(|| calls += 1);
        assert_eq!((calls, times.count()), (5, 3));
    }
}
