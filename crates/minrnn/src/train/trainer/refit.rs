//! The second round: the model learns again from all data, for as many updates as the kept weights took in the first round.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn_model::CheckpointFiles;

use super::{Trainer, first_model};
use crate::data::table::Spreads;
use crate::rng::Purpose;
use crate::train::data::FINAL_BATCHES;
use crate::train::evaluate::compare;
use crate::train::optimizer::Optimizer;
use crate::train::progress::Refit;
use crate::train::run_dir::Pointer;
use crate::train::schedule::Schedule;
use crate::train::temperature::temperature;
use crate::{Error, Result};

impl Trainer {
    /// After a finished round: starts learning again from all data, if the experiment asks for it and it has not been done, for as many
    /// updates as the kept weights took. Returns false if nothing is left to train, `None` if `stop` was raised.
    ///
    /// # Errors
    /// When a pointer to the kept checkpoint cannot be written, or data cannot be read.
    pub fn begin_refit(&mut self, stop: &AtomicBool) -> Result<Option<bool>> {
        if !self.experiment.train.refit || self.progress.refit.is_some() || self.data.all().is_none() {
            return Ok(Some(false));
        }
        let Some((updates, kept)) = self.kept()?.into_iter().next() else { return Ok(Some(false)) };
        self.group.tell(|| {
            self.run.make_best(&kept)?;
            if self.data.has_test_file() { Ok(()) } else { self.run.make_scored(&kept) }
        })?;
        self.progress.temperature = self.group.agree(self.temperature(&kept))?;
        let Some(spreads) = self.spreads(&kept, stop)? else { return Ok(None) };
        self.progress.spreads = spreads;
        self.progress.best.retain(|best| best.iteration == updates);
        self.progress.refit = Some(Refit { began_at: self.progress.iteration, updates });
        let begun = self.begin_anew();
        self.group.agree(begun)?;
        Ok(Some(true))
    }

    fn begin_anew(&mut self) -> Result<()> {
        let device = self.experiment.train.device.open()?.autodiff();
        self.model = first_model(&self.experiment, &self.data, self.run.path(), &device)?;
        self.optimizer = Optimizer::new(&self.experiment.train);
        self.carried.clear();
        (self.average, self.progress.averaged) = (None, 0);
        self.begin_round()
    }

    /// The temperature of the model of the checkpoint at `kept`, found on the data that only the next round will learn from.
    fn temperature(&self, kept: &Path) -> Result<Option<f64>> {
        if !self.experiment.data.task.is_scored_by_accuracy() {
            return Ok(None);
        }
        let mut set = self.data.fixed_batches(&self.experiment, FINAL_BATCHES, self.held_out())?;
        temperature(&self.read_model(kept)?, &mut *set)
    }

    /// The spreads of the model of the checkpoint at `kept`, found on the data that only the next round will learn from; `None` if `stop` was raised.
    fn spreads(&self, kept: &Path, stop: &AtomicBool) -> Result<Option<Option<Spreads>>> {
        let Some(mut comparison) = self.data.comparison(self.held_out()) else { return Ok(Some(None)) };
        if !comparison.find_spreads() {
            return Ok(Some(None));
        }
        let set = self.data.fixed_batches(&self.experiment, FINAL_BATCHES, self.held_out());
        let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(kept)?))))?;
        let compared = compare(&self.group, &model, &mut *set, Some(&mut *comparison), stop)?;
        Ok(compared.map(|_| comparison.spreads()))
    }

    /// The part that the second round learns from and the first does not.
    fn held_out(&self) -> Purpose {
        if self.data.has_test_file() { Purpose::ValidationData } else { Purpose::TestData }
    }

    /// Goes back to the end of the first round if it is now to be longer than it was before the second round, to which `checkpoint`
    /// belongs.
    pub(super) fn go_back(&mut self, checkpoint: &Path) -> Result<()> {
        if self.progress.refit.is_none() {
            return Ok(());
        }
        let config = CheckpointFiles::open(checkpoint)?.config()?;
        let of_before = config.sections.get("train").and_then(|train| train.get("max_iterations")?.as_u64());
        let Some(of_before) = of_before.filter(|&of_before| self.experiment.train.max_iterations > of_before) else { return Ok(()) };
        match self.run.checkpoint(Pointer::Scored)? {
            Some(scored) if !self.experiment.train.validates() => self.restore(&scored),
            // In a round with a best checkpoint, that is not always the last one, so its end is gone.
            _ => Err(Error::MustStay(format!(
                "max_iterations must stay {of_before}: the run has been retrained on all data since, and only its best earlier checkpoint is kept; \
                 start a new run in another directory"
            ))),
        }
    }

    /// Sets up the data and the learning rates of a round.
    pub(super) fn begin_round(&mut self) -> Result<()> {
        if let Some(Refit { updates, .. }) = self.progress.refit {
            let all = self.data.all().ok_or_else(|| {
                Error::malformed(self.run.path(), "its last checkpoint was retrained on all data, which the experiment no longer asks for")
            })?;
            self.source = all.training(&self.experiment)?;
            self.schedule = Schedule::of_round(&self.experiment.train, updates);
        }
        Ok(())
    }
}
