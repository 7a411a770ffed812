//! The interface of a model for scoring.

use super::differentiate::MicroBatch;
use crate::data::{Batch, Sequences};
use crate::model::{AnyModel, BackboneState, Decision, Scored, SequenceModel, SequenceModelState};
use crate::nn::{Mixer, Mode, State, linear};
use crate::{Error, Result};
use burn::tensor::Device;

/// Which predictions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// At least the scored ones.
    Scored,
    /// All predictions of a batch.
    All,
}

/// A model that can be scored.
pub trait Predictor {
    /// The state carried from batch to batch.
    type State;

    /// The device it computes on.
    fn device(&self) -> Device;

    /// Checks that the model has the inputs and targets of `batch`, which is consistent.
    ///
    /// # Errors
    /// When it does not.
    fn check(&self, batch: &Batch) -> Result<()>;

    /// Predictions for `batch` in evaluation mode, with their targets, from the carried `state` or the initial one, and the state after the
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

    fn check(&self, batch: &Batch) -> Result<()> {
        let vocab_size = self.vocab_size();
        match &batch.inputs {
            Sequences::Tokens(_) if vocab_size == 0 => return refuse("values, which the model reads", "tokens"),
            Sequences::Tokens(tokens) => {
                if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocab_size) {
                    return refuse(&format!("tokens below {vocab_size}"), &format!("{token}"));
                }
            }
            Sequences::Values { width, .. } | Sequences::Quantiles { width, .. } => expect_values(self.input_width(), *width)?,
        }
        expect_targets(batch, self.n_outputs())
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

/// Windows of episodes carry no state from batch to batch.
impl<M: Mixer> Predictor for Decision<M> {
    type State = ();

    fn device(&self) -> Device {
        self.device()
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        match &batch.inputs {
            Sequences::Tokens(_) => return refuse("values, which a policy reads", "tokens"),
            Sequences::Values { width, .. } | Sequences::Quantiles { width, .. } => expect_values(self.input_width(), *width)?,
        }
        match &batch.targets {
            Sequences::Tokens(_) => refuse("values as targets, which a policy predicts", "classes"),
            _ => expect_targets(batch, self.action_width()),
        }
    }

    fn predict(&self, batch: MicroBatch, _: Option<()>, _: Wanted) -> (Scored, ()) {
        let MicroBatch { inputs, targets, mask, steps } = batch;
        let (actions, _) = self.forward(inputs, None, &steps, Mode::Evaluate);
        (Scored { predicted: linear::rows(actions), targets, mask }, ())
    }
}

impl Predictor for AnyModel {
    /// `None` for a policy.
    type State = Option<SequenceModelState>;

    fn device(&self) -> Device {
        self.device()
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        match self {
            Self::Sequence(model) => model.check(batch),
            Self::Policy(policy) => policy.check(batch),
        }
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

/// Refuses values of a width other than the `reads` numbers per step that the model reads, where 0 means a model of tokens.
fn expect_values(reads: usize, width: usize) -> Result<()> {
    match reads {
        0 => refuse("tokens, which the model reads", "values"),
        _ if reads == width => Ok(()),
        _ => refuse(&format!("values of width {reads}, which the model reads"), &format!("width {width}")),
    }
}

/// Refuses what a model of `n_outputs` classes or numbers cannot be scored on.
fn expect_targets(batch: &Batch, n_outputs: usize) -> Result<()> {
    let width = match &batch.targets {
        Sequences::Tokens(classes) => {
            let is_scored = |at: usize| batch.mask.as_ref().is_none_or(|mask| mask[at] != 0.0);
            let unknown = classes.iter().enumerate().find(|&(at, &class)| class as usize >= n_outputs && is_scored(at));
            return match unknown {
                Some((_, class)) => refuse(&format!("scored targets below {n_outputs}, the classes of the model"), &format!("{class}")),
                None => Ok(()),
            };
        }
        Sequences::Values { width, .. } => *width,
        Sequences::Quantiles { width, levels, .. } => width * levels.len(),
    };
    if width == n_outputs {
        return Ok(());
    }
    refuse(&format!("targets of {n_outputs} numbers at each step, which the model predicts"), &format!("{width}"))
}

fn refuse(expected: &str, found: &str) -> Result<()> {
    Err(Error::Shape(format!("batch: expected {expected}, found {found}; score the model on what it was made for")))
}

#[cfg(test)]
mod tests {
    use minrnn_model::ModelConfig;

    use super::*;
    use crate::Segments;

    fn model(input_width: usize) -> SequenceModel {
        let vocab_size = if input_width == 0 { 5 } else { 0 };
        let n_outputs = if input_width == 0 { 0 } else { 2 };
        let config = ModelConfig { vocab_size, input_width, n_outputs, d_model: 4, n_layers: 1, ..Default::default() };
        SequenceModel::new(&config, 1, &Device::flex()).unwrap()
    }

    fn refusal(model: &SequenceModel, inputs: Sequences, targets: Sequences, mask: Option<Vec<f32>>) -> String {
        let batch = Batch { inputs, targets, mask, segments: Segments::dense(), batch_size: 1, seq_len: 2 };
        batch.check().unwrap();
        model.check(&batch).err().map_or_else(String::new, |error| error.to_string())
    }

    fn values(width: usize) -> Sequences {
        Sequences::Values { values: vec![0.0; 2 * width], width }
    }

    #[test]
    fn a_model_of_tokens_is_scored_on_tokens_and_classes_that_it_knows() {
        let refusal = |inputs: Sequences, targets, mask| refusal(&model(0), inputs, targets, mask);
        let tokens = |a, b| Sequences::Tokens(vec![a, b]);
        assert_eq!(refusal(tokens(0, 4), tokens(4, 0), None), "");
        assert_eq!(refusal(tokens(0, 4), tokens(9, 0), Some(vec![0.0, 1.0])), "");
        assert!(refusal(tokens(0, 5), tokens(0, 0), None).contains("tokens below 5, found 5"));
        assert!(refusal(tokens(0, 4), tokens(u32::MAX, 0), None).contains("scored targets below 5"));
        assert!(refusal(values(2), tokens(0, 0), None).contains("tokens, which the model reads, found values"));
    }

    #[test]
    fn a_model_of_values_is_scored_on_as_many_as_it_reads_and_predicts() {
        let refusal = |inputs, targets| refusal(&model(3), inputs, targets, None);
        let quantiles = |width| Sequences::Quantiles { values: vec![0.0; 2 * width], width, levels: vec![0.1, 0.9].into() };
        assert_eq!(refusal(values(3), values(2)), "");
        assert_eq!(refusal(values(3), quantiles(1)), "");
        assert!(refusal(values(2), values(2)).contains("values of width 3, which the model reads, found width 2"));
        assert!(refusal(values(3), quantiles(2)).contains("targets of 2 numbers at each step, which the model predicts, found 4"));
        assert!(refusal(vec![0; 2].into(), values(2)).contains("values, which the model reads, found tokens"));
    }
}
