//! The learning rate as a function of the iteration.

use super::settings::short;
use super::train_config::{ScheduleKind, TrainConfig};
use crate::counted::counted;

/// Linear warm-up, then a constant or half a cosine: with s the iteration from 0, W the warm-up and S the horizon,
///
/// * s < W: lr · (s + 1) / (W + 1);
/// * cosine, W ≤ s < S: min_lr + ½ (lr − min_lr) (1 + cos(π (s − W) / (S − W))); s ≥ S: min_lr;
/// * constant, s ≥ W: lr.
///
/// The form is nanoGPT's, whose warm-up starts above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    kind: ScheduleKind,
    lr: f64,
    min_lr: f64,
    warmup: u64,
    horizon: u64,
}

impl Schedule {
    /// The schedule that `config` describes.
    pub fn new(config: &TrainConfig) -> Self {
        Self { kind: config.schedule, lr: config.lr, min_lr: config.min_lr, warmup: config.warmup, horizon: config.lr_horizon() }
    }

    /// The schedule of a second round of `updates`: that of the first, with a shorter horizon in proportion if it is shorter, and then with at most half
    /// of it as a warm-up.
    pub fn of_round(config: &TrainConfig, updates: u64) -> Self {
        let whole = Self::new(config);
        if updates >= config.max_iterations {
            return whole;
        }
        let horizon = u128::from(whole.horizon) * u128::from(updates) / u128::from(config.max_iterations);
        Self { warmup: config.warmup.min(updates / 2), horizon: u64::try_from(horizon).unwrap_or(u64::MAX), ..whole }
    }

    /// A sentence if a training of `iterations` ends before the warm-up does.
    pub(super) fn warmup_warning(&self, iterations: u64) -> Option<String> {
        let Self { warmup, lr, .. } = *self;
        if warmup <= iterations {
            return None;
        }
        let highest = self.lr(iterations.saturating_sub(1));
        Some(format!(
            "the learning rate rises for {} (train.warmup), and this training has {iterations}: it comes to {highest:.2e}, never to lr = {}; set \
             train.warmup below train.max_iterations",
            counted(warmup, "iteration"),
            short(lr)
        ))
    }

    /// The learning rate of the update at `iteration`, counted from 0.
    pub fn lr(&self, iteration: u64) -> f64 {
        if iteration < self.warmup {
            return self.lr * (iteration + 1) as f64 / (self.warmup + 1) as f64;
        }
        match self.kind {
            ScheduleKind::Constant => self.lr,
            ScheduleKind::Cosine if iteration >= self.horizon => self.min_lr,
            ScheduleKind::Cosine => {
                let progress = (iteration - self.warmup) as f64 / (self.horizon - self.warmup) as f64;
                self.min_lr + 0.5 * (self.lr - self.min_lr) * (1.0 + (std::f64::consts::PI * progress).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedule(change: impl FnOnce(&mut TrainConfig)) -> Schedule {
        let mut config = TrainConfig { lr: 1e-3, min_lr: 1e-4, warmup: 100, max_iterations: 5000, ..Default::default() };
        change(&mut config);
        Schedule::new(&config)
    }

    #[test]
    fn a_training_that_ends_before_its_warm_up_is_told_how_far_the_rate_comes() {
        let warmed_up = schedule(|config| (config.lr, config.warmup, config.max_iterations) = (2e-3, 50, 30));
        assert_eq!(
            warmed_up.warmup_warning(30).unwrap(),
            "the learning rate rises for 50 iterations (train.warmup), and this training has 30: it comes to 1.18e-3, never to lr = 0.002; set \
             train.warmup below train.max_iterations"
        );
        assert_eq!([50, 51, 5000].map(|iterations| warmed_up.warmup_warning(iterations)), [None, None, None]);
    }

    #[test]
    fn the_cosine_passes_through_its_known_points() {
        let cosine = schedule(|_| {});
        for (iteration, expected) in [(0, 1e-3 / 101.0), (99, 1e-1 / 101.0), (100, 1e-3), (2550, 5.5e-4), (5000, 1e-4), (1 << 60, 1e-4)] {
            assert!((cosine.lr(iteration) - expected).abs() < 1e-15, "{iteration}: {}", cosine.lr(iteration));
        }
    }

    #[test]
    fn the_constant_only_warms_up() {
        let constant = schedule(|config| config.schedule = ScheduleKind::Constant);
        assert_eq!((constant.lr(100), constant.lr(1 << 60)), (1e-3, 1e-3));
        assert!(constant.lr(0) < 1.1e-5);
        assert_eq!(schedule(|config| (config.schedule, config.warmup) = (ScheduleKind::Constant, 0)).lr(0), 1e-3);
    }

    #[test]
    fn a_shorter_run_keeps_the_curve_when_its_horizon_is_given() {
        let short = schedule(|config| (config.max_iterations, config.lr_decay_iterations) = (700, 5000));
        assert_eq!(short, schedule(|_| {}));
    }

    #[test]
    fn a_second_round_has_the_schedule_of_the_first_shortened_in_proportion() {
        let config = |decay, warmup| TrainConfig { lr_decay_iterations: decay, warmup, max_iterations: 200, ..Default::default() };
        for (decay, warmup) in [(0, 20), (30, 5), (5000, 150), (30, 400)] {
            let config = config(decay, warmup);
            assert_eq!(Schedule::of_round(&config, 200), Schedule::new(&config), "{decay}, {warmup}");
        }
        let shape = |schedule: Schedule| (schedule.warmup, schedule.horizon);
        assert_eq!(shape(Schedule::of_round(&config(0, 20), 50)), (20, 50));
        assert_eq!(shape(Schedule::of_round(&config(40, 20), 50)), (20, 10));
        assert_eq!(shape(Schedule::of_round(&config(5000, 90), 50)), (25, 1250));
        assert_eq!(shape(Schedule::of_round(&config(u64::MAX, 0), 199)).1, (u128::from(u64::MAX) * 199 / 200) as u64);
    }

    proptest! {
        #[test]
        fn the_rate_stays_between_zero_and_lr(warmup in 0..200u64, max_iterations in 1..300u64, iteration in 0..400u64) {
            let lr = schedule(|config| (config.warmup, config.max_iterations) = (warmup, max_iterations)).lr(iteration);
            prop_assert!(lr > 0.0 && lr <= 1e-3 * (1.0 + 1e-12));
        }
    }
}
