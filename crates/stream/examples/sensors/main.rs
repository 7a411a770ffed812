//! Classifies a live stream of sensor values sample by sample, with the runtime alone: the model beside this file is 21 kB, a session
//! is 384 bytes, and a sample costs about three microseconds.
//!
//! ```text
//! cargo run --release -p minrnn-stream --example sensors              classify a simulated stream
//! cargo run --release -p minrnn-stream --example sensors -- text F    write training text to the file F
//! cargo run --release -p minrnn-stream --example sensors -- pack RUN F   pack the checkpoint directory RUN as the file F
//! ```
//!
//! A value becomes one of 16 letters. The model is a character model trained on lines of such letters, a question mark and the class
//! of the signal that stands before it:
//!
//! ```text
//! hhihghhihgjlnonlifcbcegjlnomkhdcbdfhkmoonkhe?W
//! ```
//!
//! Live, every sample is one step. To ask for the class, the state is copied, a question mark read by the copy, and the likeliest class
//! letter taken; the stream itself never sees a question. The model was made by
//!
//! ```text
//! cargo run --release -p minrnn-stream --example sensors -- text sensors.txt
//! minrnn train --data sensors.txt --out run --set d_model=24 --set n_layers=2 --set conv=false --set ff_mult=2 --set dropout=0 \
//!     --set seq_len=256 --set lr=5e-3 --set min_lr=5e-4
//! cargo run --release -p minrnn-stream --example sensors -- pack run/checkpoints/ITER model.minrnn
//! ```

pub mod signal;

use std::error::Error;
use std::time::Instant;

use minrnn_model::{WeightFormat, read_checkpoint};
use minrnn_stream::{Model, PackedModel, State, Workspace};
use signal::{CLASSES, Class, Signal};

/// What the model was trained to answer.
const QUESTION: char = '?';

/// A stream being classified: one session of the model.
pub struct Classifier {
    model: Model,
    /// Token of each character of the training text, as its tokenizer numbers them.
    tokens: Vec<char>,
    stream: State,
    asked: State,
    workspace: Workspace,
    logits: Vec<f32>,
}

impl Classifier {
    /// Starts a stream with a packed model.
    pub fn new(packed: &[u8]) -> Result<Self, Box<dyn Error>> {
        let PackedModel { model, tokenizer, .. } = PackedModel::from_bytes(packed)?;
        let tokens = characters(&tokenizer.ok_or("the packed model has no tokenizer")?)?;
        let (stream, asked, logits) = (model.init_state(1)?, model.init_state(1)?, vec![0.0; model.vocab_size()]);
        Ok(Self { model, tokens, stream, asked, workspace: Workspace::new(), logits })
    }

    /// Reads one sample and gives the likeliest class of the signal.
    pub fn sample(&mut self, value: f32) -> Result<&'static Class, Box<dyn Error>> {
        let token = self.token(signal::letter(value))?;
        self.model.step(&[token], &mut self.stream, &mut self.logits, &mut self.workspace)?;
        let question = self.token(QUESTION)?;
        self.asked.copy_row(0, &self.stream, 0)?;
        self.model.step(&[question], &mut self.asked, &mut self.logits, &mut self.workspace)?;
        let mut best = (&CLASSES[0], f32::NEG_INFINITY);
        for class in &CLASSES {
            let logit = self.logits[self.token(class.letter)? as usize];
            if logit > best.1 {
                best = (class, logit);
            }
        }
        Ok(best.0)
    }

    fn token(&self, character: char) -> Result<u32, Box<dyn Error>> {
        let token = self.tokens.iter().position(|&known| known == character);
        Ok(token.ok_or_else(|| format!("the model does not know '{character}'"))? as u32)
    }
}

/// The characters of a character tokenizer's file, in the order of their tokens.
fn characters(file: &[u8]) -> Result<Vec<char>, Box<dyn Error>> {
    let file: serde_json::Value = serde_json::from_slice(file)?;
    let characters = file["characters"].as_str().ok_or("the tokenizer of the packed model lists no characters")?;
    Ok(characters.chars().collect())
}

/// Classifies simulated signals, a line for each movement, and reports how long a change takes to be noticed.
fn classify(packed: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut classifier = Classifier::new(packed)?;
    let mut signal = Signal::new(2024);
    let (mut right, mut settled) = (0, 0);
    let mut elapsed = 0.0;
    for (segment, class) in (0..12).zip(CLASSES.iter().cycle().step_by(3)) {
        signal.begin(class);
        let (mut line, mut noticed) = (String::new(), None);
        for i in 0..80 {
            let value = signal.value();
            let start = Instant::now();
            let found = classifier.sample(value)?;
            elapsed += start.elapsed().as_secs_f64();
            line.push(found.letter);
            noticed = noticed.or((found.letter == class.letter).then_some(i));
            if i >= signal::SETTLE {
                settled += 1;
                right += usize::from(found.letter == class.letter);
            }
        }
        println!("{segment:2} {:8} noticed after {:>2} samples: {line}", class.name, noticed.map_or("—".to_owned(), |i| i.to_string()));
    }
    println!("right: {:.1} % of the samples more than {} after a change", 100.0 * right as f64 / settled as f64, signal::SETTLE);
    println!("{:.2} µs a sample, {} bytes a session, {} bytes of model", 1e6 * elapsed / 960.0, classifier.stream.bytes(), packed.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => classify(include_bytes!("model.minrnn")),
        ["text", path] => Ok(std::fs::write(path, signal::training_text(20_000))?),
        ["pack", run, path] => {
            let (config, mut weights) = read_checkpoint(run)?;
            let tokenizer = std::fs::read(std::path::Path::new(run).join("tokenizer.json"))?;
            PackedModel::write(path, &config.model, &mut weights, WeightFormat::Int8, Some(&tokenizer))?;
            Ok(())
        }
        _ => Err("expected nothing, 'text FILE', or 'pack CHECKPOINT FILE'".into()),
    }
}
