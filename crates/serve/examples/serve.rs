//! Serves a packed model of text on a port of this machine, until it is killed.
//!
//! ```text
//! cargo run --release -p minrnn-serve --example serve -- my.minrnn
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::Tokenizer;
use minrnn_serve::{ServedModel, Server, Settings};
use minrnn_stream::PackedModel;

/// Serves the packed model at `path` on a port of this machine until `stop` is raised.
fn serve(path: &str, stop: Arc<AtomicBool>) -> Result<(), Box<dyn Error>> {
    let PackedModel { model, tokenizer, .. } = PackedModel::read(path)?;
    let tokenizer = Tokenizer::from_bytes(&tokenizer.ok_or("the model has no tokenizer: it does not read text")?, path)?;
    let models = vec![ServedModel { name: "my".into(), model, tokenizer }];
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().build()?);
    let server = Server::bind(models, Vec::new(), Settings::default(), pool)?;
    println!("listening on http://{}", server.address());
    server.run(move || stop.load(Ordering::Relaxed))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected a packed model")?;
    serve(&path, Arc::new(AtomicBool::new(false)))
}
