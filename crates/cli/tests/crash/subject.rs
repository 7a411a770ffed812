//! The trainings that are interrupted, and what must hold of one whatever interrupted it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Finished, Outcome, Scratch, Training, leftovers, minrnn, shown};

/// A training that is interrupted again and again, and one that never is.
pub struct Subject {
    pub training: Training,
    whole: Outcome,
    best: Vec<u8>,
}

impl Subject {
    /// Evaluations, checkpoints between them, kept and pruned ones, and the final report in a few updates.
    pub fn new(scratch: &Scratch, make: fn(&Scratch, &str, &[&str]) -> Training, settings: &[&str]) -> Self {
        let tiny = ["d_model=8", "max_iterations=8", "eval_every=2", "eval_iterations=1", "checkpoint_every=3", "batch_size=2"];
        let settings = [&tiny, settings].concat();
        let (whole, training) = (make(scratch, "whole", &settings), make(scratch, "watched/torn", &settings));
        whole.run().ok();
        fs::create_dir_all(scratch.path("watched")).unwrap();
        let best = fs::read(whole.checkpoint("best").join("model.safetensors")).unwrap();
        Self { whole: whole.outcome(), best, training }
    }

    pub fn text(scratch: &Scratch) -> Self {
        // With state carried from window to window, and the longest way from a text to tokens.
        Self::new(scratch, Scratch::training, &["tokenizer=bpe", "bpe_vocab_size=270", "sampling=stream", "dropout=0.1"])
    }

    pub fn task(scratch: &Scratch) -> Self {
        Self::new(scratch, Scratch::task, &["copy_length=12", "copy_tokens=2", "patience=3"])
    }

    /// The command that begins it.
    pub fn command(&self) -> Command {
        self.training.command(&[])
    }

    /// Continues in the directory of the training, whatever was left in it, and compares the outcome with the expected one.
    pub fn recover(&self, moment: &str) {
        let out = &self.training.out;
        let resume = || Finished::of(&mut minrnn(&["train", "--resume", "--out", &shown(out)]));
        if out.join("checkpoints/best").exists() {
            let scored = Finished::of(&mut minrnn(&["eval", &shown(out), "--threads", "1"]));
            assert_eq!(scored.code, Some(0), "{moment}: {scored:?}");
        }
        let finished = if out.join("experiment.toml").exists() {
            resume()
        } else {
            if out.exists() {
                // No run yet: nothing else is trained in its place.
                assert_eq!(resume().code, Some(2), "{moment}");
            }
            self.training.run()
        };
        assert_eq!(finished.code, Some(0), "{moment}: {finished:?}");
        let outcome = self.training.outcome();
        assert_eq!(outcome.progress, self.whole.progress, "{moment}");
        assert_eq!(outcome.metrics, self.whole.metrics, "{moment}");
        assert!(outcome.weights == self.whole.weights, "{moment}: other weights");
        assert!(outcome.training == self.whole.training, "{moment}: other moments or state");
        let best = fs::read(self.training.checkpoint("best").join("model.safetensors")).unwrap();
        assert!(best == self.best, "{moment}: another best model");
        assert_eq!(leftovers(out), [] as [std::path::PathBuf; 0], "{moment}");
    }

    /// Clears the way for another try.
    pub fn clear(&self) {
        remove(&self.training.out);
    }
}

pub fn remove(directory: &Path) {
    if directory.exists() {
        fs::remove_dir_all(directory).unwrap();
    }
}
