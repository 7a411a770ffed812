//! The files that training resumes from: `progress.json`, a zero byte, `training.safetensors`.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use minrnn::train::{Experiment, RunDir, Trainer};
use minrnn_fuzz::{folder, joined, parts, seeds};

const SETTINGS: [&str; 12] = [
    "task=selective-copying",
    "copy_length=8",
    "copy_tokens=2",
    "batch_size=1",
    "d_model=2",
    "expansion=1",
    "n_layers=1",
    "ff=none",
    "max_iterations=3",
    "eval_every=2",
    "eval_iterations=1",
    "threads=1",
];

fn experiment() -> Experiment {
    Experiment::parse("", &SETTINGS.map(str::to_owned)).expect("the settings fit")
}

/// The checkpoint of a short training.
static CHECKPOINT: LazyLock<PathBuf> = LazyLock::new(|| {
    let run = RunDir::create(folder().join("run")).expect("it can be made");
    let mut trainer = Trainer::new(experiment(), run).expect("the experiment can be run");
    for _ in 0..2 {
        trainer.update().expect("the loss is a number");
    }
    trainer.save(false).expect("it can be written")
});

fuzz_target!(
    init: seeds("resume", || {
        let files = ["progress.json", "training.safetensors"].map(|name| fs::read(CHECKPOINT.join(name)).expect("it was written"));
        let evaluated = br#"{"iteration":2,"evaluated_at":2,"best":[{"iteration":2,"score":0.5}],"without_gain":1,"tokens":9,"seconds":0.5}"#;
        vec![joined(&[&files[0], &files[1]]), joined(&[evaluated, &files[1]])]
    }),
    |data: &[u8]| {
        let Some([progress, training]) = parts(data) else { return };
        fs::create_dir_all(&*CHECKPOINT).expect("it can be made");
        for (name, bytes) in [("progress.json", progress), ("training.safetensors", training)] {
            fs::write(CHECKPOINT.join(name), bytes).expect("it can be written");
        }
        let run = RunDir::open(folder().join("run")).expect("the run is there");
        let Ok(mut trainer) = Trainer::new(experiment(), run) else { return };
        // Moments may be anything; an update must end with numbers or with an error.
        let _ = trainer.update();
        let _ = trainer.final_report(&AtomicBool::new(false));
    }
);
