//! Settings that a training accepts and does not use.

use super::Trainer;
use crate::rng::Purpose;
use crate::train::train_config::TrainConfig;

impl Trainer {
    /// Keys of `[train]` whose values change nothing in this training, each with the reason: its task, or what of its data is held out, does not use them.
    pub fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let (data, train) = (&self.experiment.data, &self.experiment.train);
        let steps = |seq_len| (data.task.spec().steps)(data, &TrainConfig { seq_len, ..train.clone() }, Some(1));
        let n_batches = |n| self.data.fixed_batches(&self.experiment, n, Purpose::ValidationData).map(|set| set.n_batches()).ok();
        let (in_windows, is_drawn) = (steps(1) != steps(2), n_batches(1) != n_batches(2));
        let (is_evaluated, whole) = (self.validation.n_batches() > 0, "what is scored is the whole of a part, not batches drawn from it");
        let keys = [
            ("seq_len", in_windows, "sequences are read as a whole"),
            ("eval_every", is_evaluated, "nothing is held out to evaluate the model on while it learns"),
            ("eval_iterations", is_drawn, whole),
            ("eval_seed", is_drawn, whole),
        ];
        keys.into_iter().filter(|(_, has_effect, _)| !has_effect).map(|(key, _, why)| (key, why)).collect()
    }
}
