//! Classifies a live stream of sensor values sample by sample, with the runtime alone. At its end it prints what the model beside this file, a session
//! and a sample cost.
//!
//! ```text
//! cargo run --release -p minrnn-stream --example sensors              classify a simulated stream
//! cargo run --release -p minrnn-stream --example sensors -- table F   write a table to train on to the file F
//! ```
//!
//! The model reads the value itself and gives a probability for each kind of movement. A stream has no end, so its head sees the last step and not the
//! mean of all (`pooling = last`). An earlier version made it; its settings would now be written:
//!
//! ```text
//! cargo run --release -p minrnn-stream --example sensors -- table sensors.csv
//! minrnn train --task classify --data sensors.csv --group recording --target movement --out run --set mixer=min-gru --set d_model=24 --set n_layers=2 \
//!     --set expansion=1 --set ff_mult=2 --set pooling=last --set dropout=0.1 --set train_fraction=0.7 --set keep=best --set refit=false \
//!     --set batch_size=32 --set lr=3e-3 --set min_lr=1e-4 --set max_iterations=3000
//! minrnn pack run --weights int8 -o model.minrnn
//! ```

pub mod signal;

use std::error::Error;
use std::time::Instant;

use minrnn_model::TableTask;
use minrnn_stream::{Model, PackedModel, TableSessions};
use signal::{CLASSES, Signal};

/// A stream being classified: one session of the model.
pub struct Classifier {
    model: Model,
    /// What the model's inputs and outputs mean.
    table: TableTask,
    stream: TableSessions,
}

impl Classifier {
    /// Starts a stream with a packed model.
    pub fn new(packed: &[u8]) -> Result<Self, Box<dyn Error>> {
        let PackedModel { model, table, .. } = PackedModel::from_bytes(packed)?;
        let table = table.ok_or("the packed model was not trained on a table")?;
        let stream = TableSessions::new(&model, &table, 1)?;
        Ok(Self { model, table, stream })
    }

    /// Reads one sample and gives the likeliest kind of movement with its probability.
    pub fn sample(&mut self, value: f32) -> Result<(&str, f64), Box<dyn Error>> {
        let shares = self.stream.step(&self.model, &self.table, &[0], &[f64::from(value)])?;
        let shares = self.table.classes().iter().zip(shares);
        let (class, share) = shares.max_by(|(_, a), (_, b)| a.total_cmp(b)).ok_or("the model knows no classes")?;
        Ok((class, *share))
    }
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
            let (found, _) = classifier.sample(value)?;
            elapsed += start.elapsed().as_secs_f64();
            line.extend(found.chars().next());
            noticed = noticed.or((found == class.name).then_some(i));
            if i >= signal::SETTLE {
                settled += 1;
                right += usize::from(found == class.name);
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
        ["table", path] => Ok(std::fs::write(path, signal::training_table(4000))?),
        _ => Err("expected nothing, or 'table FILE'".into()),
    }
}
