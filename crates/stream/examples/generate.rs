//! Continues a text with a packed model, by the runtime alone.
//!
//! ```text
//! minrnn pack RUN --weights int8 -o my.minrnn
//! cargo run --release -p minrnn-stream --example generate -- my.minrnn "Once "
//! ```
//!
//! A vocabulary of pieces (BPE) is read by a build with `--features bpe`.

use std::error::Error;
use std::io::Write;

use minrnn_model::Tokenizer;
use minrnn_stream::{Continuation, PackedModel, Sampler, Sampling, StopStrings, Workspace};

/// Tokens that are generated.
const LENGTH: usize = 200;

/// Writes the text that the packed model at `path` continues `prompt` with to `out`.
pub fn generate(path: &str, prompt: &str, mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let PackedModel { model, tokenizer, .. } = PackedModel::read(path)?;
    let tokenizer = Tokenizer::from_json(&tokenizer.ok_or("the packed model has no tokenizer")?)?;
    let mut prompt = tokenizer.encode(prompt)?;
    if prompt.is_empty() {
        prompt.push(tokenizer.start_token());
    }

    let mut session = model.init_state(1)?;
    let mut workspace = Workspace::new();
    let mut logits = vec![0.0; model.outputs()];
    let sampler = Sampler::new(Sampling { temperature: 0.8, top_k: 40, ..Sampling::default() })?;
    let mut text = Continuation::new(&prompt, sampler, StopStrings::default());

    model.prefill(&[prompt], &mut session, &mut logits, &mut workspace)?;
    for _ in 0..LENGTH {
        let token = text.choose(&mut logits)?;
        let (shown, _) = text.show(&tokenizer, token)?;
        write!(out, "{shown}")?;
        model.step(&[token], &mut session, &mut logits, &mut workspace)?;
    }
    writeln!(out, "{}", text.finish())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("expected a packed model and a text to continue".into());
    };
    generate(&path, &prompt, std::io::stdout())
}
