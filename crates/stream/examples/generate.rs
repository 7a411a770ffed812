//! Continues a text with a packed character model, by the runtime alone.
//!
//! ```text
//! minrnn pack RUN --weights int8 -o my.minrnn
//! cargo run --release -p minrnn-stream --example generate -- my.minrnn "Once "
//! ```

use std::error::Error;

use minrnn_stream::{PackedModel, Sampler, Sampling, Workspace};

/// Tokens that are generated.
const LENGTH: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("expected a packed model and a text to continue".into());
    };
    let PackedModel { model, tokenizer, .. } = PackedModel::read(path)?;
    let characters = characters(&tokenizer.ok_or("the packed model has no tokenizer")?)?;
    let token = |character| characters.iter().position(|&known| known == character);
    let prompt: Vec<u32> = prompt.chars().filter_map(token).map(|token| token as u32).collect();

    let mut session = model.init_state(1)?;
    let mut workspace = Workspace::new();
    let mut logits = vec![0.0; model.vocab_size()];
    let mut sampler = Sampler::new(Sampling { temperature: 0.8, top_k: 40, ..Sampling::default() })?;

    model.prefill(&[prompt], &mut session, &mut logits, &mut workspace)?;
    for _ in 0..LENGTH {
        let token = sampler.sample(&mut logits, &[])?;
        print!("{}", characters[token as usize]);
        model.step(&[token], &mut session, &mut logits, &mut workspace)?;
    }
    println!();
    Ok(())
}

/// The characters of a character tokenizer's file, in the order of their tokens.
fn characters(file: &[u8]) -> Result<Vec<char>, Box<dyn Error>> {
    let file: serde_json::Value = serde_json::from_slice(file)?;
    let characters = file["characters"].as_str().ok_or("this is not a character model")?;
    Ok(characters.chars().collect())
}
