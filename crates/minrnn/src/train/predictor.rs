//! What scoring asks of a model.

use super::differentiate::MicroBatch;
use crate::model::{AnyModel, BackboneState, Decision, Scored, SequenceModel, SequenceModelState};
use crate::nn::{Mixer, Mode, State, linear};
use burn::tensor::Device;

/// Whose predictions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those that are scored, at least.
    Scored,
    /// All of a batch.
    All,
}

/// A model that can be scored.
pub trait Predictor {
    /// What is carried from batch to batch.
    type State;

    /// Where it computes.
    fn device(&self) -> Device;

    /// What is predicted for `batch` in evaluation, with what should be, from the carried `state` or from the first one, and the state after the
    /// last step.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn predict(&self, batch: MicroBatch, state: Option<Self::State>, wanted: Wanted) -> (Scored, Self::State);
}

impl<M: Mixer> Predictor for SequenceModel<M> {
    type State = BackboneState<M::State>;

    fn device(&self) -> Device {
        self.device()
    }

    fn predict(&self, batch: MicroBatch, state: Option<Self::State>, wanted: Wanted) -> (Scored, Self::State) {
        let MicroBatch { inputs, targets, mask, steps } = batch;
        let state = state.unwrap_or_else(|| self.init_state(inputs.dims()[0]));
        let (scored, state) = match wanted {
            Wanted::All => {
                let (predicted, state) = self.forward(inputs, state, &steps, Mode::Evaluate);
                (Scored { predicted: linear::rows(predicted), targets, mask }, state)
            }
            Wanted::Scored => self.predict_scored(inputs, targets, mask, state, &steps, Mode::Evaluate),
        };
        (scored, state.detach())
    }
}

/// Windows of episodes begin anew, each batch.
impl<M: Mixer> Predictor for Decision<M> {
    type State = ();

    fn device(&self) -> Device {
        self.device()
    }

    fn predict(&self, batch: MicroBatch, _: Option<()>, _: Wanted) -> (Scored, ()) {
        let MicroBatch { inputs, targets, mask, steps } = batch;
        let (actions, _) = self.forward(inputs, None, &steps, Mode::Evaluate);
        (Scored { predicted: linear::rows(actions), targets, mask }, ())
    }
}

impl Predictor for AnyModel {
    /// None of a policy.
    type State = Option<SequenceModelState>;

    fn device(&self) -> Device {
        self.device()
    }

    fn predict(&self, batch: MicroBatch, state: Option<Self::State>, wanted: Wanted) -> (Scored, Self::State) {
        match self {
            Self::Sequence(model) => {
                let (scored, state) = model.predict(batch, state.flatten(), wanted);
                (scored, Some(state))
            }
            Self::Policy(policy) => (policy.predict(batch, None, wanted).0, None),
        }
    }
}
