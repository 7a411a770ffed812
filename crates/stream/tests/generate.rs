//! The example that continues a text: any text of its vocabulary, also none.

#[path = "../examples/generate.rs"]
#[allow(dead_code, reason = "the example's own entry is not called")]
mod example;

mod common;

use common::{small, tensors, weights};
use minrnn_model::{MixerKind, ModelConfig, Section, Tokenizer, WeightFormat};
use minrnn_stream::PackedModel;

#[test]
fn an_empty_prompt_is_continued_and_an_unknown_character_is_named() {
    let tokenizer = Tokenizer::characters_of("abé\n");
    let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..small(MixerKind::MinGru) };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    let json = tokenizer.to_json().unwrap();
    let sections = [Section::tokenizer(json.as_bytes())];
    PackedModel::write(&path, &config, &mut weights(&tensors(&config, 5)), WeightFormat::Int8, &sections).unwrap();
    let generated = |prompt: &str| {
        let mut out = Vec::new();
        example::generate(path.to_str().unwrap(), prompt, &mut out).map(|()| String::from_utf8(out).unwrap())
    };
    for prompt in ["", "a", "bé\na"] {
        let text = generated(prompt).unwrap();
        // As many characters as tokens, and the end of the line.
        assert_eq!(text.chars().count(), 201, "{text}");
        assert!(text.chars().all(|character| "abé\n".contains(character)), "{text}");
    }
    let refused = generated("abc").unwrap_err().to_string();
    assert!(refused.contains("character 3 of the text is 'c'"), "{refused}");
}
