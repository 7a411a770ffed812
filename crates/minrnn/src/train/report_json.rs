//! The outcome of a run as JSON.

use serde_json::{Value, json};

use super::evaluate::Evaluation;
use super::trainer::FinalReport;

impl FinalReport {
    /// Everything except single sequences as a JSON object, with measures in the units of the data.
    pub fn to_json(&self) -> Value {
        let kept: Vec<Value> = self.kept.iter().map(|(iteration, found)| with_iteration(*iteration, found)).collect();
        json!({
            "checkpoint": self.checkpoint.to_string_lossy(),
            "scored": self.scored.to_string_lossy(),
            "iteration": self.iteration,
            "loss": self.fixed.loss,
            "bits_per_byte": self.bits_per_byte,
            "accuracy": self.fixed.accuracy,
            "predictions": self.fixed.n_scored,
            "shortened_to": self.shortened_to,
            "measures": self.compared.iter().map(|measure| measure.to_json()).collect::<Vec<_>>(),
            "confusion": self.confusion.as_ref().map(|confusion| confusion.to_json()),
            "kept": kept,
            "temperature": self.temperature,
            "spreads": self.spreads.as_ref().map(|spreads| spreads.factors()),
            "full_pass": self.full_pass.as_ref().map(of_evaluation),
        })
    }
}

fn of_evaluation(found: &Evaluation) -> Value {
    json!({"loss": found.loss, "accuracy": found.accuracy, "predictions": found.n_scored})
}

fn with_iteration(iteration: u64, found: &Evaluation) -> Value {
    let mut object = of_evaluation(found);
    object["iteration"] = iteration.into();
    object
}
