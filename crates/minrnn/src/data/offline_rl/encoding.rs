//! The encoding of a step as numbers.

use minrnn_model::{ModelConfig, POLICY_TIME_SCALE};
use serde::{Deserialize, Serialize};

use super::Trajectories;
use crate::{Error, Result};

/// Added to a deviation before dividing by it.
const EPS: f64 = 1e-6;

/// Maximum number of components of an observation and an action together.
const MAX_WIDTH: usize = 1 << 16;

/// The encoding of a step: `[R / scale | (s − mean) / deviation | a | t / 1000]`
///
/// where R is the return still to be earned, s the observation, a the *previous* action and t the number of the step in its episode,
/// counted from zero. The action at the step itself is what a policy predicts, so it is not included; it is in the next row.
///
/// It is stored beside a trained policy, which cannot be used without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepEncoding {
    /// Mean of each component of the observations.
    pub mean: Vec<f32>,
    /// Standard deviation of each, plus 1e-6.
    pub deviation: Vec<f32>,
    /// Width of an action.
    pub action_width: usize,
    /// Returns are divided by this.
    pub return_scale: f64,
    /// The largest return of a training episode; `None` if it was not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_return: Option<f64>,
}

impl StepEncoding {
    /// The encoding with the mean and deviation of all observations of `trajectories`.
    ///
    /// # Errors
    /// When there is no step, or the scale is not above 0.
    pub fn fit(trajectories: &Trajectories, return_scale: f64) -> Result<Self> {
        let ([width, action_width], n_steps) = (trajectories.widths(), trajectories.n_steps());
        if n_steps == 0 {
            return Err(Error::Data("mean and deviation of the observations need at least one step, found none".into()));
        }
        let average = |of: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; width];
            for observation in trajectories.iter().flat_map(|episode| episode.observations.chunks_exact(width)) {
                sums.iter_mut().zip(observation).enumerate().for_each(|(i, (sum, &x))| *sum += of(i, f64::from(x)));
            }
            sums.into_iter().map(|sum| sum / n_steps as f64).collect::<Vec<f64>>()
        };
        let mean = average(&|_, x| x);
        let variance = average(&|i, x| (x - mean[i]).powi(2));
        let deviation = variance.into_iter().map(|variance| (variance.sqrt() + EPS) as f32).collect();
        let encoding = Self {
            mean: mean.into_iter().map(|mean| mean as f32).collect(),
            deviation,
            action_width,
            return_scale,
            best_return: Some(trajectories.best_return()),
        };
        encoding.validate()?;
        Ok(encoding)
    }

    /// Checks that it can encode steps.
    ///
    /// # Errors
    /// When means and deviations do not match, a number is not finite, or a divisor is 0.
    pub fn validate(&self) -> Result<()> {
        let wrong = |problem: String| Err(Error::Config(problem));
        let (means, deviations) = (self.mean.len(), self.deviation.len());
        let too_wide = means.checked_add(self.action_width).is_none_or(|width| width > MAX_WIDTH);
        if too_wide || means != deviations || means == 0 || self.action_width == 0 {
            let action_width = self.action_width;
            return wrong(format!(
                "expected a deviation for every mean, at least one number in an observation and in an action, and at most {MAX_WIDTH} in \
                 both, found {means} means and {deviations} deviations, and actions of {action_width} numbers"
            ));
        }
        if let Some(i) = self.mean.iter().position(|mean| !mean.is_finite()) {
            return wrong(format!("mean {i} is {}, expected a finite number", self.mean[i]));
        }
        let divides = |x: f64| x > 0.0 && x.is_finite();
        if let Some(i) = self.deviation.iter().position(|&deviation| !divides(deviation.into())) {
            return wrong(format!("deviation {i} is {}, expected a number above 0", self.deviation[i]));
        }
        if let Some(best) = self.best_return.filter(|best| !best.is_finite()) {
            return wrong(format!("the best return is {best}, expected a finite number"));
        }
        if !divides(self.return_scale) {
            return wrong(format!("the scale of returns must be above 0, found {}", self.return_scale));
        }
        Ok(())
    }

    /// Parses the JSON `text`, for the policy of `config`.
    ///
    /// # Errors
    /// When it is not an encoding, or its rows do not fit the policy.
    pub fn of_model(text: &[u8], config: &ModelConfig) -> Result<Self> {
        let encoding: Self = serde_json::from_slice(text)
            .map_err(|error| Error::Config(format!("expected means and deviations of observations: {error}")))?;
        encoding.validate()?;
        let (expected, found) = ([config.input_width, config.n_outputs], [encoding.width(), encoding.action_width]);
        match expected == found {
            true => Ok(encoding),
            false => {
                Err(Error::Config(format!("it makes rows and actions of {found:?} numbers, but the model beside it has {expected:?}")))
            }
        }
    }

    /// Width of an observation.
    pub fn observation_width(&self) -> usize {
        self.mean.len()
    }

    /// Width of a row.
    pub fn width(&self) -> usize {
        1 + self.mean.len() + self.action_width + 1
    }

    /// Writes the row of a step.
    ///
    /// # Panics
    /// When a part has the wrong width.
    pub fn write(&self, row: &mut [f32], to_go: f64, observation: &[f32], previous_action: &[f32], time: usize) {
        let width = self.observation_width();
        assert_eq!(row.len(), self.width(), "numbers in a row");
        assert_eq!(observation.len(), width, "numbers in an observation");
        row[0] = (to_go / self.return_scale) as f32;
        for (i, x) in row[1..=width].iter_mut().enumerate() {
            *x = (observation[i] - self.mean[i]) / self.deviation[i];
        }
        row[1 + width..1 + width + self.action_width].copy_from_slice(previous_action);
        row[1 + width + self.action_width] = (time as f64 / POLICY_TIME_SCALE) as f32;
    }
}
