//! Which learning rate of an experiment gives way when presets, files and settings disagree.

use toml::Value;

use super::train_config::{ScheduleKind, TrainConfig};

/// The layers of an experiment in order of precedence, above the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    Preset,
    File,
    Settings,
}

/// The layers that set the learning rates of an experiment; `None` if it is the defaults.
#[derive(Default)]
pub(super) struct Rates {
    lr: Option<Layer>,
    min_lr: Option<Layer>,
}

impl Rates {
    /// Notes which of them are set by `values` of `section`.
    pub(super) fn see(&mut self, layer: Layer, section: &str, values: &Value) {
        for (place, key) in [(&mut self.lr, "lr"), (&mut self.min_lr, "min_lr")] {
            if section == "train" && values.get(key).is_some() {
                *place = Some(layer);
            }
        }
    }

    /// Lowers `min_lr` to `lr`: whoever lowers only `lr` below an earlier `min_lr` wants no rate above it.
    pub(super) fn settle(&self, train: &mut TrainConfig) {
        if self.lr > self.min_lr && train.schedule == ScheduleKind::Cosine {
            train.min_lr = train.min_lr.min(train.lr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::Experiment;
    use crate::Error;

    #[test]
    fn a_min_lr_that_lies_below_the_lr_that_is_said_later_is_at_most_that() {
        let rates = |text: &str, settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
            let train = Experiment::parse(text, &settings)?.train;
            Ok::<_, Error>((train.lr, train.min_lr))
        };
        let file = "[train]\nlr = 2e-3\nmin_lr = 2e-4";
        assert_eq!(rates(file, &["lr=1e-5"]).unwrap(), (1e-5, 1e-5));
        assert_eq!(rates(file, &["train.lr=1e-3"]).unwrap(), (1e-3, 2e-4));
        assert_eq!(rates("[train]\nlr = 1e-5", &[]).unwrap(), (1e-5, 1e-5));
        // A constant schedule has no other rate.
        assert_eq!(rates(file, &["lr=1e-5", "schedule=constant"]).unwrap(), (1e-5, 2e-4));
        // Whoever sets both has to set values that fit, in any order.
        for (text, settings) in [
            (file, &["lr=1e-5", "min_lr=1e-4"][..]),
            (file, &["min_lr=1e-4", "lr=1e-5"]),
            (file, &["min_lr=1"]),
            ("[train]\nlr = 1e-5\nmin_lr = 1e-4", &[]),
        ] {
            let refused = rates(text, settings).unwrap_err().to_string();
            assert!(refused.starts_with("min_lr must be between 0 and lr = "), "{settings:?}: {refused}");
        }
    }
}
