//! One update: the gradients of all micro-steps of all processes, and the optimiser's step.

use std::time::Instant;

use super::{Trainer, Update};
use crate::data::Carry;
use crate::model::{AnyModel, SequenceModelState};
use crate::nn::Mode;
use crate::ops::with_precision;
use crate::rng::{Purpose, substream};
use crate::train::average::Average;
use crate::train::differentiate::{MicroBatch, differentiate, differentiate_policy};
use crate::train::optimizer::GradientMap;
use crate::train::ranks::TreeSum;
use crate::train::train_config::Keep;
use crate::{Error, Result};

impl Trainer {
    /// One update: `accumulation` micro-steps, their mean gradient clipped, one step of the optimiser. There is no limit: after more
    /// updates than `max_iterations`, that must be raised to open the run again.
    ///
    /// # Errors
    /// When the loss or a gradient is not finite (parameters and moments are then unchanged) or data cannot be read.
    pub fn update(&mut self) -> Result<Update> {
        Ok(self.update_together(Ok(()), false)?.0)
    }

    /// An update of all processes, unless something went wrong on any of them `before`; also returns whether one of them is to `stop`.
    pub(super) fn update_together(&mut self, before: Result<()>, stop: bool) -> Result<(Update, bool)> {
        let started = Instant::now();
        let (iteration, of_round) = (self.progress.iteration, self.progress.of_round());
        let micro_steps = self.experiment.train.accumulation as u64;
        let (told, found) = match before.and_then(|()| self.differentiate_share(iteration, of_round)) {
            Ok((losses, gradients, carried)) => (Ok((losses, gradients.len(), stop)), Some((gradients, carried))),
            Err(error) => (Err(error), None),
        };
        let told = self.group.agree_all(told)?;
        let (mut gradients, carried) = found.expect("no process has an error");
        if told.iter().any(|(_, len, _)| *len != told[0].1) {
            let problem = "the processes have found gradients of different parameters; start the same program everywhere";
            return self.group.alike(Err(Error::Config(problem.to_owned())));
        }
        let loss_sum: f64 = told.iter().flat_map(|(losses, ..)| losses).map(|&bits| f64::from_bits(bits)).sum();
        if !self.group.is_alone() {
            gradients = gradients.through(|values| self.group.sum(values));
        }
        let lr = self.schedule.lr(of_round);
        let scale = 1.0 / micro_steps as f64;
        let (model, grad_norm) = self.group.alike(self.optimizer.update(self.model.clone(), gradients, scale, lr, of_round))?;
        self.model = model;
        self.carried = carried;
        let tokens = micro_steps * self.source.tokens_per_batch() as u64;
        let seconds = started.elapsed().as_secs_f64();
        self.progress.iteration += 1;
        self.progress.tokens += tokens;
        self.progress.seconds += seconds;
        self.average();
        let tokens_per_s = tokens as f64 / seconds;
        let update = Update { iteration: iteration + 1, loss: loss_sum * scale, lr, grad_norm, tokens_per_s };
        Ok((update, told.iter().any(|(.., stop)| *stop)))
    }

    /// For this process's micro-steps: their losses as bits, the sum of their gradients, and the states to carry on.
    fn differentiate_share(&mut self, iteration: u64, of_round: u64) -> Result<(Vec<u64>, GradientMap, Vec<SequenceModelState>)> {
        let device = self.model.device();
        let (mut losses, mut sum) = (Vec::new(), TreeSum::new());
        let (carry, mut carried) = (self.source.carry(), Vec::new());
        for (at, micro) in self.group.share(self.experiment.train.accumulation as u64).enumerate() {
            let state = match carry {
                Carry::Nowhere => None,
                Carry::ToNextBatch => carried.pop().or_else(|| self.carried.first().cloned()),
                Carry::ToNextUpdate => self.carried.get(at).cloned(),
            };
            let batch = self.source.batch(of_round, micro)?;
            let batch = MicroBatch::new(&batch, &device)?;
            let mode = Mode::Train { dropout_key: dropout_key(self.experiment.train.seed, of_round, micro) };
            let train = &self.experiment.train;
            let found = with_precision(train.precision, || match &self.model {
                AnyModel::Sequence(model) => {
                    let found = differentiate(model, batch, state, mode, train.checkpoint_blocks);
                    (found.loss, found.gradients, Some(found.state))
                }
                AnyModel::Policy(policy) => {
                    let (loss, gradients) = differentiate_policy(policy, batch, mode, train.checkpoint_blocks);
                    (loss, gradients, None)
                }
            });
            let (loss, gradients, state) = found;
            carried.extend(state.filter(|_| carry != Carry::Nowhere));
            if !loss.is_finite() {
                return Err(Error::NonFinite { iteration, tensor: "the loss".to_owned(), value: loss });
            }
            losses.push(loss.to_bits());
            sum.push(gradients, GradientMap::plus);
        }
        Ok((losses, sum.total(GradientMap::plus).unwrap_or_default(), carried))
    }

    /// Adds the weights to their average, if one is kept and the round is near its end.
    fn average(&mut self) {
        let updates = self.progress.refit.map_or(self.experiment.train.max_iterations, |refit| refit.updates);
        if self.experiment.train.keep != Keep::Average || self.progress.of_round() <= Average::begins_after(updates) {
            return (self.average, self.progress.averaged) = (None, 0);
        }
        self.progress.averaged += 1;
        self.average.get_or_insert_default().add(&self.model, self.progress.averaged);
    }
}

fn dropout_key(seed: u64, iteration: u64, micro: u64) -> u64 {
    use rand::Rng;
    substream(seed, Purpose::Dropout, iteration, micro).next_u64()
}
