//! A Transformer on the command line: trained, scored, generated with, packed; its state grows.

mod common;

use common::{Finished, Scratch, minrnn, shown};

/// A run of nanoGPT's blocks, and one of Llama's with a window.
const NANO_GPT: [&str; 7] =
    ["mixer=attention", "positions=learned", "max_seq_len=64", "norm=layer", "bias=false", "init=gpt", "tie_embeddings=true"];
const LLAMA: [&str; 4] = ["mixer=attention", "positions=rotary", "ff=swi-glu", "window=8"];

fn generate(args: &[&str]) -> Finished {
    Finished::of(minrnn(&["generate"]).args(args))
}

#[test]
fn it_trains_scores_and_writes_text() {
    for settings in [&NANO_GPT[..], &LLAMA] {
        let scratch = Scratch::new();
        let training = scratch.training("run", settings);
        training.run().ok();
        let run = shown(&training.out);
        Finished::of(&mut minrnn(&["eval", &run, "--batches", "1"])).ok();
        Finished::of(&mut minrnn(&["inspect", &run])).ok();

        let write = |more: &[&str]| generate(&[&[run.as_str(), "--prompt", "the ", "--temperature", "0"], more].concat()).ok().stdout;
        // Beyond the learned positions, and beyond the window.
        let whole = write(&["--max-tokens", "80"]);
        assert!(whole.len() >= 80, "{whole}");
        let session = shown(&scratch.path("session"));
        let first = write(&["--max-tokens", "30", "--save-session", &session]);
        let rest = generate(&[&run, "--load-session", &session, "--max-tokens", "50"]).ok().stdout;
        assert_eq!(format!("{}{}", first.trim_end_matches('\n'), rest.trim_start_matches('\n')).replace('\n', ""), whole.replace('\n', ""));
        // Prompts of different lengths share a cache.
        let both =
            generate(&[&run, "--prompt", "the ", "--prompt", "quick brown", "--batch", "2", "--temperature", "0", "--max-tokens", "9"]);
        assert!(both.ok().stdout.contains(&whole[..9]));
    }
}

#[test]
fn a_packed_one_writes_the_same_text_and_says_how_its_state_grows() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &LLAMA);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("model.minrnn")));
    let told = Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok().stdout;
    // One block's keys and values of 16 channels for the 7 tokens before the last; and a position.
    assert!(told.contains("one more session: 4 bytes, and 128 for each step it has read, up to 7 steps (900 bytes)"), "{told}");
    let inspected = Finished::of(&mut minrnn(&["inspect", &packed])).ok().stdout;
    assert!(inspected.contains("4 bytes, and 128 for each step"), "{inspected}");
    let write = |model: &str| generate(&[model, "--prompt", "the ", "--temperature", "0", "--max-tokens", "40"]).ok().stdout;
    assert_eq!(write(&packed), write(&run));
    let text = shown(&scratch.text("other.txt"));
    let scored = Finished::of(&mut minrnn(&["eval", &packed, "--data", &text, "--against", &run])).ok().stdout;
    assert!(scored.contains("100.00 %"), "{scored}");
}

#[test]
fn what_cannot_be_is_a_sentence() {
    let scratch = Scratch::new();
    scratch.training("run", &["mixer=attention", "n_heads=3"]).run().refused(&["n_heads must divide d_model, found 3 heads for 16"]);
    scratch.training("run", &["mixer=attention", "max_seq_len=8"]).run().refused(&["seq_len = 16 is beyond max_seq_len = 8"]);
    scratch.training("run", &["positions=rotary"]).run().refused(&["positions = rotary", "mixer = min-gru"]);
}
